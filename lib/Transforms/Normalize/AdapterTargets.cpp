//===- AdapterTargets.cpp - products that adapters are for ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: users name modules of PyTorch ("q_proj"), and a graph has products
// and stored tensors. Method: a product with a matrix that depends on no input
// is a candidate, whether the matrix is stored as it is, transposed, cast, or
// dequantized. Products with the same stored matrix, read the same way, are one
// module that was called several times. A name is, in this order:
//   that of the stored tensor without ".weight";
//   the path of the module or node, if the tensor's name was generated
//   ("onnx::MatMul_12"), or if others read it, too (a tied embedding);
//   the tensor's name.
// Complexity: linear in ops, but for names that are equal.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Analysis/SourceModules.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Normalize/Adapters.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace ckopt;

/// Finds the values that depend on weights and constants alone.
static DenseSet<Value> findConstants(func::FuncOp function) {
  DenseSet<Value> constants;
  for (BlockArgument argument : function.getArguments()) {
    StringRef role = argumentRole(function, argument.getArgNumber());
    if (role == roles::kParameter || role == roles::kFrozen ||
        role == roles::kConstant)
      constants.insert(argument);
  }
  for (Operation &op : function.getBody().front().without_terminator())
    if (!randomSite(&op) && op.getNumRegions() == 0 &&
        llvm::all_of(op.getOperands(),
                     [&](Value value) { return constants.contains(value); }))
      for (Value result : op.getResults())
        constants.insert(result);
  return constants;
}

static bool isFloatTensor(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value));
}

/// Returns whether the op shows a matrix as it is stored: cast, transposed, or
/// with other dimensions of size 1.
static bool showsMatrix(Operation *op, bool &swaps) {
  swaps = false;
  if (isa<CastOp>(op))
    return isFloatTensor(op->getOperand(0)) && isFloatTensor(op->getResult(0));
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return swaps = transpose.getPermutation() == ArrayRef<int64_t>{1, 0};
  if (!isa<ReshapeOp>(op))
    return false;
  auto sizes = [](Value value) {
    SmallVector<int64_t> shape(tensorType(value).getShape());
    llvm::erase(shape, 1);
    return shape;
  };
  return sizes(op->getOperand(0)) == sizes(op->getResult(0));
}

/// Follows the matrix of a target to where it is stored.
static void findStored(AdapterTarget &target, Value &root) {
  root = target.weight;
  while (Operation *op = root.getDefiningOp()) {
    if (op->getNumOperands() == 0)
      break;
    bool swaps = false;
    target.isPlain &= showsMatrix(op, swaps);
    target.isSwapped ^= swaps;
    root = *llvm::max_element(op->getOperands(), [](Value a, Value b) {
      return tensorType(a).getNumElements() < tensorType(b).getNumElements();
    });
  }
  target.stored = dyn_cast<BlockArgument>(root);
}

/// Returns whether the products are all that reads a value, through views.
static bool readAlone(Value value, ArrayRef<MatMulOp> products) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    bool swaps;
    if (showsMatrix(user, swaps))
      return readAlone(user->getResult(0), products);
    auto product = dyn_cast<MatMulOp>(user);
    return product && llvm::is_contained(products, product);
  });
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Returns the module of "fc.weight" or "fc.weight_quantized", or "".
static StringRef moduleOfWeight(StringRef name) {
  constexpr StringLiteral suffix = ".weight";
  size_t at = name.rfind(suffix);
  if (at == StringRef::npos || at == 0)
    return {};
  StringRef rest = name.drop_front(at + suffix.size());
  return rest.empty() || !llvm::isAlnum(rest.front()) ? name.take_front(at)
                                                      : StringRef();
}

/// Returns whether exporters make such names up.
static bool isGenerated(StringRef name) {
  return name.empty() || name.contains("::") || name.contains('/') ||
         name.starts_with("val_") || name.starts_with("constant.") ||
         llvm::all_of(name, llvm::isDigit);
}

