//===- Checks.cpp - what ckopt-run measures -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Loaded.h"

#include "ckopt/Runtime/StatusExit.h"

#include <algorithm>
#include <cstdio>

using namespace ckopt;
using namespace ckopt::run;

int ckopt::run::complain(ckrt_status status) {
  return complain(exitCodeOf(status), ckrt_last_error());
}

static std::string complainer = "ckopt-run";

void ckopt::run::nameComplaints(std::string name) {
  complainer = std::move(name);
}

int ckopt::run::complain(int code, const std::string &text) {
  std::fprintf(stderr, "%s: error: %s\n", complainer.c_str(), text.c_str());
  return code;
}

int ckopt::run::printMeasurement(Loaded &loaded) {
  int64_t peak = 0;
  ckrt_status status = ckrt_measured_peak(loaded.session, &peak);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("planned peak %lld bytes\nmeasured peak %lld bytes\n",
              static_cast<long long>(ckrt_arena_bytes(loaded.session)),
              static_cast<long long>(peak));
  if (loaded.manifest().target == runtime::Target::Cuda)
    return ExitOk; // --inspect lists the device's allocations
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  status = ckrt_allocations(loaded.session, &stats);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("allocations of 64 KiB or more during steps: %lld",
              static_cast<long long>(stats.large));
  if (stats.large)
    std::printf(" (largest %lld bytes, by %s)",
                static_cast<long long>(stats.largest), stats.largest_by);
  std::printf("\n");
  return ExitOk;
}

/// Returns where the planned bytes of a device's function end: all tensors, and
/// everything that its launches may access. Library workspaces count only with
/// `libraries`, since libraries need not use all of them.
static int64_t plannedEnd(const runtime::Manifest &m,
                          const std::string &function, bool libraries) {
  int64_t end = 0;
  for (const runtime::TensorInfo &t : m.tensors)
    if (t.role != runtime::TensorRole::Output &&
        t.role != runtime::TensorRole::Loss &&
        t.role != runtime::TensorRole::Gradient)
      end = std::max(end, t.offset + t.bytes);
  for (const runtime::CallInfo &call : m.calls) {
    if (m.functions[static_cast<size_t>(call.function)].name != function)
      continue;
    for (const runtime::LaunchInfo &launch : call.launches) {
      for (const runtime::LaunchPointer &pointer : launch.pointers)
        end = std::max(end, pointer.offset + pointer.bytes);
      if (launch.kernel >= 0 || libraries)
        end = std::max(end, call.workspaceOffset + call.workspaceBytes);
    }
  }
  return end;
}

/// The steps ran over one pattern; this runs once more over another, to find a
/// written byte that happened to equal the first pattern.
int ckopt::run::checkArena(Loaded &loaded, const Options &options) {
  int64_t peak = 0, planned = ckrt_arena_bytes(loaded.session);
  ckrt_status status = ckrt_pattern_refill(loaded.session, 2);
  if (status == CKRT_OK)
    status = ckrt_run(loaded.session, options.function.c_str());
  if (status == CKRT_OK)
    status = ckrt_measured_peak(loaded.session, &peak);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("planned peak %lld bytes\nhighest byte written plus one %lld\n",
              static_cast<long long>(planned), static_cast<long long>(peak));
  if (peak == planned)
    return ExitOk;
  const runtime::Manifest &m = loaded.manifest();
  if (m.target == runtime::Target::Cuda) {
    int64_t most = plannedEnd(m, options.function, true);
    if (most < planned)
      std::printf("planned for %s %lld\n", options.function.c_str(),
                  static_cast<long long>(most));
    if (peak == most)
      return ExitOk;
    if (peak < most && peak >= plannedEnd(m, options.function, false)) {
      std::printf("the bytes between are workspace that a library did not "
                  "use\n");
      return ExitOk;
    }
  }
  return complain(ExitInternal, "the step does not use exactly the bytes that "
                                "were planned");
}

int ckopt::run::inspect(Loaded &loaded) {
  ckrt_device_report r = {};
  r.size = sizeof(r);
  if (ckrt_status status = ckrt_device(loaded.session, &r))
    return complain(status);
  auto line = [](const char *what, int64_t bytes) {
    if (bytes < 0)
      std::printf("%-42s %14s\n", what, "unknown");
    else
      std::printf("%-42s %14lld bytes\n", what, static_cast<long long>(bytes));
  };
  std::printf("cuda:%d %s, compute capability %d.%d, %d multiprocessors\n"
              "driver for CUDA %d.%d\n",
              r.ordinal, r.name, r.compute_capability / 10,
              r.compute_capability % 10, r.multiprocessors,
              r.driver_version / 1000, r.driver_version % 1000 / 10);
  line("memory of the device", r.total_bytes);
  line("in use before loading (context, others)", r.used_bytes);
  line("a context (measured with a second one)", r.context_bytes);
  line("taken by the code", r.code_bytes);
  line("taken by cuBLASLt and cuDNN", r.library_bytes);
  if (loaded.ranks > 1)
    line("taken by NCCL", r.nccl_bytes);
  line("planned arena", ckrt_arena_bytes(loaded.session));
  line("taken by the arena", r.arena_bytes);
  line("taken by the graphs", r.graph_bytes);
  line("pinned host memory", r.pinned_bytes);
  line("most local memory of a thread", r.local_bytes);
  std::printf("%d kernels, at most %d registers a thread\n", r.kernels,
              r.registers);
  return ExitOk;
}
