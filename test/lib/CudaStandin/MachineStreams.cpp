//===- MachineStreams.cpp - in what order streams run ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The host's wait for a stream runs it, and what its waits for events need of
// others: as late as events allow. In the other order all other streams of the
// device run before it, as far as events allow.
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <chrono>
#include <thread>

using namespace standin;

Stream Machine::makeStream() {
  auto made = std::make_unique<StreamOpaque>();
  made->number = static_cast<int>(streams.size()) + 1;
  made->context = current();
  streams.push_back(std::move(made));
  return streams.back().get();
}

Stream Machine::given(Stream stream) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto value = reinterpret_cast<uint64_t>(stream);
  if (value > 2)
    return stream;
  int number = value == 2 ? -2 : 0;
  for (auto &one : streams)
    if (one->number == number && one->context == current())
      return one.get();
  Stream made = makeStream();
  made->number = number;
  return made;
}

void Machine::push(Stream stream, std::function<Result()> work) {
  stream->work.push_back({std::move(work)});
  ++stream->queued;
  stream->behindKernel = false;
}

void Machine::pushWait(Stream stream, Stream other, uint64_t position) {
  auto wait = [this, other, position] { return drain(other, position); };
  stream->work.push_back({wait, other, position});
  ++stream->queued;
  stream->behindKernel = false;
}

void Machine::forget(Stream gone) {
  for (auto &stream : streams)
    for (Work &work : stream->work)
      if (work.waitsFor == gone)
        work = {[]() -> Result { return kSuccess; }};
  for (auto &event : events)
    if (event->stream == gone)
      event->stream = nullptr;
}

/// Runs the first piece of a stream's work; kNotReady: it is still there.
Result Machine::runFront(Stream stream) {
  Work work = std::move(stream->work.front());
  stream->work.pop_front();
  Result result = stream->context->failure;
  if (result == kSuccess)
    result = work.run();
  if (result == kNotReady) {
    stream->work.push_front(std::move(work));
    return result;
  }
  ++stream->done;
  if (result != kSuccess) {
    stream->context->failure = result;
    if (stickyProcess)
      processFailure = result;
  }
  return kSuccess;
}

/// Runs what other streams of its device may run before this one goes on.
void Machine::runOthers(Stream stream) {
  for (bool any = true; any;) {
    any = false;
    for (auto &other : streams)
      while (other.get() != stream && other->context == stream->context &&
             other->done < other->queued) {
        const Work &front = other->work.front();
        if (front.waitsFor && front.waitsFor->done < front.position)
          break;
        if (runFront(other.get()) == kNotReady)
          break;
        any = true;
      }
  }
}

Result Machine::drain(Stream stream, uint64_t position) {
  struct Depth {
    int &count;
    explicit Depth(int &count) : count(count) { ++count; }
    ~Depth() { --count; }
  } depth(draining);
  while (stream->done < position) {
    if (early && draining == 1)
      runOthers(stream);
    if (runFront(stream) == kNotReady)
      return kNotReady;
  }
  return stream->context->failure;
}

Result Machine::finish(Stream stream, uint64_t position) {
  for (;;) {
    Result result = drain(stream, position);
    if (result != kNotReady)
      return result;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}
