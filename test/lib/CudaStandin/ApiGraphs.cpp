//===- ApiGraphs.cpp - the stand-in driver's entries for graphs -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A capture has a branch for each stream that takes part. A replay gives each
// branch but the first a stream of the stand-in's own, so that only the events
// that were captured order them.
//
//===----------------------------------------------------------------------===//
#include "Api.h"

#include <algorithm>

using namespace standin;

//===----------------------------------------------------------------------===//
// Events of a capture
//===----------------------------------------------------------------------===//

Result standin::captureRecord(Event event, Stream stream) {
  const Capture &capture = *stream->capture;
  stream->behindKernel = false;
  event->isCaptured = true;
  event->capture = stream->capture;
  event->branch = stream->branch;
  event->known = capture.known[stream->branch];
  event->known.resize(capture.streams.size());
  event->known[stream->branch] = capture.counts[stream->branch];
  return kSuccess;
}

Result standin::captureWait(Machine &machine, Stream stream, Event event) {
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
  stream->behindKernel = false;
  ++capture->counts[stream->branch];
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

STANDIN cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  ENTER("cuStreamBeginCapture", nameOf(stream));
  if (!machine.usable(stream->context, "a stream"))
    return kInvalidHandle;
  if (stream->capture)
    return machine.violation("captures twice");
  stream->capture = std::make_shared<Capture>();
  stream->branch = 0;
  stream->behindKernel = false;
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
