//===- OptTool.cpp - every pass on IR files, as mlir-opt ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestPasses.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Support/Debug.h"
#include "ckopt/Support/GuardedOutput.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "ckopt/Tool/Main.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Async/IR/Async.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Complex/IR/Complex.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Shape/IR/Shape.h"
#include "mlir/Dialect/SparseTensor/IR/SparseTensor.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

/// Hides flags that LLVM's code generators register, since --help is about
/// passes. --help-hidden still lists them.
static void hideFlagsOfLibraries() {
  for (auto &[name, flag] : llvm::cl::getRegisteredOptions())
    if (name != "help" && name != "version")
      flag->setHiddenFlag(llvm::cl::Hidden);
}

void ckopt::registerOptDialects(mlir::DialectRegistry &registry) {
  registry.insert<ckopt::CkoptDialect, mlir::func::FuncDialect,
                  mlir::arith::ArithDialect>();
  // remat also works on functions of these dialects.
  registry.insert<mlir::affine::AffineDialect, mlir::async::AsyncDialect,
                  mlir::bufferization::BufferizationDialect,
                  mlir::cf::ControlFlowDialect, mlir::complex::ComplexDialect,
                  mlir::DLTIDialect, mlir::linalg::LinalgDialect,
                  mlir::math::MathDialect, mlir::memref::MemRefDialect,
                  mlir::quant::QuantDialect, mlir::scf::SCFDialect,
                  mlir::shape::ShapeDialect,
                  mlir::sparse_tensor::SparseTensorDialect,
                  mlir::tensor::TensorDialect, mlir::tosa::TosaDialect>();
  // Kernels in block form use these dialects.
  registry.insert<mlir::gpu::GPUDialect, mlir::LLVM::LLVMDialect,
                  mlir::vector::VectorDialect>();
  ckopt::registerAllDialects(registry);
}

int ckopt::optMain(int argc, char **argv) {
  ckopt::guardOutput("ckopt-opt");
  llvm::cl::SetVersionPrinter([](llvm::raw_ostream &os) {
    os << ckopt::versionLine("ckopt-opt", LLVM_VERSION_STRING) << "\n";
  });
  hideFlagsOfLibraries();
  llvm::cl::opt<bool> printsCounters(
      "ckopt-stats",
      llvm::cl::desc("Print how often passes and planner did what"));
  mlir::DialectRegistry registry;
  ckopt::registerOptDialects(registry);
  ckopt::registerAllPasses();
  ckopt::registerBlockToPTXPasses();
  ckopt::registerTestPasses();
  ckopt::registerPrintPasses();
  llvm::LogicalResult result =
      mlir::MlirOptMain(argc, argv, "ckopt optimizer driver\n", registry);
  if (printsCounters)
    ckopt::debug::printCounters(llvm::errs());
  return mlir::asMainReturnCode(result);
}
