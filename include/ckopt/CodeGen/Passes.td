//===- Passes.td - code for kernels -------------------------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_CODEGEN_PASSES
#define CKOPT_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def AnnotateKernelsPass : Pass<"annotate-kernels", "mlir::ModuleOp"> {
  let summary = "Sets workspace and reuse of every kernel call from what its code will need";
  let description = [{
    Plans each kernel once (no code is made) and writes to its calls: `workspace`,
    the bytes of scratch of the generated stages or of the library primitive,
    and `reuse`, the pairs of operands and results that may share bytes. Reports
    every kernel that has no code, not only the first. The module gets the
    target's name (`ckopt.target`), whose rates `remat` weighs kernels by.
  }];
  let options = [
    Option<"threads", "threads", "unsigned", "1",
           "Threads that will run the step (library workspaces depend on it)">,
    Option<"vectorBits", "vector-bits", "unsigned", "512", "Bits of a vector">,
    Option<"target", "target", "std::string", "\"cpu\"",
           "Name of the target that the kernels are for: cpu, cuda">,
    Option<"libraryWorkspace", "library-workspace", "int64_t", "0",
           "cuda: bytes of workspace of each call of cuBLASLt or cuDNN; 0: our own contractions">,
    Option<"attentionWorkspace", "attention-workspace", "int64_t", "0",
           "cuda: bytes of workspace of each call of cuDNN's attention at most">,
    Option<"multiprocessors", "multiprocessors", "int32_t", "0",
           "cuda: multiprocessors that contractions and sums of columns are divided for; 0: those of an H100">,
    Option<"sharedBytes", "shared-bytes", "int32_t", "0",
           "cuda: shared memory that a block may have; 0: what every device from compute capability 8.0 on has">,
    Option<"processorShared", "processor-shared", "int32_t", "0",
           "cuda: shared memory of all blocks on a multiprocessor; 0: what devices of the smallest such shared-bytes have">,
    Option<"ownBesideLibraries", "own-beside-libraries", "bool", "false",
           "cuda: our own contractions, too, for devices whose libraries refuse">,
    Option<"contractions", "contractions", "std::string", "\"\"",
           "cuda: overrules tiles by shape, for tests: tile=64,stages=1,parts=2">,
    Option<"deviceRates", "device-rates", "std::string", "\"\"",
           "cuda: whose rates plans weigh kernels by: a100, h100, h200, l4, or a file of ckopt-profile/1">,
    Option<"matmulPrecision", "matmul-precision", "std::string", "\"f32\"",
           "Class of products of f32, as round-products was given it; cuda: what operands are rounded to">,
    Option<"cpuClass", "cpu-class", "std::string", "\"\"",
           "cpu: class of processors whose library table decides; empty: this machine's">,
    Option<"libraryTable", "library-table", "std::string", "\"\"",
           "cpu: a file of rules that stand before the built-in ones">,
  ];
  // Of the code that is tried to see how it vectorizes.
  let dependentDialects = [
    "::ckopt::block::BlockDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def LowerKernelsPass : Pass<"lower-kernels", "mlir::ModuleOp"> {
  let summary = "Adds the stage functions of all generated kernels, for tests";
  let options = [
    Option<"threads", "threads", "unsigned", "1", "Threads of library kernels">,
    Option<"vectorBits", "vector-bits", "unsigned", "512", "Bits of a vector">,
    Option<"target", "target", "std::string", "\"cpu\"",
           "Name of the target: cpu (functions of ranges), cuda (launches in block form)">,
    Option<"matmulPrecision", "matmul-precision", "std::string", "\"f32\"",
           "Class of products of f32, as round-products was given it; cuda: what operands are rounded to">,
    Option<"cpuClass", "cpu-class", "std::string", "\"\"",
           "cpu: class of processors whose library table decides; empty: this machine's">,
    Option<"libraryTable", "library-table", "std::string", "\"\"",
           "cpu: a file of rules that stand before the built-in ones">,
    Option<"toLLVM", "to-llvm", "bool", "false",
           "Erase everything else and lower the stages to the LLVM dialect">,
    Option<"report", "report", "bool", "false",
           "Only remark, on each kernel, how it runs and vectorizes">,
  ];
  let dependentDialects = [
    "::ckopt::block::BlockDialect",
    "::mlir::arith::ArithDialect", "::mlir::cf::ControlFlowDialect",
    "::mlir::func::FuncDialect", "::mlir::gpu::GPUDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

#endif // CKOPT_CODEGEN_PASSES
