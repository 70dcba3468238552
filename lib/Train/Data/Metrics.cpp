//===- Metrics.cpp - loss and accuracy on the host ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Cross-entropy is log(sum(exp(x - max))) + max - x[target] in double: no
// overflow, and exact enough to judge f32 kernels by. O(elements).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Metrics.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace ckopt {

static Error checkMask(ArrayRef<uint8_t> mask, ArrayRef<int64_t> shape) {
  const int64_t samples = shape.empty() ? 1 : shape[0];
  if (mask.empty() || int64_t(mask.size()) == samples)
    return Error::success();
  return inputError("a mask of " + Twine(mask.size()) + " entries for " +
                    Twine(samples) + " samples");
}

namespace {
/// Strides of the logits seen as [outer, classes, inner].
struct ClassView {
  int64_t outer = 1, classes = 1, inner = 1;

  ClassView(ArrayRef<int64_t> shape, int64_t axis)
      : classes(shape[size_t(axis)]) {
    for (size_t d = 0; d < shape.size(); ++d) {
      if (int64_t(d) < axis)
        outer *= shape[d];
      else if (int64_t(d) > axis)
        inner *= shape[d];
    }
  }
};
} // namespace

/// Adds the loss at one position, and how many classes come before its label.
static void addLabel(MetricSums &sums, double loss, double before,
                     int64_t topK) {
  sums.loss += loss;
  sums.crossEntropy += loss;
  sums.correct += before == 0;
  sums.inTop += before < double(topK);
  ++sums.count;
  ++sums.labels;
}

/// Adds the loss at one position, and the rank of `label` among its logits,
/// where the first of equal ones comes first.
template <typename T>
static void addPosition(MetricSums &sums, const T *logits, int64_t stride,
                        int64_t classes, int64_t label, int64_t topK) {
  const double own = double(logits[label * stride]);
  double largest = double(logits[0]);
  int64_t before = 0; // logits that come before the label's
  bool bad = false;
  for (int64_t c = 0; c < classes; ++c) {
    const double value = double(logits[c * stride]);
    bad |= std::isnan(value);
    if (value > largest)
      largest = value;
    before += value > own || (value == own && c < label);
  }
  double sum = 0;
  for (int64_t c = 0; c < classes; ++c)
    sum += std::exp(double(logits[c * stride]) - largest);
  // With a NaN among the logits, no k is large enough.
  addLabel(sums, std::log(sum) + (largest - own),
           bad ? std::numeric_limits<double>::infinity() : double(before),
           topK);
}

Expected<MetricSums>
crossEntropyMetrics(const HostTensor &logits, const HostTensor &targets,
                    std::optional<int64_t> ignoreIndex, ArrayRef<uint8_t> mask,
                    std::optional<int64_t> classAxis, int64_t topK) {
  if (!isFloat(logits.dtype()))
    return inputError("cross-entropy needs logits of a float type, not " +
                      logits.typeString());
  if (!isInteger(targets.dtype()))
    return inputError("cross-entropy needs integer targets, not " +
                      targets.typeString());
  Expected<int64_t> axis =
      classAxis ? Expected<int64_t>(*classAxis)
                : resolveClassAxis(logits.shape(), targets.shape());
  if (!axis)
    return axis.takeError();
  if (*axis < 0 || *axis >= logits.rank() ||
      targets.shape() !=
          ArrayRef<int64_t>(withoutAxis(logits.shape(), size_t(*axis))))
    return inputError("targets of shape " + shapeString(targets.shape()) +
                      " do not fit logits of shape " +
                      shapeString(logits.shape()) +
                      " with classes along axis " + Twine(*axis));
  if (Error error = checkMask(mask, logits.shape()))
    return std::move(error);
  const ClassView view(logits.shape(), *axis);
  const int64_t samples = logits.dim(0);
  const int64_t perSample = samples ? targets.numElements() / samples : 0;
  MetricSums sums;
  Error error = Error::success();
  dispatchDType(logits.dtype(), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>) {
      const T *values = logits.data<T>().data();
      for (int64_t i = 0; i < targets.numElements(); ++i) {
        if (!mask.empty() && !mask[size_t(i / perSample)])
          continue;
        const int64_t label = targets.getInt(i);
        if (ignoreIndex && label == *ignoreIndex)
          continue;
        if (label < 0 || label >= view.classes) {
          error = inputError("target " + indexString(i, targets.shape()) +
                             " = " + Twine(label) + " is no class: there are " +
                             Twine(view.classes));
          return;
        }
        const int64_t outer = i / view.inner, inner = i % view.inner;
        addPosition(sums, values + outer * view.classes * view.inner + inner,
                    view.inner, view.classes, label, topK);
      }
    }
  });
  if (error)
    return std::move(error);
  return sums;
}

