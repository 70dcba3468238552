//===- RunChecks.h - whether a training run goes wrong ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_DRIVER_RUNCHECKS_H
#define CKOPT_LIB_DRIVER_RUNCHECKS_H

#include "ckopt/Driver/Session.h"
#include "ckopt/Support/HostTensor.h"

namespace ckopt {

/// An error (ExitNonFinite) that names the first of the tensors that holds a
/// number that is not finite; `step` is the last one that ran.
llvm::Error checkFinite(const TensorMap &tensors, int64_t step);
/// The same of a loss or a norm.
llvm::Error checkFinite(double value, const llvm::Twine &what, int64_t step);

/// Tells a loss that left its start for good from one that is only noisy: it is
/// far above where it is more than ten times the first loss's size above that,
/// for five steps on end (or up to the end of a shorter run).
class DivergenceWatch {
public:
  /// Whether the loss of this step is the one that makes it certain.
  bool add(int64_t step, double loss);
  /// Whether the run ends far above its start; 0: no, else the first step of
  /// those that do.
  int64_t leftAt() const { return above ? left : 0; }
  /// Whether `add` has said so.
  bool wasReported() const { return reported; }
  std::string describe() const;

private:
  int64_t firstStep = 0, lastStep = 0, left = 0, above = 0;
  double first = 0, last = 0;
  bool reported = false;
};

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_RUNCHECKS_H
