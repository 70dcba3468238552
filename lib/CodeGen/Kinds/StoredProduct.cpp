//===- StoredProduct.cpp - products that read weights as they are stored --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a frozen weight is stored in 16, 8 or 4 bits, and a library
// multiplies f32. A wide copy of the whole weight costs more than storing it
// wide did.
//
// Method: the kernel holds the ops that make the factor wide, and the product.
// The factor is made a block of rows at a time in the workspace, by a generated
// stage over these rows, and multiplied from there. Rows are columns (or rows)
// of the result, which is then made part by part; or they are what is summed
// over, and products of blocks add up in the result in the order of the blocks.
//
// Guarantee: the size of a block follows from shapes and types alone, so bits
// do too; the workspace is one block and what the library needs. Sums over
// blocks are f32 or f64: a result of 16 bits is refused where it would be
// rounded more than once. Complexity: O(ops and blocks).
//
//===----------------------------------------------------------------------===//
#include "StoredProduct.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::MatMulDesc;

/// Bytes of a block, about: its products then run at a library's full rate, and
/// it is small beside the weights of a model.
static constexpr int64_t kBlockBytes = int64_t(8) << 20;

int64_t codegen::bytesOfElement(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementTypeBitWidth() / 8;
}

LogicalResult StoredProduct::findFactor() {
  product = terminator.getOperand(0).getDefiningOp();
  auto contraction = dyn_cast_or_null<ContractionOpInterface>(product);
  if (!contraction || terminator.getNumOperands() != 1 ||
      contraction.getContractionKind() != ContractionKind::Product)
    return kernel.emitError("a library kernel holds one op, or one product "
                            "and what makes a factor of it");
  for (OpOperand &operand : product->getOpOperands()) {
    auto argument = dyn_cast<BlockArgument>(operand.get());
    if (argument)
      continue;
    if (made || operand.getOperandNumber() > 1)
      return refuse("makes one of two factors");
    factor = operand.getOperandNumber();
    made = operand.get();
  }
  if (!made)
    return refuse("makes one of two factors");
  matrix = cast<RankedTensorType>(made.getType());
  while (auto view = made.getDefiningOp<ReshapeOp>())
    made = view.getInput();
  auto stored = cast<RankedTensorType>(made.getType());
  if (matrix.getRank() != 2 || !isRowMajor(matrix) || !isRowMajor(stored) ||
      stored.getRank() < 2 || !matrix.getNumElements())
    return refuse("needs a row-major matrix, not ") << matrix;
  return describeProduct(product, options, code.primitive);
}

OwningOpRef<func::FuncOp> StoredProduct::makeFiller() {
  OwningOpRef<func::FuncOp> filler(kernel.clone());
  Block &block = filler->front();
  Operation *end = block.getTerminator();
  Operation *multiplied = end->getOperand(0).getDefiningOp();
  Value root = multiplied->getOperand(factor);
  while (auto view = root.getDefiningOp<ReshapeOp>())
    root = view.getInput();
  end->setOperands(root);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (&op != end && op.use_empty())
      op.erase();
  filler->setType(
      FunctionType::get(ctx, block.getArgumentTypes(), end->getOperandTypes()));
  filler->getOperation()->setAttr(attrs::kKernel,
                                  StringAttr::get(ctx, "elementwise"));
  return filler;
}

int64_t StoredProduct::numberOf(unsigned operand) const {
  return cast<BlockArgument>(product->getOperand(operand)).getArgNumber();
}

unsigned StoredProduct::addPrimitive(const runtime::PrimitiveDesc &desc) {
  auto *known = llvm::find(code.blockPrimitives, desc);
  auto number = unsigned(known - code.blockPrimitives.begin());
  if (known == code.blockPrimitives.end())
    code.blockPrimitives.push_back(desc);
  return number;
}

void StoredProduct::reuseAddend() {
  if (code.primitive.accumulate &&
      llvm::hasSingleElement(kernel.getArgument(numberOf(2)).getUses()))
    code.reuse.emplace_back(numberOf(2), 0);
}

namespace {

class RangesProduct : public StoredProduct {
public:
  using StoredProduct::StoredProduct;

  LogicalResult plan() override {
    if (failed(findFactor()) || failed(findUnits()) || failed(planFill()))
      return failure();
    return planBlocks();
  }

  LogicalResult emit(ModuleOp into) override {
    LogicalResult emitted = fill->emit(into);
    report = fill->report;
    return emitted;
  }

private:
  LogicalResult findUnits() {
    columns = matrix.getDimSize(1);
    units = cast<RankedTensorType>(made.getType()).getDimSize(0);
    int64_t elements = matrix.getNumElements() / units;
    if (elements % columns)
      return refuse("needs whole rows: ")
             << made.getType() << " and " << matrix;
    unitRows = elements / columns;
    return success();
  }

