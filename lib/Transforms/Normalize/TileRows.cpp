//===- TileRows.cpp - regions that work row by row, block by block --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem: at long context the largest tensors beside the logits are those
// inside of a transformer's MLP: tokens times its width, several of them,
// forward and backward. Each row of them depends on one row of what enters, so
// nothing but the ops' form keeps them whole.
//
// The method: before autodiff, each region of ops that work row by row
// (RowRegions.h) is written once for each block of rows: slices of what enters,
// concatenations of what leaves. Autodiff makes the backward pass of each
// block, and grows gradients of weights block by block (GradientSums). All of
// it is plain ops: how many blocks exist at a time, and which are made again,
// is the choice of the plan.
//
// The guarantee: whether and how a region is tiled follows from its sizes and
// the option alone, so results are the same under every budget. They differ
// from those of whole regions by the order of sums over rows, and where a
// library multiplies fewer rows by other sums.
//
// Complexity: linear in ops for each region.
//
//===----------------------------------------------------------------------===//
#include "RowRegions.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Support/ByteSize.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"

namespace ckopt {
#define GEN_PASS_DEF_TILEROWSPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {
/// Writes a region for some rows after the others.
class Tiler {
public:
  Tiler(const RowRegion &region, OpBuilder &builder)
      : region(region), builder(builder) {}

  void addBlock(int64_t begin, int64_t size);
  /// Replaces the region by its blocks.
  void finish();

private:
  Value slice(Value whole, int64_t begin, int64_t size, Location loc);
  Operation *cloneFor(Operation *op, int64_t begin, int64_t size,
                      IRMapping &mapping);

  const RowRegion &region;
  OpBuilder &builder;
  /// What leaves the region, block by block.
  llvm::MapVector<Value, SmallVector<Value>> parts;
};
} // namespace

/// The shape of a block of rows: other leading dimensions are 1.
static SmallVector<int64_t> blockShape(Value whole, size_t dims, int64_t size) {
  SmallVector<int64_t> shape(tensorType(whole).getShape());
  std::fill_n(shape.begin(), dims, 1);
  shape[dims - 1] = size;
  return shape;
}

Value Tiler::slice(Value whole, int64_t begin, int64_t size, Location loc) {
  TensorBuilder b(builder, loc);
  size_t dims = *rowDims(whole, region.rows);
  ArrayRef<int64_t> shape = tensorType(whole).getShape();
  SmallVector<int64_t> flat(shape.drop_front(dims));
  flat.insert(flat.begin(), region.rows);
  SmallVector<int64_t> starts(flat.size(), 0), steps(flat.size(), 1);
  Value rows = b.reshape(whole, flat);
  starts[0] = begin;
  flat[0] = size;
  rows = b.make<SliceOp>(rows, b.ints(starts), b.ints(flat), b.ints(steps));
  return b.reshape(rows, blockShape(whole, dims, size));
}

/// Sizes of slices are attributes, and the upper half of a dropout's step is
/// the number of tensors of its size whose numbers come before; all else
/// follows from operands and types.
Operation *Tiler::cloneFor(Operation *op, int64_t begin, int64_t size,
                           IRMapping &mapping) {
  Operation *clone = builder.clone(*op, mapping);
  if (auto dropout = dyn_cast<DropoutOp>(clone); dropout && begin) {
    OpBuilder before(dropout);
    TensorBuilder b(before, op->getLoc());
    dropout.getStepMutable().assign(
        b.add(dropout.getStep(), double(begin / size) * 0x1p32));
  }
  for (Value result : clone->getResults()) {
    SmallVector<int64_t> shape =
        blockShape(result, *rowDims(result, region.rows), size);
    result.setType(tensorType(result).clone(shape));
    if (auto part = dyn_cast<SliceOp>(clone))
      part.setSizes(shape);
  }
  return clone;
}

void Tiler::addBlock(int64_t begin, int64_t size) {
  IRMapping mapping;
  for (auto &[op, read] : region.ops)
    for (auto [operand, isRow] : llvm::zip(op->getOperands(), read))
      if (isRow && !mapping.contains(operand) &&
          !region.ops.contains(operand.getDefiningOp()))
        mapping.map(operand, slice(operand, begin, size, op->getLoc()));
  for (auto &[op, read] : region.ops) {
    Operation *clone = cloneFor(op, begin, size, mapping);
    for (auto [old, made] : llvm::zip(op->getResults(), clone->getResults()))
      if (region.leaves(old))
        parts[old].push_back(made);
  }
}

