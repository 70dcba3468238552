//===- TimelineTest.cpp - the picture's text ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Timeline.h"
#include "TestFiles.h"
#include "llvm/Support/JSON.h"

using namespace ckopt;

static Timeline small() {
  TimelinePanel panel;
  panel.title = "without recomputation";
  for (int i = 0; i < 4; ++i) {
    TimelineStep step;
    step.name = "conv<" + std::to_string(i) + "> & \"relu\"";
    step.seconds = 1e-3;
    step.recomputed = i == 3;
    step.phase = i < 2 ? "forward" : "backward";
    step[MemoryKind::Parameters] = 1 << 20;
    step[MemoryKind::Activations] = (i == 2 ? 3 : 1) << 20;
    panel.steps.push_back(step);
  }
  panel.plannedPeak = 5 << 20;
  panel.budget = 6 << 20;
  Timeline timeline{"model <x>", "batch 64", {panel, panel}};
  timeline.panels[1].title = "with budget";
  timeline.panels[1].steps.pop_back();
  return timeline;
}

static size_t count(const std::string &text, const std::string &part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(Timeline, SaysWhatAReaderNeeds) {
  const std::string svg = timelineSvg(small());
  for (const char *part :
       {"model &lt;x&gt;", "batch 64", "without recomputation", "with budget",
        "live memory (MiB)", "expected time within the step (ms)",
        "peak load 4.00 MiB in conv&lt;2&gt; &amp; &quot;relu&quot;",
        "planned peak 5.00 MiB", "6.00 MiB", ">parameters<", ">activations<",
        ">forward<", ">backward<", "1 of them recomputed",
        "(100.0 % of the first)"})
    expectContains(svg, part);
  // A kind that no step has is not in the legend.
  EXPECT_EQ(count(svg, ">gradients<"), 0u);
  EXPECT_EQ(count(svg, "conv<"), 0u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

TEST(Timeline, EqualInputGivesEqualBytes) {
  EXPECT_EQ(timelineSvg(small()), timelineSvg(small()));
}

TEST(Timeline, ManyCallsAreMergedAndKeepThePeak) {
  Timeline timeline;
  timeline.panels.resize(1);
  for (int i = 0; i < 100000; ++i) {
    TimelineStep step;
    step.name = "k" + std::to_string(i);
    step[MemoryKind::Activations] = i == 77777 ? 9000 : 1000 + i % 7;
    timeline.panels[0].steps.push_back(step);
  }
  const std::string svg = timelineSvg(timeline);
  EXPECT_LT(svg.size(), 500000u);
  expectContains(svg, "in k77777");
  expectContains(svg, "kernel call");
}

TEST(Timeline, PhasesTooNarrowForTheirNameAreExplainedOnce) {
  Timeline timeline;
  timeline.panels.resize(1);
  for (int i = 0; i < 200; ++i) {
    TimelineStep step;
    step.phase = i < 100 ? "forward" : i % 2 ? "backward" : "update";
    timeline.panels[0].steps.push_back(step);
  }
  const std::string svg = timelineSvg(timeline);
  for (const char *name : {">forward<", ">backward<", ">update<"})
    EXPECT_EQ(count(svg, name), 1u) << name;
}

TEST(Timeline, NothingToDrawIsNoError) {
  expectContains(timelineSvg(Timeline()), "</svg>");
  Timeline empty;
  empty.panels.resize(1);
  expectContains(timelineSvg(empty), "</svg>");
  empty.panels[0].steps.resize(1);
  const std::string svg = timelineSvg(empty);
  EXPECT_EQ(count(svg, "nan"), 0u);
  EXPECT_EQ(count(svg, "inf"), 0u);
}

TEST(Timeline, TraceIsChromesFormat) {
  auto trace = llvm::json::parse(memoryTrace(small()));
  ASSERT_TRUE(bool(trace));
  const llvm::json::Array *events =
      trace->getAsObject()->getArray("traceEvents");
  ASSERT_TRUE(events);
  // Per panel: a name, two events a call, a last counter.
  ASSERT_EQ(events->size(), (1 + 2 * 4 + 1) + (1 + 2 * 3 + 1u));
  const llvm::json::Object &counter = *(*events)[6].getAsObject();
  EXPECT_EQ(counter.getString("ph"), "C");
  EXPECT_EQ(counter.getNumber("ts"), 2000.0);
  EXPECT_EQ(counter.getObject("args")->getInteger("activations"), 3 << 20);
}

class TimelineFiles : public FilesTest {};

TEST_F(TimelineFiles, AreWritten) {
  EXPECT_EQ(textOf(writeTimelineSvg(file("a.svg"), small())), "");
  EXPECT_EQ(get("a.svg"), timelineSvg(small()));
  EXPECT_EQ(textOf(writeMemoryTrace(file("a.json"), small())), "");
  EXPECT_EQ(codeOf(writeTimelineSvg(file("no/a.svg"), small())), ExitIoError);
}
