//===- Folding.cpp - constant folding through the interpreter -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect's fallback fold, which MLIR calls where an op's own fold found
// nothing. Splat results of any size fold where the op maps splats to splats
// (elementwise ops: evaluated on one element), others up to a size.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Reference/Folding.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/WholeBatch.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

/// Returns whether results of this type may become constants of the IR. The
/// product of the shape is avoided because it may overflow.
static bool isSmall(Type type, bool hasOpenSize) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.hasStaticShape() ||
      !tensor.getElementType().isIntOrFloat())
    return false;
  // Masks count as floats: they feed kernels, not shapes.
  Type element = tensor.getElementType();
  bool forShapes = isa<IntegerType>(element) && !element.isInteger(1);
  int64_t limit = hasOpenSize ? kFewBytes
                  : forShapes ? maxFoldedIntegerBytes
                              : maxFoldedFloatBytes;
  int64_t room = limit / ((element.getIntOrFloatBitWidth() + 7) / 8);
  if (llvm::is_contained(tensor.getShape(), 0))
    return true;
  for (int64_t size : tensor.getShape())
    room /= size;
  return room > 0;
}

namespace {
struct ReferenceFold : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  LogicalResult fold(Operation *op, ArrayRef<Attribute> operands,
                     SmallVectorImpl<OpFoldResult> &results) const override {
    auto model = dyn_cast<ReferenceOpInterface>(op);
    if (op->hasAttr(kWholeBatchAttr)) // has another value in training
      return failure();
    if (!model || !model.isFoldable() || op->getNumResults() == 0)
      return failure();
    // An iota costs a kernel nothing, so only shape arithmetic gains from its
    // values.
    if (isa<IotaOp>(op) &&
        isa<FloatType>(getElementTypeOrSelf(op->getResult(0))))
      return failure();
    // The operands must be small too, or folding a long reduction would cost
    // more than running it.
    auto module = op->getParentOfType<ModuleOp>();
    auto isSmall = [open = module && module->hasAttr(kOpenSizeAttr)](Type t) {
      return ::isSmall(t, open);
    };
    if (!llvm::all_of(op->getResultTypes(), isSmall) ||
        !llvm::all_of(op->getOperandTypes(), isSmall))
      return foldSplat(op, operands, results);
    SmallVector<Tensor> inputs;
    for (Attribute operand : operands) {
      auto elements = dyn_cast_or_null<ElementsAttr>(operand);
      Tensor tensor = elements ? Tensor::fromAttr(elements) : Tensor();
      if (!tensor)
        return failure();
      inputs.push_back(std::move(tensor));
    }
    SmallVector<const Tensor *> pointers;
    for (const Tensor &input : inputs)
      pointers.push_back(&input);
    SmallVector<Tensor> values;
    // An op that cannot be computed (an index out of range) stays as it is
    // and fails where it runs.
    ScopedDiagnosticHandler quiet(op->getContext(),
                                  [](Diagnostic &) { return success(); });
    if (failed(evaluateOp(op, pointers, values, Options())))
      return failure();
    for (const Tensor &value : values)
      results.push_back(value.toAttr());
    return success();
  }

  /// Evaluates elementwise ops and expansions of splats on one element.
  static LogicalResult foldSplat(Operation *op, ArrayRef<Attribute> operands,
                                 SmallVectorImpl<OpFoldResult> &results) {
    auto kernel = dyn_cast<KernelOpInterface>(op);
    if (!kernel || kernel.getKernelKind() != KernelKind::Elementwise ||
        op->getNumResults() != 1 || op->hasTrait<traits::ReadsPlace>())
      return failure();
    SmallVector<Tensor> inputs;
    for (Attribute operand : operands) {
      auto splat = dyn_cast_or_null<SplatElementsAttr>(operand);
      if (!splat)
        return failure();
      auto type = cast<RankedTensorType>(splat.getType());
      inputs.push_back(Tensor::fromAttr(
          splat.resizeSplat(RankedTensorType::get({}, type.getElementType()))));
    }
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<const Tensor *> pointers;
    for (const Tensor &input : inputs)
      pointers.push_back(&input);
    SmallVector<Tensor, 1> value{
        Tensor(RankedTensorType::get({}, type.getElementType()))};
    Options options;
    if (failed(cast<ReferenceOpInterface>(op).interpret(
            pointers, value, Environment{options, std::nullopt})))
      return failure();
    value[0].roundToType();
    results.push_back(value[0].toAttr().resizeSplat(type));
    return success();
  }
};
} // namespace

void ckopt::registerReferenceFolding(DialectRegistry &registry) {
  registerReferenceModels(registry);
  registry.addExtension(+[](MLIRContext *, CkoptDialect *dialect) {
    dialect->addInterfaces<ReferenceFold>();
  });
}
