//===- TargetRegistry.h - targets by name -----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts name targets: command lines, pass pipelines, and the attribute
// `ckopt.target` that annotate-kernels leaves on a module. Targets are
// registered by calls (registerAllTargets() for ckopt's own), never by static
// initializers, and before the first compilation: lookups take no lock.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TARGET_TARGETREGISTRY_H
#define CKOPT_TARGET_TARGETREGISTRY_H

#include "ckopt/Target/PlannedRates.h"
#include "ckopt/Target/TargetInfo.h"

namespace ckopt {

/// Adds a target, which must live as long as the program; adding it again does
/// nothing. Refuses another one of the same name, and traits that no step could
/// be made with (usage errors).
llvm::Error registerTarget(const TargetInfo &target);

/// The target of that name, or an error that lists the names.
llvm::Expected<const TargetInfo *> findTarget(llvm::StringRef name);

/// The targets that are registered, in that order.
std::vector<const TargetInfo *> allTargets();

/// The setting that asks for a target with devices. A command that runs the
/// step needs one of them, and others do not take one.
Setting settingFor(llvm::StringRef target, bool runsHere);

} // namespace ckopt

#endif // CKOPT_TARGET_TARGETREGISTRY_H
