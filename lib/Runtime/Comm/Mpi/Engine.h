//===- Engine.h - the interface that carries messages -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between the runtime and libckopt_mpi, which is opened if a run
// has several ranks. One table of functions is its only symbol. All calls come
// from one thread. Functions return null, or the reason of a failure.
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
  /// Connects to the other processes; others may use MPI already.
  const char *(*start)(int32_t &rank, int32_t &size);
  /// Start a message of `bytes`, below 2 GiB; the engine uses the buffer until
  /// test() says that the request is done.
  const char *(*send)(const void *data, int64_t bytes, int32_t to,
                      int32_t &request);
  const char *(*receive)(void *data, int64_t bytes, int32_t from,
                         int32_t &request);
  const char *(*test)(int32_t request, bool &done);
  /// Cancels a receive; kHasLeft if it was the last one from its peer.
  const char *(*cancel)(int32_t request);
  /// False once others have finalized MPI: nothing else may be called then.
  bool (*alive)();
  void (*abort)(int code);
  void (*finish)();
  /// Whether the last messages say that a rank leaves; otherwise the end of its
  /// process does.
  bool saysFarewell;
  /// Tells all others that this process waits for a rank, or works (kWorks);
  /// null: the engine cannot do this.
  void (*beat)(int32_t waitsFor);
  /// Takes a report of another process; false: there is none.
  bool (*heard)(int32_t &from, int32_t &waitsFor);
};

inline constexpr uint32_t kEngineVersion = 4;
/// A rank's report if it waits for none.
inline constexpr int32_t kWorks = -1;
/// The reason why no message comes from a rank that closed its world.
inline constexpr const char kHasLeft[] =
    "has left the run; its own message says why, if it had a reason";
/// The begin of the reason for a message of an unexpected size.
inline constexpr const char kOtherSize[] = "sent ";
/// The message that a leaving rank sends to each other one: no other message is
/// as short.
inline constexpr int64_t kLeavingBytes = 1;

inline constexpr const char *kMpiLibrary = "libckopt_mpi.so.1";
inline constexpr const char *kEngineSymbol = "ckopt_engine";

/// Opens the engine of the MPI that is here; null with the reason.
const MessageEngine *openMpiEngine(std::string &error);

} // namespace ckopt::runtime

extern "C" CKRT_EXPORT const ckopt::runtime::MessageEngine ckopt_engine;

#endif // CKOPT_LIB_RUNTIME_COMM_MPI_ENGINE_H
