//===- Optimizer.cpp - parameter updates in place of gradients ------------===//
//
// Each gradient result of a step becomes an update op of its parameter, at the
// end of the function: the planner moves it up to where the gradient is
// complete and the parameter has been read for the last time. The step's
// arguments gain the optimizer's state, the learning rate and the step number.
//
// Clipping by the global norm: sum of squares of each gradient, added in
// argument order, so that the norm never depends on the schedule.
//
// Micro-batches: `accumulate` is the step without updates, adding g / K to the
// sums; the step adds its own g / K, updates, and clears the sums (s + -s, an
// update like any other). Running statistics are updated by both.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::autodiff;
using Kind = OptimizerOptions::Kind;

namespace {
/// One parameter on its way through the optimizer.
struct Parameter {
  unsigned index; ///< of the argument
  Value gradient;
  BlockArgument gradientSum; ///< with micro-batches
  SmallVector<BlockArgument, 2> state;
};

class OptimizerBuilder {
public:
  OptimizerBuilder(func::FuncOp function, const OptimizerOptions &options)
      : function(function), options(options),
        builder(function.getBody().front().getTerminator()) {}

  LogicalResult run();

private:
  LogicalResult checkOptions();
  LogicalResult collect();
  void addArguments();
  void splitMicroBatches();
  void clip(TensorBuilder &b);
  void update(const Parameter &parameter, SmallVectorImpl<Result> &results);
  Location updateLoc(const Parameter &parameter);
  Result updateResult(Value value, BlockArgument argument);

  func::FuncOp function;
  const OptimizerOptions &options;
  OpBuilder builder;
  SmallVector<Parameter> parameters;
  SmallVector<Result> others; ///< the loss, then the forward's updates
  Value learningRate, step;
};
} // namespace

LogicalResult OptimizerBuilder::checkOptions() {
  auto reject = [&](const char *what, double value) {
    return function.emitError("optimizer: ") << what << ", got " << value;
  };
  if (!(options.momentum >= 0))
    return reject("momentum must not be negative", options.momentum);
  if (options.nesterov && (options.momentum <= 0 || options.dampening != 0))
    return reject("Nesterov momentum needs a momentum and no dampening; "
                  "momentum",
                  options.momentum);
  for (double beta : {options.beta1, options.beta2})
    if (!(beta >= 0 && beta < 1))
      return reject("betas must lie in [0, 1)", beta);
  if (!(options.epsilon >= 0))
    return reject("epsilon must not be negative", options.epsilon);
  if (!(options.weightDecay.value_or(0) >= 0))
    return reject("weight decay must not be negative", *options.weightDecay);
  if (!(options.clipNorm >= 0))
    return reject("the clipping norm must not be negative", options.clipNorm);
  if (options.accumulate < 1)
    return reject("micro-batches must be 1 or more",
                  double(options.accumulate));
  return success();
}

LogicalResult OptimizerBuilder::collect() {
  for (Result &result : takeResults(function)) {
    auto index = dyn_cast_or_null<IntegerAttr>(result.get(kGradientAttr));
    if (!index) {
      others.push_back(result);
      continue;
    }
    if (index.getInt() < 0 || index.getInt() >= function.getNumArguments())
      return function.emitError("optimizer: ")
             << kGradientAttr << " names argument " << index.getInt()
             << ", which does not exist";
    unsigned argument = unsigned(index.getInt());
    Type type = getElementTypeOrSelf(function.getArgumentTypes()[argument]);
    if (!type.isF32() && !type.isF64())
      return function.emitError("optimizer: parameter '")
             << argumentName(function, argument) << "' has element type "
             << type << "; updates need f32 or f64 parameters";
    parameters.push_back({argument, result.value, {}, {}});
  }
  if (parameters.empty())
    return function.emitError("optimizer: '")
           << function.getSymName()
           << "' has no gradients; run autodiff before";
  return success();
}

void OptimizerBuilder::addArguments() {
  SmallVector<StringRef> suffixes{"/m", "/v"};
  if (options.kind == Kind::Sgd)
    suffixes = options.momentum > 0 ? SmallVector<StringRef>{"/velocity"}
                                    : SmallVector<StringRef>{};
  bool anyF64 = false;
  for (Parameter &parameter : parameters) {
    Type type = function.getArgumentTypes()[parameter.index];
    std::string name = argumentName(function, parameter.index);
    anyF64 |= getElementTypeOrSelf(type).isF64();
    for (StringRef suffix : suffixes)
      parameter.state.push_back(addArgument(
          function, type, (name + suffix).str(), roles::kOptimizerState));
    if (options.accumulate > 1)
      parameter.gradientSum = addArgument(function, type, name + "/grad_sum",
                                          roles::kOptimizerState);
  }
  auto scalar = [&](Type element) {
    return RankedTensorType::get({}, element);
  };
  learningRate = addArgument(
      function,
      scalar(anyF64 ? Type(builder.getF64Type()) : builder.getF32Type()),
      "learning_rate", roles::kLearningRate);
  if (auto index = findRole(function, roles::kStep))
    step = function.getArgument(*index);
  else
    step = addArgument(function, scalar(builder.getI64Type()), "step",
                       roles::kStep);
}

Location OptimizerBuilder::updateLoc(const Parameter &parameter) {
  return NameLoc::get(builder.getStringAttr(
      "update/" + argumentName(function, parameter.index)));
}

