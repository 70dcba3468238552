//===- Flights.h - messages that overlap kernels ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that exchange messages have their own stream, so that they overlap the
// kernels of the step's stream. A call that starts a collective waits, by an
// event, for the work of the step's stream so far; the call that waits for the
// collective makes the step's stream wait for its end. If the step's stream is
// captured, events become edges of the graph. All such calls are on this one
// stream in the order of the step, which is the same on all ranks.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_FLIGHTS_H
#define CKOPT_LIB_RUNTIME_CUDA_FLIGHTS_H

#include "Driver.h"

#include "ckopt/Runtime/Manifest.h"

#include <vector>

namespace ckopt::runtime::cuda {

class Flights {
public:
  Flights(const Driver &cuda, const Manifest &manifest)
      : cuda(cuda), manifest(manifest) {}
  ~Flights();
  Flights(const Flights &) = delete;
  Flights &operator=(const Flights &) = delete;

  /// Makes the stream and the events; none for a step of one process. The
  /// context must be current, also in the destructor.
  Result create();
  /// Returns the stream for a call's launches.
  Stream streamOf(size_t call, Stream step) const;
  /// Returns whether events come before a call's launches, or after them.
  bool hasEvents(size_t call) const { return done[call] || startOf[call] >= 0; }
  /// Inserts the waits and events before a call's launches, and after them.
  Result before(size_t call, Stream step);
  Result behind(size_t call, Stream step);
  /// Makes the step's stream wait for everything that was started, which the
  /// end of a capture requires.
  void join(Stream step);
  /// Returns the stream of messages; null: there are none.
  Stream messages() const { return stream; }

private:
  bool exchanges(size_t call) const;

  const Driver &cuda;
  const Manifest &manifest;
  Stream stream = nullptr;
  Event ready = nullptr;        ///< the work of the step's stream so far
  std::vector<Event> done;      ///< by call: the end of its messages, or null
  std::vector<int64_t> startOf; ///< by call: of a wait, its start; else -1
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_FLIGHTS_H
