//===- Loaded.h - an artifact and a session on it ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_LOADED_H
#define CKOPT_TOOLS_CKOPT_RUN_LOADED_H

#include "Options.h"

#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"

namespace ckopt::run {

/// Prints an error and returns `code`.
int complain(int code, const std::string &text);
/// Prints the runtime's last error and returns the exit code of its status.
int complain(ckrt_status status);

/// Releases program and session at the end.
struct Loaded {
  ckrt_program *program = nullptr;
  ckrt_session *session = nullptr;
  ~Loaded() {
    // Without a session there may be no runtime to call, either.
    if (session)
      ckrt_session_destroy(session);
    if (program)
      ckrt_program_destroy(program);
  }
  const runtime::Manifest &manifest() const {
    return *static_cast<const runtime::Manifest *>(
        ckrt_program_manifest(program));
  }
};

// The following are in Checks.cpp. All return an exit code.

/// Prints the planned and measured peak, and allocations.
int printMeasurement(Loaded &loaded);
/// Runs the function once more over another pattern and compares the highest
/// byte written with the plan.
int checkArena(Loaded &loaded, const Options &options);
/// Times each kernel of a device's function (KernelTimes.cpp), prints the
/// slowest and writes all.
int timeKernels(Loaded &loaded, const Options &options);
/// Prints the session's device, and the memory that it uses.
int inspect(Loaded &loaded);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_LOADED_H
