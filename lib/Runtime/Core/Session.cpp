//===- Session.cpp - programs' sessions behind the C interface ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the backend that the manifest names, initializes tensors with data,
// and forwards every call to the backend, which knows how memory is accessed
// and how a step runs.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;

/// Writes the tensors that have data; with `again` those alone that no step
/// changes.
static ckrt_status copyData(ckrt_session &session, bool again) {
  for (const TensorInfo &t : session.manifest().tensors) {
    if (t.dataOffset < 0 || t.bytes == 0 ||
        (again && t.role != TensorRole::Constant))
      continue;
    OpenTensor open(session, t, Access::Write);
    if (open.status != CKRT_OK)
      return open.status;
    std::memcpy(open.bytes,
                session.program.data + t.dataOffsetOf(session.backend->rank()),
                static_cast<size_t>(t.bytes));
    if (ckrt_status status = open.close())
      return status;
  }
  return CKRT_OK;
}

ckrt_status ckrt_session_create(ckrt_program *program,
                                const ckrt_session_options *options,
                                ckrt_session **session) {
  if (!program || !session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_session_create: null argument");
  ckrt_session_options chosen = {};
  if (options)
    std::memcpy(&chosen, options, std::min(options->size, sizeof(chosen)));
  chosen.size = sizeof(chosen);
  auto made = std::make_unique<ckrt_session>(*program);
  ckrt_status status = CKRT_OK;
  made->backend = program->manifest.target == Target::Cuda
                      ? makeCudaBackend(*program, chosen, status)
                      : makeCpuBackend(*program, chosen, status);
  if (made->backend)
    status = copyData(*made, /*again=*/chosen.arena_of != nullptr);
  if (status != CKRT_OK)
    return status;
  *session = made.release();
  return CKRT_OK;
}

void ckrt_session_destroy(ckrt_session *session) { delete session; }

/// Makes copies of weights again, if these may have changed.
static ckrt_status refreshCopies(ckrt_session &session) {
  WeightCopies &copies = session.backend->copies;
  if (!copies.isStale())
    return CKRT_OK;
  const auto &functions = session.manifest().functions;
  for (size_t f = 0; f < functions.size(); ++f)
    if (functions[f].name == "refresh") {
      CallChecker none(session.manifest());
      if (ckrt_status status = session.backend->run(f, none))
        return status;
    }
  copies.refreshed();
  return CKRT_OK;
}

ckrt_status ckrt_run(ckrt_session *session, const char *function) {
  if (!session || !function)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_run: null argument");
  const auto &functions = session->manifest().functions;
  auto found =
      std::find_if(functions.begin(), functions.end(),
                   [&](const FunctionInfo &f) { return f.name == function; });
  if (found == functions.end())
    return fail(CKRT_NOT_FOUND,
                std::string("the artifact has no function ") + function);
  if (session->backend->returnsToArena())
    if (ckrt_status status = copyData(*session, /*again=*/true))
      return status;
  if (ckrt_status status = refreshCopies(*session))
    return status;
  return session->backend->run(static_cast<size_t>(found - functions.begin()),
                               session->checker);
}

ckrt_status ckrt_synchronize(ckrt_session *session) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_synchronize: no session");
  return session->backend->synchronize();
}

char *ckrt_arena(ckrt_session *session) { return session->backend->arena(); }

int64_t ckrt_arena_bytes(const ckrt_session *session) {
  return session->manifest().arenaBytes;
}

ckrt_status ckrt_measured_peak(ckrt_session *session, int64_t *bytes) {
  if (!session || !bytes)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_measured_peak: null argument");
  if (!session->backend->hasPattern())
    return fail(
        CKRT_INVALID_ARGUMENT,
        "ckrt_measured_peak: the session was made without pattern_fill");
  return session->backend->measure(*bytes);
}

/// Returns the bytes that live from step to step, as sorted disjoint ranges.
static std::vector<ArenaRange> persistentRanges(const Manifest &manifest) {
  std::vector<ArenaRange> ranges;
  for (const TensorInfo &t : manifest.tensors)
    if (t.role != TensorRole::Output && t.role != TensorRole::Gradient &&
        t.role != TensorRole::Loss && t.bytes > 0)
      ranges.push_back({t.offset, t.offset + t.bytes});
  if (const DeviceInfo &device = manifest.device; device.fedShift)
    ranges.push_back(
        {device.fedBegin + device.fedShift, device.fedEnd + device.fedShift});
  std::sort(ranges.begin(), ranges.end(),
            [](const ArenaRange &a, const ArenaRange &b) {
              return a.begin < b.begin;
            });
  std::vector<ArenaRange> merged;
  for (const ArenaRange &range : ranges)
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  return merged;
}

ckrt_status ckrt_pattern_refill(ckrt_session *session, uint64_t seed) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_pattern_refill: null argument");
  if (!session->backend->hasPattern())
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_pattern_refill: the session was "
                                       "made without pattern_fill");
  return session->backend->refill(persistentRanges(session->manifest()), seed);
}

ckrt_status ckrt_allocations(ckrt_session *session,
                             ckrt_allocation_stats *stats) {
  if (!session || !stats)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_allocations: null argument");
  ckrt_allocation_stats full = {};
  if (ckrt_status status = session->backend->allocations(full))
    return status;
  size_t size = std::min(stats->size, sizeof(full));
  full.size = size;
  std::memcpy(stats, &full, size);
  return CKRT_OK;
}

ckrt_status ckrt_device(ckrt_session *session, ckrt_device_report *report) {
  if (!session || !report)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_device: null argument");
  ckrt_device_report full = {};
  if (ckrt_status status = session->backend->deviceReport(full))
    return status;
  size_t size = std::min(report->size, sizeof(full));
  full.size = size;
  std::memcpy(report, &full, size);
  return CKRT_OK;
}

const char *ckrt_rank_devices(ckrt_session *session) {
  static thread_local std::string text;
  text = session ? session->backend->rankDevices() : "";
  return text.c_str();
}

ckrt_status ckrt_time_launches(ckrt_session *session, const char *function,
                               int32_t launches, int32_t replays,
                               ckrt_launch_hook hook, void *user) {
  if (!session || !function || !hook || launches < 1 || replays < 1)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_time_launches: wrong argument");
  const auto &functions = session->manifest().functions;
  for (size_t f = 0; f < functions.size(); ++f)
    if (functions[f].name == function)
      return session->backend->timeLaunches(f, {launches, replays, hook, user});
  return fail(CKRT_NOT_FOUND,
              std::string("the artifact has no function ") + function);
}

ckrt_status ckrt_library_choices(ckrt_session *session, ckrt_library_hook hook,
                                 void *user) {
  if (!session || !hook)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_library_choices: wrong argument");
  return session->backend->libraryChoices(hook, user);
}

ckrt_status ckrt_set_check_finite(ckrt_session *session, int on) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_set_check_finite: no session");
  session->checker.checkFinite = on != 0;
  return CKRT_OK;
}

ckrt_status ckrt_set_verify_remat(ckrt_session *session, int on, int keep) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_set_verify_remat: no session");
  session->checker.verify = on != 0;
  session->checker.keep = keep != 0;
  return CKRT_OK;
}

ckrt_status ckrt_set_profile(ckrt_session *session, ckrt_profile_hook hook,
                             void *user) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_set_profile: no session");
  session->checker.hook = hook;
  session->checker.user = user;
  return CKRT_OK;
}
