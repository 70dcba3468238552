//===- ExportResemblance.cpp - folded values that were parameters ---------===//
//
// Problem: a parameter that the file holds under its name may have gone into a
// folded constant as well (a scaled or normalized embedding as output weight, a
// softmax of weights, a penalty on them). No node is left that says so, and the
// gradient would lack that path without a word.
// Method: initial values are random, so a function of them shows. A folded
// value is taken for a parameter's where it has as many elements, in the same
// order of size (or of magnitude), as they are or transposed; where its rows or
// columns are multiples of the parameter's; and where a scalar is the result of
// a reduction, or of arithmetic on such scalars, which models make of data
// else. Guarantee: none, in either direction; what is found is an error that
// names the parameter, and --allow-inference-export goes on without that path.
// Complexity: O(n) of each pair of a folded value and a parameter.
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>
#include <vector>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

/// Fewer elements are in any order too often.
static constexpr int64_t kLeastOrdered = 8;
/// Elements that are looked at; as many in one order are no accident.
static constexpr int64_t kSamples = 64;

/// Evenly spaced elements.
static std::vector<double> samplesOf(const HostTensor &value) {
  int64_t size = value.numElements(), count = std::min(size, kSamples);
  std::vector<double> samples;
  for (int64_t i = 0; i < count; ++i)
    samples.push_back(value.getDouble(i * size / count));
  return samples;
}

/// Whether `of` rises, or falls, where `by` does.
static bool isMonotone(ArrayRef<double> of, ArrayRef<double> by) {
  std::vector<size_t> order(by.size());
  for (size_t i = 0; i < order.size(); ++i)
    order[i] = i;
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(by[a], a) < std::pair(by[b], b);
  });
  bool rises = true, falls = true;
  int64_t changes = 0;
  for (size_t i = 1; i < order.size(); ++i) {
    double step = of[order[i]] - of[order[i - 1]];
    bool tied = by[order[i]] == by[order[i - 1]];
    if (tied && step != 0)
      return false;
    rises &= step >= 0;
    falls &= step <= 0;
    changes += step != 0;
  }
  // A value of few levels, as a mask, follows any order too easily.
  return (rises || falls) && 2 * changes >= int64_t(of.size());
}

/// Whether element i of `value` is f(element i of `parameter`), f monotone in
/// the element or in its magnitude.
static bool followsElements(const HostTensor &value,
                            const HostTensor &parameter) {
  if (value.numElements() != parameter.numElements() ||
      value.numElements() < kLeastOrdered)
    return false;
  std::vector<double> of = samplesOf(value), by = samplesOf(parameter);
  if (isMonotone(of, by))
    return true;
  for (double &element : by)
    element = std::abs(element);
  return isMonotone(of, by);
}

/// Whether each row of `value` is a multiple of the parameter's row: the ratio
/// of elements is one number a row.
static bool hasMultiplesOfRows(const HostTensor &value,
                               const HostTensor &parameter) {
  if (value.rank() != 2 || parameter.rank() != 2 ||
      value.shape() != parameter.shape() || value.dim(1) < 3)
    return false;
  int64_t columns = value.dim(1), rows = std::min<int64_t>(value.dim(0), 16);
  for (int64_t r = 0; r < rows; ++r) {
    double ratio = 0;
    for (int64_t c = 0; c < std::min<int64_t>(columns, 16); ++c) {
      double p = parameter.getDouble(r * columns + c);
      double v = value.getDouble(r * columns + c);
      if (p == 0 || v == 0)
        return false;
      if (c == 0)
        ratio = v / p;
      else if (std::abs(v / p - ratio) > 1e-3 * std::abs(ratio))
        return false;
    }
  }
  return rows > 0;
}

static bool resembles(const HostTensor &value, const HostTensor &parameter) {
  if (isUniform(value) || isUniform(parameter))
    return false;
  if (followsElements(value, parameter) || hasMultiplesOfRows(value, parameter))
    return true;
  if (value.rank() != 2 || parameter.rank() != 2)
    return false;
  HostTensor turned = transposed(value);
  if (followsElements(turned, parameter) && turned.shape() == parameter.shape())
    return true;
  HostTensor other = transposed(parameter);
  return hasMultiplesOfRows(turned, parameter) ||
         hasMultiplesOfRows(turned, other) || hasMultiplesOfRows(value, other);
}

/// Calls that make one number of many, or combine such numbers.
static bool isPenalty(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"sum", "mean", "norm", "linalg_vector_norm", "linalg_norm", "dot",
              "logsumexp", "amax", "amin", "prod", "var", "std", "mul", "add",
              "sub", "div", "pow", "square", "abs"},
             true)
      .Default(false);
}

void ExportMatcher::explainByValue() {
  for (FoldedValue *value : unexplained()) {
    OperandUse use = value->uses.front();
    const HostTensor &held = recovered.valueOf(use);
    const Node &node = graph.nodes[use.node];
    if (!isFloat(held.dtype()))
      continue;
    std::string how;
    StringRef op = splitFxName(value->name).first;
    bool isActivation = op == "softmax" || op == "log_softmax" ||
                        op == "_softmax" || op == "_log_softmax" ||
                        op == "sigmoid" || op == "softplus" || op == "tanh";
    if (isActivation && !isUniform(held))
      how = "'" + value->name +
            "': an activation of something that is no data, so of a "
            "parameter, was computed when exporting, for " +
            node.describe();
    else if (held.rank() == 0 && isPenalty(op))
      how = "'" + value->name +
            "': computed when exporting, maybe from "
            "parameters (a penalty on weights?), for " +
            node.describe();
    for (const Entry &entry : signature.entries) {
      const HostTensor *known = recovered.initializer(entry.target);
      if (how.empty() && entry.isParameter && known &&
          isFloat(known->dtype()) && resembles(held, *known) &&
          settled.insert(entry.target).second)
        how = "'" + entry.target + "': in " + node.describe() +
              " a function of it is folded into '" + value->name + "'";
    }
    if (how.empty())
      continue;
    value->explained = true;
    for (OperandUse each : value->uses)
      trained.insert(recovered.nameOf(each));
    result.lost.push_back(how);
  }
}
