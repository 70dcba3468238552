//===- OptTool.cpp - every pass on IR files, as mlir-opt ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RunOpt.h"
#include "TestPasses.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
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

static void registerAll(mlir::DialectRegistry &registry) {
  ckopt::registerOptDialects(registry);
  ckopt::registerAllPasses();
  ckopt::registerBlockToPTXPasses();
  ckopt::registerTestPasses();
  ckopt::registerPrintPasses();
}

int ckopt::optMain(int argc, char **argv) {
  return runOpt(argc, argv, "ckopt-opt", registerAll);
}
