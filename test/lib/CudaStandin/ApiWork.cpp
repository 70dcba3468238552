//===- ApiWork.cpp - the stand-in driver's entries for work ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events, copies and launches, over Machine.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

#include <cstring>

using namespace standin;

//===----------------------------------------------------------------------===//
// Streams, events, copies
//===----------------------------------------------------------------------===//

STANDIN cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate", "");
  *stream = machine.makeStream();
  return kSuccess;
}

STANDIN cuStreamCreateWithPriority(Stream *stream, unsigned, int priority) {
  ENTER("cuStreamCreateWithPriority", text(priority));
  *stream = machine.makeStream();
  return kSuccess;
}

STANDIN cuStreamDestroy_v2(Stream stream) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuStreamDestroy " + nameOf(stream));
  if (stream->done != stream->queued)
    machine.violation("a stream goes while it has work");
  machine.forget(stream);
  return Machine::destroy(machine.streams, stream)
             ? kSuccess
             : machine.violation("destroys a stream that is none");
}

STANDIN cuStreamSynchronize(Stream stream) {
  // Work runs before the call can fail, as on a device.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  stream = machine.given(stream);
  if (stream->capture)
    return machine.violation("waits for a stream that captures");
  if (Result failure =
          machine.enter("cuStreamSynchronize", nameOf(stream), false)) {
    stream->context->failure = failure;
    (void)machine.drainAll(stream);
    return failure;
  }
  return machine.drainAll(stream);
}

STANDIN cuStreamQuery(Stream stream) {
  // Nothing is logged: how often a program asks depends on the machine.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (stream->capture)
    return machine.violation("asks a stream that captures");
  return machine.drain(stream, stream->queued);
}

STANDIN cuEventQuery(Event event) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (event->isCaptured)
    return machine.violation("asks an event that was captured");
  return event->stream ? machine.drain(event->stream, event->position)
                       : kSuccess;
}

STANDIN cuEventCreate(Event *event, unsigned flags) {
  ENTER("cuEventCreate", "");
  auto made = std::make_unique<EventOpaque>();
  made->number = static_cast<int>(machine.events.size()) + 1;
  made->context = machine.current();
  made->timed = !(flags & kEventDisableTiming);
  *event = made.get();
  machine.events.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuEventDestroy_v2(Event event) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuEventDestroy " + nameOf(event));
  return Machine::destroy(machine.events, event)
             ? kSuccess
             : machine.violation("destroys an event that is none");
}

STANDIN cuEventRecord(Event event, Stream stream) {
  stream = Machine::get().given(stream);
  ENTER("cuEventRecord", nameOf(event) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream") ||
      !machine.usable(event->context, "an event"))
    return kInvalidHandle;
  if (stream->capture)
    return standin::captureRecord(event, stream);
  event->isCaptured = false;
  machine.push(stream, [event]() -> Result {
    if (Machine::live(Machine::get().events, event))
      event->when = Machine::get().clock;
    return kSuccess;
  });
  event->stream = stream;
  event->position = stream->queued;
  return kSuccess;
}

STANDIN cuEventSynchronize(Event event) {
  ENTER("cuEventSynchronize", nameOf(event));
  if (event->isCaptured)
    return machine.violation("waits for an event that was captured");
  return event->stream ? machine.finish(event->stream, event->position)
                       : kSuccess;
}

STANDIN cuEventElapsedTime(float *milliseconds, Event start, Event end) {
  ENTER("cuEventElapsedTime", nameOf(start) + " " + nameOf(end));
  for (Event event : {start, end}) {
    if (!event->timed || !event->stream)
      return machine.violation("asks an event for a time that it has not");
    if (event->stream->done < event->position)
      return 600; // CUDA_ERROR_NOT_READY
  }
  *milliseconds = float(end->when - start->when) / 1000;
  return kSuccess;
}

STANDIN cuStreamIsCapturing(Stream stream, int *status) {
  stream = Machine::get().given(stream);
  ENTER("cuStreamIsCapturing", nameOf(stream));
  *status = stream->capture ? 1 : 0;
  return kSuccess;
}

STANDIN cuStreamWaitEvent(Stream stream, Event event, unsigned) {
  stream = Machine::get().given(stream);
  ENTER("cuStreamWaitEvent", nameOf(stream) + " " + nameOf(event));
  if (!machine.usable(stream->context, "a stream") ||
      !machine.usable(event->context, "an event"))
    return kInvalidHandle;
  if (stream->capture || event->isCaptured)
    return captureWait(machine, stream, event);
  if (event->stream)
    machine.pushWait(stream, event->stream, event->position);
  return kSuccess;
}

