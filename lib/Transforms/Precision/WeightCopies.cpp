//===- WeightCopies.cpp - 16-bit copies of weights from step to step ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: products read weights of f32 as 16-bit floats, so a step rounds each
// one twice, on its way forward and backward. That takes a launch and six bytes
// of traffic a number each time.
//
// Method: what a cast alone makes of a trained weight becomes an argument (role
// copy) that lives from step to step. The kernel that updates the weight rounds
// it, too, and all functions read the copy. What else writes weights (their
// initialization, a checkpoint, the user) knows nothing of copies: the function
// `refresh` makes all of them from the weights, and the runtime runs it before
// the first step behind such a write.
//
// Guarantee: a copy has the bits of the cast of its weight whenever a function
// reads it, so no bit of a step changes. Each copy takes its bytes in every
// plan, which is why users ask for them. O(ops).
//
//===----------------------------------------------------------------------===//
#include "StorageTypes.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class CopyKeeper {
public:
  CopyKeeper(ModuleOp module, func::FuncOp step)
      : symbols(module), step(step) {}
  bool run(ArrayRef<func::FuncOp> functions);

private:
  /// A weight and the type of its copy, as in the step.
  struct Kept {
    BlockArgument weight, copy;
  };
  BlockArgument weightOf(Operation &cast) const;
  KernelCallOp updateOf(BlockArgument weight, unsigned &result) const;
  void choose(ArrayRef<func::FuncOp> functions);
  void readCopies(func::FuncOp function);
  func::FuncOp withCopy(func::FuncOp kernel, unsigned result, Type type);
  void update(const Kept &one);
  func::FuncOp refreshKernel(Type from, Type to);
  void makeRefresh();

  SymbolTable symbols;
  func::FuncOp step;
  llvm::MapVector<StringAttr, Type> chosen; ///< by the weight's name
  SmallVector<Kept> kept;
  DenseMap<std::tuple<Operation *, unsigned, Type>, func::FuncOp> updates;
  DenseMap<std::pair<Type, Type>, func::FuncOp> refreshes;
};

} // namespace

static StringAttr nameOf(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  return StringAttr::get(function.getContext(),
                         argumentName(function, argument.getArgNumber()));
}

static std::string copyName(StringAttr weight) {
  return weight.str() + "/copy";
}

/// Returns the trained weight that a kernel rounds, and does nothing else.
BlockArgument CopyKeeper::weightOf(Operation &op) const {
  auto call = dyn_cast<KernelCallOp>(op);
  if (!call || call.getNumOperands() != 1 || call.getNumResults() != 1)
    return {};
  auto weight = dyn_cast<BlockArgument>(call.getOperand(0));
  if (!weight || !isF32(weight) ||
      argumentRole(op.getParentOfType<func::FuncOp>(), weight.getArgNumber()) !=
          roles::kParameter ||
      getElementTypeOrSelf(call.getResult(0)).getIntOrFloatBitWidth() != 16)
    return {};
  Block &body = symbols.lookup<func::FuncOp>(call.getCallee()).front();
  auto cast = dyn_cast<CastOp>(body.front());
  return cast && body.getOperations().size() == 2 &&
                 cast.getInput() == body.getArgument(0)
             ? weight
             : BlockArgument();
}

/// Returns the call that updates the weight, and the number of its result.
KernelCallOp CopyKeeper::updateOf(BlockArgument weight,
                                  unsigned &result) const {
  for (OpOperand &use : weight.getUses()) {
    auto call = dyn_cast<KernelCallOp>(use.getOwner());
    ArrayRef<int64_t> updates = call ? call.getUpdates() : ArrayRef<int64_t>();
    for (; !updates.empty(); updates = updates.drop_front(2))
      if (updates[0] == int64_t(use.getOperandNumber())) {
        result = unsigned(updates[1]);
        return call;
      }
  }
  return {};
}

/// Chooses the weights that the step rounds and updates in elementwise kernels.
void CopyKeeper::choose(ArrayRef<func::FuncOp> functions) {
  for (Operation &op : step.front()) {
    BlockArgument weight = weightOf(op);
    unsigned result = 0;
    KernelCallOp call = weight ? updateOf(weight, result) : KernelCallOp();
    if (!call || kernelKind(symbols.lookup<func::FuncOp>(call.getCallee())) !=
                     "elementwise")
      continue;
    Type type = op.getResult(0).getType();
    auto updated = cast<RankedTensorType>(call.getResult(result).getType());
    bool isTaken = llvm::any_of(functions, [&](func::FuncOp function) {
      return findArgument(function, copyName(nameOf(weight))).has_value();
    });
    if (!isTaken && updated.clone(getElementTypeOrSelf(type)) == type)
      chosen.insert({nameOf(weight), type});
  }
}

/// Lets a function read copies where it rounds weights.
void CopyKeeper::readCopies(func::FuncOp function) {
  llvm::MapVector<BlockArgument, BlockArgument> copies;
  for (Operation &op : llvm::make_early_inc_range(function.front())) {
    BlockArgument weight = weightOf(op);
    auto found = weight ? chosen.find(nameOf(weight)) : chosen.end();
    if (found == chosen.end() || found->second != op.getResult(0).getType())
      continue;
    BlockArgument &copy = copies[weight];
    if (!copy)
      copy = addArgument(function, found->second, copyName(found->first),
                         roles::kCopy);
    op.getResult(0).replaceAllUsesWith(copy);
    op.erase();
  }
  if (function == step)
    for (auto [weight, copy] : copies)
      kept.push_back({weight, copy});
}

