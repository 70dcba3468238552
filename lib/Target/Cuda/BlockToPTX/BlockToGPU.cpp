//===- BlockToGPU.cpp - block form to the GPU dialect ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lowers block form to one gpu.func for each launch. Every thread runs uniform
// code, but only thread 0 runs its stores. A thread forall becomes code for the
// threads below its count, between barriers. Shared buffers become workgroup
// buffers of the function; a private buffer [thread][...] becomes one row for
// every thread, which LLVM keeps in registers.
//
//===----------------------------------------------------------------------===//
#include "BlockToGPU.h"
#include "Approximations.h"
#include "Mma.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace ckopt {
#define GEN_PASS_DEF_BLOCKTOGPUPASS
#define GEN_PASS_DEF_MERGELANESTEPSPASS
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {

/// Lowers one kernel.
class Lowering {
public:
  Lowering(const Kernel &kernel, gpu::GPUModuleOp into)
      : kernel(kernel), b(into.getLoc(), into.getContext()) {
    b.setInsertionPointToEnd(into.getBody());
  }
  void run();

private:
  void makeFunction();
  void lowerBlock(Block &block);
  void lowerThreads(scf::ForallOp forall);
  void lowerUniformStore(Operation *store);
  void givePrivateRows();
  static bool synchronizes(Operation *op);

  Kernel kernel;
  ImplicitLocOpBuilder b;
  gpu::GPUFuncOp function;
  Value thread;
};

void Lowering::makeFunction() {
  func::FuncOp from = kernel.function;
  b.setLoc(from.getLoc());
  SmallVector<Type> shared;
  for (BlockArgument buffer : kernel.sharedBuffers)
    shared.push_back(buffer.getType());
  ArrayRef<Type> launch =
      from.getArgumentTypes().take_front(kernel.launchParameters);
  function = gpu::GPUFuncOp::create(b, from.getSymName(),
                                    b.getFunctionType(launch, {}), shared);
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSize(ArrayRef<int32_t>{int32_t(kernel.block), 1, 1});
  function.setKnownGridSize(ArrayRef<int32_t>{int32_t(kernel.grid), 1, 1});
  if (Attribute resident = from->getAttr(kResident))
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), resident);
  for (unsigned i = 0; i < launch.size(); ++i) {
    if (DictionaryAttr attrs = from.getArgAttrDict(i))
      function.setArgAttrs(i, attrs);
    from.getArgument(i).replaceAllUsesWith(function.getArgument(i));
  }
  // Shared buffers are aligned, so that vectors in them have the alignment of
  // their offsets.
  Attribute align = b.getI64IntegerAttr(kSharedAlign);
  for (auto [i, buffer] : llvm::enumerate(kernel.sharedBuffers)) {
    function.setWorkgroupAttributionAttr(
        i, LLVM::LLVMDialect::getAlignAttrName(), align);
    buffer.replaceAllUsesWith(function.getWorkgroupAttributions()[i]);
  }
}

void Lowering::run() {
  makeFunction();
  Block &entry = function.getBody().front();
  b.setInsertionPointToEnd(&entry);
  auto end = gpu::ReturnOp::create(b);
  // Move the code before the forall over blocks, then its body.
  Block &from = kernel.function.front();
  entry.getOperations().splice(end->getIterator(), from.getOperations(),
                               from.begin(), kernel.blocks->getIterator());
  b.setInsertionPointToStart(&entry);
  Value number = gpu::BlockIdOp::create(b, gpu::Dimension::x);
  thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  inlineBody(kernel.blocks, end, number);
  lowerBlock(entry);
  givePrivateRows();
  kernel.function.erase();
  removeNeedlessBarriers(function);
  deriveAlignment(function);
}

/// Returns whether threads wait for each other in `op`.
bool Lowering::synchronizes(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isThreadForall(inner) || isStore(inner) ? WalkResult::interrupt()
                                                       : WalkResult::advance();
      })
      .wasInterrupted();
}

void Lowering::lowerBlock(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    b.setLoc(op.getLoc());
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      lowerThreads(forall);
    } else if (isStore(&op)) {
      lowerUniformStore(&op);
    } else if (op.getNumRegions()) {
      // A barrier before the loop saves one before the first interval in every
      // iteration.
      if (isa<scf::ForOp>(op) && synchronizes(&op)) {
        b.setInsertionPoint(&op);
        gpu::BarrierOp::create(b);
      }
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          lowerBlock(inner);
    }
  }
}

