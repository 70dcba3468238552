//===- BlockForm.cpp - checks a kernel in block form ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "BlockForm.h"
#include "Mma.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

SmallVector<func::FuncOp> blockform::kernelsOf(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(kGrid))
      kernels.push_back(function);
  return kernels;
}

/// Returns whether the forall has the single mapping `Mapping<x>`.
template <typename Mapping> static bool isMappedTo(scf::ForallOp forall) {
  std::optional<ArrayAttr> mapping = forall.getMapping();
  if (!mapping || mapping->size() != 1)
    return false;
  auto attr = dyn_cast<Mapping>((*mapping)[0]);
  return attr && cast<DeviceMappingAttrInterface>(attr).getMappingId() ==
                     int64_t(gpu::MappingId::DimX);
}

bool blockform::isThreadForall(Operation *op) {
  auto forall = dyn_cast<scf::ForallOp>(op);
  return forall && isMappedTo<gpu::GPUThreadMappingAttr>(forall);
}

int64_t blockform::threadsOf(scf::ForallOp forall) {
  return forall.getStaticUpperBound()[0];
}

Value blockform::bufferOf(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return load.getMemRef();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getMemRef();
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return load.getBase();
  if (auto store = dyn_cast<vector::StoreOp>(op))
    return store.getBase();
  return {};
}

OperandRange blockform::indicesOf(Operation *op) {
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return load.getIndices();
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getIndices();
  if (auto load = dyn_cast<vector::LoadOp>(op))
    return load.getIndices();
  return cast<vector::StoreOp>(op).getIndices();
}

Value blockform::withoutCasts(Value v) {
  while (Operation *cast = v.getDefiningOp()) {
    if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(cast))
      break;
    v = cast->getOperand(0);
  }
  return v;
}

bool blockform::isStore(Operation *op) {
  return isa<memref::StoreOp, vector::StoreOp, LLVM::StoreOp,
             LLVM::MaskedStoreOp, LLVM::masked_scatter>(op);
}

void blockform::inlineBody(scf::ForallOp forall, Operation *point,
                           Value number) {
  Block *body = forall.getBody();
  body->getArgument(0).replaceAllUsesWith(number);
  Operation *terminator = body->getTerminator();
  point->getBlock()->getOperations().splice(
      point->getIterator(), body->getOperations(), body->begin(),
      terminator->getIterator());
}

namespace {

/// Checks one function and reports all mistakes.
class Checker {
public:
  explicit Checker(func::FuncOp function) { kernel.function = function; }
  FailureOr<Kernel> check();

private:
  InFlightDiagnostic fail(Operation *op) {
    failed = true;
    return op->emitError("block form: ");
  }
  void checkAttributes();
  void checkArguments();
  void checkBuffer(BlockArgument arg, MemRefType type);
  void checkFunctionBody();
  void checkForall(scf::ForallOp forall, const char *what);
  void checkUniform(Block &block);
  void checkThreads(scf::ForallOp forall);
  void checkBufferUses();
  void checkPrivateAccess(Operation *user, BlockArgument buffer);

