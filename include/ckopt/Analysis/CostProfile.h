//===- CostProfile.h - measured costs from a file ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A profile is a JSON file of the format ckopt-profile/1:
//
//   { "format": "ckopt-profile/1", "device": "h100", "precision": "f32",
//     "rates": { "bandwidth": 14e9, "matmul": 280e9, "conv": 230e9,
//                "depthwise_conv": 40e9, "vector": 60e9, "overhead": 2e-6 },
//     "collectives": [ { "op": "all_reduce", "ranks": 2,
//                        "points": [[1024, 8e-6], [1048576, 4e-4]] } ],
//     "updates": { "bytes": 307200, "seconds": 2.5e-5 },
//     "ops": [ { "op": "linalg.matmul", "seconds": 1.2e-3,
//                "type": "(tensor<64x64xf32>, ...) -> tensor<64x64xf32>" },
//              { "name": "layer1/conv", "seconds": 3.4e-3 } ] }
//
// An entry gives the seconds of one execution of an op. It applies to ops that
// agree with all its members: `op` (name of the op, or symbol of a kernel),
// `type` (operands and results as a function type) and `name` (source name,
// from the location). `op` or `name` is needed. If several entries apply, the
// most specific counts: name before type before op. `rates` (all optional)
// replace rates of the analytic model, which estimates all other ops. `device`
// and `precision` (of matmuls), both optional, say for which GPU and precision
// they were fitted. `collectives` are curves of measured seconds over bytes of
// the whole tensors, one for each op and number of ranks. Seconds are
// interpolated between sizes, constant below the first size, and proportional
// to the bytes above the last. `updates` gives the seconds, and the bytes read
// and written, of kernels that join updates of several parameters; an update
// without an entry takes its share by bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_COSTPROFILE_H
#define CKOPT_ANALYSIS_COSTPROFILE_H

#include "ckopt/Target/MachineRates.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mlir {
class Operation;
} // namespace mlir

namespace ckopt {

/// A larger number of seconds for one op is refused as a mistake (30 years).
inline constexpr double kMaxSeconds = 1e9;

class CostProfile {
public:
  /// Parses a profile; errors name the entry and its defect.
  static llvm::Expected<CostProfile> parse(llvm::StringRef text);
  static llvm::Expected<CostProfile> read(llvm::StringRef path);

  /// Returns the seconds of the most specific entry that the op agrees with.
  std::optional<double> lookup(mlir::Operation *op) const;

  /// Returns the seconds of a collective of this size among this number of
  /// ranks, if the profile has measured it.
  std::optional<double> collective(llvm::StringRef op, int64_t ranks,
                                   double bytes) const;

  /// Tells whether the profile has entries for ops, in addition to rates.
  bool hasEntries() const { return shapesOfEntries != 0; }

  bool hasRates() const { return !rates.empty(); }
  /// Tells whether it has rates of matmuls or convolutions.
  bool hasProductRates() const;

  /// The device and precision of the rates; "": the file does not say.
  llvm::StringRef device() const { return onDevice; }
  llvm::StringRef precision() const { return byPrecision; }

  /// Returns the entries that no lookup has used so far, sorted.
  std::vector<std::string> unused() const;

  /// The file's rates, with those of `rates` for missing ones.
  MachineRates ratesOver(MachineRates rates) const;

private:
  llvm::Error addEntry(const llvm::json::Object &entry, size_t index);

  llvm::Error addCurve(const llvm::json::Object &curve, size_t index);

  /// Points (bytes, seconds) by op and ranks, sizes ascending.
  std::map<std::pair<std::string, int64_t>,
           std::vector<std::pair<double, double>>>
      curves;
  std::vector<std::pair<double MachineRates::*, double>> rates;
  std::string onDevice, byPrecision;
  /// Seconds by "name\nop\ntype".
  struct Entry {
    explicit Entry(double seconds) : seconds(seconds) {}
    double seconds;
    mutable std::atomic<bool> isUsed = false;
  };
  llvm::StringMap<Entry> entries;
  double updateSecondsPerByte = 0; ///< of updates without entry; 0: unknown
  /// Which parts entries have: bit 2 name, bit 1 type, bit 0 op.
  unsigned shapesOfEntries = 0;
};

} // namespace ckopt

#endif // CKOPT_ANALYSIS_COSTPROFILE_H
