//===- Flights.h - messages between ranks beside kernels --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls that exchange messages have a stream of their own, so that kernels of
// the step's stream run meanwhile. A call that begins a collective waits, by an
// event, for what the step's stream has done so far; the call that waits for it
// makes the step's stream wait for its end. Events become edges of a graph
// where the step's stream captures one. All such calls are on the one stream in
// the order of the step, which is the same on all ranks.
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

  /// Makes the stream and the events; nothing for a step of one process. The
  /// context must be current, as where the object goes.
  Result create();
  /// Returns the stream for a call's launches.
  Stream streamOf(size_t call, Stream step) const;
  /// Puts what orders a call in front of its launches, and behind them.
  Result before(size_t call, Stream step);
  Result behind(size_t call, Stream step);
  /// Lets the step's stream wait for all that has begun: a capture ends well
  /// only then.
  void join(Stream step);
  /// Returns the stream of messages; null: there are none.
  Stream messages() const { return stream; }

private:
  bool exchanges(size_t call) const;

  const Driver &cuda;
  const Manifest &manifest;
  Stream stream = nullptr;
  Event ready = nullptr;        ///< what the step's stream has done
  std::vector<Event> done;      ///< by call: the end of its messages, or null
  std::vector<int64_t> startOf; ///< by call: of a wait, its start; else -1
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_FLIGHTS_H
