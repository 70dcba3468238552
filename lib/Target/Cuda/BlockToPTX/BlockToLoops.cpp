//===- BlockToLoops.cpp - block form to loops on the CPU ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers block form to loops: over blocks, in each over the intervals, in each
// over the threads. Threads of one interval are independent unless they race,
// so their order must not change results. To test that, a kernel has a second
// entry, which reverses the order and lets buffers start with other bytes.
//
//===----------------------------------------------------------------------===//
#include "Approximations.h"
#include "Mma.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/Pass/PassManager.h"

namespace ckopt {
#define GEN_PASS_DEF_BLOCKTOLOOPSPASS
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

std::string ckopt::emulationSymbol(StringRef kernel, bool descending) {
  return (kernel + "__emul" + (descending ? "_descending" : "")).str();
}

/// Replaces `forall` by a loop, from the last to the first iteration if the
/// value says so.
static scf::ForOp toLoop(scf::ForallOp forall, Value descending) {
  ImplicitLocOpBuilder b(forall.getLoc(), forall);
  int64_t count = threadsOf(forall);
  Value zero = arith::ConstantIndexOp::create(b, 0),
        one = arith::ConstantIndexOp::create(b, 1),
        high = arith::ConstantIndexOp::create(b, count);
  auto loop = scf::ForOp::create(b, zero, high, one);
  Operation *end = loop.getBody()->getTerminator();
  b.setInsertionPoint(end);
  Value ascending = loop.getInductionVar(),
        last = arith::ConstantIndexOp::create(b, count - 1),
        back = arith::SubIOp::create(b, last, ascending),
        number = arith::SelectOp::create(b, descending, back, ascending);
  inlineBody(forall, end, number);
  forall.erase();
  return loop;
}

/// Returns a number whose bytes are all 0x00 or all 0xFF.
static Value fillOf(ImplicitLocOpBuilder &b, Type type, bool ones) {
  unsigned bits = type.getIntOrFloatBitWidth();
  APInt pattern = ones ? APInt::getAllOnes(bits) : APInt::getZero(bits);
  if (auto real = dyn_cast<FloatType>(type))
    return arith::ConstantOp::create(
        b, b.getFloatAttr(real, APFloat(real.getFloatSemantics(), pattern)));
  return arith::ConstantOp::create(b, b.getIntegerAttr(type, pattern));
}

/// Stores `number` to every element.
static void fill(ImplicitLocOpBuilder &b, Value buffer, Value number) {
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Value> indices;
  for (int64_t size : cast<MemRefType>(buffer.getType()).getShape()) {
    Value zero = arith::ConstantIndexOp::create(b, 0),
          one = arith::ConstantIndexOp::create(b, 1),
          high = arith::ConstantIndexOp::create(b, size);
    auto loop = scf::ForOp::create(b, zero, high, one);
    indices.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  memref::StoreOp::create(b, number, buffer, indices);
}

/// Replaces shared and private buffers by the function's local ones.
static void makeBuffersLocal(Kernel &kernel, scf::ForOp blocks,
                             Value descending) {
  func::FuncOp function = kernel.function;
  for (const auto &list : {kernel.sharedBuffers, kernel.privateBuffers}) {
    for (BlockArgument buffer : list) {
      auto type = cast<MemRefType>(buffer.getType());
      ImplicitLocOpBuilder b(function.getLoc(), function.getBody());
      Value local = memref::AllocaOp::create(
          b, MemRefType::get(type.getShape(), type.getElementType()),
          b.getI64IntegerAttr(64));
      buffer.replaceAllUsesWith(local);
      b.setInsertionPointToStart(blocks.getBody());
      Value zeros = fillOf(b, type.getElementType(), /*ones=*/false),
            ones = fillOf(b, type.getElementType(), /*ones=*/true);
      fill(b, local, arith::SelectOp::create(b, descending, ones, zeros));
    }
  }
  BitVector gone(function.getNumArguments());
  gone.set(kernel.launchParameters, function.getNumArguments() - 1);
  (void)function.eraseArguments(gone);
}

/// Adds void SYMBOL__emul(void *const *params), or SYMBOL__emul_descending.
static void addWrapper(func::FuncOp function, bool descending) {
  MLIRContext *ctx = function.getContext();
  ImplicitLocOpBuilder b(function.getLoc(), ctx);
  b.setInsertionPointAfter(function);
  Type ptr = LLVM::LLVMPointerType::get(ctx);
  auto wrapper = func::FuncOp::create(
      b, emulationSymbol(function.getSymName(), descending),
      b.getFunctionType({ptr}, {}));
  b.setInsertionPointToStart(wrapper.addEntryBlock());
  SmallVector<Value> values;
  for (auto [i, type] :
       llvm::enumerate(function.getArgumentTypes().drop_back())) {
    Value slot = LLVM::GEPOp::create(b, ptr, ptr, wrapper.getArgument(0),
                                     ArrayRef<LLVM::GEPArg>{int32_t(i)});
    Value place = LLVM::LoadOp::create(b, ptr, slot);
    values.push_back(LLVM::LoadOp::create(b, type, place));
  }
  values.push_back(arith::ConstantIntOp::create(b, descending, 1));
  func::CallOp::create(b, function, values);
  func::ReturnOp::create(b);
}

namespace {
struct BlockToLoops : ckopt::impl::BlockToLoopsPassBase<BlockToLoops> {
  using BlockToLoopsPassBase::BlockToLoopsPassBase;

  void runOnOperation() override {
    SmallVector<Kernel> kernels;
    bool failedAny = false;
    for (func::FuncOp function : kernelsOf(getOperation())) {
      FailureOr<Kernel> kernel = analyze(function);
      if (succeeded(kernel))
        kernels.push_back(*kernel);
      failedAny |= failed(kernel);
    }
    if (failedAny)
      return signalPassFailure();
    for (Kernel &kernel : kernels)
      lower(kernel);
  }

  void lower(Kernel &kernel) {
    expandCopies(kernel);
    expandMma(kernel, /*byWarps=*/false);
    expandApproximations(kernel, /*onDevice=*/false);
    SmallVector<scf::ForallOp> threads;
    kernel.blocks->walk([&](scf::ForallOp forall) {
      if (forall != kernel.blocks)
        threads.push_back(forall);
    });
    func::FuncOp function = kernel.function;
    (void)function.insertArgument(function.getNumArguments(),
                                  IntegerType::get(&getContext(), 1), {},
                                  function.getLoc());
    Value descending = function.getArguments().back();
    for (scf::ForallOp forall : threads)
      toLoop(forall, descending);
    makeBuffersLocal(kernel, toLoop(kernel.blocks, descending), descending);
    function->removeAttr(kGrid);
    function->removeAttr(kBlock);
    addWrapper(function, /*descending=*/true);
    addWrapper(function, /*descending=*/false);
  }
};
} // namespace

void ckopt::buildBlockToLoopsPipeline(OpPassManager &pm) {
  pm.addPass(createBlockToLoopsPass());
  pm.addPass(createFinalizeMemRefToLLVMConversionPass());
  buildKernelLoweringPipeline(pm);
}