void Tiler::finish() {
  for (auto &[old, made] : parts) {
    TensorBuilder b(builder, old.getLoc());
    size_t dims = *rowDims(old, region.rows);
    SmallVector<Value> flat;
    for (Value part : made)
      flat.push_back(
          b.reshape(part, tensorType(part).getShape().drop_front(dims - 1)));
    Value joined = b.make<ConcatOp>(flat, builder.getI64IntegerAttr(0));
    old.replaceAllUsesWith(b.reshape(joined, tensorType(old).getShape()));
  }
  for (auto &[op, read] : llvm::reverse(region.ops))
    op->erase();
}

/// Returns the rows of a block; all of them where the region stays whole.
static int64_t blockRows(const RowRegion &region, int64_t given,
                         const TileRule &rule) {
  auto fits = [&, draws = region.draws()](int64_t size) {
    return size < region.rows &&
           (!draws || (rule.draws && region.counts(size)));
  };
  if (given)
    return fits(given) ? given : region.rows;
  if (region.widest < rule.leastBytes)
    return region.rows;
  int64_t least = llvm::divideCeil(region.widest, rule.mostBytes);
  for (int64_t blocks = std::min(rule.mostBlocks, least);
       blocks <= rule.mostBlocks; ++blocks) {
    int64_t rows = llvm::divideCeil(region.rows, blocks);
    if (rows > rule.rowStep)
      rows = int64_t(llvm::alignTo(rows, rule.rowStep));
    if (fits(rows))
      return rows;
  }
  return region.rows;
}

static void remarkTiles(const RowRegion &region, int64_t rows) {
  region.ops.back().first->emitRemark()
      << "rows in tiles: " << region.ops.size() << " ops of " << region.rows
      << " rows in blocks of " << rows << " rows: their largest value takes "
      << formatBytes(region.widest / region.rows * rows) << " instead of "
      << formatBytes(region.widest) << " (" + Setting("tile-rows") + ")";
}

static void tile(const RowRegion &region, int64_t rows) {
  OpBuilder builder(region.ops.back().first);
  Tiler tiler(region, builder);
  for (int64_t begin = 0; begin < region.rows; begin += rows)
    tiler.addBlock(begin, std::min(rows, region.rows - begin));
  tiler.finish();
}

/// Tiles a function's regions. What is done is said once for each place of the
/// source, since functions are clones.
static void tileFunction(func::FuncOp function, int64_t given,
                         const TileRule &rule, DenseSet<Location> *told) {
  Block &block = function.getBody().front();
  DenseSet<Operation *> seen;
  SmallVector<Operation *> products;
  for (Operation &op : block)
    if (isa<ContractionOpInterface>(op))
      products.push_back(&op);
  bool changed = false;
  for (Operation *product : products) {
    if (seen.contains(product))
      continue;
    std::optional<RowRegion> region = rowRegionOf(product);
    if (!region)
      continue;
    for (auto &[op, read] : region->ops)
      seen.insert(op);
    int64_t size = blockRows(*region, given, rule);
    if (size >= region->rows)
      continue;
    if (told && told->insert(region->ops.back().first->getLoc()).second)
      remarkTiles(*region, size);
    tile(*region, size);
    changed = true;
  }
  if (changed)
    sortTopologically(&block);
}

LogicalResult ckopt::tileRows(ModuleOp module, StringRef name, StringRef rows,
                              const TileRule &rule) {
  std::optional<int64_t> given = parseChunkRows(rows);
  if (!given)
    return module.emitError("tile-rows: '")
           << rows << "' is not auto, off, or a positive number of rows";
  DenseSet<Location> told;
  if (*given >= 0)
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          (name.empty() || function.getName() == name))
        tileFunction(function, *given, rule, name.empty() ? &told : nullptr);
  return success();
}

namespace {
struct TileRows : ckopt::impl::TileRowsPassBase<TileRows> {
  using TileRowsPassBase::TileRowsPassBase;
  void runOnOperation() override {
    if (leastBytes < 1 || mostBytes < 1 || mostBlocks < 1 || rowStep < 1) {
      getOperation().emitError("tile-rows: least-bytes, most-bytes, "
                               "most-blocks and row-step are positive");
      return signalPassFailure();
    }
    if (failed(tileRows(getOperation(), function, rows,
                        {leastBytes, mostBytes, mostBlocks, rowStep, draws})))
      signalPassFailure();
  }
};
} // namespace
