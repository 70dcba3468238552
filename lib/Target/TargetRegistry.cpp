//===- TargetRegistry.cpp - targets by name -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/ErrorHandling.h"

using namespace ckopt;

StepCode::~StepCode() = default;
TargetInfo::~TargetInfo() = default;
TargetOptions::~TargetOptions() = default;

std::shared_ptr<TargetOptions> TargetInfo::makeOptions() const {
  return nullptr;
}
std::vector<TargetFlag> TargetInfo::ownFlags(TargetOptions &) const {
  return {};
}

void StepCode::print(llvm::raw_ostream &) const {}
llvm::Error StepCode::writeJson(llvm::json::OStream &) const {
  return llvm::Error::success();
}

static std::vector<const TargetInfo *> &registeredTargets() {
  static std::vector<const TargetInfo *> targets;
  return targets;
}

static const TargetInfo *lookupTarget(llvm::StringRef name) {
  for (const TargetInfo *target : registeredTargets())
    if (target->name() == name)
      return target;
  return nullptr;
}

void ckopt::registerTarget(const TargetInfo &target) {
  const TargetInfo *known = lookupTarget(target.name());
  if (known == &target)
    return;
  if (known)
    llvm::report_fatal_error(
        llvm::Twine("two targets have the name '" + target.name() + "'"));
  registeredTargets().push_back(&target);
}

std::vector<const TargetInfo *> ckopt::allTargets() {
  return registeredTargets();
}

llvm::Expected<const TargetInfo *> ckopt::findTarget(llvm::StringRef name) {
  if (const TargetInfo *target = lookupTarget(name))
    return target;
  std::string known;
  for (const TargetInfo *target : registeredTargets())
    known += (known.empty() ? "" : ", ") + target->name();
  return usageError("no target '" + name + "'; there are " + known);
}

MachineRates ckopt::ratesOf(mlir::Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto name = op->getAttrOfType<mlir::StringAttr>(kTargetAttr))
      if (const TargetInfo *target = lookupTarget(name))
        return target->traits.rates;
  return {};
}
