//===- ExportStates.cpp - linear maps of states that are zero -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explains constants that are initial states. A recurrent cell's first step
// multiplies a state of zeros with a weight. Folding replaces the product by a
// constant: zeros, or the bias, repeated over the batch. The shape of the
// module's weight tells such constants from parameters. O(values * parameters).
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

static bool isZero(const HostTensor &value) {
  for (int64_t i = 0; i < value.numElements(); ++i)
    if (value.getDouble(i) != 0)
      return false;
  return value.numElements() > 0;
}

/// Returns whether some folded parameter is all zeros: then a constant of zeros
/// need not be a state.
bool ExportMatcher::hasZeroState() const {
  return llvm::any_of(folded, [&](const auto &item) {
    const std::string &target = item.second.target;
    return !target.empty() && isZero(*recovered.parameter(target));
  });
}

/// Returns whether the node's module has a linear map to `outputs` numbers,
/// without a bias, whose weight gives zeros for zeros only.
bool ExportMatcher::readsWeightOf(StringRef scope, int64_t outputs) {
  bool found = false;
  if (hasZeroState())
    return false;
  for (const Entry &entry : signature.entries) {
    const HostTensor *weight = recovered.parameter(entry.target);
    if (!entry.isParameter || !weight || weight->rank() != 2 ||
        !StringRef(entry.target).starts_with(scope) ||
        leafOf(entry.target) == "bias" || weight->dim(0) != outputs)
      continue;
    if (isZero(*weight) || weight->dim(0) < weight->dim(1))
      return false; // it gives zeros for other values as well
    found = true;
  }
  return found;
}

/// If a linear map of a constant equals its repeated bias, the constant is a
/// state of zeros, provided that the weight gives nonzero results for other
/// states.
void ExportMatcher::explainBiasOnly() {
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    OperandUse first = value->uses.front();
    const HostTensor &held = recovered.valueOf(first);
    // A reader with parameters is a module of its own, not the one of the map.
    bool isOtherModule = !signature.parametersOf(calls[first.node]).empty();
    if ((op != "linear" && op != "addmm") || held.rank() != 2 || isOtherModule)
      continue;
    if (isZero(held) && readsWeightOf(scopeNear(first.node), held.dim(1))) {
      value->explained = true;
      for (OperandUse use : value->uses)
        noteConstant(use, "a linear map of zeros");
      continue;
    }
    const Entry *bias = nullptr;
    bool sure = !hasZeroState(), hasWeight = false;
    for (const Entry &entry : signature.entries) {
      const HostTensor *parameter = recovered.parameter(entry.target);
      if (!entry.isParameter || !parameter || parameter->numElements() == 0 ||
          moduleOf(entry.target) != scopeNear(first.node))
        continue;
      if (parameter->rank() == 2 && parameter->dim(0) == held.dim(1)) {
        hasWeight = true;
        sure &=
            llvm::any_of(llvm::seq<int64_t>(parameter->numElements()),
                         [&](int64_t i) { return parameter->getDouble(i); });
      }
      bool equal = parameter->rank() == 1 && parameter->dim(0) == held.dim(1);
      for (int64_t i = 0; equal && i < held.numElements(); ++i)
        equal = held.getDouble(i) == parameter->getDouble(i % held.dim(1));
      sure &= !equal || !bias;
      bias = equal ? &entry : bias;
    }
    value->explained = bias && sure && hasWeight;
    for (OperandUse use : value->uses)
      if (value->explained)
        value->explained = recovered.bind(use, bias->target, Form::Repeated);
  }
}
