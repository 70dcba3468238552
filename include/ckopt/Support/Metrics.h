//===- Metrics.h - loss and accuracy on the host ----------------*- C++ -*-===//
//
// Evaluation sums in double, in row-major order, over the samples that a mask
// lets in; sums of batches add up, so that the mean over a set does not depend
// on how it was cut (but for rounding).
//
// The class axis, for compiler and host alike (resolveClassAxis): targets have
// the shape of the logits without the class axis, which is axis 1 as in
// PyTorch's losses ([N, C], [N, C, H, W] with targets [N, H, W]) or the last
// as in language models ([B, T, V] with targets [B, T]). Where both fit
// ([N, T, T] with [N, T]) they compute different numbers: the user has to say.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_METRICS_H
#define CKOPT_SUPPORT_METRICS_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace ckopt {

/// The axis of `logits` that holds the classes (see above), or an error that
/// states both shapes that the targets could have, or asks where both fit.
llvm::Expected<int64_t> resolveClassAxis(llvm::ArrayRef<int64_t> logits,
                                         llvm::ArrayRef<int64_t> targets);
/// Whether targets for classes along axis 1 and along the last have one shape,
/// and these are two axes.
bool isClassAxisAmbiguous(llvm::ArrayRef<int64_t> logits);
/// The error of such a shape.
llvm::Error ambiguousClassAxis(llvm::ArrayRef<int64_t> logits);

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

/// Cross-entropy and top-1 accuracy of float logits against integer targets.
/// `mask` (empty: all) has one entry a sample of the first dimension; zeros
/// leave the sample out. A target outside of the classes that is not
/// `ignoreIndex` is an error. The first of equal logits wins. Without `axis`
/// the shapes say where the classes are.
llvm::Expected<MetricSums>
crossEntropyMetrics(const HostTensor &logits, const HostTensor &targets,
                    std::optional<int64_t> ignoreIndex = std::nullopt,
                    llvm::ArrayRef<uint8_t> mask = {},
                    std::optional<int64_t> axis = std::nullopt);

/// Squared error of equal shapes; `count` counts elements, so that `meanLoss`
/// is PyTorch's mse_loss.
llvm::Expected<MetricSums>
squaredErrorMetrics(const HostTensor &predictions, const HostTensor &targets,
                    llvm::ArrayRef<uint8_t> mask = {});

} // namespace ckopt

#endif // CKOPT_SUPPORT_METRICS_H
