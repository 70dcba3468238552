//===- CpuBackend.cpp - an arena in host memory, and steps on it ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The constructor does all work that a step must not do: it maps the arena,
// makes every library primitive with the planned number of threads, and checks
// that each needs the workspace that was planned for it. Running a step is then
// one call.
//
//===----------------------------------------------------------------------===//
#include "Arena.h"
#include "Core/Env.h"
#include "Core/Session.h"
#include "allocations/AllocationHook.h"
#include "ckopt/Runtime/World.h"

#include <algorithm>
#include <dlfcn.h>
#include <utility>

using namespace ckopt::runtime;

/// A step of several ranks would wait for ever for ranks that there are not.
static ckrt_status checkWorld(const Manifest &m) {
  for (const PrimitiveDesc &desc : m.primitives) {
    World *world = World::current();
    int64_t here = world ? world->size() : 1;
    int64_t ranks = desc.allReduce.ranks * desc.allReduce.groups;
    if (isOfRanks(desc.kind) && ranks != here)
      return fail(CKRT_WRONG_MACHINE,
                  "the step is one of " + std::to_string(ranks) +
                      " ranks, and here " +
                      (world ? "are " + std::to_string(here)
                             : std::string("is one process alone")) +
                      ": mpirun starts that many, of ckopt-run, ckopt train "
                      "or a program with the option parallel");
  }
  return CKRT_OK;
}

/// Computes a primitive in another form, whose workspace fits: with an open
/// size, that of the largest was planned, and a library may need more for a
/// smaller one.
static bool useOtherForm(PrimitiveDesc desc, const CallInfo &call,
                         ckrt_env &env) {
  for (LibraryForm form : {LibraryForm::InPlace, LibraryForm::Default,
                           LibraryForm::Convolution, LibraryForm::OpenBlas}) {
    std::string ignored;
    desc.form = form;
    auto made = Primitive::create(desc, env.threads, ignored);
    if (!made || made->workspaceBytes() > call.workspaceBytes)
      continue;
    env.primitives[static_cast<size_t>(call.primitive)] = made.get();
    env.owned.push_back(std::move(made));
    env.ownedDescs.push_back(desc);
    return true;
  }
  return false;
}

static ckrt_status makePrimitives(const Manifest &m, ckrt_env &env) {
  if (ckrt_status status = checkWorld(m))
    return status;
  for (const PrimitiveDesc &desc : m.primitives) {
    std::string error;
    if (!env.addPrimitive(desc, error))
      return fail(CKRT_UNSUPPORTED, error);
  }
  // Another version of oneDNN, or another CPU, may need more workspace than
  // planned.
  for (const CallInfo &call : m.calls) {
    if (call.primitive < 0)
      continue;
    int64_t needed = env.primitives[call.primitive]->workspaceBytes();
    if (needed > call.workspaceBytes && m.open.size < m.open.high &&
        useOtherForm(m.primitives[call.primitive], call, env))
      continue;
    if (needed > call.workspaceBytes)
      return fail(
          CKRT_WRONG_MACHINE,
          call.source + " (" + describe(m.primitives[call.primitive]) +
              ") needs " + std::to_string(needed) +
              " bytes of workspace here, " +
              std::to_string(call.workspaceBytes) + " were planned: " +
              (m.open.size < m.open.high
                   ? "compile it for a size of " + std::to_string(m.open.size)
                   : "compile it on this machine"));
  }
  return CKRT_OK;
}

namespace {

class CpuBackend final : public Backend {
public:
  explicit CpuBackend(ckrt_program &program) : program(program) {}
  ~CpuBackend() override {
    if (hook)
      hook->stop();
  }
  ckrt_status create(const ckrt_session_options &options);

  ckrt_status open(const TensorInfo &tensor, Access access,
                   char *&bytes) override {
    bytes = memory->base() + tensor.offset;
    if (access != Access::Read)
      claim();
    const ArenaRange range = {tensor.offset, tensor.offset + tensor.bytes};
    access == Access::Write ? memory->give(range) : memory->fill(range);
    return CKRT_OK;
  }
  ckrt_status read(const TensorInfo &tensor, int64_t begin, int64_t size,
                   const char *&bytes) override {
    begin += tensor.offset;
    memory->fill({begin, begin + size});
    bytes = memory->base() + begin;
    return CKRT_OK;
  }
  bool returnsToArena() override {
    claim();
    return std::exchange(lostConstants, false);
  }
  ckrt_status close(const TensorInfo &tensor, Access access) override {
    if (access != Access::Read)
      memory->noteWritten(tensor.offset + tensor.bytes);
    return CKRT_OK;
  }
  ckrt_status run(size_t function, CallChecker &checker) override;
  ckrt_status synchronize() override { return CKRT_OK; }
  int64_t rank() const override {
    World *world = World::current();
    return world ? world->rank() : 0;
  }
  char *arena() override {
    memory->fillAll();
    return memory->base();
  }
  bool hasPattern() const override { return memory->hasPattern(); }
  ckrt_status measure(int64_t &bytes) override {
    bytes = memory->measure();
    return CKRT_OK;
  }
  ckrt_status refill(const std::vector<ArenaRange> &keep,
                     uint64_t seed) override {
    memory->refillPattern(keep, seed);
    return CKRT_OK;
  }
  ckrt_status allocations(ckrt_allocation_stats &stats) override;
  ckrt_status deviceReport(ckrt_device_report &) override {
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_device: the step runs on the CPU, on no device");
  }

private:
  ckrt_status joinArena(ckrt_session &other);
  void claim() {
    lostConstants |= memory->user && memory->user != this;
    memory->user = this;
  }

