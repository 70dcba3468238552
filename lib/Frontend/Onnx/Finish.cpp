//===- Finish.cpp - the function after its nodes are built ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cleans the function up after import: removes dead shape arithmetic that
// folding leaves, moves large constants out of the IR (into the step's arena),
// and drops weights that nothing reads.
//
//===----------------------------------------------------------------------===//
#include "Formulas.h"
#include "GraphImporter.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

void GraphImporter::removeDeadOps() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Writes each state once, at the end. A layer that runs twice in a step, or in
/// a branch that may not be taken, has intermediate averages that are not yet
/// the state.
void GraphImporter::settleUpdates() {
  llvm::SmallPtrSet<Operation *, 8> writes;
  for (auto &[argument, value] : updates)
    if (auto average = value.getDefiningOp<MovingAverageOp>())
      if (average.getOld() == argument)
        writes.insert(average);
  for (auto average :
       llvm::make_early_inc_range(body->getOps<MovingAverageOp>())) {
    if (writes.contains(average))
      continue;
    builder.setInsertionPoint(average);
    TensorBuilder b{builder, average.getLoc()};
    double momentum = average.getMomentum().convertToDouble();
    Value plain = b.add(b.mul(average.getOld(), momentum),
                        b.mul(average.getValue(), 1 - momentum));
    for (auto &[argument, value] : updates)
      if (value == average)
        value = plain;
    for (auto &[name, value] : results)
      if (value == average)
        value = plain;
    average.replaceAllUsesWith(plain);
    average.erase();
  }
  builder.setInsertionPointToEnd(body);
  for (auto &[argument, value] : updates)
    if (value != argument && !writes.contains(value.getDefiningOp()))
      value = AssignOp::create(builder, value.getLoc(), argument, value);
}

/// Converts a constant to a host tensor.
static HostTensor toHost(DenseElementsAttr value) {
  auto type = cast<RankedTensorType>(value.getType());
  std::vector<int64_t> shape(type.getShape().begin(), type.getShape().end());
  Type element = type.getElementType();
  if (isa<FloatType>(element)) {
    DType dtype = element.isF64()    ? DType::F64
                  : element.isF32()  ? DType::F32
                  : element.isBF16() ? DType::BF16
                                     : DType::F16;
    HostTensor host(dtype, shape);
    for (auto [i, x] : llvm::enumerate(value.getValues<APFloat>())) {
      bool lost;
      APFloat wide = x;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      host.setDouble(int64_t(i), wide.convertToDouble());
    }
    return host;
  }
  unsigned width = element.getIntOrFloatBitWidth();
  if (width == 1) {
    HostTensor host(DType::Bool, shape);
    for (auto [i, x] : llvm::enumerate(value.getValues<bool>()))
      host.mutableData<bool>()[i] = x;
    return host;
  }
  bool isUnsigned = element.isUnsignedInteger();
  DType dtype = width == 64   ? (isUnsigned ? DType::U64 : DType::I64)
                : width == 32 ? (isUnsigned ? DType::U32 : DType::I32)
                : width == 16 ? (isUnsigned ? DType::U16 : DType::I16)
                              : (isUnsigned ? DType::U8 : DType::I8);
  HostTensor host(dtype, shape);
  dispatchDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      auto out = host.mutableData<T>();
      for (auto [i, x] : llvm::enumerate(value.getValues<APInt>()))
        out[i] = T(x.getRawData()[0]);
    }
  });
  return host;
}

static bool isElementwise(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  return kernel && kernel.getKernelKind() == KernelKind::Elementwise;
}

void GraphImporter::outlineLargeConstants() {
  int64_t limit = smallConstant();
  llvm::MapVector<Attribute, Value> made;
  int64_t count = 0;
  for (ConstantOp op : llvm::make_early_inc_range(body->getOps<ConstantOp>())) {
    auto value = dyn_cast<DenseElementsAttr>(op.getValue());
    auto type = cast<RankedTensorType>(op.getType());
    if (!value || value.isSplat() || getByteSize(type) <= limit)
      continue;
    HostTensor host = toHost(value);
    builder.setInsertionPoint(op);
    Value formula = makeBand(builder, op.getLoc(), type, host);
    if (!formula &&
        (plan.hasOpenSize || llvm::all_of(op->getUsers(), isElementwise)))
      formula = makeRange(builder, op.getLoc(), type, host, plan.hasOpenSize);
    if (formula) {
      op.getOutput().replaceAllUsesWith(formula);
      op.erase();
      continue;
    }
    Value &argument = made[value];
    if (!argument) {
      std::string name;
      do
        name = "constant." + std::to_string(count++);
      while (isDefined(name) || result.weights.count(name));
      argument = addArgument(type, name, roles::kConstant);
      result.weights[name] = std::move(host);
    }
    op.getOutput().replaceAllUsesWith(argument);
    op.erase();
  }
  // Those that were too large to be a constant of an op.
  builder.setInsertionPointToStart(body);
  for (auto [argument, value] : llvm::zip(arguments, body->getArguments())) {
    auto weight = result.weights.find(argument.name);
    if (!argument.removable || weight == result.weights.end() ||
        value.use_empty() || !llvm::all_of(value.getUsers(), isElementwise))
      continue;
    if (Value formula = makeRange(builder, func.getLoc(),
                                  cast<RankedTensorType>(value.getType()),
                                  weight->second, plan.hasOpenSize)) {
      value.replaceAllUsesWith(formula);
      argument.isMade = true;
    }
  }
}

void GraphImporter::removeUnusedArguments() {
  llvm::BitVector unused(body->getNumArguments());
  std::string names;
  for (auto [i, argument] : llvm::enumerate(arguments)) {
    if (!argument.removable || !body->getArgument(unsigned(i)).use_empty())
      continue;
    unused.set(unsigned(i));
    if (!argument.isMade)
      names += (names.empty() ? "'" : ", '") + argument.name + "'";
    result.weights.erase(argument.name);
  }
  if (unused.none())
    return;
  if (!names.empty())
    result.remarks.push_back("weights that no node reads: " + names);
  body->eraseArguments(unused);
  std::vector<Argument> kept;
  for (auto [i, argument] : llvm::enumerate(arguments))
    if (!unused.test(unsigned(i)))
      kept.push_back(std::move(argument));
  arguments = std::move(kept);
}

void GraphImporter::setDictionaries() {
  Operation *terminator = body->getTerminator();
  func.setFunctionType(builder.getFunctionType(body->getArgumentTypes(),
                                               terminator->getOperandTypes()));
  SmallVector<DictionaryAttr> argumentAttrs, resultAttrs;
  for (const Argument &argument : arguments)
    argumentAttrs.push_back(builder.getDictionaryAttr(argument.attrs));
  func.setAllArgAttrs(argumentAttrs);
  for (auto &[name, value] : results) {
    SmallVector<NamedAttribute> notes{
        builder.getNamedAttr(attrs::kName, builder.getStringAttr(name))};
    if (losses.contains(value)) {
      notes.push_back(
          builder.getNamedAttr(attrs::kRole, builder.getStringAttr("loss")));
      result.endsInLoss = true;
    }
    resultAttrs.push_back(builder.getDictionaryAttr(notes));
  }
  for (auto &[argument, value] : updates) {
    auto number = cast<BlockArgument>(argument).getArgNumber();
    resultAttrs.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(attrs::kName,
                              builder.getStringAttr(arguments[number].name)),
         builder.getNamedAttr(attrs::kUpdates,
                              builder.getI64IntegerAttr(number))}));
  }
  func.setAllResultAttrs(resultAttrs);
}
