//===- Copies.cpp - asynchronous copies as loops --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// On the CPU a thread's copies are recorded and made when it waits for them: as
// late as allowed, so that a read that comes too early finds other bytes. Each
// thread has a ring of groups. A group has a place for each copy in the code,
// since none runs twice in a group. The place holds the destination (its offset
// plus one; 0: nothing) and the source address (0: zeros). If the ring is full,
// the oldest group is copied when a new one is opened. Copies of equally many
// elements to one buffer are made by one loop, since a kernel may have
// hundreds.
//
//===----------------------------------------------------------------------===//
#include "Mma.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

std::string blockform::mistakeOf(block::CopyAsyncOp copy) {
  Operation *op = copy->getParentOp();
  for (; op && !isThreadForall(op); op = op->getParentOp())
    if (!isa<scf::IfOp>(op))
      return "must not be in a loop: it runs once a group";
  return op ? "" : "must be in a forall over threads";
}

namespace {

/// The groups of one kernel's threads.
class Groups {
public:
  explicit Groups(const Kernel &kernel);
  void expand();

private:
  static constexpr int64_t kGroups = 8;

  Value constant(ImplicitLocOpBuilder &b, int64_t i) {
    return arith::ConstantIndexOp::create(b, i);
  }
  Value threadOf(Operation *op) {
    while (!isThreadForall(op))
      op = op->getParentOp();
    return cast<scf::ForallOp>(op).getBody()->getArgument(0);
  }
  Value allocate(int64_t size);
  /// Returns the address of a thread's number of closed groups (of copied ones:
  /// `copied`).
  Value counter(ImplicitLocOpBuilder &b, Value thread, bool copied) {
    Value place = arith::MulIOp::create(b, thread, constant(b, 2));
    return arith::AddIOp::create(b, place, constant(b, copied));
  }
  /// Returns the address of copy number `copy` in a thread's group.
  Value placeOf(ImplicitLocOpBuilder &b, Value thread, Value group,
                Value copy) {
    Value ring = arith::RemSIOp::create(b, group, constant(b, kGroups));
    Value at = arith::MulIOp::create(b, thread, constant(b, kGroups));
    at = arith::AddIOp::create(b, at, ring);
    at = arith::MulIOp::create(b, at, constant(b, 2 * int64_t(copies.size())));
    Value before = arith::MulIOp::create(b, copy, constant(b, 2));
    return arith::AddIOp::create(b, at, before);
  }
  Value next(ImplicitLocOpBuilder &b, Value place) {
    return arith::AddIOp::create(b, place, constant(b, 1));
  }
  void expand(size_t number);
  void expand(block::CommitCopiesOp commit);
  void expand(block::WaitCopiesOp wait);
  /// Emits a loop over numbers of copies, `count` of them from `first` on.
  void forCopies(ImplicitLocOpBuilder &b, size_t first, size_t count,
                 function_ref<void(Value number)> body);
  void copyUntil(ImplicitLocOpBuilder &b, Value thread, Value limit);
  void copy(ImplicitLocOpBuilder &b, Value place, block::CopyAsyncOp op);

  Kernel kernel;
  SmallVector<block::CopyAsyncOp> copies; ///< copies of one kind are neighbors
  SmallVector<block::CommitCopiesOp> commits;
  SmallVector<block::WaitCopiesOp> waits;
  Value places, counters;
};

} // namespace

Groups::Groups(const Kernel &kernel) : kernel(kernel) {
  func::FuncOp function = kernel.function;
  llvm::MapVector<std::pair<Value, int64_t>, SmallVector<block::CopyAsyncOp>>
      alike;
  function->walk([&](Operation *op) {
    if (auto copy = dyn_cast<block::CopyAsyncOp>(op))
      alike[{copy.getTo(), int64_t(copy.getElements())}].push_back(copy);
    else if (auto commit = dyn_cast<block::CommitCopiesOp>(op))
      commits.push_back(commit);
    else if (auto wait = dyn_cast<block::WaitCopiesOp>(op))
      waits.push_back(wait);
  });
  for (auto &[key, some] : alike)
    copies.append(some);
}

/// Makes a buffer of numbers that are zero when a block starts.
Value Groups::allocate(int64_t size) {
  func::FuncOp function = kernel.function;
  ImplicitLocOpBuilder b(function.getLoc(), function.getBody());
  Value buffer = memref::AllocaOp::create(
      b, MemRefType::get({size}, b.getIndexType()), b.getI64IntegerAttr(64));
  b.setInsertionPointToStart(kernel.blocks.getBody());
  auto loop =
      scf::ForOp::create(b, constant(b, 0), constant(b, size), constant(b, 1));
  b.setInsertionPointToStart(loop.getBody());
  memref::StoreOp::create(b, constant(b, 0), buffer, loop.getInductionVar());
  return buffer;
}

