//===- PlanSink.h - where a pass's plans go ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The pass hands its plans to a sink and knows no files. Clients of the library
// get the plans as objects; the textual form of the pass, which has no caller
// but a command line, names files.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_REMAT_PLANSINK_H
#define CKOPT_LIB_TRANSFORMS_REMAT_PLANSINK_H

#include "ckopt/Remat/Remat.h"

#include <memory>
#include <mutex>

namespace ckopt {

/// Collects the plans of all clones of one pass, which may plan functions in
/// parallel and in any order.
class PlanSink {
public:
  /// Plans go to `result` if it is given, which then has to outlive the sink.
  explicit PlanSink(RematResult *result = nullptr)
      : plans(result ? result->plans : own.plans) {}
  virtual ~PlanSink() = default;

  /// Adds the plans of one run of the pass; `stored` is the plan for a plan
  /// file, if this run made it.
  llvm::Error add(RematResult found, const RematPlan *stored);
  void clear();

protected:
  /// Called before the plans are added, under the lock.
  virtual llvm::Error take(const RematPlan *stored) {
    return llvm::Error::success();
  }
  /// Called after plans were added, under the lock: `plans` are all so far.
  virtual llvm::Error finish() { return llvm::Error::success(); }
  std::vector<RematPlan> &plans;

private:
  RematResult own;
  std::mutex mutex;
};

/// Creates a sink that writes the textual options' files, those that are named:
/// `planOut` once, `report` after each function, so that the file is complete
/// when the last function is done.
std::shared_ptr<PlanSink> createFileSink(std::string planOut,
                                         std::string report);

} // namespace ckopt

#endif // CKOPT_LIB_TRANSFORMS_REMAT_PLANSINK_H
