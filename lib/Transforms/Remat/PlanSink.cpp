//===- PlanSink.cpp - where a pass's plans go -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "PlanSink.h"
#include "ckopt/Support/AtomicFile.h"

using namespace ckopt;

llvm::Error PlanSink::add(RematResult found, const RematPlan *stored) {
  std::lock_guard<std::mutex> lock(mutex);
  llvm::Error error = take(stored); // it points into `found`
  size_t before = plans.size();
  for (RematPlan &plan : found.plans)
    if (plan.wasPlanned())
      plans.push_back(std::move(plan));
  if (plans.size() == before)
    return error;
  return llvm::joinErrors(std::move(error), finish());
}

void PlanSink::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  plans.clear();
}

namespace {
class FileSink : public PlanSink {
public:
  FileSink(std::string planOut, std::string report)
      : planOut(std::move(planOut)), report(std::move(report)) {}

protected:
  llvm::Error take(const RematPlan *stored) override {
    if (!stored || planOut.empty())
      return llvm::Error::success();
    return writeFileAtomically(planOut, printStoredPlan(*stored));
  }
  llvm::Error finish() override {
    return report.empty() ? llvm::Error::success()
                          : writeRematReport(report, plans);
  }

private:
  std::string planOut, report;
};
} // namespace

std::shared_ptr<PlanSink> ckopt::createFileSink(std::string planOut,
                                                std::string report) {
  return std::make_shared<FileSink>(std::move(planOut), std::move(report));
}
