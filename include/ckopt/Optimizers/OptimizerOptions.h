//===- OptimizerOptions.h - options of the optimizer ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H
#define CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H

#include "ckopt/Support/Choice.h"
#include "ckopt/Support/Optimizers.h"

#include <cstdint>
#include <string>

namespace ckopt {

/// What optimizer states of a parameter's shape are stored in.
enum class StateType { F32, BF16, INT8 };
inline ChoiceNames choiceNames(StateType) {
  static constexpr const char *names[] = {"f32", "bf16", "int8"};
  return names;
}

/// What trained weights are stored in.
enum class ParamType { F32, BF16 };
inline ChoiceNames choiceNames(ParamType) {
  static constexpr const char *names[] = {"f32", "bf16"};
  return names;
}

/// Parameters with fewer elements, and their states, stay f32.
inline constexpr int64_t kLeastNarrowElements = 4096;

/// Numbers of a state in int8 that share a scale, as in bitsandbytes and
/// torchao.
inline constexpr int64_t kCodeBlock = 256;

struct OptimizerOptions {
  std::string kind = "adamw"; ///< a kind of Support/Optimizers.h
  HyperValues values;         ///< values that are not the kind's defaults
  double clipNorm = 0;        ///< 0: no clipping
  int64_t accumulate = 1;     ///< micro-batches in a step
  double ema = 0;             ///< decay of averaged parameters; 0: none
  /// BF16: rounded at random; INT8: dynamic codes (ckopt.assign_codes).
  StateType stateType = StateType::F32;
  ParamType paramType = ParamType::F32; ///< BF16: rounded at random
  /// If the loss's scale is a state: the number of updates in a row, with
  /// finite gradients, after which it doubles; 0: it never does.
  int64_t lossScaleGrowth = 2000;
};

} // namespace ckopt

#endif // CKOPT_OPTIMIZERS_OPTIMIZEROPTIONS_H
