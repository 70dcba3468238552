//===- WorkspaceAdvice.h - what lowers libraries' workspaces ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_COMPILER_WORKSPACEADVICE_H
#define CKOPT_LIB_COMPILER_WORKSPACEADVICE_H

#include "ckopt/Remat/Remat.h"
#include "ckopt/Target/TargetInfo.h"

namespace ckopt {

/// Says, of a plan that was not found, how much of the workspace at the peak is
/// a library's, and which settings lower it. Empty if these cannot help.
MessageText adviseWorkspace(const RematPlan &plan,
                            const KernelSettings &settings,
                            const TargetInfo &target);

} // namespace ckopt

#endif // CKOPT_LIB_COMPILER_WORKSPACEADVICE_H
