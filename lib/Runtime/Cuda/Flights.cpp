//===- Flights.cpp - messages that overlap kernels ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Flights.h"

#include "Core/DeviceFlights.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Lower is sooner, and other streams have 0: blocks of messages, which are few
/// and which other ranks wait for, run before those of kernels.
static constexpr int kPriority = -1;

bool Flights::exchanges(size_t call) const {
  int32_t primitive = manifest.calls[call].primitive;
  if (primitive < 0)
    return false;
  const PrimitiveDesc &desc =
      manifest.primitives[static_cast<size_t>(primitive)];
  return isOfRanks(desc.kind) && desc.kind != PrimitiveKind::Rank &&
         desc.kind != PrimitiveKind::OwnRows &&
         desc.kind != PrimitiveKind::CollectiveWait && desc.allReduce.ranks > 1;
}

Result Flights::create() {
  const size_t calls = manifest.calls.size();
  done.assign(calls, nullptr);
  std::string error; // stays empty: the manifest was checked
  startOf = startsOfWaits(manifest, error);
  Result result = kSuccess;
  for (size_t c = 0; c < calls && result == kSuccess; ++c) {
    if (!exchanges(c))
      continue;
    if (!stream)
      result =
          cuda.streamCreateWithPriority(&stream, kStreamNonBlocking, kPriority);
    if (result == kSuccess && !ready)
      result = cuda.eventCreate(&ready, kEventDisableTiming);
    if (result == kSuccess)
      result = cuda.eventCreate(&done[c], kEventDisableTiming);
  }
  return result;
}

Flights::~Flights() {
  for (Event event : done)
    if (event)
      (void)cuda.eventDestroy(event);
  if (ready)
    (void)cuda.eventDestroy(ready);
  if (stream)
    (void)cuda.streamDestroy(stream);
}

Stream Flights::streamOf(size_t call, Stream step) const {
  return done[call] ? stream : step;
}

Result Flights::before(size_t call, Stream step) {
  if (startOf[call] >= 0)
    return cuda.streamWaitEvent(step, done[static_cast<size_t>(startOf[call])],
                                0);
  if (!done[call])
    return kSuccess;
  Result result = cuda.eventRecord(ready, step);
  return result == kSuccess ? cuda.streamWaitEvent(stream, ready, 0) : result;
}

Result Flights::behind(size_t call, Stream step) {
  if (!done[call])
    return kSuccess;
  Result result = cuda.eventRecord(done[call], stream);
  int32_t primitive = manifest.calls[call].primitive;
  bool goesOn =
      manifest.primitives[static_cast<size_t>(primitive)].allReduce.started;
  return result == kSuccess && !goesOn
             ? cuda.streamWaitEvent(step, done[call], 0)
             : result;
}

void Flights::join(Stream step) {
  if (stream && cuda.eventRecord(ready, stream) == kSuccess)
    (void)cuda.streamWaitEvent(step, ready, 0);
}
