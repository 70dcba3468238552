//===- Engine.h - what carries messages between processes -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the runtime and libckopt_mpi, which is opened where a
// run has several ranks. One table of functions is its only symbol. All calls
// come from one thread. Functions return null, or why they failed.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COMM_MPI_ENGINE_H
#define CKOPT_LIB_RUNTIME_COMM_MPI_ENGINE_H

#include "ckopt/Runtime/Export.h"

#include <cstdint>
#include <string>

namespace ckopt::runtime {

struct MessageEngine {
  uint32_t version;
  /// Meets the other processes; MPI may be in use by others already.
  const char *(*start)(int32_t &rank, int32_t &size);
  /// Begin a message of `bytes`, below 2 GiB; the buffer is the engine's until
  /// test() says that the request is done.
  const char *(*send)(const void *data, int64_t bytes, int32_t to,
                      int32_t &request);
  const char *(*receive)(void *data, int64_t bytes, int32_t from,
                         int32_t &request);
  const char *(*test)(int32_t request, bool &done);
  /// Takes a receive back; kHasLeft if it was the last one from its peer.
  const char *(*cancel)(int32_t request);
  /// False once others have finalized MPI: nothing else may be called then.
  bool (*alive)();
  void (*abort)(int code);
  void (*finish)();
  /// Whether the last messages say that a rank leaves; else its process's end
  /// does.
  bool saysFarewell;
  /// Tells all others what this process does: it waits for a rank, or works
  /// (kWorks); null: the engine has no way.
  void (*beat)(int32_t waitsFor);
  /// Takes what another process told; false: nothing more has come.
  bool (*heard)(int32_t &from, int32_t &waitsFor);
};

inline constexpr uint32_t kEngineVersion = 4;
/// What a rank that waits for none tells the others.
inline constexpr int32_t kWorks = -1;
/// Why a message from a rank that closed its world does not come.
inline constexpr const char kHasLeft[] =
    "has left the run; its own message says why, if it had a reason";
/// How the reason begins where a message has another size than expected.
inline constexpr const char kOtherSize[] = "sent ";
/// What a rank sends to each other one when it leaves: no other message is as
/// short.
inline constexpr int64_t kLeavingBytes = 1;

inline constexpr const char *kMpiLibrary = "libckopt_mpi.so.1";
inline constexpr const char *kEngineSymbol = "ckopt_engine";

/// Opens the engine of the MPI that is here; null with the reason.
const MessageEngine *openMpiEngine(std::string &error);

} // namespace ckopt::runtime

extern "C" CKRT_EXPORT const ckopt::runtime::MessageEngine ckopt_engine;

#endif // CKOPT_LIB_RUNTIME_COMM_MPI_ENGINE_H
