//===- CollectiveOps.cpp - types of ops of several processes --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InferTypes.h"

using namespace mlir;
using namespace ckopt;

/// Reports what no op of several ranks can have.
template <typename Adaptor>
static LogicalResult checkTensors(std::optional<Location> loc, StringRef name,
                                  Adaptor &adaptor, ValueRange operands) {
  if (operands.empty())
    return emitOptionalError(loc, name, " needs a tensor");
  int64_t ranks = adaptor.getRanks(), groups = adaptor.getGroups(),
          stride = adaptor.getStride();
  if (ranks < 1)
    return emitOptionalError(loc, name, " needs 1 rank or more, got ", ranks);
  if (groups < 1 || stride < 1 || groups % stride)
    return emitOptionalError(loc, name, " has groups of ranks that are ",
                             stride, " apart, and there are ", groups,
                             " of them: no multiple");
  Type element = tensorType(operands.front()).getElementType();
  for (Value operand : operands)
    if (tensorType(operand).getElementType() != element)
      return emitOptionalError(loc, "operands must have one element type, got ",
                               operands.front().getType(), " and ",
                               operand.getType());
  return success();
}

CKOPT_INFER(AllReduceOp) {
  AllReduceOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkTensors(loc, "all_reduce", adaptor, operands)))
    return failure();
  llvm::append_range(results, operands.getTypes());
  return success();
}

CKOPT_INFER(BroadcastOp) {
  BroadcastOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkTensors(loc, "broadcast", adaptor, operands)))
    return failure();
  int64_t root = adaptor.getRoot();
  if (root < 0 || root >= int64_t(adaptor.getRanks()))
    return emitOptionalError(loc, "broadcast comes from one of ",
                             int64_t(adaptor.getRanks()), " ranks, not from ",
                             root);
  llvm::append_range(results, operands.getTypes());
  return success();
}

/// Returns the rows that each of `ranks` ranks has of so many.
static int64_t rowsOfRank(int64_t rows, int64_t ranks) {
  return llvm::divideCeil(rows, ranks);
}

/// Returns the type with another size of dimension 0.
static RankedTensorType withRows(RankedTensorType type, int64_t rows) {
  SmallVector<int64_t> shape(type.getShape());
  shape.front() = rows;
  return RankedTensorType::get(shape, type.getElementType(),
                               type.getEncoding());
}

CKOPT_INFER(AllGatherOp) {
  AllGatherOp::Adaptor adaptor(operands, attributes, properties, regions);
  if (failed(checkTensors(loc, "all_gather", adaptor, operands)))
    return failure();
  ArrayRef<int64_t> rows = adaptor.getRows();
  if (rows.size() != operands.size())
    return emitOptionalError(loc, "all_gather needs the rows of each of ",
                             operands.size(), " results, got ", rows.size());
  for (auto [operand, count] : llvm::zip_equal(operands, rows)) {
    RankedTensorType type = tensorType(operand);
    if (type.getRank() == 0 || count < 0 ||
        type.getDimSize(0) != rowsOfRank(count, adaptor.getRanks()))
      return emitOptionalError(loc, "each of ", int64_t(adaptor.getRanks()),
                               " ranks has ",
                               rowsOfRank(count, adaptor.getRanks()), " of ",
                               count, " rows, not ", type);
    results.push_back(withRows(type, count));
  }
  return success();
}

/// What each rank gets of whole tensors.
template <typename Adaptor>
static LogicalResult inferOwnRows(std::optional<Location> loc, StringRef name,
                                  Adaptor adaptor, ValueRange operands,
                                  SmallVectorImpl<Type> &results) {
  if (failed(checkTensors(loc, name, adaptor, operands)))
    return failure();
  for (Value operand : operands) {
    RankedTensorType type = tensorType(operand);
    if (type.getRank() == 0)
      return emitOptionalError(loc, name, " cuts dimension 0, which ", type,
                               " lacks");
    results.push_back(
        withRows(type, rowsOfRank(type.getDimSize(0), adaptor.getRanks())));
  }
  return success();
}

CKOPT_INFER(ReduceScatterOp) {
  return inferOwnRows(
      loc, "reduce_scatter",
      ReduceScatterOp::Adaptor(operands, attributes, properties, regions),
      operands, results);
}

CKOPT_INFER(OwnRowsOp) {
  return inferOwnRows(
      loc, "own_rows",
      OwnRowsOp::Adaptor(operands, attributes, properties, regions), operands,
      results);
}

/// Ranks move rows as they lie in memory, so an operand and its result lie
/// alike, and rows are contiguous.
template <typename Op> static LogicalResult verifyRows(Op op) {
  for (auto [input, output] :
       llvm::zip_equal(op.getInputs(), op.getOutputs())) {
    RankedTensorType in = tensorType(input), out = tensorType(output);
    if (in.getEncoding() != out.getEncoding())
      return op.emitOpError("rows of ") << in << " lie as it does, got " << out;
    if (auto layout = dyn_cast_or_null<LayoutAttr>(in.getEncoding());
        layout && layout.getOrder().front() != 0)
      return op.emitOpError("rows of ") << in << " are not contiguous";
  }
  return success();
}

