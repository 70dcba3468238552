//===- ApiWork.cpp - the stand-in driver's entries for work ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Streams, events, copies, launches and graphs, over Machine.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

#include <cstring>

using namespace standin;

static constexpr Result kInvalidHandle = 400;

//===----------------------------------------------------------------------===//
// Streams, events, copies
//===----------------------------------------------------------------------===//

STANDIN cuStreamCreate(Stream *stream, unsigned) {
  ENTER("cuStreamCreate", "");
  *stream = machine.makeStream();
  return kSuccess;
}

static std::string nameOf(Stream stream) {
  return "S" + std::to_string(stream ? stream->number : 0);
}
static std::string nameOf(Event event) {
  return "E" + std::to_string(event ? event->number : 0);
}

STANDIN cuStreamDestroy_v2(Stream stream) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuStreamDestroy " + nameOf(stream));
  if (stream->done != stream->queued)
    machine.violation("a stream goes while it has work");
  return Machine::destroy(machine.streams, stream)
             ? kSuccess
             : machine.violation("destroys a stream that is none");
}

STANDIN cuStreamSynchronize(Stream stream) {
  // Work runs before the call can fail, as on a device.
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
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
  ENTER("cuEventRecord", nameOf(event) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream") ||
      !machine.usable(event->context, "an event"))
    return kInvalidHandle;
  event->isCaptured = bool(stream->capture);
  event->capture = stream->capture;
  if (Capture *capture = stream->capture.get()) {
    event->branch = stream->branch;
    event->known = capture->known[stream->branch];
    event->known.resize(capture->streams.size());
    event->known[stream->branch] = capture->counts[stream->branch];
    return kSuccess;
  }
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

/// Puts the wait into the graph; a stream that captures nothing joins.
static Result captureWait(Machine &machine, Stream stream, Event event) {
  std::shared_ptr<Capture> capture = event->capture.lock();
  if (!event->isCaptured || !capture)
    return machine.violation("waits for an event outside of its capture");
  if (stream->capture && stream->capture != capture)
    return machine.violation("waits for an event of another capture");
  if (!stream->capture) {
    if (stream->done != stream->queued)
      return machine.violation("a stream joins a capture while it has work");
    stream->capture = capture;
    stream->branch = capture->streams.size();
    capture->streams.push_back(stream);
    capture->counts.push_back(0);
    capture->known.emplace_back();
    capture->graph.branches = capture->streams.size();
  }
  std::vector<uint64_t> &known = capture->known[stream->branch];
  known.resize(std::max(known.size(), event->known.size()));
  for (size_t branch = 0; branch < event->known.size(); ++branch)
    known[branch] = std::max(known[branch], event->known[branch]);
  GraphPiece piece;
  piece.branch = stream->branch;
  piece.waits = true;
  piece.other = event->branch;
  piece.position = event->known[event->branch];
  capture->graph.pieces.push_back(piece);
  ++capture->counts[stream->branch];
  return kSuccess;
}

STANDIN cuStreamWaitEvent(Stream stream, Event event, unsigned) {
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
// Launches and graphs
//===----------------------------------------------------------------------===//

STANDIN cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                       unsigned gridZ, unsigned blockX, unsigned blockY,
                       unsigned blockZ, unsigned sharedBytes, Stream stream,
                       void **parameters, void **) {
  ENTER("cuLaunchKernel", function->symbol + " " + text(gridX) + " " +
                              text(blockX) + " " + nameOf(stream));
  if (!machine.usable(stream->context, "a stream") ||
      !machine.usable(function->context, "a kernel"))
    return kInvalidHandle;
  if (gridY != 1 || gridZ != 1 || blockY != 1 || blockZ != 1 || sharedBytes)
    return machine.violation("launches in more than one dimension");
  Launch launch;
  launch.function = function, launch.grid = gridX, launch.block = blockX;
  for (size_t i = 0; i < function->entry->parameters.size(); ++i) {
    uint64_t value = 0;
    std::memcpy(&value, parameters[i],
                static_cast<size_t>(function->entry->parameters[i].bytes));
    launch.values.push_back(value);
  }
  if (Result result = machine.check(launch))
    return result;
  return machine.enqueue(stream, std::move(launch));
}

STANDIN cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  ENTER("cuStreamBeginCapture", nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (stream->capture)
    return machine.violation("captures twice");
  stream->capture = std::make_shared<Capture>();
  stream->branch = 0;
  stream->capture->streams = {stream};
  stream->capture->counts = {0};
  stream->capture->known.resize(1);
  return kSuccess;
}

STANDIN cuStreamEndCapture(Stream stream, Graph *graph) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (!stream->capture)
    return machine.violation("ends a capture that never began");
  std::shared_ptr<Capture> capture = stream->capture;
  if (stream->branch != 0)
    return machine.violation("ends a capture that another stream began");
  for (Stream one : capture->streams)
    one->capture.reset(); // the capture ends even if it failed
  *graph = nullptr;
  if (Result failure = machine.enter("cuStreamEndCapture", nameOf(stream)))
    return failure;
  capture->known[0].resize(capture->streams.size());
  for (size_t branch = 1; branch < capture->streams.size(); ++branch)
    if (capture->known[0][branch] < capture->counts[branch])
      return machine.violation("a capture ends while " +
                               nameOf(capture->streams[branch]) +
                               " is not waited for");
  auto made = std::make_unique<GraphOpaque>(std::move(capture->graph));
  *graph = made.get();
  machine.graphs.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuGraphInstantiate_v2(GraphExec *executable, Graph graph, void **,
                              char *, size_t) {
  ENTER("cuGraphInstantiate", "");
  if (!Machine::live(machine.graphs, graph))
    return machine.violation("instantiates what is no graph");
  auto made = std::make_unique<GraphExecOpaque>();
  made->pieces = graph->pieces;
  made->branches.push_back(nullptr);
  while (made->branches.size() < graph->branches)
    made->branches.push_back(machine.makeStream());
  *executable = made.get();
  machine.executables.push_back(std::move(made));
  return kSuccess;
}

STANDIN cuGraphLaunch(GraphExec executable, Stream stream) {
  ENTER("cuGraphLaunch", nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (!Machine::live(machine.executables, executable) || stream->capture)
    return machine.violation("replays what is not instantiated");
  std::vector<Stream> branches = executable->branches;
  branches[0] = stream;
  std::vector<uint64_t> before;
  for (Stream branch : branches)
    before.push_back(branch->queued);
  for (const GraphPiece &piece : executable->pieces) {
    Stream branch = branches[piece.branch];
    const Launch &launch = piece.launch;
    if (piece.waits)
      machine.pushWait(branch, branches[piece.other],
                       before[piece.other] + piece.position);
    else if (launch.begin)
      machine.push(branch, launch.begin(branch));
    else
      machine.push(branch, [launch] { return Machine::get().execute(launch); });
  }
  return kSuccess;
}

STANDIN cuGraphExecDestroy(GraphExec executable) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuGraphExecDestroy");
  if (Machine::live(machine.executables, executable))
    for (Stream branch : executable->branches)
      if (branch) {
        if (branch->done != branch->queued)
          (void)machine.violation("a graph goes while it has work");
        Machine::destroy(machine.streams, branch);
      }
  return Machine::destroy(machine.executables, executable)
             ? kSuccess
             : machine.violation("destroys a graph that is none");
}

STANDIN cuGraphDestroy(Graph graph) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  machine.log("cuGraphDestroy");
  return Machine::destroy(machine.graphs, graph)
             ? kSuccess
             : machine.violation("destroys a graph that is none");
}
