//===- TimelineTrace.cpp - memory timelines as Chrome traces --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes one process for each panel: complete events for the kernel calls, and
// at the start of each call a counter with a series for each kind of memory.
// Times are the expected ones in microseconds (a cost that is not a time counts
// as one); without costs, each call takes one. O(steps).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/Timeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

const char *memoryKindName(MemoryKind kind) {
  static const char *const names[numMemoryKinds] = {
      "parameters",  "optimizer state",        "gradients", "data",
      "activations", "recomputed activations", "workspace", "other"};
  return names[size_t(kind)];
}

int64_t TimelineStep::total() const {
  int64_t sum = 0;
  for (int64_t kind : bytes)
    sum += kind;
  return sum;
}

static void counterEvent(json::OStream &out, int64_t process, double at,
                         const std::array<int64_t, numMemoryKinds> &bytes) {
  out.object([&] {
    out.attribute("name", "live bytes");
    out.attribute("ph", "C");
    out.attribute("pid", process);
    out.attribute("ts", at);
    out.attributeObject("args", [&] {
      for (size_t kind = 0; kind < numMemoryKinds; ++kind)
        out.attribute(memoryKindName(MemoryKind(kind)), bytes[kind]);
    });
  });
}

static void panelEvents(json::OStream &out, int64_t process,
                        const TimelinePanel &panel, double unit) {
  out.object([&] {
    out.attribute("name", "process_name");
    out.attribute("ph", "M");
    out.attribute("pid", process);
    out.attributeObject(
        "args", [&] { out.attribute("name", jsonString(panel.title)); });
  });
  const bool timed = any_of(
      panel.steps, [](const TimelineStep &step) { return step.seconds > 0; });
  double at = 0;
  for (const TimelineStep &step : panel.steps) {
    const double duration = timed ? step.seconds * unit : 1;
    out.object([&] {
      out.attribute("name", jsonString(step.name));
      out.attribute("cat", step.recomputed      ? json::Value("recomputed")
                           : step.phase.empty() ? json::Value("kernel")
                                                : jsonString(step.phase));
      out.attribute("ph", "X");
      out.attribute("pid", process);
      out.attribute("tid", 0);
      out.attribute("ts", at);
      out.attribute("dur", duration);
      out.attributeObject("args",
                          [&] { out.attribute("live bytes", step.total()); });
    });
    counterEvent(out, process, at, step.bytes);
    at += duration;
  }
  // Without a final value, viewers would draw the last call with no duration.
  if (!panel.steps.empty())
    counterEvent(out, process, at, panel.steps.back().bytes);
}

std::string memoryTrace(const Timeline &timeline) {
  return jsonText([&](json::OStream &out) {
    out.object([&] {
      out.attribute("displayTimeUnit", "ms");
      out.attributeArray("traceEvents", [&] {
        int64_t process = 0;
        for (const TimelinePanel &panel : timeline.panels)
          panelEvents(out, ++process, panel,
                      timeline.costUnit.empty() ? 1e6 : 1);
      });
    });
  });
}

Error writeMemoryTrace(StringRef path, const Timeline &timeline) {
  return writeFileAtomically(path, memoryTrace(timeline));
}

} // namespace ckopt