void Lowering::lowerThreads(scf::ForallOp forall) {
  b.setInsertionPoint(forall);
  gpu::BarrierOp::create(b);
  int64_t count = threadsOf(forall);
  if (count < kernel.block) {
    Value limit = arith::ConstantIndexOp::create(b, count);
    Value below =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, thread, limit);
    auto guarded = scf::IfOp::create(b, below, /*withElseRegion=*/false);
    inlineBody(forall, guarded.thenBlock()->getTerminator(), thread);
  } else {
    inlineBody(forall, forall, thread);
  }
  gpu::BarrierOp::create(b);
  forall.erase();
}

void Lowering::lowerUniformStore(Operation *store) {
  b.setInsertionPoint(store);
  gpu::BarrierOp::create(b);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  Value first =
      arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread, zero);
  auto guarded = scf::IfOp::create(b, first, /*withElseRegion=*/false);
  gpu::BarrierOp::create(b);
  store->moveBefore(guarded.thenBlock()->getTerminator());
}

/// Replaces private buffers by a thread's own, without the first dimension.
void Lowering::givePrivateRows() {
  for (BlockArgument buffer : kernel.privateBuffers) {
    auto type = cast<MemRefType>(buffer.getType());
    b.setInsertionPointToStart(&function.getBody().front());
    Value row = memref::AllocaOp::create(
        b, MemRefType::get(type.getShape().drop_front(), type.getElementType()),
        b.getI64IntegerAttr(kSharedAlign));
    for (Operation *user : llvm::make_early_inc_range(buffer.getUsers())) {
      OperandRange indices = indicesOf(user);
      user->eraseOperand(indices.getBeginOperandIndex());
      user->replaceUsesOfWith(buffer, row);
    }
  }
}

} // namespace

/// Returns the data that the host needs to launch the kernel.
static PtxKernel describe(const Kernel &kernel) {
  PtxKernel info;
  func::FuncOp function = kernel.function;
  info.symbol = function.getSymName().str();
  for (unsigned i = 0; i < kernel.launchParameters; ++i)
    info.parameters.push_back(
        isa<LLVM::LLVMPointerType>(function.getArgumentTypes()[i])
            ? PtxKernel::Parameter::Pointer
            : PtxKernel::Parameter::Scalar);
  info.grid = kernel.grid;
  info.block = kernel.block;
  info.sharedBytes = kernel.sharedBytes;
  info.usesF64 = usesF64(kernel);
  info.approximates = usesApproximations(kernel);
  return info;
}

LogicalResult blockform::lowerToGPU(ModuleOp module,
                                    SmallVectorImpl<PtxKernel> *infos) {
  SmallVector<Kernel> kernels;
  bool failedAny = false;
  for (func::FuncOp function : kernelsOf(module)) {
    FailureOr<Kernel> kernel = analyze(function);
    if (failed(kernel) || failed(checkSelectable(*kernel)))
      failedAny = true;
    else
      kernels.push_back(*kernel);
  }
  if (failedAny)
    return failure();
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto into = gpu::GPUModuleOp::create(builder, module.getLoc(), kModuleName);
  // Move the constant tables of the kernels, whose alignment is examined.
  for (auto global :
       llvm::make_early_inc_range(module.getOps<LLVM::GlobalOp>()))
    global->moveBefore(into.getBody(), into.getBody()->begin());
  for (const Kernel &kernel : kernels) {
    PtxKernel info = describe(kernel);
    TreeCount trees = mergeLaneSteps(kernel);
    expandMma(kernel, /*byWarps=*/true);
    expandApproximations(kernel, /*onDevice=*/true);
    info.shuffledTrees = trees.shuffled;
    info.plainTrees = trees.plain;
    if (infos)
      infos->push_back(std::move(info));
    Lowering(kernel, into).run();
  }
  return success();
}

namespace {
struct BlockToGPU : ckopt::impl::BlockToGPUPassBase<BlockToGPU> {
  void runOnOperation() override {
    if (failed(lowerToGPU(getOperation())))
      signalPassFailure();
  }
};

struct MergeLaneSteps : ckopt::impl::MergeLaneStepsPassBase<MergeLaneSteps> {
  void runOnOperation() override {
    for (func::FuncOp function : kernelsOf(getOperation())) {
      FailureOr<Kernel> kernel = analyze(function);
      if (failed(kernel))
        return signalPassFailure();
      mergeLaneSteps(*kernel);
    }
  }
};
} // namespace
