//===- GraphSettings.h - how a graph is planned, by name --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CAPI_GRAPHSETTINGS_H
#define CKOPT_LIB_CAPI_GRAPHSETTINGS_H

#include "ckopt/Driver/Settings.h"
#include "ckopt/Planner/Solve.h"
#include "ckopt/Support/ByteSize.h"

namespace ckopt::capi {

struct GraphSettings {
  planner::Options search; ///< without the budget
  MemoryBudget budget;
};

/// Reads settings by the names of ckopt-plan's flags. One usage error lists all
/// that are unknown or wrong.
llvm::Expected<GraphSettings>
readGraphSettings(llvm::ArrayRef<Setting> settings);
std::string graphSettingsHelp();

} // namespace ckopt::capi

#endif // CKOPT_LIB_CAPI_GRAPHSETTINGS_H
