//===- DeviceStoredProduct.cpp - products of stored weights on a GPU ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a frozen weight is stored in 16, 8 or 4 bits, and matmuls read wide
// elements. A wide copy of the whole weight costs more than storing it wide
// did.
//
// Method: one launch makes a block of the factor wide in the workspace, the
// next ones, or a library, multiply it. Blocks are rows or columns of the
// factor that are rows or columns of the result, so that each block makes a
// part of the result, and nothing is summed over blocks. All blocks but the
// last have one size and share their launches: the number of the block is a
// scalar.
//
// Guarantee: the size of a block follows from shapes and types alone, so bits
// do too; each element is one sum over all of k, rounded once. Blocks of all
// tensors begin at multiples of 256 bytes. The workspace is one block and what
// the product needs. Complexity: O(ops and blocks).
//
//===----------------------------------------------------------------------===//
#include "Kinds/StoredProduct.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Runtime/Manifest.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::MatMulDesc;

/// Bytes of a block, about: its product fills a device, and it is still in the
/// L2 cache (40 MB and more) when it is multiplied.
static constexpr int64_t kBlockBytes = int64_t(16) << 20;

namespace {

class DeviceStoredProduct : public StoredProduct {
public:
  using StoredProduct::StoredProduct;

  LogicalResult plan() override {
    if (failed(findFactor()) || failed(findUnits()))
      return failure();
    chooseStep();
    planBlocks();
    return success(succeeded(planFills()) && succeeded(planProducts()));
  }

  LogicalResult emit(ModuleOp into) override {
    for (auto *kernels : {&fills, &products})
      for (const std::unique_ptr<GeneratedKernel> &part : *kernels) {
        if (failed(part->emit(into)))
          return failure();
        report.lanes = part->report.lanes;
        report.unitLoads += part->report.unitLoads;
        report.broadcasts += part->report.broadcasts;
        report.gathers += part->report.gathers;
      }
    return success();
  }

private:
  /// Finds the dimension of the factor, rows or columns, that is not summed
  /// over, and the dimension of `made` whose entries it consists of.
  LogicalResult findUnits() {
    const MatMulDesc &desc = code.primitive.matmul;
    bool isRight = factor == 1;
    bool swapped =
        product->hasAttr(isRight ? "transpose_rhs" : "transpose_lhs");
    byRows = isRight == swapped;
    extent = isRight ? &MatMulDesc::n : &MatMulDesc::m;
    resultStep = isRight ? desc.cCol : desc.cRow;
    auto type = cast<RankedTensorType>(made.getType());
    int64_t rows = 1, all = matrix.getDimSize(byRows ? 0 : 1);
    if (!byRows)
      while (rows < matrix.getDimSize(0) && axis < type.getRank())
        rows *= type.getDimSize(axis++);
    if (axis >= type.getRank() || rows != (byRows ? 1 : matrix.getDimSize(0)) ||
        all % type.getDimSize(axis))
      return refuse("needs whole rows or columns: ")
             << type << " and " << matrix;
    if (!cast<RankedTensorType>(product->getResult(0).getType())
             .getNumElements())
      return refuse("needs a result");
    units = type.getDimSize(axis);
    unit = all / units;
    return success();
  }

  /// Returns the bytes of `count` units of the factor.
  int64_t factorBytes(int64_t count) const {
    return count * (matrix.getNumElements() / units) * bytesOfElement(made);
  }
  /// Returns the bytes between `count` units of the result.
  int64_t resultBytes(int64_t count) const {
    return count * unit * resultStep * bytesOfElement(product->getResult(0));
  }

  /// The parts of the result begin where vectors do; so do rows of a block of
  /// columns, and what they are made of.
  void chooseStep() {
    constexpr int64_t kAlign = runtime::kDeviceAlignment;
    int64_t group = 1;
    while (resultBytes(group) % kAlign || group * unit % 64)
      group *= 2;
    step = std::max(kBlockBytes / factorBytes(1) / group * group, group);
    step = std::min(step, units);
    code.blockBytes = factorBytes(step);
  }

