//===- Session.cpp - an arena, its primitives, and steps on them ----------===//
//
// Creation does all that a step must not: map the arena, make every library
// primitive with the planned number of threads, check that each needs the
// workspace that was planned for it. Running a step is then one call.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include <algorithm>
#include <cstring>

using namespace ckopt::runtime;

static ckrt_status checkTeam(int32_t threads) {
  TeamScope team(threads, false);
  if (team.delivered == threads)
    return CKRT_OK;
  return fail(CKRT_WRONG_MACHINE,
              "the step was planned for " + std::to_string(threads) +
                  " threads (results depend on it), OpenMP gives " +
                  std::to_string(team.delivered) +
                  ": raise OMP_THREAD_LIMIT, or compile with --threads=" +
                  std::to_string(team.delivered));
}

static ckrt_status makePrimitives(ckrt_session &session) {
  const Manifest &m = session.manifest();
  for (const PrimitiveDesc &desc : m.primitives) {
    std::string error;
    if (!session.env.addPrimitive(desc, error))
      return fail(CKRT_UNSUPPORTED, error);
  }
  // Another oneDNN or CPU may want another workspace than was planned.
  for (const CallInfo &call : m.calls) {
    if (call.primitive < 0)
      continue;
    int64_t needed = session.env.primitives[call.primitive]->workspaceBytes();
    if (needed > call.workspaceBytes)
      return fail(CKRT_WRONG_MACHINE,
                  call.source + " (" + describe(m.primitives[call.primitive]) +
                      ") needs " + std::to_string(needed) +
                      " bytes of workspace here, " +
                      std::to_string(call.workspaceBytes) +
                      " were planned: compile it on this machine");
  }
  return CKRT_OK;
}

static void copyConstants(ckrt_session &session) {
  for (const TensorInfo &t : session.manifest().tensors)
    if (t.dataOffset >= 0) {
      std::memcpy(session.arena->base() + t.offset,
                  session.program.data + t.dataOffset,
                  static_cast<size_t>(t.bytes));
      session.arena->noteWritten(t.offset + t.bytes);
    }
}

ckrt_status ckrt_session_create(ckrt_program *program,
                                const ckrt_session_options *options,
                                ckrt_session **session) {
  if (!program || !session)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_session_create: null argument");
  ckrt_session_options chosen = {sizeof(ckrt_session_options), 0, 0, 0};
  if (options)
    std::memcpy(&chosen, options, std::min(options->size, sizeof(chosen)));
  auto made = std::make_unique<ckrt_session>(*program);
  made->env.threads = program->manifest.threads;
  made->env.keepDenormals = program->manifest.keepDenormals;
  ckrt_status status = checkTeam(made->env.threads);
  if (status == CKRT_OK)
    status = makePrimitives(*made);
  if (status != CKRT_OK)
    return status;
  std::string error;
  made->arena = Arena::create(program->manifest.arenaBytes, error);
  if (!made->arena)
    return fail(CKRT_OUT_OF_MEMORY, error);
  if (chosen.pattern_fill)
    made->arena->fillPattern(chosen.pattern_seed);
  copyConstants(*made);
  if (chosen.count_allocations)
    made->allocations.emplace();
  *session = made.release();
  return CKRT_OK;
}

void ckrt_session_destroy(ckrt_session *session) { delete session; }

static ckrt_status finish(ckrt_session &session, const std::string &function,
                          int32_t code) {
  if (code == 0)
    return CKRT_OK;
  if (code == CKRT_NON_FINITE || code == CKRT_VERIFY)
    return fail(static_cast<ckrt_status>(code), session.checker.failure);
  return fail(CKRT_EXECUTION,
              function + ": " +
                  (session.env.failure.empty()
                       ? "the compiled code returned " + std::to_string(code)
                       : session.env.failure));
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
  ckrt_fn code = session->program.functions[found - functions.begin()];
  TeamScope team(session->env.threads, session->env.keepDenormals);
  if (team.delivered != session->env.threads)
    return fail(CKRT_WRONG_MACHINE,
                "OpenMP gives " + std::to_string(team.delivered) +
                    " threads where the step needs " +
                    std::to_string(session->env.threads) +
                    " (run steps outside of parallel regions)");
  session->env.failure.clear();
  session->env.observer =
      session->checker.active() ? &session->checker : nullptr;
  session->checker.startStep();
  if (session->allocations)
    session->allocations->begin();
  int32_t result = code(&session->env, session->arena->base());
  if (session->allocations)
    session->allocations->end();
  if (result == 0 && !session->arena->frontIntact())
    return fail(CKRT_EXECUTION,
                std::string(function) + ": wrote in front of the arena");
  return finish(*session, function, result);
}

char *ckrt_arena(ckrt_session *session) { return session->arena->base(); }

int64_t ckrt_arena_bytes(const ckrt_session *session) {
  return session->manifest().arenaBytes;
}

ckrt_status ckrt_measured_peak(ckrt_session *session, int64_t *bytes) {
  if (!session || !bytes)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_measured_peak: null argument");
  if (!session->arena->hasPattern())
    return fail(
        CKRT_INVALID_ARGUMENT,
        "ckrt_measured_peak: the session was made without pattern_fill");
  *bytes = session->arena->measure();
  return CKRT_OK;
}

/// What lives from step to step, as sorted disjoint ranges.
static std::vector<ArenaRange> persistentRanges(const Manifest &manifest) {
  std::vector<ArenaRange> ranges;
  for (const TensorInfo &t : manifest.tensors)
    if (t.role != TensorRole::Output && t.role != TensorRole::Gradient &&
        t.role != TensorRole::Loss && t.bytes > 0)
      ranges.push_back({t.offset, t.offset + t.bytes});
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
  if (!session->arena->hasPattern())
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_pattern_refill: the session was "
                                       "made without pattern_fill");
  session->arena->refillPattern(persistentRanges(session->manifest()), seed);
  return CKRT_OK;
}

ckrt_status ckrt_allocations(ckrt_session *session,
                             ckrt_allocation_stats *stats) {
  if (!session || !stats)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_allocations: null argument");
  if (!session->allocations)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_allocations: the session was made "
                                       "without count_allocations");
  ckrt_allocation_stats full = {};
  session->allocations->read(full);
  size_t size = std::min(stats->size, sizeof(full));
  full.size = size;
  std::memcpy(stats, &full, size);
  return CKRT_OK;
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