  Kernel kernel;
  bool failed = false;
};

void Checker::checkAttributes() {
  auto read = [&](StringRef name, int64_t limit) -> int64_t {
    auto attr = kernel.function->getAttrOfType<IntegerAttr>(name);
    if (attr && attr.getType().isSignlessInteger(64) && attr.getInt() >= 1 &&
        attr.getInt() <= limit)
      return attr.getInt();
    fail(kernel.function) << "'" << name << "' must be an i64 from 1 to "
                          << limit;
    return 1;
  };
  kernel.grid = read(kGrid, kMaxGrid);
  kernel.block = read(kBlock, kMaxBlock);
}

void Checker::checkBuffer(BlockArgument arg, MemRefType type) {
  func::FuncOp function = kernel.function;
  auto space = dyn_cast_or_null<gpu::AddressSpaceAttr>(type.getMemorySpace());
  unsigned number = arg.getArgNumber();
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() || !space ||
      space.getValue() == gpu::AddressSpace::Global ||
      !type.getElementType().isIntOrFloat()) {
    fail(function) << "buffer argument " << number
                   << " must be a static memref of numbers in workgroup or "
                      "private space";
    return;
  }
  if (space.getValue() == gpu::AddressSpace::Private) {
    if (type.getRank() < 1 || type.getDimSize(0) != kernel.block)
      fail(function) << "private buffer argument " << number
                     << " must have the block's " << kernel.block
                     << " threads as its first dimension";
    kernel.privateBuffers.push_back(arg);
    return;
  }
  // Cap the size of each buffer, so that the sum cannot overflow.
  int64_t bits = std::max(8u, type.getElementTypeBitWidth());
  int64_t bytes = bits / 8;
  for (int64_t size : type.getShape())
    if (llvm::MulOverflow(bytes, size, bytes) || bytes > kMaxSharedBytes)
      bytes = kMaxSharedBytes + 1;
  kernel.sharedBytes += llvm::alignTo(bytes, kSharedAlign);
  kernel.sharedBytes = std::min(kernel.sharedBytes, 2 * kMaxSharedBytes);
  kernel.sharedBuffers.push_back(arg);
}

void Checker::checkArguments() {
  func::FuncOp function = kernel.function;
  SmallVector<Type> launch;
  for (BlockArgument arg : function.getArguments()) {
    if (auto type = dyn_cast<MemRefType>(arg.getType())) {
      checkBuffer(arg, type);
      continue;
    }
    if (!kernel.sharedBuffers.empty() || !kernel.privateBuffers.empty())
      fail(function) << "argument " << arg.getArgNumber()
                     << " follows a buffer; buffers must come last";
    launch.push_back(arg.getType());
  }
  kernel.launchParameters = launch.size();
  // Parameters are pointers, i64 scalars, then the scratch pointer.
  auto isPointer = [](Type type) { return isa<LLVM::LLVMPointerType>(type); };
  bool fits = !launch.empty() && isPointer(launch.back());
  if (fits) {
    ArrayRef<Type> rest = ArrayRef(launch).drop_back();
    rest = rest.drop_while(isPointer);
    rest = rest.drop_while([](Type t) { return t.isSignlessInteger(64); });
    fits = rest.empty();
  }
  if (!fits)
    fail(function) << "launch parameters must be pointers, then i64 scalars, "
                      "then the scratch pointer";
  if (launch.size() > kMaxLaunchParameters)
    fail(function) << launch.size() << " launch parameters; a GPU takes "
                   << kMaxLaunchParameters;
  if (kernel.sharedBytes > kMaxSharedBytes)
    fail(function) << "shared buffers take more than the " << kMaxSharedBytes
                   << " bytes that a block may have";
  if (function.getNumResults())
    fail(function) << "a launch has no results";
}

void Checker::checkForall(scf::ForallOp forall, const char *what) {
  if (forall.getRank() != 1 || !forall.isNormalized() ||
      forall.getNumDynamicControlOperands()) {
    fail(forall) << "the number of " << what
                 << " must be one constant, counted from 0 by 1";
    return;
  }
  if (forall.getNumResults())
    fail(forall) << "a forall over " << what
                 << " has no results: values pass from one interval to the "
                    "next through shared, private or global memory";
  int64_t count = threadsOf(forall);
  if (forall == kernel.blocks) {
    if (count != kernel.grid)
      fail(forall) << count << " blocks, but '" << kGrid << "' is "
                   << kernel.grid;
  } else if (count < 1 || count > kernel.block) {
    fail(forall) << count << " threads, but '" << kBlock << "' is "
                 << kernel.block;
  }
}

void Checker::checkFunctionBody() {
  func::FuncOp function = kernel.function;
  if (function.isExternal() || !function.getBody().hasOneBlock()) {
    fail(function) << "a launch has a body of one block";
    return;
  }
  for (Operation &op : function.front()) {
    auto forall = dyn_cast<scf::ForallOp>(op);
    if (forall && !kernel.blocks &&
        isMappedTo<gpu::GPUBlockMappingAttr>(forall)) {
      kernel.blocks = forall;
      continue;
    }
    if (isa<func::ReturnOp>(op) ||
        (!op.getNumRegions() && isMemoryEffectFree(&op)))
      continue;
    fail(&op) << "beside one forall over blocks (mapping #gpu.block<x>), a "
                 "launch has only operations without effects";
  }
  if (!kernel.blocks) {
    if (!failed)
      fail(function) << "no forall over blocks (mapping #gpu.block<x>)";
    return;
  }
  checkForall(kernel.blocks, "blocks");
  checkUniform(*kernel.blocks.getBody());
}