  void planBlocks() {
    unsigned other = 1 - factor;
    int64_t resultNumber = kernel.getNumArguments();
    for (int64_t first = 0; first < units; first += step) {
      int64_t some = std::min(step, units - first);
      runtime::PrimitiveDesc desc = code.primitive;
      MatMulDesc &part = desc.matmul;
      part.*extent = some * unit;
      if (!byRows) // the block's rows are shorter
        (factor == 1 ? part.bRow : part.aCol) = some * unit;
      KernelCode::ProductBlock block;
      block.primitive = addPrimitive(desc);
      block.fill = some == step ? 0 : 1;
      block.args.resize(2);
      block.args[factor] = {KernelCode::kFactor, 0};
      block.args[other] = {numberOf(other), 0};
      KernelCode::BlockArg to{resultNumber, resultBytes(first)};
      if (desc.accumulate)
        block.args.push_back({numberOf(2), to.offset});
      if (desc.hasBias) // one element for each column
        block.args.push_back({numberOf(3), factor == 1 ? to.offset : 0});
      block.args.push_back(to);
      code.blocks.push_back(std::move(block));
    }
    reuseAddend();
    code.primitive = code.blockPrimitives.front();
  }

  /// Plans the launches that make blocks: of all but the last, and of that if
  /// it is smaller.
  LogicalResult planFills() {
    bool several = code.blocks.size() > 1;
    for (int64_t count : {step, units % step}) {
      if (!count)
        continue;
      functions.push_back(makeFiller());
      func::FuncOp filler = *functions.back();
      filler.setName(
          (kernel.getSymName() + (fills.empty() ? "_fill" : "_rest")).str());
      fills.push_back(
          makePartKernel(filler, options, {axis, count, several ? step : 0}));
      if (failed(fills.back()->plan()))
        return failure();
      const KernelCode &made = fills.back()->code;
      if (made.stages.size() != 1 || made.workspaceBytes)
        return refuse("is made in one launch");
      code.stages.push_back(made.stages.front());
    }
    return success();
  }

  /// Returns a function of the product alone, whose types are the whole ones.
  func::FuncOp makeProduct(unsigned number) {
    OpBuilder builder(ctx);
    functions.push_back(func::FuncOp::create(
        kernel.getLoc(), (kernel.getSymName() + "_p" + Twine(number)).str(),
        builder.getFunctionType(product->getOperandTypes(),
                                product->getResultTypes())));
    func::FuncOp function = *functions.back();
    Block *block = function.addEntryBlock();
    builder.setInsertionPointToEnd(block);
    Operation *copy = builder.clone(*product);
    copy->setOperands(block->getArguments());
    func::ReturnOp::create(builder, kernel.getLoc(), copy->getResults());
    return function;
  }

  /// Lets libraries multiply if they take all blocks, beside or in place of our
  /// own launches.
  LogicalResult planProducts() {
    int64_t libraryBytes = 0;
    code.library = true;
    for (runtime::PrimitiveDesc &desc : code.blockPrimitives) {
      LibraryChoice choice = options.target->chooseLibrary(desc, options);
      code.library &= choice.library;
      libraryBytes = std::max(libraryBytes, choice.workspaceBytes);
    }
    if (!code.library)
      libraryBytes = 0;
    if (!code.library || options.ownBesideLibraries)
      for (auto [i, desc] : llvm::enumerate(code.blockPrimitives)) {
        products.push_back(
            makeDeviceProduct(makeProduct(unsigned(i)), options, desc));
        if (failed(products.back()->plan()))
          return failure();
        const KernelCode &own = products.back()->code;
        code.blockStages.emplace_back(code.stages.size(), own.stages.size());
        llvm::append_range(code.stages, own.stages);
        code.ownScratchBytes =
            std::max(code.ownScratchBytes, own.workspaceBytes);
      }
    if (!products.empty())
      for (const KernelCode::ProductBlock &block : code.blocks)
        llvm::append_range(code.shapes, products[block.primitive]->code.shapes);
    code.workspaceBytes = code.blockBytes;
    if (int64_t rest = std::max(libraryBytes, code.ownScratchBytes))
      code.workspaceBytes = code.restOffset() + rest;
    return success();
  }

  unsigned axis = 0;   ///< the dimension of `made` that blocks divide
  bool byRows = false; ///< blocks are rows of the factor
  int64_t MatMulDesc::*extent = nullptr;
  int64_t resultStep = 0; ///< elements between rows or columns of the result
  /// Entries of the dimension, rows or columns of each, and entries of a block.
  int64_t units = 0, unit = 0, step = 0;
  SmallVector<OwningOpRef<func::FuncOp>> functions;
  SmallVector<std::unique_ptr<GeneratedKernel>> fills, products;
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceStoredProduct(func::FuncOp kernel,
                                 const CodegenOptions &options) {
  return std::make_unique<DeviceStoredProduct>(kernel, options);
}
