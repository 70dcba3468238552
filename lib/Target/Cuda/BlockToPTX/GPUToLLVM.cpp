//===- GPUToLLVM.cpp - from the GPU dialect to LLVM and NVVM --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Converts kernels with upstream's patterns, but without those for libdevice:
// operations that these turn into calls of __nv_* functions become LLVM's
// intrinsics, all of which the target selects (Selectable.cpp checked that).
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Dialect/Vector/Transforms/VectorRewritePatterns.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace ckopt {
#define GEN_PASS_DEF_GPUTOLLVMPASS
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

/// Rewrites vector operations that the conversion does not handle.
static LogicalResult simplifyVectors(gpu::GPUModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  vector::populateVectorBroadcastLoweringPatterns(patterns);
  vector::populateVectorShapeCastLoweringPatterns(patterns);
  vector::populateVectorMaskOpLoweringPatterns(patterns);
  vector::populateVectorInsertExtractStridedSliceTransforms(patterns);
  return applyPatternsGreedily(module, std::move(patterns));
}

namespace {
/// Extends 16-bit floats to f32, to the same bits, in a way that LLVM does not
/// see through. LLVM would move an extension behind comparisons and maxima of
/// 16-bit floats, which the target prints with `.ftz`. For f16, that flushes
/// small numbers to zero; for bf16 (sm_90), PTX has no such instruction.
struct HideExtension : OpRewritePattern<arith::ExtFOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(arith::ExtFOp op,
                                PatternRewriter &rewriter) const override {
    Type half = getElementTypeOrSelf(op.getIn().getType());
    if (!getElementTypeOrSelf(op.getType()).isF32() ||
        !(half.isF16() || half.isBF16()))
      return failure();
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    auto vector = dyn_cast<VectorType>(op.getType());
    if (!vector) {
      rewriter.replaceOp(op, extend(b, op.getIn()));
      return success();
    }
    if (vector.getRank() != 1 || vector.isScalable())
      return failure();
    SmallVector<Value> elements;
    for (int64_t i = 0; i < vector.getNumElements(); ++i)
      elements.push_back(
          extend(b, vector::ExtractOp::create(b, op.getIn(), i)));
    rewriter.replaceOp(op, vector::FromElementsOp::create(b, vector, elements));
    return success();
  }

private:
  static Value extend(ImplicitLocOpBuilder &b, Value half) {
    Value bits = arith::BitcastOp::create(b, b.getI16Type(), half);
    if (half.getType().isF16())
      return LLVM::CallIntrinsicOp::create(
                 b, b.getF32Type(),
                 b.getStringAttr("llvm.convert.from.fp16.f32"), bits)
          .getResult(0);
    Value word = arith::ExtUIOp::create(b, b.getI32Type(), bits);
    Value by = arith::ConstantIntOp::create(b, b.getI32Type(), 16);
    word = arith::ShLIOp::create(b, word, by);
    return arith::BitcastOp::create(b, b.getF32Type(), word);
  }
};
} // namespace

/// Computes 16-bit floats in f32 with one rounding, as the CPU does.
static LogicalResult widenHalves(gpu::GPUModuleOp module) {
  MLIRContext *ctx = module.getContext();
  TypeConverter converter;
  arith::populateEmulateUnsupportedFloatsConversions(
      converter, {Float16Type::get(ctx), BFloat16Type::get(ctx)},
      Float32Type::get(ctx));
  RewritePatternSet patterns(ctx);
  arith::populateEmulateUnsupportedFloatsPatterns(patterns, converter);
  ConversionTarget target(*ctx);
  arith::populateEmulateUnsupportedFloatsLegality(target, converter);
  if (failed(applyPartialConversion(module, target, std::move(patterns))))
    return failure();
  RewritePatternSet extensions(ctx);
  extensions.add<HideExtension>(ctx);
  return applyPatternsGreedily(module, std::move(extensions));
}