LogicalResult AllGatherOp::verify() { return verifyRows(*this); }
LogicalResult ReduceScatterOp::verify() { return verifyRows(*this); }
LogicalResult OwnRowsOp::verify() { return verifyRows(*this); }

LogicalResult BroadcastOp::verify() {
  for (auto [input, output] : llvm::zip_equal(getInputs(), getOutputs()))
    if (input.getType() != output.getType())
      return emitOpError("what ranks get of ")
             << input.getType() << " has its type, got " << output.getType();
  return success();
}

/// Ranks add elements as they lie in memory, so an operand and its result lie
/// alike.
LogicalResult AllReduceOp::verify() {
  for (auto [input, output] : llvm::zip_equal(getInputs(), getOutputs()))
    if (input.getType() != output.getType())
      return emitOpError("sums of ")
             << input.getType() << " have its type, got " << output.getType();
  return success();
}

LogicalResult RankOp::verify() {
  if (int64_t(getRanks()) >= 1)
    return success();
  return emitOpError("needs 1 rank or more, got ") << int64_t(getRanks());
}

/// Checks one operand and result of a collective against each other.
static bool fitsCollective(StringRef kind, int64_t ranks, RankedTensorType in,
                           RankedTensorType out) {
  if (kind == "all_gather")
    return in.getRank() > 0 && out.getRank() > 0 &&
           in == withRows(out, rowsOfRank(out.getDimSize(0), ranks));
  if (kind == "reduce_scatter")
    return in.getRank() > 0 &&
           out == withRows(in, rowsOfRank(in.getDimSize(0), ranks));
  return in == out;
}

LogicalResult CollectiveStartOp::verify() {
  StringRef kind = getCollective();
  if (!llvm::is_contained(
          {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}, kind))
    return emitOpError("starts no collective '") << kind << "'";
  if (failed(checkTensors(getLoc(), getOperationName(), *this, getInputs())))
    return failure();
  if (getOutputs().size() != getInputs().size() + 1)
    return emitOpError("has a result for each tensor, and one of the bytes in "
                       "which it works");
  auto bytes = tensorType(getOutputs().back());
  if (bytes.getRank() != 1 || !bytes.getElementType().isUnsignedInteger(8))
    return emitOpError("works in bytes (ui8), got ") << bytes;
  int64_t root = getRoot();
  if (root < 0 || root >= int64_t(getRanks()))
    return emitOpError("has no rank ") << root;
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs()))
    if (!fitsCollective(kind, getRanks(), tensorType(input),
                        tensorType(output)))
      return emitOpError() << kind << " of " << input.getType()
                           << " does not give " << output.getType();
  return success();
}

LogicalResult CollectiveWaitOp::verify() {
  if (getOutputs().empty() || getInputs().size() <= getOutputs().size())
    return emitOpError("takes all results of a collective_start, and gives "
                       "back its tensors");
  int64_t ranks = getRanks(), groups = getGroups(), stride = getStride();
  if (ranks < 1 || groups < 1 || stride < 1 || groups % stride)
    return emitOpError("has no such groups of ranks");
  for (auto [input, output] : llvm::zip(getInputs(), getOutputs()))
    if (input.getType() != output.getType())
      return emitOpError("gives ") << input.getType() << " back as it is, not "
                                   << "as " << output.getType();
  return success();
}

static double elementsOf(ValueRange tensors) {
  double elements = 0;
  for (Value tensor : tensors)
    elements += double(tensorType(tensor).getNumElements());
  return elements;
}

/// Each rank adds its share of the elements of all ranks.
double AllReduceOp::getFlops() { return elementsOf(getInputs()); }
double ReduceScatterOp::getFlops() { return elementsOf(getInputs()); }
double AllGatherOp::getFlops() { return 0; }
double BroadcastOp::getFlops() { return 0; }
double OwnRowsOp::getFlops() { return 0; }

/// Each result may take the bytes of its operand, which nothing else reads.
static SmallVector<std::pair<unsigned, unsigned>> pairsOf(Operation *op) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  for (unsigned i = 0; i < op->getNumOperands(); ++i)
    if (llvm::count(op->getOperands(), op->getOperand(i)) == 1)
      pairs.emplace_back(i, i);
  return pairs;
}

/// Elements are packed before the sums of the same elements are written.
SmallVector<std::pair<unsigned, unsigned>> AllReduceOp::getReusePairs() {
  return pairsOf(*this);
}
SmallVector<std::pair<unsigned, unsigned>> BroadcastOp::getReusePairs() {
  return pairsOf(*this);
}
