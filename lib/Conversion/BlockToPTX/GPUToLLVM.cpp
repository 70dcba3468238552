//===- GPUToLLVM.cpp - from the GPU dialect to LLVM and NVVM --------------===//
//
// Upstream's patterns, composed without those of libdevice: what they would
// turn into calls of __nv_* functions becomes LLVM's intrinsics, all of which
// the target selects (Selectable.cpp saw to that).
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "ckopt/Conversion/BlockToPTX/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ckopt {
#define GEN_PASS_DEF_GPUTOLLVMPASS
#include "ckopt/Conversion/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Vector operations that the conversion itself does not know.
static LogicalResult simplifyVectors(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

static LogicalResult convert(gpu::GPUModuleOp module) {
  MLIRContext *ctx = module.getContext();
  LowerToLLVMOptions options(ctx, DataLayout(module));
  options.useBarePtrCallConv = true;
  LLVMTypeConverter converter(ctx, options);
  configureGpuToNVVMTypeConverter(converter);
  RewritePatternSet patterns(ctx);
  populateGpuToNVVMConversionPatterns(converter, patterns);
  populateMathToLLVMConversionPatterns(converter, patterns);
  arith::populateArithToLLVMConversionPatterns(converter, patterns);
  cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  index::populateIndexToLLVMConversionPatterns(converter, patterns);
  ub::populateUBToLLVMConversionPatterns(converter, patterns);
  populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
  populateVectorToLLVMConversionPatterns(
      converter, patterns, /*reassociateFPReductions=*/false,
      /*force32BitVectorIndices=*/false, /*useVectorAlignment=*/false);
  LLVMConversionTarget target(*ctx);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addIllegalDialect<arith::ArithDialect, cf::ControlFlowDialect,
                           gpu::GPUDialect, math::MathDialect,
                           memref::MemRefDialect, ub::UBDialect,
                           vector::VectorDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Denormals of f32 are zero, as in the CPU's float mode.
static void flushDenormals(gpu::GPUModuleOp module) {
  Builder b(module.getContext());
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    function.setPassthroughAttr(b.getArrayAttr({b.getStrArrayAttr(
        {"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
}

namespace {
struct GPUToLLVM : ckopt::impl::GPUToLLVMPassBase<GPUToLLVM> {
  using GPUToLLVMPassBase::GPUToLLVMPassBase;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (failed(simplifyVectors(module)) || failed(convert(module)))
      return signalPassFailure();
    if (!keepDenormals)
      flushDenormals(module);
  }
};
} // namespace