/// Returns the path of the module that the node is in: "encoder.layer.0.query"
/// of "/encoder/encoder/layer.0/query/MatMul".
static std::string modulePath(Location loc) {
  SmallVector<NameLoc> names;
  collectNames(loc, names);
  if (names.empty())
    return "";
  auto modules = getModules(names.front(), names.front().getName());
  if (modules.empty())
    return "";
  SmallVector<StringRef> parts, kept;
  StringRef(modules.back().name).split(parts, '/', -1, /*KeepEmpty=*/false);
  for (auto [i, part] : llvm::enumerate(parts)) {
    StringRef next = i + 1 < parts.size() ? parts[i + 1] : StringRef();
    if (!(next.consume_front(part) && next.starts_with(".")))
      kept.push_back(part);
  }
  return llvm::join(kept, ".");
}

static std::string nameOf(func::FuncOp function, const AdapterTarget &target) {
  std::string stored =
      target.stored ? argumentName(function, target.stored.getArgNumber()) : "";
  StringRef module = moduleOfWeight(stored);
  bool isShared = target.isPlain && !target.isAlone;
  if (!module.empty() && !isShared)
    return module.str();
  Location loc = MatMulOp(target.products.front()).getLoc();
  if (isShared || isGenerated(stored))
    if (std::string path = modulePath(loc); !path.empty())
      return path;
  if (!module.empty())
    return module.str();
  if (!isGenerated(stored))
    return stored;
  StringRef node = nodeName(loc);
  return node.empty() ? "product" : node.str();
}

//===----------------------------------------------------------------------===//
// Targets
//===----------------------------------------------------------------------===//

/// Marks the targets behind which there is no other.
static void findHeads(func::FuncOp function,
                      MutableArrayRef<AdapterTarget> targets) {
  DenseMap<Operation *, AdapterTarget *> owners;
  for (AdapterTarget &target : targets) {
    target.isHead = true;
    for (MatMulOp product : target.products)
      if (!target.isBuffer)
        owners[product] = &target;
  }
  DenseSet<Value> leads; // to a target
  for (Operation &op : llvm::reverse(function.getBody().front())) {
    bool leadsOn = llvm::any_of(
        op.getResults(), [&](Value value) { return leads.contains(value); });
    auto owner = owners.find(&op);
    if (owner != owners.end())
      owner->second->isHead &= !leadsOn;
    if (leadsOn || owner != owners.end())
      leads.insert(op.operand_begin(), op.operand_end());
  }
}

std::vector<AdapterTarget> ckopt::findAdapterTargets(func::FuncOp function) {
  DenseSet<Value> constants = findConstants(function);
  llvm::MapVector<std::pair<Value, unsigned>, AdapterTarget> found;
  function.walk([&](MatMulOp op) {
    bool first = constants.contains(op.getLhs());
    AdapterTarget target;
    target.weight = first ? op.getLhs() : op.getRhs();
    if (first == constants.contains(op.getRhs()) ||
        tensorType(target.weight).getRank() != 2)
      return;
    target.weightFirst = first;
    target.outputsFirst = first ? !op.getTransposeLhs() : op.getTransposeRhs();
    Value root;
    findStored(target, root);
    target.isBuffer = target.isPlain && isFloatTensor(root) &&
                      (!target.stored ||
                       argumentRole(function, target.stored.getArgNumber()) ==
                           roles::kConstant);
    // Parts of one stored tensor differ.
    Value key = target.isPlain ? root : target.weight;
    unsigned flipped = target.outputsFirst != target.isSwapped;
    auto &entry = found[{key, flipped}];
    if (entry.products.empty())
      entry = std::move(target);
    entry.products.push_back(op);
  });
  std::vector<AdapterTarget> targets;
  for (auto &entry : found)
    targets.push_back(std::move(entry.second));
  findHeads(function, targets);
  llvm::StringSet<> names;
  for (AdapterTarget &target : targets) {
    target.isAlone = target.stored && readAlone(target.stored, target.products);
    std::string name = nameOf(function, target);
    target.name = name;
    for (unsigned i = 2; !names.insert(target.name).second; ++i)
      target.name = name + "_" + std::to_string(i);
  }
  return targets;
}
