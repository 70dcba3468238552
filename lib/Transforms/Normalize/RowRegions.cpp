//===- RowRegions.cpp - ops that work row by row --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem: which ops around a matmul could be computed for a part of the
// rows. The method: a region is grown from a product whose result has more
// columns than what it multiplies: all that makes or reads such wide values,
// and what lies between, if every op says that a row of its results reads the
// same row of its operands (SampleAxisOpInterface). Rows are the places along
// leading dimensions, however these are cut, so that samples and their tokens
// may be one dimension here and two there. The guarantee: an op that does not
// say so is in no region. Complexity: linear in ops for each product.
//
//===----------------------------------------------------------------------===//
#include "RowRegions.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace ckopt;

static int64_t bytesOf(Value value) {
  RankedTensorType type = tensorType(value);
  return type.getNumElements() *
         int64_t(llvm::divideCeil(type.getElementTypeBitWidth(), 8));
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

std::optional<size_t> ckopt::rowDims(Value value, int64_t rows) {
  int64_t product = 1;
  for (auto [d, size] : llvm::enumerate(tensorType(value).getShape()))
    if ((product *= size) >= rows)
      return product == rows ? std::optional<size_t>(d + 1) : std::nullopt;
  return std::nullopt;
}

/// The dimensions of rows that have more than one place.
static SmallVector<int64_t> longDims(Value value, size_t dims) {
  SmallVector<int64_t> found;
  for (size_t d = 0; d < dims; ++d)
    if (tensorType(value).getDimSize(unsigned(d)) != 1)
      found.push_back(int64_t(d));
  return found;
}

/// How an op's row reads an operand: its row, or all of it.
enum class Reads { Row, Whole, Other };

static Reads readsOf(SampleAxisOpInterface op, unsigned index,
                     ArrayRef<int64_t> rowAxes, int64_t rows) {
  SmallVector<int64_t> followed;
  for (int64_t axis : rowAxes) {
    AxisRelation relation = op.relateAxis(index, axis);
    if (relation.kind == AxisRelation::Kind::Other)
      return Reads::Other;
    if (relation.follows())
      followed.push_back(relation.axis);
  }
  if (followed.empty())
    return Reads::Whole;
  Value operand = op->getOperand(index);
  std::optional<size_t> dims = rowDims(operand, rows);
  return dims && followed == longDims(operand, *dims) ? Reads::Row
                                                      : Reads::Other;
}

/// Returns, for each operand, whether a row of the results reads its row alone;
/// nullopt: rows mix, or the op cannot be written for a part of them. What
/// depends on its place in the tensor does not, but for a dropout, whose
/// numbers can be counted on from those of other blocks.
static std::optional<SmallVector<bool>> readRows(Operation *op, int64_t rows) {
  if (op->getNumResults() == 0 || op->getNumRegions() || !isPure(op))
    return std::nullopt;
  std::optional<size_t> dims = rowDims(op->getResult(0), rows);
  if (!dims)
    return std::nullopt;
  if (isa<ReshapeOp>(op))
    return rowDims(op->getOperand(0), rows)
               ? std::optional<SmallVector<bool>>({true})
               : std::nullopt;
  auto axes = dyn_cast<SampleAxisOpInterface>(op);
  bool readsPlace = op->hasTrait<traits::ReadsPlace>() || randomSite(op);
  if (!axes || (readsPlace && !isa<DropoutOp>(op)))
    return std::nullopt;
  SmallVector<int64_t> rowAxes = longDims(op->getResult(0), *dims);
  for (unsigned i = 1; i < op->getNumResults(); ++i)
    if (rowDims(op->getResult(i), rows) != dims ||
        llvm::any_of(rowAxes, [&](int64_t axis) {
          return !axes.hasAxisOfFirst(i, axis);
        }))
      return std::nullopt;
  SmallVector<bool> read;
  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Reads reads = readsOf(axes, i, rowAxes, rows);
    if (reads == Reads::Other)
      return std::nullopt;
    read.push_back(reads == Reads::Row);
  }
  return llvm::is_contained(read, true) ? std::optional(read) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

bool RowRegion::isWide(Value value) const {
  return rowDims(value, rows) &&
         2 * tensorType(value).getNumElements() > 3 * columns * rows;
}

bool RowRegion::draws() const {
  return llvm::any_of(ops,
                      [](auto &each) { return isa<DropoutOp>(each.first); });
}

bool RowRegion::grow(Operation *seed) {
  llvm::SetVector<Operation *> found;
  found.insert(seed);
  for (size_t i = 0; i < found.size(); ++i) {
    Operation *op = found[i];
    std::optional<SmallVector<bool>> read = readRows(op, rows);
    if (!read || op->getBlock() != seed->getBlock())
      return false;
    for (auto [operand, isRow] : llvm::zip(op->getOperands(), *read))
      if (isRow && isWide(operand)) {
        if (!operand.getDefiningOp())
          return false;
        found.insert(operand.getDefiningOp());
      }
    for (Value result : op->getResults())
      if (isWide(result)) {
        widest = std::max(widest, bytesOf(result));
        found.insert(result.getUsers().begin(), result.getUsers().end());
      }
    ops.insert({op, *read});
  }
  return close(*seed->getBlock());
}

/// Adds what lies on paths from the region back into it, and sorts.
bool RowRegion::close(Block &block) {
  DenseSet<Operation *> behind, before;
  auto readsAny = [](Operation *op, const DenseSet<Operation *> &set) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return set.contains(operand.getDefiningOp());
    });
  };
  auto isRead = [](Operation *op, const DenseSet<Operation *> &set) {
    return llvm::any_of(op->getUsers(),
                        [&](Operation *user) { return set.contains(user); });
  };
  for (Operation &op : block)
    if (ops.contains(&op) || readsAny(&op, behind))
      behind.insert(&op);
  for (Operation &op : llvm::reverse(block))
    if (ops.contains(&op) || isRead(&op, before))
      before.insert(&op);
  llvm::MapVector<Operation *, SmallVector<bool>> sorted;
  for (Operation &op : block) {
    if (!behind.contains(&op) || !before.contains(&op))
      continue;
    std::optional<SmallVector<bool>> read = readRows(&op, rows);
    if (!read)
      return false;
    sorted.insert({&op, *read});
  }
  ops = std::move(sorted);
  return true;
}