  /// Plans the stage that makes the factor.
  LogicalResult planFill() {
    filler = makeFiller();
    fill = makeRowsKernel(*filler, options);
    if (failed(fill->plan()))
      return failure();
    code.stages = fill->code.stages;
    if (code.stages.size() != 1 || fill->code.workspaceBytes ||
        code.stages.front().trip % units)
      return refuse("is made in one stage, row by row");
    return success();
  }

  /// Where the rows of the factor lie in a product: what extent they are, and
  /// by how many elements each argument advances from one to the next.
  struct Place {
    int64_t MatMulDesc::*extent;
    int64_t other, result; ///< steps of the other factor and of the result
  };
  Place placeOf(const MatMulDesc &desc) const {
    bool isRight = factor == 1;
    bool swapped =
        product->hasAttr(isRight ? "transpose_rhs" : "transpose_lhs");
    if (isRight != swapped)
      return {&MatMulDesc::k, isRight ? desc.aCol : desc.bRow, 0};
    if (isRight)
      return {&MatMulDesc::n, 0, desc.cCol};
    return {&MatMulDesc::m, 0, desc.cRow};
  }

  LogicalResult planBlocks() {
    const MatMulDesc whole = code.primitive.matmul;
    Place place = placeOf(whole);
    bool summed = place.extent == &MatMulDesc::k;
    bool adds = code.primitive.accumulate;
    int64_t unitBytes = unitRows * columns * bytesOfElement(made);
    int64_t step = std::clamp<int64_t>(kBlockBytes / unitBytes, 1, units);
    int64_t count = llvm::divideCeil(units, step);
    Type result = getElementTypeOrSelf(product->getResult(0));
    if (summed && count > 1 && !result.isF32() && !result.isF64())
      return refuse("sums in f32 or f64, not in ") << result;
    int64_t tripsOfUnit = code.stages.front().trip / units;
    int64_t blockBytes = llvm::alignTo(step * unitBytes, 64);
    int64_t resultBytes = bytesOfElement(product->getResult(0));
    unsigned other = 1 - factor;
    int64_t resultNumber = kernel.getNumArguments();
    for (int64_t b = 0; b < count; ++b) {
      int64_t first = b * step, some = std::min(step, units - first);
      int64_t row = first * unitRows;
      KernelCode::ProductBlock block;
      runtime::PrimitiveDesc desc = code.primitive;
      desc.matmul.*place.extent = some * unitRows;
      desc.accumulate = adds || (summed && b > 0);
      block.firstTrip = first * tripsOfUnit;
      block.trips = some * tripsOfUnit;
      block.shift = first * unitBytes;
      block.args.resize(2);
      block.args[factor] = {KernelCode::kFactor, 0};
      block.args[other] = {numberOf(other),
                           row * place.other *
                               bytesOfElement(product->getOperand(other))};
      KernelCode::BlockArg to{resultNumber, row * place.result * resultBytes};
      if (desc.accumulate)
        block.args.push_back(
            summed && b > 0 ? to
                            : KernelCode::BlockArg{numberOf(2), to.offset});
      block.args.push_back(to);
      if (failed(choosePrimitive(desc, block, blockBytes)))
        return failure();
      code.blocks.push_back(std::move(block));
    }
    code.library = true;
    code.primitive = code.blockPrimitives.front();
    code.blockBytes = blockBytes;
    reuseAddend();
    return success();
  }

  /// Finds or adds the primitive of a block.
  LogicalResult choosePrimitive(runtime::PrimitiveDesc desc,
                                KernelCode::ProductBlock &block,
                                int64_t blockBytes) {
    LibraryChoice choice = options.target->chooseLibrary(desc, options);
    if (!choice.library)
      return refuse("has no library primitive: ") << choice.reason;
    desc.form = choice.form;
    block.primitive = addPrimitive(desc);
    code.workspaceBytes =
        std::max(code.workspaceBytes, blockBytes + choice.workspaceBytes);
    return success();
  }

  int64_t columns = 0;
  int64_t units = 0, unitRows = 0; ///< leading entries of `made`, rows of each
  OwningOpRef<func::FuncOp> filler;
  std::unique_ptr<GeneratedKernel> fill;
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeStoredProduct(func::FuncOp kernel, const CodegenOptions &options) {
  return std::make_unique<RangesProduct>(kernel, options);
}