STANDIN cuMemcpyHtoDAsync_v2(DevicePointer to, const void *from, size_t bytes,
                             Stream stream) {
  Machine &all = Machine::get();
  stream = all.given(stream);
  const Block *pinned = all.hostBlock(from, bytes);
  ENTER(
      "cuMemcpyHtoDAsync",
      all.place(to) + " " +
          (pinned ? all.place(reinterpret_cast<uint64_t>(from)) : "pageable") +
          " " + text(int64_t(bytes)) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (stream->capture || !machine.deviceBlock(to, bytes))
    return machine.violation("copies to what is not allocated");
  auto *target = reinterpret_cast<char *>(to);
  if (pinned) {
    machine.push(stream, [=]() -> Result {
      std::memcpy(target, from, bytes);
      return kSuccess;
    });
    return kSuccess;
  }
  // Pageable memory is copied before the call returns.
  std::string taken(static_cast<const char *>(from), bytes);
  machine.push(stream, [=]() -> Result {
    std::memcpy(target, taken.data(), bytes);
    return kSuccess;
  });
  return kSuccess;
}

STANDIN cuMemcpyDtoHAsync_v2(void *to, DevicePointer from, size_t bytes,
                             Stream stream) {
  Machine &all = Machine::get();
  stream = all.given(stream);
  const Block *pinned = all.hostBlock(to, bytes);
  ENTER("cuMemcpyDtoHAsync",
        (pinned ? all.place(reinterpret_cast<uint64_t>(to)) : "pageable") +
            " " + all.place(from) + " " + text(int64_t(bytes)) + " " +
            nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (stream->capture || !machine.deviceBlock(from, bytes))
    return machine.violation("copies from what is not allocated");
  auto *source = reinterpret_cast<const char *>(from);
  machine.push(stream, [=]() -> Result {
    std::memcpy(to, source, bytes);
    return kSuccess;
  });
  return kSuccess;
}

STANDIN cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes,
                             Stream stream) {
  Machine &all = Machine::get();
  stream = all.given(stream);
  ENTER("cuMemcpyDtoDAsync", all.place(to) + " " + all.place(from) + " " +
                                 text(int64_t(bytes)) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (!machine.deviceBlock(from, bytes) || !machine.deviceBlock(to, bytes))
    return machine.violation("copies what is not allocated");
  if (to < from + bytes && from < to + bytes)
    return machine.violation("copies between bytes that overlap");
  Launch launch;
  launch.name = "cuMemcpyDtoDAsync";
  launch.isCopy = true;
  launch.body = [=] {
    std::memcpy(reinterpret_cast<char *>(to),
                reinterpret_cast<const char *>(from), bytes);
  };
  return machine.enqueue(stream, std::move(launch));
}

STANDIN cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes,
                        Stream stream) {
  Machine &all = Machine::get();
  stream = all.given(stream);
  ENTER("cuMemsetD8Async", all.place(to) + " " + text(value) + " " +
                               text(int64_t(bytes)) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (!machine.deviceBlock(to, bytes))
    return machine.violation("fills what is not allocated");
  Launch launch;
  launch.name = "cuMemsetD8Async";
  launch.isCopy = true;
  launch.body = [=] {
    std::memset(reinterpret_cast<char *>(to), value, bytes);
  };
  return machine.enqueue(stream, std::move(launch));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

static Result launchIn(Machine &machine, const LaunchConfig &config,
                       Function function, void **parameters, bool early) {
  if (!machine.usable(config.stream->context, "a stream") ||
      !machine.usable(function->context, "a kernel"))
    return kInvalidHandle;
  if (config.grid[1] != 1 || config.grid[2] != 1 || config.block[1] != 1 ||
      config.block[2] != 1)
    return machine.violation("launches in more than one dimension");
  if (config.sharedBytes > function->dynamicBytes)
    return machine.violation("launches with more shared memory than a kernel "
                             "was allowed");
  Launch launch;
  launch.function = function, launch.early = early;
  launch.grid = config.grid[0], launch.block = config.block[0];
  launch.sharedBytes = config.sharedBytes;
  for (size_t i = 0; i < function->entry->parameters.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i],
                static_cast<size_t>(function->entry->parameters[i].bytes));
    launch.values.push_back(value);
  }
  if (Result result = machine.check(launch))
    return result;
  return machine.enqueue(config.stream, std::move(launch));
}

static std::string text(Function function, const LaunchConfig &config) {
  return function->symbol + " " + text(config.grid[0]) + " " +
         text(config.block[0]) + " " + nameOf(config.stream);
}

STANDIN cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                       unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned sharedBytes, Stream stream,
                       void **parameters, void **) {
  LaunchConfig config = {{gridX, gridY, gridZ},
                         {blockX, blockY, blockZ},
                         sharedBytes,
                         Machine::get().given(stream),
                         nullptr,
                         0};
  ENTER("cuLaunchKernel", text(function, config));
  return launchIn(machine, config, function, parameters, /*early=*/false);
}

STANDIN cuLaunchKernelEx(const LaunchConfig *given, Function function,
                         void **parameters, void **) {
  LaunchConfig config = *given;
  config.stream = Machine::get().given(config.stream);
  bool early = false, known = true;
  for (unsigned i = 0; i < config.attributeCount; ++i) {
    known &= config.attributes[i].id == kProgrammaticSerialization;
    early = config.attributes[i].value != 0;
  }
  ENTER("cuLaunchKernelEx", text(function, config) + (early ? " early" : ""));
  if (!known)
    return machine.violation("launches with an attribute that is not known");
  if (early && machine.capability < 90)
    return machine.violation("programmatic launches below 9.0");
  return launchIn(machine, config, function, parameters, early);
}
