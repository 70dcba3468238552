//===- Passes.td - block form to CPU loops and to PTX -------*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_CUDA_BLOCKTOPTX_PASSES
#define CKOPT_TARGET_CUDA_BLOCKTOPTX_PASSES

include "mlir/Pass/PassBase.td"

def BlockToLoopsPass : Pass<"block-to-loops", "mlir::ModuleOp"> {
  let summary = "Turns kernels in block form into loops over blocks and threads";
  let description = [{
    Functions keep their launch parameters; shared and private buffers become
    local ones, filled anew for each block. A last parameter says whether blocks
    and threads run from the last to the first and buffers start as 0xFF. Adds
    to each a wrapper `SYMBOL__emul(void *const *params)`, for which it is false,
    and `SYMBOL__emul_descending`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::LLVM::LLVMDialect", "::mlir::math::MathDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"];
}

def BlockToGPUPass : Pass<"block-to-gpu", "mlir::ModuleOp"> {
  let summary = "Turns kernels in block form into gpu.func of one gpu.module";
  let description = [{
    Thread foralls become guarded code between barriers, of which those that no
    access needs are removed; the last 32 lanes of trees become shuffles. The
    gpu.module has the name `ckopt_kernels`.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::func::FuncDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect"];
}

def MergeLaneStepsPass : Pass<"merge-lane-steps", "mlir::ModuleOp"> {
  let summary = "Turns runs of five lane steps of kernels in block form into shuffles";
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::gpu::GPUDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect"];
}

def BoundUnrollingPass : Pass<"bound-unrolling", "mlir::gpu::GPUModuleOp"> {
  let summary = "Keeps LLVM from unrolling loops of many iterations whole";
  let dependentDialects = ["::mlir::LLVM::LLVMDialect"];
}

def GPUToLLVMPass : Pass<"gpu-kernels-to-llvm", "mlir::gpu::GPUModuleOp"> {
  let summary = "Lowers what block-to-gpu made to LLVM and NVVM, without libdevice";
  let options = [
    Option<"keepDenormals", "keep-denormals", "bool", "false",
           "f32 denormals are numbers rather than zero">,
    Option<"programmatic", "programmatic", "bool", "false",
           "Kernels wait for those before them by themselves">,
  ];
  let dependentDialects = [
    "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect"];
}

def PrintPtxPass : Pass<"print-ptx", "mlir::ModuleOp"> {
  let summary = "Prints the PTX of kernels in block form, for tests";
  let options = [
    Option<"sm", "sm", "unsigned", "80", "80 or 90">,
    Option<"keepDenormals", "keep-denormals", "bool", "false",
           "f32 denormals are numbers rather than zero">,
    Option<"tf32", "tf32", "bool", "false",
           "Products may round their operands to TF32">,
    Option<"programmatic", "programmatic", "bool", "false",
           "Kernels wait for those before them by themselves">,
    Option<"report", "report", "bool", "false",
           "Print what is known of each kernel instead">,
    Option<"assemble", "assemble", "bool", "false",
           "Print what ptxas says of each kernel instead">,
  ];
}

#endif // CKOPT_TARGET_CUDA_BLOCKTOPTX_PASSES
