//===- Loaded.h - an artifact and a session on it ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_LOADED_H
#define CKOPT_TOOLS_CKOPT_RUN_LOADED_H

#include "Hash.h"
#include "HostFiles.h"
#include "Options.h"

#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"

namespace ckopt::run {

/// Prints an error and returns `code`.
int complain(int code, const std::string &text);
/// Sets what errors begin with: the tool, and the rank where there are several.
void nameComplaints(std::string name);
/// Prints the runtime's last error and returns the exit code of its status.
int complain(ckrt_status status);

/// Releases program and session at the end.
struct Loaded {
  ckrt_program *program = nullptr;
  ckrt_session *session = nullptr;
  int64_t rank = 0, ranks = 1;
  Hash batch; ///< of the data that were given for all ranks
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

// The following are in Ranks.cpp.

/// Returns how many ranks the functions are for; 1: none is of several.
int64_t ranksOf(const runtime::Manifest &manifest);
/// Meets the other processes if the step is one of several ranks, which the
/// number of processes must fit; ranks but the first become quiet. Returns an
/// exit code.
int joinRanks(Loaded &loaded, Options &options);
/// Ends all ranks if this one failed; else waits for them.
void leaveRanks(Loaded &loaded, int code);
/// Compares what the ranks' numbers depend on. Returns an exit code.
int compareRanks(Loaded &loaded, const Options &options);
/// Returns of how many ranks' parts the data for this tensor consist.
int64_t partsOf(const Loaded &loaded, const runtime::TensorInfo &tensor);
/// Returns this rank's part of a whole tensor that ranks share, others as they
/// are.
HostArray shardOf(const Loaded &loaded, const runtime::TensorInfo &tensor,
                  HostArray whole);
/// Makes the whole tensor of this rank's part, with all other ranks. Returns an
/// exit code.
int gatherShards(const Loaded &loaded, const runtime::TensorInfo &tensor,
                 HostArray &array);

// The following are in Checks.cpp. All return an exit code.

/// Prints the planned and measured peak, and allocations.
int printMeasurement(Loaded &loaded);
/// Runs the function once more over another pattern and compares the highest
/// byte written with the plan.
int checkArena(Loaded &loaded, const Options &options);
/// Returns, for each primitive that our own kernels run in the place of a
/// library, why; empty text for all others.
std::vector<std::string> ownKernels(const Loaded &loaded);
/// Returns the launches that do the call's work in a session with such kernels.
const std::vector<runtime::LaunchInfo> &
launchesOf(const runtime::Manifest &m, const runtime::CallInfo &call,
           const std::vector<std::string> &own);
/// Times each kernel of a device's function (KernelTimes.cpp), prints the
/// slowest and writes all.
int timeKernels(Loaded &loaded, const Options &options);
/// Prints the session's device, and the memory that it uses.
int inspect(Loaded &loaded);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_LOADED_H
