//===- Backend.cpp - where a session's arena lies and its steps run -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Backend.h"

using namespace ckopt::runtime;

Backend::~Backend() = default;

ckrt_status Backend::timeLaunches(size_t, const LaunchTiming &) {
  return fail(CKRT_INVALID_ARGUMENT,
              "ckrt_time_launches: the step runs on the CPU, which has no "
              "launches (ckrt_set_profile times its calls)");
}

ckrt_status Backend::libraryChoices(ckrt_library_hook, void *) {
  return fail(CKRT_INVALID_ARGUMENT,
              "ckrt_library_choices: the step runs on the CPU, whose libraries "
              "were chosen when it was compiled");
}
