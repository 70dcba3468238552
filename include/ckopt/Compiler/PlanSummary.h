//===- PlanSummary.h - the figures of a plan --------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_PLANSUMMARY_H
#define CKOPT_COMPILER_PLANSUMMARY_H

#include "ckopt/Remat/Figures.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The figures of a plan, for tables and reports.
struct PlanSummary {
  /// Figures of the planned step, or of the function that no plan fits.
  RematFigures figures;
  int64_t parameterBytes = 0, optimizerBytes = 0, dataBytes = 0, stateBytes = 0;
  int64_t calls = 0;   ///< kernel calls of a step, clones included
  int64_t kernels = 0; ///< distinct ones
  /// Share of the operations of matmuls and convolutions that are computed from
  /// 16-bit floats of this type; nothing without mixed precision.
  std::optional<double> lowProducts;
  std::string lowType;
  /// The precision class of each library kernel's matmuls, if another than f32
  /// was asked for.
  struct ProductKernel {
    std::string kernel, precision;
    int64_t calls = 0;
    double flops = 0; ///< of a step
  };
  std::vector<ProductKernel> products;
  double planSeconds = 0;
};

} // namespace ckopt

#endif // CKOPT_COMPILER_PLANSUMMARY_H