/// Checks code that all threads of a block run in the same way.
void Checker::checkUniform(Block &block) {
  for (Operation &op : block) {
    if (auto forall = dyn_cast<scf::ForallOp>(op)) {
      if (isThreadForall(forall))
        checkThreads(forall);
      else
        fail(forall) << "inside of a block, a forall must have the mapping "
                        "#gpu.thread<x>";
    } else if (isa<scf::ForOp, scf::IfOp, scf::IndexSwitchOp>(op)) {
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          checkUniform(inner);
    } else if (isa<block::MmaOp, block::CopyAsyncOp, block::CommitCopiesOp,
                   block::WaitCopiesOp>(op)) {
      fail(&op) << "'" << op.getName() << "' must be in a forall over threads";
    } else if (op.getNumRegions() && !isa<scf::InParallelOp>(op)) {
      fail(&op) << "'" << op.getName()
                << "' must not be in a block; scf.for, scf.if and "
                   "scf.index_switch may";
    }
  }
}

void Checker::checkThreads(scf::ForallOp forall) {
  checkForall(forall, "threads");
  forall.getBody()->walk([&](Operation *op) {
    if (isa<scf::ForallOp, scf::ParallelOp>(op))
      fail(op) << "foralls over threads must not be nested";
    if (auto mma = dyn_cast<block::MmaOp>(op))
      if (std::string mistake = mistakeOf(mma); !mistake.empty())
        fail(op) << "'block.mma' " << mistake;
    if (auto copy = dyn_cast<block::CopyAsyncOp>(op))
      if (std::string mistake = mistakeOf(copy); !mistake.empty())
        fail(op) << "'block.copy_async' " << mistake;
  });
}

void Checker::checkPrivateAccess(Operation *user, BlockArgument buffer) {
  Operation *op = user;
  while (op && !isThreadForall(op))
    op = op->getParentOp();
  auto forall = dyn_cast_or_null<scf::ForallOp>(op);
  if (!forall ||
      withoutCasts(indicesOf(user)[0]) != forall.getBody()->getArgument(0))
    fail(user) << "a private buffer's first index must be the thread's number";
}

void Checker::checkBufferUses() {
  auto check = [&](BlockArgument buffer, bool isPrivate) {
    for (Operation *user : buffer.getUsers()) {
      // The buffer itself cannot be the stored value, because elements are
      // numbers.
      if (!isPrivate && isa<block::MmaOp, block::CopyAsyncOp>(user))
        continue;
      if (bufferOf(user) != buffer)
        fail(user) << "buffers are only accessed by memref.load, memref.store, "
                      "vector.load and vector.store; shared ones by block.mma "
                      "and block.copy_async";
      else if (isPrivate)
        checkPrivateAccess(user, buffer);
    }
  };
  for (BlockArgument buffer : kernel.sharedBuffers)
    check(buffer, false);
  for (BlockArgument buffer : kernel.privateBuffers)
    check(buffer, true);
}

FailureOr<Kernel> Checker::check() {
  checkAttributes();
  if (kernel.function.isExternal()) {
    fail(kernel.function) << "a launch has a body of one block";
    return failure();
  }
  checkArguments();
  checkFunctionBody();
  checkBufferUses();
  if (failed)
    return failure();
  return kernel;
}

} // namespace

FailureOr<Kernel> blockform::analyze(func::FuncOp function) {
  return Checker(function).check();
}

LogicalResult ckopt::verifyBlockForm(ModuleOp module) {
  bool failedAny = false;
  for (func::FuncOp function : kernelsOf(module))
    failedAny |= failed(analyze(function));
  return failure(failedAny);
}
