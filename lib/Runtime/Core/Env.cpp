//===- Env.cpp - threads and floating-point mode of a step ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: one parallel-for drives every generated kernel, beside libraries
// that bring their own parallel regions; bits must not depend on which thread
// runs what, and denormals must cost nothing. Method: libgomp's team of the
// calling thread, always of the planned size (a smaller region would make it
// stop threads and start them again); contiguous ranges whose bounds are
// multiples of the kernel's grain, so that a kernel that reduces inside a grain
// sees the same chunks with any number of threads; the control word of SSE set
// on every thread that computes. Nothing is allocated.
//
//===----------------------------------------------------------------------===//
#include "Env.h"
#include "Cpu/OpenMP.h"
#include "ckopt/Base/Philox.h"
#include "ckopt/Base/Thread.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <xmmintrin.h>

using namespace ckopt::runtime;

namespace {

constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;

/// A parallel loop; it lies on its caller's stack.
struct Loop {
  ckrt_kernel kernel;
  void *const *args;
  const int64_t *scalars;
  void *scratch;
  int64_t trip, grain;
  int64_t ranges;   ///< number of contiguous ranges
  int64_t perRange; ///< grains in each, plus one in the first `extra`
  int64_t extra;
  unsigned mode;

  void runRange(int64_t range) const {
    int64_t first = range * perRange + std::min(range, extra);
    int64_t count = perRange + (range < extra ? 1 : 0);
    int64_t begin = first * grain;
    int64_t end = std::min(trip, (first + count) * grain);
    if (begin < end)
      kernel(args, scalars, begin, end, scratch);
  }
};

void loopBody(void *data) {
  auto *loop = static_cast<Loop *>(data);
  unsigned saved = _mm_getcsr();
  _mm_setcsr(loop->mode);
  // A team smaller than requested must still cover every range.
  int64_t team = omp_get_num_threads();
  for (int64_t r = omp_get_thread_num(); r < loop->ranges; r += team)
    loop->runRange(r);
  _mm_setcsr(saved);
}

struct Team {
  unsigned mode;
  std::atomic<int32_t> count{0};
};

void joinTeam(void *data) {
  auto *team = static_cast<Team *>(data);
  _mm_setcsr(team->mode);
  team->count.fetch_add(1, std::memory_order_relaxed);
}

} // namespace

unsigned ckopt::runtime::floatMode(bool keepDenormals) {
  unsigned mode = _mm_getcsr() & ~(kFlushToZero | kDenormalsAreZero);
  return keepDenormals ? mode : mode | kFlushToZero | kDenormalsAreZero;
}

TeamScope::TeamScope(int32_t threads, bool keepDenormals)
    : savedMode(_mm_getcsr()), savedThreads(omp_get_max_threads()),
      savedDynamic(omp_get_dynamic()) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads); // OpenBLAS asks OpenMP at every call
  // Worker threads keep their mode between regions, so the libraries' regions
  // run in it as well.
  Team team{floatMode(keepDenormals)};
  GOMP_parallel(joinTeam, &team, static_cast<unsigned>(threads), 0);
  delivered = team.count.load();
}

TeamScope::~TeamScope() {
  // Restore the mode for other code that shares these threads.
  Team team{savedMode};
  GOMP_parallel(joinTeam, &team, static_cast<unsigned>(delivered), 0);
  _mm_setcsr(savedMode);
  omp_set_num_threads(savedThreads);
  omp_set_dynamic(savedDynamic);
}

/// Returns 0, or why so many threads cannot be made at once (errno).
static int probeThreads(int32_t threads) {
  std::mutex waits;
  std::unique_lock lock(waits);
  std::vector<ckopt::Thread> probes(size_t(std::max(threads, 1) - 1));
  int code = 0;
  for (ckopt::Thread &probe : probes)
    if ((code = probe.start([&] { std::lock_guard until(waits); })) != 0)
      break;
  lock.unlock();
  return code;
}

ckopt::MessageText ckopt::runtime::refusesTeam(int32_t threads) {
  std::string number = std::to_string(threads) + " threads";
  if (int code = probeThreads(threads))
    return number + ", which cannot be made (" + std::strerror(code) +
           "): raise the limit of processes (ulimit -u, a container's "
           "pids.max), or compile with fewer " +
           ckopt::Setting("threads");
  TeamScope team(threads, false);
  if (team.delivered == threads)
    return "";
  std::string given = std::to_string(team.delivered);
  return number + " (results depend on it), OpenMP gives " + given +
         ": raise OMP_THREAD_LIMIT, or compile with " +
         ckopt::Setting("threads", given);
}