/// Blocks are alike, and numbers come in fours.
bool RowRegion::counts(int64_t size) const {
  return rows % size == 0 && llvm::all_of(ops, [&](auto &each) {
           return !isa<DropoutOp>(each.first) ||
                  tensorType(each.first->getResult(0)).getNumElements() / rows *
                          size % 4 ==
                      0;
         });
}

bool RowRegion::narrows() const {
  int64_t leaving = 0;
  for (auto &[op, read] : ops)
    for (Value result : op->getResults())
      if (leaves(result))
        leaving += bytesOf(result);
  return leaving && 3 * leaving <= 2 * widest;
}

std::optional<RowRegion> ckopt::rowRegionOf(Operation *product) {
  Value result = product->getResult(0), input = product->getOperand(0);
  int64_t count = tensorType(result).getNumElements(), rows = 1;
  if (count == 0 || tensorType(result).getRank() < 2)
    return std::nullopt;
  // Rows are the most leading dimensions that the op keeps apart.
  std::optional<SmallVector<bool>> read;
  for (int64_t d = tensorType(result).getRank() - 1; d > 0 && !read; --d) {
    rows = 1;
    for (int64_t size : tensorType(result).getShape().take_front(size_t(d)))
      rows *= size;
    read = readRows(product, rows);
  }
  if (!read || !read->front() || rows < 2)
    return std::nullopt;
  RowRegion region;
  region.rows = rows;
  region.columns = tensorType(input).getNumElements() / rows;
  if (!region.isWide(result) || !region.grow(product) || !region.narrows())
    return std::nullopt;
  return region;
}
