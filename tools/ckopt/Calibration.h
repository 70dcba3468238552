//===- Calibration.h - rates of this machine, from a step -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_CALIBRATION_H
#define CKOPT_TOOLS_CKOPT_CALIBRATION_H

#include "ckopt/Analysis/RateFit.h"
#include "ckopt/Compiler/Compile.h"

namespace ckopt {

/// Rates that were fitted to the kernels of one step.
struct Calibration {
  std::vector<FittedRate> rates;
  MachineRates builtIn;
  /// Whose rates those that were not fitted are, and what products were
  /// rounded to; "" on a CPU.
  std::string device, precision;
  double measured = 0;  ///< seconds of the step's kernels
  double predicted = 0; ///< the same, at the fitted rates

  void print(llvm::raw_ostream &os) const;
  /// Writes a ckopt-profile/1 file with the fitted rates.
  llvm::Error write(llvm::StringRef path) const;
};

/// Fits rates; `seconds` has the time of each kernel call of the step.
Calibration calibrate(const Compilation &compilation,
                      llvm::ArrayRef<double> seconds);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_CALIBRATION_H