Expected<MetricSums> rankedMetrics(const HostTensor &losses,
                                   const HostTensor &ranks,
                                   const HostTensor &targets,
                                   std::optional<int64_t> ignoreIndex,
                                   ArrayRef<uint8_t> mask, int64_t topK) {
  for (const HostTensor *tensor : {&losses, &ranks})
    if (tensor->shape() != targets.shape())
      return inputError("losses and ranks need the shape of targets, " +
                        shapeString(targets.shape()) + ", not " +
                        shapeString(tensor->shape()));
  if (Error error = checkMask(mask, targets.shape()))
    return std::move(error);
  const int64_t samples = targets.rank() ? targets.dim(0) : 0;
  const int64_t perSample = samples ? targets.numElements() / samples : 0;
  MetricSums sums;
  for (int64_t i = 0; i < targets.numElements(); ++i) {
    if (!mask.empty() && !mask[size_t(i / perSample)])
      continue;
    if (ignoreIndex && targets.getInt(i) == *ignoreIndex)
      continue;
    addLabel(sums, losses.getDouble(i), ranks.getDouble(i), topK);
  }
  return sums;
}

Expected<MetricSums> squaredErrorMetrics(const HostTensor &predictions,
                                         const HostTensor &targets,
                                         ArrayRef<uint8_t> mask) {
  if (predictions.shape() != targets.shape())
    return inputError("targets of shape " + shapeString(targets.shape()) +
                      " do not fit predictions of shape " +
                      shapeString(predictions.shape()));
  if (Error error = checkMask(mask, predictions.shape()))
    return std::move(error);
  const int64_t samples = predictions.rank() ? predictions.dim(0) : 1;
  const int64_t perSample = samples ? predictions.numElements() / samples : 0;
  MetricSums sums;
  for (int64_t i = 0; i < predictions.numElements(); ++i) {
    if (!mask.empty() && !mask[size_t(i / perSample)])
      continue;
    const double difference = predictions.getDouble(i) - targets.getDouble(i);
    sums.loss += difference * difference;
    ++sums.count;
  }
  sums.squaredError = sums.loss;
  sums.compared = sums.count;
  return sums;
}

//===----------------------------------------------------------------------===//
// Metrics by name
//===----------------------------------------------------------------------===//

std::string Metric::name() const {
  switch (kind) {
  case Kind::Loss:
    return "loss";
  case Kind::Accuracy:
    return "accuracy";
  case Kind::TopK:
    return "top" + std::to_string(k);
  case Kind::Perplexity:
    return "perplexity";
  case Kind::SquaredError:
    return "mse";
  }
  llvm_unreachable("all kinds are named");
}

double Metric::of(const MetricSums &sums) const {
  auto mean = [](double sum, int64_t count) {
    return count ? sum / double(count) : NAN;
  };
  switch (kind) {
  case Kind::Loss:
    return mean(sums.loss, sums.count);
  case Kind::Accuracy:
    return mean(double(sums.correct), sums.count);
  case Kind::TopK:
    return mean(double(sums.inTop), sums.count);
  case Kind::Perplexity:
    return std::exp(sums.labels ? mean(sums.crossEntropy, sums.labels)
                                : mean(sums.loss, sums.count));
  case Kind::SquaredError:
    return mean(sums.squaredError, sums.compared);
  }
  llvm_unreachable("all kinds are computed");
}

std::string Metric::format(double value) const {
  return isShare() ? formatPercent(value, 2) : formatNumber(value, 6);
}

Expected<Metric> parseMetric(StringRef name, const MessageText &flag) {
  Metric metric;
  StringRef number = name;
  if (name == "loss")
    metric.kind = Metric::Kind::Loss;
  else if (name == "accuracy")
    metric.kind = Metric::Kind::Accuracy;
  else if (name == "perplexity")
    metric.kind = Metric::Kind::Perplexity;
  else if (name == "mse")
    metric.kind = Metric::Kind::SquaredError;
  else if (number.consume_front("top") && !number.getAsInteger(10, metric.k) &&
           metric.k >= 1)
    metric.kind = Metric::Kind::TopK;
  else
    return usageError(flag + ": '" + name +
                      "' is not one of loss, accuracy, topK (top5), "
                      "perplexity, mse");
  return metric;
}

Expected<std::vector<Metric>> parseMetrics(StringRef names,
                                           const MessageText &flag) {
  std::vector<Metric> result;
  SmallVector<StringRef> parts;
  names.split(parts, ',');
  for (StringRef part : parts) {
    Expected<Metric> metric = parseMetric(part.trim(), flag);
    if (!metric)
      return metric.takeError();
    for (const Metric &before : result)
      if (before.kind == metric->kind)
        return usageError(flag + ": '" + before.name() + "' and '" +
                          metric->name() + "': one is enough");
    result.push_back(*metric);
  }
  return result;
}

} // namespace ckopt
