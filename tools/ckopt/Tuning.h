//===- Tuning.h - which form of a contraction is fastest here ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_TUNING_H
#define CKOPT_TOOLS_CKOPT_TUNING_H

#include "ckopt/Runtime/Manifest.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace ckopt {

/// The times of one contraction alone, in all forms that run.
struct TunedContraction {
  struct Time {
    runtime::LibraryForm form;
    double seconds;
  };
  runtime::PrimitiveDesc desc; ///< in the form that the step has
  std::vector<Time> times;     ///< the step's form first
  int64_t calls = 0;           ///< in all functions of the artifact

  /// The fastest; the step's own where none is clearly faster.
  const Time &best() const;
};

struct Tuning {
  std::vector<TunedContraction> contractions;

  void print(llvm::raw_ostream &os) const;
  /// Writes a ckopt-library-table/1 for processors of a class.
  llvm::Error write(llvm::StringRef path, llvm::StringRef cpuClass) const;
};

/// Times all contractions of an artifact that have several forms.
llvm::Expected<Tuning> tuneLibraries(const runtime::Manifest &manifest);

} // namespace ckopt

#endif // CKOPT_TOOLS_CKOPT_TUNING_H