/// Returns the kernel that also rounds its result of this number, to one more.
func::FuncOp CopyKeeper::withCopy(func::FuncOp kernel, unsigned result,
                                  Type type) {
  func::FuncOp &variant = updates[{kernel, result, type}];
  if (variant)
    return variant;
  variant = kernel.clone();
  variant.setSymName((kernel.getSymName() + "_copy").str());
  symbols.insert(variant, std::next(Block::iterator(kernel)));
  Block &body = variant.front();
  Operation *end = body.getTerminator();
  OpBuilder builder(end);
  Location loc = end->getLoc();
  (void)variant.insertArgument(variant.getNumArguments(), type, {}, loc);
  Value rounded = CastOp::create(builder, loc, type, end->getOperand(result));
  Value made =
      AssignOp::create(builder, loc, body.getArguments().back(), rounded);
  (void)variant.insertResult(variant.getNumResults(), type, {});
  end->insertOperands(end->getNumOperands(), made);
  return variant;
}

/// Adds to a call's flat pairs one of its last operand and its last result.
static SmallVector<int64_t> withLast(ArrayRef<int64_t> pairs,
                                     KernelCallOp call) {
  SmallVector<int64_t> all(pairs);
  all.append(
      {int64_t(call.getArgs().size()) - 1, int64_t(call.getNumResults()) - 1});
  return all;
}

/// Appends what a call makes of a copy to a function's results.
static void addResult(SmallVectorImpl<Result> &results, KernelCallOp call,
                      BlockArgument copy) {
  OpBuilder builder(call);
  Result &made = results.emplace_back();
  made.value = call.getResults().back();
  made.set(builder, attrs::kName, nameOf(copy));
  made.set(builder, attrs::kUpdates,
           builder.getI64IntegerAttr(copy.getArgNumber()));
}

void CopyKeeper::update(const Kept &one) {
  unsigned result = 0;
  KernelCallOp call = updateOf(one.weight, result);
  func::FuncOp kernel = withCopy(symbols.lookup<func::FuncOp>(call.getCallee()),
                                 result, one.copy.getType());
  SmallVector<Value> args(call.getArgs());
  args.push_back(one.copy);
  OpBuilder builder(call);
  OperationState state(call.getLoc(), KernelCallOp::getOperationName(), args,
                       kernel.getResultTypes(),
                       call->getAttrDictionary().getValue());
  auto made = cast<KernelCallOp>(builder.create(state));
  made.setCallee(kernel.getSymName());
  made.setUpdates(withLast(call.getUpdates(), made));
  made.setReuse(withLast(call.getReuse(), made));
  call.replaceAllUsesWith(made.getResults().drop_back());
  call.erase();
  SmallVector<Result> results = takeResults(step);
  addResult(results, made, one.copy);
  setResults(step, results);
}

func::FuncOp CopyKeeper::refreshKernel(Type from, Type to) {
  func::FuncOp &kernel = refreshes[{from, to}];
  if (kernel)
    return kernel;
  OpBuilder builder(step.getContext());
  Location loc = UnknownLoc::get(step.getContext());
  kernel = func::FuncOp::create(builder, loc, "k_refresh",
                                builder.getFunctionType({from, to}, {to}));
  kernel.setPrivate();
  kernel->setAttr(attrs::kKernel, builder.getStringAttr("elementwise"));
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  Value rounded = CastOp::create(builder, loc, to, body->getArgument(0));
  Value made = AssignOp::create(builder, loc, body->getArgument(1), rounded);
  func::ReturnOp::create(builder, loc, made);
  symbols.insert(kernel);
  return kernel;
}

/// Makes the function that rounds all weights again.
void CopyKeeper::makeRefresh() {
  OpBuilder builder(step);
  builder.setInsertionPointAfter(step);
  Location loc = NameLoc::get(builder.getStringAttr("refresh"));
  auto refresh = func::FuncOp::create(builder, loc, "refresh",
                                      builder.getFunctionType({}, {}));
  builder.setInsertionPointToEnd(refresh.addEntryBlock());
  Operation *end = func::ReturnOp::create(builder, loc);
  if (Attribute ranks = step->getAttr(attrs::kRanks))
    refresh->setAttr(attrs::kRanks, ranks);
  SmallVector<Result> results;
  for (const Kept &one : kept) {
    Type from = one.weight.getType(), to = one.copy.getType();
    auto weight =
        addArgument(refresh, from, nameOf(one.weight), roles::kParameter);
    refresh.setArgAttrs(weight.getArgNumber(),
                        step.getArgAttrDict(one.weight.getArgNumber()));
    auto copy = addArgument(refresh, to, nameOf(one.copy), roles::kCopy);
    builder.setInsertionPoint(end);
    auto call = KernelCallOp::create(
        builder, loc, TypeRange(to), ValueRange{weight, copy},
        builder.getNamedAttr("callee",
                             FlatSymbolRefAttr::get(refreshKernel(from, to))));
    call.setUpdates({1, 0});
    call.setReuse({1, 0});
    addResult(results, call, copy);
  }
  setResults(refresh, results);
}

bool CopyKeeper::run(ArrayRef<func::FuncOp> functions) {
  choose(functions);
  if (chosen.empty())
    return false;
  for (func::FuncOp function : functions)
    readCopies(function);
  for (const Kept &one : kept)
    update(one);
  makeRefresh();
  return true;
}

bool codegen::keepWeightCopies(ModuleOp module,
                               ArrayRef<func::FuncOp> functions) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  return step && llvm::is_contained(functions, step) &&
         CopyKeeper(module, step).run(functions);
}