namespace {
/// Returns the address of a shared buffer's element.
template <typename Op>
struct SharedPattern : public ConvertOpToLLVMPattern<Op> {
  using ConvertOpToLLVMPattern<Op>::ConvertOpToLLVMPattern;
  Value address(ConversionPatternRewriter &rewriter, Location loc,
                TypedValue<MemRefType> buffer, Value converted,
                Value at) const {
    return this->getStridedElementPtr(rewriter, loc, buffer.getType(),
                                      converted, at);
  }
};

/// Outside, no byte is read, and the rest of the copy is zeros.
struct LowerCopy : SharedPattern<block::CopyAsyncOp> {
  using SharedPattern::SharedPattern;

  LogicalResult
  matchAndRewrite(block::CopyAsyncOp op, OpAdaptor operands,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value to = address(rewriter, op.getLoc(), op.getTo(), operands.getTo(),
                       operands.getAt());
    auto global = LLVM::LLVMPointerType::get(
        op.getContext(), unsigned(NVVM::NVVMMemorySpace::Global));
    Value from = LLVM::AddrSpaceCastOp::create(b, global, operands.getFrom());
    int32_t bytes = int32_t(op.getBytes());
    Value size;
    if (!matchPattern(op.getInside(), m_One()))
      size = LLVM::SelectOp::create(
          b, operands.getInside(),
          LLVM::ConstantOp::create(b, b.getI32IntegerAttr(bytes)),
          LLVM::ConstantOp::create(b, b.getI32IntegerAttr(0)));
    auto caching = bytes == 16 && !op.getCached()
                       ? NVVM::LoadCacheModifierKind::CG
                       : NVVM::LoadCacheModifierKind::CA;
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncOp>(
        op, to, from, b.getI32IntegerAttr(bytes),
        NVVM::LoadCacheModifierKindAttr::get(op.getContext(), caching), size);
    return success();
  }
};

struct LowerCommit : ConvertOpToLLVMPattern<block::CommitCopiesOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(block::CommitCopiesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncCommitGroupOp>(op);
    return success();
  }
};

struct LowerWait : ConvertOpToLLVMPattern<block::WaitCopiesOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;

  LogicalResult
  matchAndRewrite(block::WaitCopiesOp op, OpAdaptor,
                  ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<NVVM::CpAsyncWaitGroupOp>(
        op, rewriter.getI32IntegerAttr(int32_t(op.getPending())));
    return success();
  }
};

struct LowerMatrices : SharedPattern<block::LoadMatricesOp> {
  using SharedPattern::SharedPattern;

  LogicalResult
  matchAndRewrite(block::LoadMatricesOp op, OpAdaptor operands,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    Value from = address(rewriter, op.getLoc(), op.getFrom(),
                         operands.getFrom(), operands.getAt());
    SmallVector<Type> words(op->getResultTypes());
    auto type = LLVM::LLVMStructType::getLiteral(op.getContext(), words);
    auto shape = NVVM::LdStMatrixShapeAttr::get(op.getContext(), 8, 8);
    Value loaded = NVVM::LdMatrixOp::create(
        b, type, from, uint32_t(words.size()),
        op.getTransposed() ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
        NVVM::LdStMatrixEltType::B16);
    SmallVector<Value> results;
    for (size_t i = 0; i < words.size(); ++i)
      results.push_back(LLVM::ExtractValueOp::create(b, loaded, int64_t(i)));
    rewriter.replaceOp(op, results);
    return success();
  }
};
} // namespace

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
  patterns.add<LowerCopy, LowerCommit, LowerWait, LowerMatrices>(converter);
  LLVMConversionTarget target(*ctx);
  target.addLegalDialect<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  target.addIllegalDialect<arith::ArithDialect, block::BlockDialect,
                           cf::ControlFlowDialect, gpu::GPUDialect,
                           math::MathDialect, memref::MemRefDialect,
                           ub::UBDialect, vector::VectorDialect>();
  target.addLegalOp<gpu::GPUModuleOp>();
  return applyPartialConversion(module, target, std::move(patterns));
}

