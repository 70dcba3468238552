//===- ckopt-reduce.cpp - the smallest IR that still shows a defect -------===//
#include "ckopt/Pipelines/Pipelines.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  ckopt::registerAllDialects(registry);
  ckopt::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
