/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/* Runs a pipeline of ckopt's passes on IR in a file, and prints the result:
 *
 *   mlir-c-client in.mlir "func.func(remat{budget=min})"
 */
#include <ckopt-c/mlir.h>
#include <mlir-c/Pass.h>

#include <stdio.h>

static void print(MlirStringRef text, void *stream) {
  fwrite(text.data, 1, text.length, stream);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: mlir-c-client FILE PIPELINE\n");
    return CKOPT_USAGE;
  }
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  if (ckopt_register_dialects(registry) || ckopt_register_passes()) {
    fprintf(stderr, "mlir-c-client: %s\n", ckopt_last_error());
    return CKOPT_INTERNAL;
  }
  MlirContext context =
      mlirContextCreateWithRegistry(registry, /*threadingEnabled=*/false);
  mlirDialectRegistryDestroy(registry);
  MlirModule module = mlirModuleCreateParseFromFile(
      context, mlirStringRefCreateFromCString(argv[1]));
  if (mlirModuleIsNull(module))
    return CKOPT_INPUT_ERROR; /* MLIR has said why */
  MlirPassManager passes = mlirPassManagerCreate(context);
  if (mlirLogicalResultIsFailure(mlirOpPassManagerAddPipeline(
          mlirPassManagerGetAsOpPassManager(passes),
          mlirStringRefCreateFromCString(argv[2]), print, stderr)))
    return CKOPT_USAGE;
  MlirOperation operation = mlirModuleGetOperation(module);
  if (mlirLogicalResultIsFailure(mlirPassManagerRunOnOp(passes, operation)))
    return CKOPT_INPUT_ERROR;
  mlirOperationPrint(operation, print, stdout);
  mlirPassManagerDestroy(passes);
  mlirModuleDestroy(module);
  mlirContextDestroy(context);
  return 0;
}
