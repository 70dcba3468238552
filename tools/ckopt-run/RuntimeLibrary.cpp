//===- RuntimeLibrary.cpp - the runtime that an artifact needs ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: one tool runs both kinds of artifact, and must start even if only
// one of the two libraries can be loaded. Method: neither is linked; the
// functions of ckrt.h that the tool calls are defined here and forwarded to the
// library that was opened, so that callers need not know.
//
//===----------------------------------------------------------------------===//
#include "RuntimeLibrary.h"

#include "ckopt/Runtime/ckrt.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>

static void *library = nullptr;

bool ckopt::run::openRuntime(const std::string &artifact, std::string &error) {
  struct stat info;
  bool folder = stat(artifact.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  const char *name = folder ? "libckopt_cuda.so.1" : "libckopt_runtime.so.1";
  // OpenBLAS, behind the CPU's runtime, asks for 128 MiB of addresses while it
  // is loaded, and where a limit does not give them it asks for ever.
  constexpr size_t blasBytes = size_t(192) << 20;
  void *room =
      mmap(nullptr, blasBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) {
    error = "cannot load the runtime: it needs 192 MiB of address space "
            "(ulimit -v says what the limit is)";
    return false;
  }
  munmap(room, blasBytes);
  // Load the CPU's runtime globally: a compiled step finds the runtime's
  // entries by name. Load the device's locally: NVIDIA's libraries, which are
  // opened later and have a C++ library of their own, must not find symbols in
  // it.
  library = dlopen(name, RTLD_NOW | (folder ? RTLD_LOCAL : RTLD_GLOBAL));
  if (library)
    return true;
  const char *reason = dlerror();
  error = std::string("cannot load the runtime: ") +
          (reason ? reason : "unknown reason");
  return false;
}

static void *find(const char *name) {
  if (void *entry = library ? dlsym(library, name) : nullptr)
    return entry;
  std::fprintf(stderr,
               "ckopt-run: error: the runtime has no entry %s: the tool and "
               "its libraries are of different releases\n",
               name);
  std::exit(70);
}

// Each definition calls the entry of the same name; the address is looked up
// once.
#define CKOPT_FORWARD(type, name, parameters, arguments)                       \
  type name parameters {                                                       \
    static auto entry = reinterpret_cast<decltype(&name)>(find(#name));        \
    return entry arguments;                                                    \
  }

CKOPT_FORWARD(const char *, ckrt_last_error, (), ())
CKOPT_FORWARD(ckrt_status, ckrt_program_load_file,
              (const char *path, ckrt_program **program), (path, program))
CKOPT_FORWARD(void, ckrt_program_destroy, (ckrt_program * program), (program))
CKOPT_FORWARD(const void *, ckrt_program_manifest,
              (const ckrt_program *program), (program))
CKOPT_FORWARD(ckrt_status, ckrt_session_create,
              (ckrt_program * program, const ckrt_session_options *options,
               ckrt_session **session),
              (program, options, session))
CKOPT_FORWARD(void, ckrt_session_destroy, (ckrt_session * session), (session))
CKOPT_FORWARD(ckrt_status, ckrt_run,
              (ckrt_session * session, const char *function),
              (session, function))
CKOPT_FORWARD(ckrt_status, ckrt_synchronize, (ckrt_session * session),
              (session))
CKOPT_FORWARD(ckrt_status, ckrt_time_launches,
              (ckrt_session * session, const char *function, int32_t launches,
               int32_t replays, ckrt_launch_hook hook, void *user),
              (session, function, launches, replays, hook, user))
CKOPT_FORWARD(ckrt_status, ckrt_library_choices,
              (ckrt_session * session, ckrt_library_hook hook, void *user),
              (session, hook, user))
CKOPT_FORWARD(ckrt_status, ckrt_init_parameters,
              (ckrt_session * session, uint64_t seed), (session, seed))
CKOPT_FORWARD(int64_t, ckrt_arena_bytes, (const ckrt_session *session),
              (session))
CKOPT_FORWARD(int64_t, ckrt_tensor_find_in,
              (const ckrt_session *session, const char *function,
               const char *name),
              (session, function, name))
CKOPT_FORWARD(const char *, ckrt_tensor_name,
              (const ckrt_session *session, int64_t tensor), (session, tensor))
CKOPT_FORWARD(int64_t, ckrt_tensor_rank,
              (const ckrt_session *session, int64_t tensor), (session, tensor))
CKOPT_FORWARD(const int64_t *, ckrt_tensor_shape,
              (const ckrt_session *session, int64_t tensor), (session, tensor))
CKOPT_FORWARD(ckrt_status, ckrt_tensor_write,
              (ckrt_session * session, int64_t tensor, const void *data,
               ckrt_dtype dtype, int64_t elements),
              (session, tensor, data, dtype, elements))
CKOPT_FORWARD(ckrt_status, ckrt_tensor_read,
              (ckrt_session * session, int64_t tensor, void *data,
               ckrt_dtype dtype, int64_t elements),
              (session, tensor, data, dtype, elements))
CKOPT_FORWARD(ckrt_status, ckrt_tensor_fill,
              (ckrt_session * session, int64_t tensor, double value),
              (session, tensor, value))
CKOPT_FORWARD(ckrt_status, ckrt_measured_peak,
              (ckrt_session * session, int64_t *bytes), (session, bytes))
CKOPT_FORWARD(ckrt_status, ckrt_pattern_refill,
              (ckrt_session * session, uint64_t seed), (session, seed))
CKOPT_FORWARD(ckrt_status, ckrt_allocations,
              (ckrt_session * session, ckrt_allocation_stats *stats),
              (session, stats))
CKOPT_FORWARD(ckrt_status, ckrt_world_open, (double timeout), (timeout))
CKOPT_FORWARD(ckrt_status, ckrt_world_open_nccl,
              (const char *file, int32_t rank, int32_t ranks, double timeout),
              (file, rank, ranks, timeout))
CKOPT_FORWARD(const char *, ckrt_rank_devices, (ckrt_session * session),
              (session))
CKOPT_FORWARD(int32_t, ckrt_world_rank, (), ())
CKOPT_FORWARD(int32_t, ckrt_world_size, (), ())
CKOPT_FORWARD(ckrt_status, ckrt_world_compare,
              (uint64_t number, const char *what), (number, what))
CKOPT_FORWARD(ckrt_status, ckrt_world_gather,
              (const void *own, int64_t bytes, void *all), (own, bytes, all))
CKOPT_FORWARD(void, ckrt_world_abort, (int32_t code), (code))
CKOPT_FORWARD(void, ckrt_world_close, (), ())
CKOPT_FORWARD(ckrt_status, ckrt_device,
              (ckrt_session * session, ckrt_device_report *report),
              (session, report))
