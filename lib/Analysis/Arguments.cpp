//===- Arguments.cpp - where arguments lie in an arena --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/Arguments.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;

/// The first rank of what is fed, and that of what has another role.
static constexpr int kFirstFed = 5, kBehindFed = 10;

/// Ranks values that live across steps before values that are fed in each step.
static int roleRank(StringRef role) {
  return llvm::StringSwitch<int>(role)
      .Case(roles::kParameter, 0)
      .Case(roles::kFrozen, 1)
      .Case(roles::kState, 2)
      .Case(roles::kOptimizerState, 3)
      .Case(roles::kCopy, 3)
      .Case(roles::kConstant, 4)
      .Case(roles::kSeed, kFirstFed)
      .Case(roles::kStep, kFirstFed + 1)
      .Case(roles::kLearningRate, kFirstFed + 2)
      .Case(roles::kInput, kFirstFed + 3)
      .Case(roles::kTarget, kFirstFed + 4)
      .Default(kBehindFed);
}

/// Whether what is fed to the function has a second place.
static bool isFedTwice(FunctionOpInterface function) {
  for (Operation *op = function; op; op = op->getParentOp())
    if (op->hasAttr(attrs::kFedTwice))
      return true;
  return false;
}

namespace {
/// An argument tensor that one or several functions take.
struct SharedArgument {
  int rank = 0;
  Type type;
  int64_t bytes = 0;
  int64_t offset = -1;
};
} // namespace

/// Arguments with the same name are shared; one without a name belongs to its
/// function alone.
static std::string argumentKey(FunctionOpInterface function, unsigned index) {
  if (auto name = function.getArgAttrOfType<StringAttr>(index, attrs::kName))
    return "name:" + name.str();
  return ("own:" + getFunctionPath(function) + ":" + Twine(index)).str();
}

FailureOr<ArgumentRegion>
ckopt::placeArguments(ArrayRef<FunctionOpInterface> functions,
                      const TypeSizes &sizes) {
  llvm::MapVector<std::string, SharedArgument, llvm::StringMap<unsigned>>
      shared;
  auto isPlaced = [&](Type type) {
    return isa<TensorType>(type) || sizes.bytes(type) > 0;
  };
  for (FunctionOpInterface function : functions)
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
      if (!isPlaced(type))
        continue;
      SharedArgument &entry = shared[argumentKey(function, i)];
      auto role = function.getArgAttrOfType<StringAttr>(i, attrs::kRole);
      if (!entry.type) {
        entry.type = type;
        entry.rank = roleRank(role ? role.getValue() : "");
        entry.bytes = sizes.bytes(type);
      } else if (entry.type != type) {
        return emitError(function.getLoc())
               << "argument " << i << " ("
               << getValueName(function.getArgument(i)) << ") has type " << type
               << " here and " << entry.type << " in another function of the "
               << "same arena; they must agree";
      }
    }
  ArgumentRegion region;
  int64_t alignment = kArenaAlignment;
  if (!functions.empty())
    alignment = arenaAlignment(FunctionOpInterface(functions.front()));
  auto aligned = [&](int64_t bytes) {
    return planner::alignTo(bytes, alignment);
  };
  SmallVector<SharedArgument *> order;
  for (auto &[key, entry] : shared)
    order.push_back(&entry);
  auto ranked = llvm::to_vector(llvm::seq<size_t>(0, order.size()));
  llvm::sort(ranked, [&](size_t a, size_t b) {
    return std::pair(order[a]->rank, a) < std::pair(order[b]->rank, b);
  });
  for (size_t i : ranked) {
    order[i]->offset = region.bytes;
    region.end = region.bytes + order[i]->bytes;
    if (order[i]->rank < kFirstFed)
      region.fedBegin = region.fedEnd = region.bytes + aligned(order[i]->bytes);
    else if (order[i]->rank < kBehindFed)
      region.fedEnd = region.end;
    region.bytes += aligned(order[i]->bytes);
  }
  region.once = region.bytes;
  if (region.fedBegin < region.fedEnd && isFedTwice(functions.front())) {
    region.fedShift = region.bytes - region.fedBegin;
    region.end = region.fedEnd + region.fedShift;
    region.bytes = aligned(region.end);
  }
  for (FunctionOpInterface function : functions) {
    auto &offsets = region.offsets.emplace_back();
    for (auto [i, type] : llvm::enumerate(function.getArgumentTypes()))
      offsets.push_back(isPlaced(type) ? shared[argumentKey(function, i)].offset
                                       : -1);
  }
  return region;
}