/// Static shared memory is limited to 48 KiB.
static constexpr int64_t kMaxStaticShared = 48 * 1024;
static constexpr StringLiteral kDynamicShared = "ckopt_shared";

/// Declares the array whose size the launch gives.
static void declareDynamicShared(gpu::GPUModuleOp module) {
  if (module.lookupSymbol(kDynamicShared))
    return;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false,
                         LLVM::Linkage::External, kDynamicShared,
                         /*value=*/Attribute(), blockform::kSharedAlign,
                         unsigned(NVVM::NVVMMemorySpace::Shared));
}

/// Puts the shared buffers of a kernel into one array, if they are larger than
/// static ones may be.
static void shareDynamically(gpu::GPUModuleOp module, LLVM::LLVMFuncOp function,
                             SymbolTable &symbols) {
  llvm::MapVector<LLVM::GlobalOp, SmallVector<LLVM::AddressOfOp>> buffers;
  function->walk([&](LLVM::AddressOfOp op) {
    auto global = symbols.lookup<LLVM::GlobalOp>(op.getGlobalName());
    if (global.getAddrSpace() == unsigned(NVVM::NVVMMemorySpace::Shared))
      buffers[global].push_back(op);
  });
  DataLayout layout(module);
  auto bytesOf = [&](LLVM::GlobalOp global) {
    return int64_t(llvm::alignTo(layout.getTypeSize(global.getType()),
                                 blockform::kSharedAlign));
  };
  int64_t total = 0;
  for (auto &[global, uses] : buffers)
    total += bytesOf(global);
  if (total <= kMaxStaticShared)
    return;
  declareDynamicShared(module);
  int64_t offset = 0;
  for (auto &[global, uses] : buffers) {
    for (LLVM::AddressOfOp op : uses) {
      ImplicitLocOpBuilder b(op.getLoc(), op);
      Value base = LLVM::AddressOfOp::create(b, op.getType(), kDynamicShared);
      op.replaceAllUsesWith(
          LLVM::GEPOp::create(b, op.getType(), b.getI8Type(), base,
                              ArrayRef<LLVM::GEPArg>{int32_t(offset)})
              .getResult());
      op.erase();
    }
    offset += bytesOf(global);
    global.erase();
  }
}

/// Flushes denormals of f32 to zero, as in the CPU's float mode.
static void flushDenormals(gpu::GPUModuleOp module) {
  Builder b(module.getContext());
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    function.setPassthroughAttr(b.getArrayAttr({b.getStrArrayAttr(
        {"denormal-fp-math-f32", "preserve-sign,preserve-sign"})}));
}

/// Lets the next kernel begin early, and each thread wait for the kernels
/// before. The wait ends when all work of the launch before has ended and can
/// be seen. That launch waited, too, and so on: all earlier work has ended,
/// however many launches began early. So every thread waits, before it touches
/// global memory and whether or not it does. The next launch is let go first,
/// since its blocks take no more than what all blocks of this one have left.
static void waitForOthers(gpu::GPUModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>()) {
    if (function.isExternal())
      continue;
    OpBuilder b = OpBuilder::atBlockBegin(&function.front());
    for (auto kind : {NVVM::GridDepActionKind::launch_dependents,
                      NVVM::GridDepActionKind::wait})
      NVVM::GriddepcontrolOp::create(b, function.getLoc(), kind);
  }
}

namespace {
struct GPUToLLVM : ckopt::impl::GPUToLLVMPassBase<GPUToLLVM> {
  using GPUToLLVMPassBase::GPUToLLVMPassBase;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (failed(simplifyVectors(module)) || failed(widenHalves(module)) ||
        failed(convert(module)))
      return signalPassFailure();
    SymbolTable symbols(module);
    for (auto function : module.getOps<LLVM::LLVMFuncOp>())
      shareDynamically(module, function, symbols);
    if (!keepDenormals)
      flushDenormals(module);
    if (programmatic)
      waitForOthers(module);
  }
};
} // namespace