bool ckrt_env::addPrimitive(const PrimitiveDesc &desc, std::string &error) {
  for (size_t i = 0; i < ownedDescs.size(); ++i)
    if (ownedDescs[i] == desc) {
      primitives.push_back(owned[i].get());
      return true;
    }
  auto primitive = Primitive::create(desc, threads, error);
  if (!primitive)
    return false;
  primitives.push_back(primitive.get());
  owned.push_back(std::move(primitive));
  ownedDescs.push_back(desc);
  return true;
}

//===----------------------------------------------------------------------===//
// C interface
//===----------------------------------------------------------------------===//

void ckrt_parallel_for(const ckrt_env *env, ckrt_kernel kernel,
                       void *const *args, const int64_t *scalars, int64_t trip,
                       int64_t grain, void *scratch) {
  if (trip <= 0)
    return;
  grain = std::max<int64_t>(grain, 1);
  int64_t grains = trip / grain + (trip % grain != 0);
  int64_t ranges = std::min<int64_t>(env->threads, grains);
  Loop loop{kernel,
            args,
            scalars,
            scratch,
            trip,
            grain,
            ranges,
            grains / ranges,
            grains % ranges,
            floatMode(env->keepDenormals)};
  if (ranges == 1) {
    unsigned saved = _mm_getcsr();
    _mm_setcsr(loop.mode);
    loop.runRange(0);
    _mm_setcsr(saved);
    return;
  }
  GOMP_parallel(loopBody, &loop, static_cast<unsigned>(env->threads), 0);
}

int32_t ckrt_execute(const ckrt_env *env, int64_t index, void *const *args,
                     void *workspace) {
  if (index < 0 || static_cast<size_t>(index) >= env->primitives.size()) {
    env->failure = "no primitive " + std::to_string(index) +
                   " in this artifact (its code and manifest disagree)";
    return CKRT_BAD_ARTIFACT;
  }
  // A primitive only works with the number of threads that it was made for.
  omp_set_num_threads(env->threads);
  if (env->primitives[index]->execute(args, workspace, env->failure))
    return 0;
  return env->primitives[index]->failure();
}

int64_t ckrt_open_size(const ckrt_env *env) { return env->openSize; }

int32_t ckrt_call_done(const ckrt_env *env, int64_t call, char *arena) {
  return env->observer ? env->observer->callDone(call, arena) : 0;
}

void ckrt_philox4x32_10(const uint32_t counter[4], const uint32_t key[2],
                        uint32_t out[4]) {
  ckopt::PhiloxCounter words = ckopt::philox4x32(
      {counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]});
  std::copy(words.begin(), words.end(), out);
}

float ckrt_dropout_uniform(uint64_t seed, uint64_t step, uint64_t site,
                           uint64_t element) {
  uint64_t group = element / 4;
  ckopt::PhiloxCounter words = ckopt::philox4x32(
      {uint32_t(group), uint32_t(group >> 32), uint32_t(step), uint32_t(site)},
      {uint32_t(seed), uint32_t(seed >> 32)});
  return ckopt::uniform24(words[element % 4]);
}

ckrt_env *ckrt_env_create(int32_t threads, int32_t keep_denormals) {
  if (threads < 1)
    return nullptr;
  auto *env = new ckrt_env;
  env->threads = threads;
  env->keepDenormals = keep_denormals != 0;
  return env;
}

ckrt_status ckrt_env_add_primitive(ckrt_env *env, const void *desc,
                                   int64_t *index) {
  if (!env || !desc || !index)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_env_add_primitive: null argument");
  std::string error;
  if (!env->addPrimitive(*static_cast<const PrimitiveDesc *>(desc), error))
    return fail(CKRT_UNSUPPORTED, error);
  *index = static_cast<int64_t>(env->primitives.size()) - 1;
  return CKRT_OK;
}

int32_t ckrt_env_run(ckrt_env *env, ckrt_fn fn, char *arena) {
  TeamScope team(env->threads, env->keepDenormals);
  env->failure.clear();
  int32_t status = fn(env, arena);
  if (status != 0)
    fail(static_cast<ckrt_status>(status), env->failure);
  return status;
}

void ckrt_env_destroy(ckrt_env *env) { delete env; }