  ckrt_program &program;
  ckrt_env env;
  std::shared_ptr<Arena> memory; ///< may be of several sessions
  bool lostConstants = false;
  const AllocationHook *hook = nullptr;
};

/// Opens the library that counts allocations, which lies beside this one, for
/// the rest of the process: other code's calls may pass through it as long as
/// any session lives.
ckrt_status startAllocationHook(const AllocationHook *&hook) {
  void *library =
      dlopen(kAllocationLibrary, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  const char *why = library ? nullptr : dlerror();
  if (library) {
    hook =
        static_cast<const AllocationHook *>(dlsym(library, kAllocationSymbol));
    why = hook ? hook->start() : "it is of another release";
  }
  if (!why)
    return CKRT_OK;
  hook = nullptr;
  return fail(CKRT_UNSUPPORTED, std::string("cannot count allocations by ") +
                                    kAllocationLibrary + ": " + why);
}

} // namespace

/// Tells whether a tensor outlives steps, and is no constant.
static bool outlivesSteps(const TensorInfo &tensor) {
  return tensor.role == TensorRole::Parameter ||
         tensor.role == TensorRole::Frozen ||
         tensor.role == TensorRole::State ||
         tensor.role == TensorRole::OptimizerState;
}

/// Returns the first tensor of `a` that outlives steps and is not the same in
/// `b`; null: there is none.
static const TensorInfo *findOther(const Manifest &a, const Manifest &b) {
  for (const TensorInfo &t : a.tensors) {
    auto same = [&](const TensorInfo &o) {
      return o.name == t.name && o.role == t.role && o.dtype == t.dtype &&
             o.shape == t.shape && o.strides == t.strides &&
             o.offset == t.offset && o.shards == t.shards;
    };
    if (outlivesSteps(t) &&
        std::none_of(b.tensors.begin(), b.tensors.end(), same))
      return &t;
  }
  return nullptr;
}

ckrt_status CpuBackend::joinArena(ckrt_session &session) {
  auto *other = dynamic_cast<CpuBackend *>(session.backend.get());
  const Manifest &own = program.manifest;
  if (!other)
    return fail(CKRT_INVALID_ARGUMENT,
                "arena_of: sessions of devices have arenas of their own");
  const TensorInfo *differs = findOther(own, session.manifest());
  if (!differs)
    differs = findOther(session.manifest(), own);
  if (differs)
    return fail(
        CKRT_INVALID_ARGUMENT,
        "arena_of: '" + differs->name +
            "' is not the same in both steps, or not at the same place");
  if (own.arenaBytes > other->memory->bytes())
    return fail(CKRT_INVALID_ARGUMENT,
                "arena_of: the step needs an arena of " +
                    std::to_string(own.arenaBytes) + " bytes, the other has " +
                    std::to_string(other->memory->bytes()) +
                    ": make the step with the largest shapes first");
  memory = other->memory;
  return CKRT_OK;
}

ckrt_status CpuBackend::create(const ckrt_session_options &options) {
  const Manifest &m = program.manifest;
  env.threads = m.threads;
  env.keepDenormals = m.keepDenormals;
  env.openSize = m.open.size;
  if (ckopt::MessageText refusal = refusesTeam(env.threads); !refusal.empty())
    return fail(CKRT_WRONG_MACHINE, "the step was planned for " + refusal);
  if (ckrt_status status = makePrimitives(m, env); status != CKRT_OK)
    return status;
  if (options.arena_of) {
    if (ckrt_status status = joinArena(*options.arena_of))
      return status;
  } else {
    std::string error;
    memory = Arena::create(m.arenaBytes, error);
    if (!memory)
      return fail(CKRT_OUT_OF_MEMORY, error);
    if (options.pattern_fill)
      memory->fillPattern(options.pattern_seed);
  }
  return options.count_allocations ? startAllocationHook(hook) : CKRT_OK;
}

ckrt_status CpuBackend::run(size_t function, CallChecker &checker) {
  const std::string &name = program.manifest.functions[function].name;
  TeamScope team(env.threads, env.keepDenormals);
  if (team.delivered != env.threads)
    return fail(CKRT_WRONG_MACHINE,
                "OpenMP gives " + std::to_string(team.delivered) +
                    " threads where the step needs " +
                    std::to_string(env.threads) +
                    " (run steps outside of parallel regions)");
  env.failure.clear();
  env.observer = checker.active() ? &checker : nullptr;
  checker.startStep();
  memory->fillAll();
  if (hook)
    hook->begin();
  int32_t code = program.functions[function](&env, memory->base());
  if (World *world = World::current(); world && code != 0)
    world->drain(); // what was begun still writes to the arena
  if (hook)
    hook->end();
  if (code == CKRT_NON_FINITE || code == CKRT_VERIFY)
    return fail(static_cast<ckrt_status>(code), checker.failure);
  if (code == CKRT_RANK) // the message is about another process
    return fail(CKRT_RANK, env.failure);
  if (code != 0)
    return fail(CKRT_EXECUTION,
                name + ": " +
                    (env.failure.empty()
                         ? "the compiled code returned " + std::to_string(code)
                         : env.failure));
  if (!memory->frontIntact())
    return fail(CKRT_EXECUTION, name + ": wrote in front of the arena");
  return CKRT_OK;
}

ckrt_status CpuBackend::allocations(ckrt_allocation_stats &stats) {
  if (!hook)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_allocations: the session was made "
                                       "without count_allocations");
  hook->read(stats);
  return CKRT_OK;
}

std::unique_ptr<Backend>
ckopt::runtime::makeCpuBackend(ckrt_program &program,
                               const ckrt_session_options &options,
                               ckrt_status &status) {
  auto backend = std::make_unique<CpuBackend>(program);
  status = backend->create(options);
  return status == CKRT_OK ? std::move(backend) : nullptr;
}
