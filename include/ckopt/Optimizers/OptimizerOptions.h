//===- OptimizerOptions.h - options of the optimizer ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H
#define CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H

#include "ckopt/Support/Optimizers.h"

#include <cstdint>
#include <string>

namespace ckopt {

struct OptimizerOptions {
  std::string kind = "adamw"; ///< a kind of Support/Optimizers.h
  HyperValues values;         ///< values that are not the kind's defaults
  double clipNorm = 0;        ///< 0: no clipping
  int64_t accumulate = 1;     ///< micro-batches in a step
  double ema = 0;             ///< decay of averaged parameters; 0: none
  /// If the loss's scale is a state: the number of updates in a row, with
  /// finite gradients, after which it doubles; 0: it never does.
  int64_t lossScaleGrowth = 2000;
};

} // namespace ckopt

#endif // CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H
