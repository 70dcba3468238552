//===- ChunkVocab.cpp - cross entropy without whole logits ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The problem: the logits of a language model are its largest tensor by far
// (tokens times vocabulary), and live from the end of the forward pass to the
// gradient of the head.
//
// The method: before autodiff, a cross entropy over the last dimension of a
// product with one matrix is replaced by linear_cross_entropy, which takes some
// rows at a time. What lies between the two and only names or chooses rows
// (reshapes, slices) is done to the product's input instead; a bias becomes an
// operand. The softmax of a row is complete in its chunk, so only the sum of
// the weight's gradient changes its order.
//
// The guarantee: whether and how a head is chunked follows from its sizes and
// the option alone, so results are the same under every budget.
//
// Complexity: linear in ops.
//
//===----------------------------------------------------------------------===//
#include "GatherStored.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Normalize/Passes.h"
#include "ckopt/Support/ByteSize.h"

namespace ckopt {
#define GEN_PASS_DEF_CHUNKVOCABPASS
#include "ckopt/Normalize/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

/// Smaller logits are not worth the sums of the weight's gradient, which each
/// chunk but the first reads and writes.
static constexpr int64_t kLeastBytes = int64_t(64) << 20;

static int64_t logitsBytes(CrossEntropyOp loss) {
  RankedTensorType type = tensorType(loss.getLogits());
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// Returns the rows of a chunk for logits of `count` rows; `count` where they
/// stay whole.
static int64_t automaticRows(int64_t bytes, int64_t count,
                             const ChunkRule &rule) {
  if (bytes < kLeastBytes)
    return count;
  int64_t fit = rule.mostBytes / (bytes / count);
  int64_t least =
      std::max(rule.leastRows,
               std::min(rule.enoughRows, int64_t(llvm::divideCeil(count, 4))));
  int64_t most = std::max(least, fit / rule.rowStep * rule.rowStep);
  int64_t chunks = llvm::divideCeil(count, most);
  int64_t rows = llvm::alignTo(llvm::divideCeil(count, chunks), rule.rowStep);
  return std::min(rows, count);
}

//===----------------------------------------------------------------------===//
// What is matched
//===----------------------------------------------------------------------===//

namespace {
/// A loss and where its logits come from.
struct Head {
  MatMulOp product;
  Value bias; ///< null: none
  /// Reshapes and slices of rows from the product to the logits, last first.
  SmallVector<Operation *> moves;
};
} // namespace

/// Returns a reader of the value beside `reader` that outlives autodiff.
static Operation *otherReader(Value value, Operation *reader,
                              bool keepsResults) {
  for (OpOperand &use : value.getUses()) {
    if (use.getOwner() == reader)
      continue;
    auto function = dyn_cast<func::FuncOp>(use.getOwner()->getParentOp());
    if (!keepsResults && isa<func::ReturnOp>(use.getOwner()) && function &&
        !function.getResultAttr(use.getOperandNumber(), attrs::kUpdates))
      continue;
    return use.getOwner();
  }
  return nullptr;
}

static int64_t lastSize(Value value) {
  ArrayRef<int64_t> shape = tensorType(value).getShape();
  return shape.empty() ? 1 : shape.back();
}

/// Returns the operand of an addition that adds the same numbers, one a class,
/// to each row of the other one.
static Value biasOf(AddOp add, int64_t classes) {
  for (Value operand : {add.getLhs(), add.getRhs()})
    if (lastSize(operand) == classes &&
        tensorType(operand).getNumElements() == classes &&
        tensorType(add.getOutput()).getNumElements() != classes)
      return operand;
  return {};
}

/// Returns whether the loss reads f32 copies of halves, which
/// linear_cross_entropy makes of each chunk.
static bool widens(Operation *op) {
  auto cast = dyn_cast<CastOp>(op);
  return cast && getElementTypeOrSelf(cast.getOutput()).isF32() &&
         isa<Float16Type, BFloat16Type>(getElementTypeOrSelf(cast.getInput()));
}

/// Follows the logits up to a product. Of halves the weight is a stored one:
/// its gradient would be rounded for each chunk. On failure `obstacle` is what
/// does not allow chunks.
static bool findHead(CrossEntropyOp loss, bool keepsResults, Head &head,
                     Operation *&obstacle) {
  Value at = loss.getLogits();
  int64_t classes = lastSize(at);
  obstacle = loss;
  if (int64_t(loss.getAxis()) != tensorType(at).getRank() - 1)
    return false;
  for (Value rest : {loss.getLse(), loss.getLost()})
    for (OpOperand &use : rest.getUses()) {
      obstacle = use.getOwner();
      return false;
    }
  for (Operation *reader = loss;;) {
    if ((obstacle = otherReader(at, reader, keepsResults)))
      return false;
    obstacle = reader;
    Operation *op = at.getDefiningOp();
    if (!op)
      return false;
    obstacle = reader = op;
    if (auto product = dyn_cast<MatMulOp>(op)) {
      head.product = product;
      return tensorType(at).getRank() == 2 && !product.getTransposeLhs() &&
             (tensorType(at).getElementTypeBitWidth() >= 32 ||
              followsFromStored(product.getRhs()));
    }
    auto slice = dyn_cast<SliceOp>(op);
    auto add = dyn_cast<AddOp>(op);
    if (widens(op) && !head.bias) {
      at = op->getOperand(0);
      continue;
    }
    if (add && !head.bias) {
      if (!(head.bias = biasOf(add, classes)))
        return false;
      at = add.getLhs() == head.bias ? add.getRhs() : add.getLhs();
    } else if (isa<ReshapeOp>(op) || (slice && slice.getStarts().back() == 0 &&
                                      slice.getSteps().back() == 1)) {
      head.moves.push_back(op);
      at = op->getOperand(0);
    } else {
      return false;
    }
    if (lastSize(at) != classes)
      return false;
  }
}

//===----------------------------------------------------------------------===//
// Rewriting
//===----------------------------------------------------------------------===//

/// Does to rows of the product's input what `move` does to rows of its result.
static Value moveRows(TensorBuilder &b, Value rows, Operation *move) {
  int64_t depth = lastSize(rows);
  if (auto slice = dyn_cast<SliceOp>(move)) {
    SmallVector<int64_t> sizes(slice.getSizes());
    sizes.back() = depth;
    return b.make<SliceOp>(rows, b.ints(slice.getStarts()), b.ints(sizes),
                           b.ints(slice.getSteps()));
  }
  SmallVector<int64_t> shape(tensorType(move->getResult(0)).getShape());
  shape.back() = depth;
  return b.reshape(rows, shape);
}

/// Appends rows of one number.
static Value fillRows(TensorBuilder &b, Value rows, int64_t count,
                      double value) {
  RankedTensorType type = tensorType(rows);
  SmallVector<int64_t> none(type.getRank(), 0), high = none;
  high[0] = count - type.getDimSize(0);
  SmallVector<int64_t> shape(type.getShape());
  shape[0] = count;
  return PadOp::create(b.builder, b.loc, type.clone(shape), rows, b.ints(none),
                       b.ints(high), b.ints(none),
                       b.builder.getF64FloatAttr(value));
}

static void rewrite(CrossEntropyOp loss, Head &head, int64_t rows,
                    int64_t blocks) {
  OpBuilder builder(loss);
  TensorBuilder b(builder, head.product.getLoc());
  Value input = head.product.getLhs();
  for (Operation *move : llvm::reverse(head.moves))
    input = moveRows(b, input, move);
  RankedTensorType result = tensorType(loss.getLoss());
  int64_t count = result.getNumElements();
  input = b.reshape(input, {count, lastSize(input)});
  Value targets = b.reshape(loss.getTargets(), {count});
  if (blocks) {
    input = fillRows(b, input, blocks * rows, 0);
    targets =
        fillRows(b, targets, blocks * rows, double(loss.getIgnoreIndex()));
  }
  Value bias =
      head.bias ? b.reshape(head.bias, {lastSize(head.bias)}) : Value();
  Value each = LinearCrossEntropyOp::create(
      builder, b.loc, input, head.product.getRhs(), targets, bias,
      head.product.getTransposeRhs(), rows, loss.getIgnoreIndex());
  b.loc = loss.getLoc();
  if (blocks)
    each = b.make<SliceOp>(each, b.ints({0}), b.ints({count}), b.ints({1}));
  each = b.cast(each, result.getElementType());
  loss.getLoss().replaceAllUsesWith(b.reshape(each, result.getShape()));
  loss.erase();
}

static void remarkChunks(CrossEntropyOp loss, int64_t bytes, int64_t count,
                         int64_t rows) {
  loss.emitRemark() << "cross entropy of " << count << " rows over "
                    << lastSize(loss.getLogits()) << " classes in chunks of "
                    << rows << " rows: logits take "
                    << formatBytes(bytes / count * rows) << " instead of "
                    << formatBytes(bytes)
                    << " (" + Setting("chunk-vocab") + ")";
}

/// Whether rows fill a given number of chunks, which are for a head of about as
/// many.
static bool fillsBlocks(int64_t count, int64_t rows, int64_t blocks) {
  constexpr int64_t kMostEmpty = 4;
  return count <= rows * blocks && kMostEmpty * count > rows * blocks;
}

/// Notes how many rows are in how many chunks.
static void noteChunks(func::FuncOp function, int64_t count, int64_t chunks) {
  auto module = function->getParentOfType<ModuleOp>();
  if (!module->hasAttr(kOpenSizeAttr))
    return;
  auto noted = module->getAttrOfType<DenseI64ArrayAttr>(kChunksAttr);
  if (!noted || noted[0] < count)
    module->setAttr(kChunksAttr, DenseI64ArrayAttr::get(function.getContext(),
                                                        {count, chunks}));
}

/// Says what keeps large logits whole.
static void remarkObstacle(CrossEntropyOp loss, int64_t bytes,
                           Operation *obstacle) {
  InFlightDiagnostic remark = loss.emitRemark()
                              << "the logits of the loss are kept whole ("
                              << formatBytes(bytes) << "), because of '"
                              << obstacle->getName() << "'";
  if (StringRef node = nodeName(obstacle->getLoc()); !node.empty())
    remark << " (node '" << node << "')";
  remark << ": chunks need a product with one matrix, classes last, whose "
            "result only the loss reads (" +
                Setting("chunk-vocab") + ")";
}

std::optional<int64_t> ckopt::parseChunkRows(StringRef text) {
  if (text == "auto")
    return 0;
  if (text == "off")
    return -1;
  int64_t rows;
  if (text.getAsInteger(10, rows) || rows < 1)
    return std::nullopt;
  return rows;
}

std::string ckopt::printChunkRows(int64_t rows) {
  return rows == 0 ? "auto" : rows < 0 ? "off" : std::to_string(rows);
}

LogicalResult ckopt::chunkVocabulary(func::FuncOp function, StringRef rows,
                                     const ChunkRule &rule) {
  std::optional<int64_t> parsed = parseChunkRows(rows);
  if (!parsed)
    return function.emitError("chunk-vocab: '")
           << rows << "' is not auto, off, or a positive number of rows";
  if (*parsed < 0)
    return success();
  int64_t given = *parsed;
  bool found = false;
  SmallVector<CrossEntropyOp> losses(
      function.getBody().getOps<CrossEntropyOp>());
  for (CrossEntropyOp loss : losses) {
    int64_t count = tensorType(loss.getLoss()).getNumElements();
    int64_t bytes = logitsBytes(loss);
    int64_t chunk = given   ? given
                    : count ? automaticRows(bytes, count, rule)
                            : 0;
    if (chunk >= count ||
        (rule.blocks && !fillsBlocks(count, chunk, rule.blocks)))
      continue;
    found = true;
    Head head;
    Operation *obstacle = nullptr;
    if (!findHead(loss, rule.evaluates, head, obstacle)) {
      if (!rule.evaluates)
        remarkObstacle(loss, bytes, obstacle);
      continue;
    }
    if (!rule.evaluates)
      remarkChunks(loss, bytes, count, chunk);
    noteChunks(function, count,
               rule.blocks ? rule.blocks : llvm::divideCeil(count, chunk));
    rewrite(loss, head, chunk, rule.blocks);
  }
  if (given && !found && !rule.evaluates)
    function.emitWarning()
        << Setting("chunk-vocab", llvm::Twine(given)) +
               ": there is no cross entropy of labels over more rows";
  return success();
}

namespace {
struct ChunkVocab : ckopt::impl::ChunkVocabPassBase<ChunkVocab> {
  using ChunkVocabPassBase::ChunkVocabPassBase;
  void runOnOperation() override {
    auto found = getOperation().lookupSymbol<func::FuncOp>(function);
    if (!found) {
      getOperation().emitError("no function '") << function << "'";
      return signalPassFailure();
    }
    if (mostBytes < 1 || leastRows < 1 || rowStep < 1) {
      getOperation().emitError("chunk-vocab: most-bytes, least-rows and "
                               "row-step are positive");
      return signalPassFailure();
    }
    if (failed(chunkVocabulary(
            found, rows,
            {mostBytes, leastRows, rowStep, evaluates, blocks, enoughRows})))
      signalPassFailure();
  }
};
} // namespace