Result OptimizerBuilder::updateResult(Value value, BlockArgument argument) {
  Result result;
  result.value = value;
  result.set(
      builder, attrs::kName,
      builder.getStringAttr(argumentName(function, argument.getArgNumber())));
  result.set(builder, attrs::kUpdates,
             builder.getI64IntegerAttr(argument.getArgNumber()));
  return result;
}

/// Clones the function as `accumulate`, whose gradients go to the sums; here
/// the sums join the gradients.
void OptimizerBuilder::splitMicroBatches() {
  double share = 1.0 / double(options.accumulate);
  for (Parameter &parameter : parameters) {
    TensorBuilder b(builder, updateLoc(parameter));
    parameter.gradient = b.mul(parameter.gradient, share);
  }
  SmallVector<Result> results(others);
  for (Parameter &parameter : parameters) {
    Value sum = AccumulateOp::create(builder, updateLoc(parameter),
                                     parameter.gradientSum, parameter.gradient);
    results.push_back(updateResult(sum, parameter.gradientSum));
  }
  setResults(function, results);
  func::FuncOp micro = function.clone();
  micro.setSymName("accumulate");
  eraseDeadOps(micro);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(function);
  builder.insert(micro);
  for (Parameter &parameter : parameters) {
    Operation *sum = *parameter.gradientSum.user_begin();
    TensorBuilder b(builder, updateLoc(parameter));
    builder.setInsertionPoint(sum);
    parameter.gradient = b.add(parameter.gradientSum, parameter.gradient);
    sum->setOperand(1, b.neg(parameter.gradientSum));
    others.push_back(updateResult(sum->getResult(0), parameter.gradientSum));
  }
}

/// Scales all gradients as torch.nn.utils.clip_grad_norm_.
void OptimizerBuilder::clip(TensorBuilder &b) {
  Type type = getElementTypeOrSelf(learningRate);
  Value total;
  for (Parameter &parameter : parameters) {
    Value part =
        b.cast(b.sumAll(b.mul(parameter.gradient, parameter.gradient)), type);
    total = total ? b.add(total, part) : part;
  }
  Value length = b.make<SqrtOp>(total);
  // An infinite norm makes all gradients 0: whoever trains wants to know.
  Result &result = others.emplace_back();
  result.value = length;
  result.set(builder, attrs::kName, builder.getStringAttr("gradient_norm"));
  Value norm = b.add(length, 1e-6);
  Value ratio = b.div(b.number(norm, options.clipNorm), norm);
  Value factor = b.make<MinimumOp>(ratio, b.number(ratio, 1));
  for (Parameter &parameter : parameters)
    parameter.gradient =
        b.mul(parameter.gradient,
              b.cast(factor, getElementTypeOrSelf(parameter.gradient)));
}

void OptimizerBuilder::update(const Parameter &parameter,
                              SmallVectorImpl<Result> &results) {
  BlockArgument value = function.getArgument(parameter.index);
  Location loc = updateLoc(parameter);
  auto number = [&](double value) { return builder.getF64FloatAttr(value); };
  double decay =
      options.weightDecay.value_or(options.kind == Kind::AdamW ? 0.01 : 0.0);
  auto unit = [&](bool flag) {
    return flag ? builder.getUnitAttr() : UnitAttr();
  };
  Operation *op;
  if (options.kind == Kind::Sgd) {
    Value velocity =
        parameter.state.empty() ? Value() : Value(parameter.state[0]);
    op = SgdOp::create(builder, loc, value.getType(),
                       velocity ? velocity.getType() : Type(), value,
                       parameter.gradient, learningRate, step, velocity,
                       number(options.momentum), number(options.dampening),
                       number(decay), unit(options.nesterov));
  } else {
    Type type = value.getType();
    op = AdamOp::create(
        builder, loc, type, type, type, value, parameter.gradient,
        parameter.state[0], parameter.state[1], learningRate, step,
        number(options.beta1), number(options.beta2), number(options.epsilon),
        number(decay), unit(options.kind == Kind::AdamW));
  }
  results.push_back(updateResult(op->getResult(0), value));
  for (auto [state, updated] :
       llvm::zip(parameter.state, op->getResults().drop_front()))
    results.push_back(updateResult(updated, state));
}

LogicalResult OptimizerBuilder::run() {
  if (failed(checkOptions()) || failed(collect()))
    return failure();
  if (options.accumulate > 1 &&
      SymbolTable::lookupNearestSymbolFrom(function,
                                           builder.getStringAttr("accumulate")))
    return function.emitError("the module has an 'accumulate' already");
  addArguments();
  if (options.accumulate > 1)
    splitMicroBatches();
  if (options.clipNorm > 0) {
    TensorBuilder b(builder, NameLoc::get(builder.getStringAttr("clip_norm")));
    clip(b);
  }
  // The loss, the forward's updates (and cleared sums), the parameters.
  SmallVector<Result> results(others);
  for (const Parameter &parameter : parameters)
    update(parameter, results);
  setResults(function, results);
  eraseDeadOps(function);
  return success();
}

LogicalResult autodiff::addOptimizer(func::FuncOp function,
                                     const OptimizerOptions &options) {
  if (failed(checkStraightLine(function)))
    return failure();
  return OptimizerBuilder(function, options).run();
}