void Groups::expand() {
  if (copies.empty() && commits.empty() && waits.empty())
    return;
  places = allocate(2 * kernel.block * kGroups *
                    std::max<int64_t>(int64_t(copies.size()), 1));
  counters = allocate(2 * kernel.block);
  for (size_t number = 0; number < copies.size(); ++number)
    expand(number);
  for (block::CommitCopiesOp commit : commits)
    expand(commit);
  for (block::WaitCopiesOp wait : waits)
    expand(wait);
  for (block::CopyAsyncOp copy : copies)
    copy->erase();
}

void Groups::expand(size_t number) {
  block::CopyAsyncOp op = copies[number];
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value thread = threadOf(op);
  Value group =
      memref::LoadOp::create(b, counters, counter(b, thread, /*copied=*/false));
  Value place = placeOf(b, thread, group, constant(b, int64_t(number)));
  memref::StoreOp::create(b, next(b, op.getAt()), places, place);
  Value address = LLVM::PtrToIntOp::create(b, b.getI64Type(), op.getFrom());
  address = arith::IndexCastOp::create(b, b.getIndexType(), address);
  address = arith::SelectOp::create(b, op.getInside(), address, constant(b, 0));
  memref::StoreOp::create(b, address, places, next(b, place));
}

void Groups::expand(block::CommitCopiesOp commit) {
  ImplicitLocOpBuilder b(commit.getLoc(), commit);
  Value thread = threadOf(commit), at = counter(b, thread, /*copied=*/false);
  Value group = next(b, memref::LoadOp::create(b, counters, at));
  copyUntil(b, thread,
            arith::SubIOp::create(b, group, constant(b, kGroups - 1)));
  memref::StoreOp::create(b, group, counters, at);
  forCopies(b, 0, copies.size(), [&](Value i) {
    memref::StoreOp::create(b, constant(b, 0), places,
                            placeOf(b, thread, group, i));
  });
  commit->erase();
}

void Groups::expand(block::WaitCopiesOp wait) {
  ImplicitLocOpBuilder b(wait.getLoc(), wait);
  Value thread = threadOf(wait);
  Value groups =
      memref::LoadOp::create(b, counters, counter(b, thread, /*copied=*/false));
  copyUntil(b, thread,
            arith::SubIOp::create(b, groups,
                                  constant(b, int64_t(wait.getPending()))));
  wait->erase();
}

/// Makes the copies of all groups below `limit` that are not made yet.
void Groups::copyUntil(ImplicitLocOpBuilder &b, Value thread, Value limit) {
  OpBuilder::InsertionGuard guard(b);
  Value at = counter(b, thread, /*copied=*/true);
  Value first = memref::LoadOp::create(b, counters, at);
  memref::StoreOp::create(b, arith::MaxSIOp::create(b, first, limit), counters,
                          at);
  auto loop = scf::ForOp::create(b, first, limit, constant(b, 1));
  b.setInsertionPointToStart(loop.getBody());
  auto isAlike = [](block::CopyAsyncOp x, block::CopyAsyncOp y) {
    return x.getTo() == y.getTo() && x.getElements() == y.getElements();
  };
  for (size_t i = 0, end = 0; i < copies.size(); i = end) {
    while (end < copies.size() && isAlike(copies[i], copies[end]))
      ++end;
    forCopies(b, i, end - i, [&](Value number) {
      copy(b, placeOf(b, thread, loop.getInductionVar(), number), copies[i]);
    });
  }
}

void Groups::forCopies(ImplicitLocOpBuilder &b, size_t first, size_t count,
                       function_ref<void(Value number)> body) {
  OpBuilder::InsertionGuard guard(b);
  auto loop =
      scf::ForOp::create(b, constant(b, int64_t(first)),
                         constant(b, int64_t(first + count)), constant(b, 1));
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void Groups::copy(ImplicitLocOpBuilder &b, Value place, block::CopyAsyncOp op) {
  OpBuilder::InsertionGuard guard(b);
  Value to = memref::LoadOp::create(b, places, place);
  Value isThere =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, to, constant(b, 0));
  auto branch = scf::IfOp::create(b, isThere, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  to = arith::SubIOp::create(b, to, constant(b, 1));
  Value from = memref::LoadOp::create(b, places, next(b, place));
  Type element = op.getTo().getType().getElementType();
  Type type = VectorType::get({int64_t(op.getElements())}, element);
  Value inside =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, from, constant(b, 0));
  auto read = scf::IfOp::create(b, type, inside, /*withElseRegion=*/true);
  b.setInsertionPointToStart(read.thenBlock());
  Value address = arith::IndexCastOp::create(b, b.getI64Type(), from);
  address = LLVM::IntToPtrOp::create(b, op.getFrom().getType(), address);
  Value loaded = LLVM::LoadOp::create(b, type, address,
                                      element.getIntOrFloatBitWidth() / 8);
  scf::YieldOp::create(b, loaded);
  b.setInsertionPointToStart(read.elseBlock());
  Value zeros = arith::ConstantOp::create(b, b.getZeroAttr(type));
  scf::YieldOp::create(b, zeros);
  b.setInsertionPointAfter(read);
  vector::StoreOp::create(b, read.getResult(0), op.getTo(), to);
}

void blockform::expandCopies(const Kernel &kernel) { Groups(kernel).expand(); }
