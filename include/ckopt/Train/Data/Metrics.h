//===- Metrics.h - loss and accuracy on the host ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions evaluate losses and accuracy over the samples that a mask
// selects. They sum in double, in row-major order; the sums of batches are
// added, so that a mean does not depend on the batch size (but for rounding). A
// Metric is a value that a user requests by name, computed from such sums.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_METRICS_H
#define CKOPT_TRAIN_DATA_METRICS_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Support/ClassAxis.h"
#include "ckopt/Support/HostTensor.h"
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

struct MetricSums {
  double loss = 0;     ///< sum over the elements counted
  int64_t count = 0;   ///< elements counted (masked and ignored ones are not)
  int64_t correct = 0; ///< of those, right ones (cross-entropy only)
  /// How many of these have their label among the k largest logits.
  int64_t inTop = 0;
  double crossEntropy = 0; ///< plain, whatever the loss is; sum over `labels`
  int64_t labels = 0;
  double squaredError = 0; ///< sum over `compared` elements
  int64_t compared = 0;

  double meanLoss() const { return count ? loss / double(count) : 0; }
  double accuracy() const {
    return count ? double(correct) / double(count) : 0;
  }
  MetricSums &operator+=(const MetricSums &other) {
    loss += other.loss;
    count += other.count;
    correct += other.correct;
    inTop += other.inTop;
    crossEntropy += other.crossEntropy;
    labels += other.labels;
    squaredError += other.squaredError;
    compared += other.compared;
    return *this;
  }
};

/// One number of an evaluation.
struct Metric {
  enum class Kind { Loss, Accuracy, TopK, Perplexity, SquaredError };
  Kind kind = Kind::Loss;
  int64_t k = 1; ///< of TopK

  /// Returns "loss", "accuracy", "top5", "perplexity" or "mse".
  std::string name() const;
  bool isShare() const { return kind == Kind::Accuracy || kind == Kind::TopK; }
  /// Tells whether `value` is better than `than`; a NaN never is.
  bool isBetter(double value, double than) const {
    return isShare() ? value > than : value < than;
  }
  /// Computes it from the sums of an evaluation. The perplexity is
  /// exp(cross-entropy), in nats; without labels, where the model computes its
  /// loss itself, exp(loss).
  double of(const MetricSums &sums) const;
  /// Formats a value: "12.34 %" of shares, else six digits.
  std::string format(double value) const;
  bool operator==(const Metric &) const = default;
};

llvm::Expected<Metric> parseMetric(llvm::StringRef name,
                                   const MessageText &flag);
/// Parses "accuracy,top5": no name twice, one k at most.
llvm::Expected<std::vector<Metric>> parseMetrics(llvm::StringRef names,
                                                 const MessageText &flag);

/// Computes cross-entropy, top-1 and top-`topK` accuracy of float logits
/// against integer targets. `mask` (empty: all) has one entry a sample of the
/// first dimension; zeros leave the sample out. A target outside of the classes
/// that is not `ignoreIndex` is an error. Of equal logits the first counts.
/// Without `axis` the shapes determine the axis of the classes.
llvm::Expected<MetricSums>
crossEntropyMetrics(const HostTensor &logits, const HostTensor &targets,
                    std::optional<int64_t> ignoreIndex = std::nullopt,
                    llvm::ArrayRef<uint8_t> mask = {},
                    std::optional<int64_t> axis = std::nullopt,
                    int64_t topK = 1);

/// Computes the same from the loss at each place, and the number of classes
/// that come before its target.
llvm::Expected<MetricSums>
rankedMetrics(const HostTensor &losses, const HostTensor &ranks,
              const HostTensor &targets, std::optional<int64_t> ignoreIndex,
              llvm::ArrayRef<uint8_t> mask, int64_t topK);

/// Computes the squared error of tensors of equal shapes; `count` counts
/// elements, so that `meanLoss` is PyTorch's mse_loss.
llvm::Expected<MetricSums>
squaredErrorMetrics(const HostTensor &predictions, const HostTensor &targets,
                    llvm::ArrayRef<uint8_t> mask = {});

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_METRICS_H
