//===- Checks.cpp - what ckopt-run measures -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Loaded.h"

#include "ckopt/Base/PrintableText.h"
#include "ckopt/Runtime/StatusExit.h"

#include <algorithm>
#include <cstdio>
#include <map>

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
  std::fprintf(stderr, "%s: error: %s\n", complainer.c_str(),
               printable(text, /*keepLines=*/true).c_str());
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

std::vector<std::string> ckopt::run::ownKernels(const Loaded &loaded) {
  std::vector<std::string> own(loaded.manifest().primitives.size());
  auto add = [](void *self, int64_t primitive, int byLibrary,
                const char *what) {
    auto &own = *static_cast<std::vector<std::string> *>(self);
    if (!byLibrary)
      own[static_cast<size_t>(primitive)] = *what ? what : "by the lock file";
  };
  (void)ckrt_library_choices(loaded.session, add, &own);
  return own;
}

const std::vector<runtime::LaunchInfo> &
ckopt::run::launchesOf(const runtime::Manifest &m,
                       const runtime::CallInfo &call,
                       const std::vector<std::string> &own) {
  int32_t primitive = m.libraryPrimitive(call);
  return primitive >= 0 && !own[static_cast<size_t>(primitive)].empty()
             ? call.ownLaunches
             : call.launches;
}

/// Returns where the planned bytes of a device's function end: all tensors, and
/// everything that its launches may access. Library workspaces, and what our
/// own kernels in a library's place leave of them, count only with `libraries`,
/// since they need not be used.
static int64_t plannedEnd(const runtime::Manifest &m,
                          const std::string &function,
                          const std::vector<std::string> &own, bool libraries) {
  int64_t end = 0;
  for (const runtime::TensorInfo &t : m.tensors)
    if (t.role != runtime::TensorRole::Output &&
        t.role != runtime::TensorRole::Loss &&
        t.role != runtime::TensorRole::Gradient)
      end = std::max(end, t.offset + t.bytes);
  for (const runtime::CallInfo &call : m.calls) {
    if (m.functions[static_cast<size_t>(call.function)].name != function)
      continue;
    for (const runtime::LaunchInfo &launch : launchesOf(m, call, own)) {
      for (const runtime::LaunchPointer &pointer : launch.pointers)
        end = std::max(end, pointer.offset + pointer.bytes);
      bool whole = m.libraryPrimitive(call) < 0 || libraries;
      int64_t scratch = whole                ? call.workspaceBytes
                        : launch.kernel >= 0 ? call.ownScratchBytes
                                             : 0;
      if (scratch > 0)
        end = std::max(end, call.workspaceOffset + scratch);
    }
  }
  return end;
}

/// Says whose the workspace is that ends behind the last written byte.
static void printIdleWorkspace(const runtime::Manifest &m,
                               const std::string &function,
                               const std::vector<std::string> &own,
                               int64_t written) {
  bool isLibrarys = false, isOwn = false;
  for (const runtime::CallInfo &call : m.calls)
    if (int32_t primitive = m.libraryPrimitive(call);
        primitive >= 0 &&
        m.functions[static_cast<size_t>(call.function)].name == function &&
        call.workspaceOffset + call.workspaceBytes > written)
      (own[static_cast<size_t>(primitive)].empty() ? isLibrarys : isOwn) = true;
  if (isLibrarys)
    std::printf("the bytes between are workspace that a library did not use\n");
  if (isOwn)
    std::printf("the bytes between are %sworkspace of a library in whose place "
                "our own kernels ran\n",
                isLibrarys ? "also " : "");
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
    std::vector<std::string> own = ownKernels(loaded);
    int64_t most = plannedEnd(m, options.function, own, true);
    if (most < planned)
      std::printf("planned for %s %lld\n", options.function.c_str(),
                  static_cast<long long>(most));
    if (peak == most)
      return ExitOk;
    if (peak < most && peak >= plannedEnd(m, options.function, own, false)) {
      printIdleWorkspace(m, options.function, own, peak);
      return ExitOk;
    }
  }
  return complain(ExitInternal, "the step does not use exactly the bytes that "
                                "were planned");
}

/// Says how many products and convolutions libraries run, and why they do not
/// run the others.
static void printLibraries(const Loaded &loaded) {
  const runtime::Manifest &m = loaded.manifest();
  std::vector<std::string> own = ownKernels(loaded);
  std::vector<bool> known(m.primitives.size());
  std::map<std::string, int64_t> reasons;
  int64_t libraries = 0;
  for (const runtime::CallInfo &call : m.calls)
    if (int32_t primitive = m.libraryPrimitive(call);
        primitive >= 0 && !known[static_cast<size_t>(primitive)]) {
      known[static_cast<size_t>(primitive)] = true;
      const std::string &why = own[static_cast<size_t>(primitive)];
      why.empty() ? ++libraries : ++reasons[why];
    }
  if (libraries)
    std::printf("%lld distinct products and convolutions by cuBLASLt and "
                "cuDNN\n",
                static_cast<long long>(libraries));
  for (const auto &[why, count] : reasons)
    std::printf("%lld by our own kernels: %s\n", static_cast<long long>(count),
                why.c_str());
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
  printLibraries(loaded);
  return ExitOk;
}
