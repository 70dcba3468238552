//===- Metrics.h - loss and accuracy on the host ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions evaluate losses and accuracy over the samples that a mask
// selects. They sum in double, in row-major order; the sums of batches are
// added, so that a mean does not depend on the batch size (but for rounding).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAINING_METRICS_H
#define CKOPT_TRAINING_METRICS_H

#include "ckopt/Support/ClassAxis.h"
#include "ckopt/Support/HostTensor.h"
#include <optional>

namespace ckopt {

struct MetricSums {
  double loss = 0;     ///< sum over the elements counted
  int64_t count = 0;   ///< elements counted (masked and ignored ones are not)
  int64_t correct = 0; ///< of those, right ones (cross-entropy only)

  double meanLoss() const { return count ? loss / double(count) : 0; }
  double accuracy() const {
    return count ? double(correct) / double(count) : 0;
  }
  MetricSums &operator+=(const MetricSums &other) {
    loss += other.loss;
    count += other.count;
    correct += other.correct;
    return *this;
  }
};

/// Computes cross-entropy and top-1 accuracy of float logits against integer
/// targets. `mask` (empty: all) has one entry a sample of the first dimension;
/// zeros leave the sample out. A target outside of the classes that is not
/// `ignoreIndex` is an error. The first of equal logits wins. Without `axis`
/// the shapes say where the classes are.
llvm::Expected<MetricSums>
crossEntropyMetrics(const HostTensor &logits, const HostTensor &targets,
                    std::optional<int64_t> ignoreIndex = std::nullopt,
                    llvm::ArrayRef<uint8_t> mask = {},
                    std::optional<int64_t> axis = std::nullopt);

/// Computes the squared error of tensors of equal shapes; `count` counts
/// elements, so that `meanLoss` is PyTorch's mse_loss.
llvm::Expected<MetricSums>
squaredErrorMetrics(const HostTensor &predictions, const HostTensor &targets,
                    llvm::ArrayRef<uint8_t> mask = {});

} // namespace ckopt

#endif // CKOPT_TRAINING_METRICS_H
