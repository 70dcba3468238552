//===- DnnEngines.cpp - chooses an engine for a graph of cuDNN ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"

#include <algorithm>
#include <cstdlib>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {
/// Heuristics list no more configurations than this, in each of their modes.
constexpr int kMostConfigs = 16;
constexpr int kMostKnobs = 64, kMostNotes = 32;
} // namespace

bool DnnGraph::hasNote(void *engine, const std::vector<int> &notes) const {
  int all[kMostNotes] = {};
  int64_t count = 0;
  if (dnn.get(engine, kDnnEngineNotes, kDnnIsNote, kMostNotes, &count, all))
    return true; // what is not known is not taken
  return std::find_first_of(all, all + std::min<int64_t>(count, kMostNotes),
                            notes.begin(), notes.end()) !=
         all + std::min<int64_t>(count, kMostNotes);
}

int DnnGraph::plan(void *config, int64_t workspace) {
  void *raw = nullptr;
  int made = dnn.make(kDnnPlan, &raw);
  if (made != 0)
    return made;
  DnnDescriptor owner(dnn, raw);
  made = dnn.set(raw, kDnnPlanHandle, kDnnIsHandle, 1, &handle);
  if (made == 0)
    made = dnn.set(raw, kDnnPlanConfig, kDnnIsDescriptor, 1, &config);
  if (made == 0)
    made = dnn.finalize(raw);
  int64_t bytes = 0, count = 0;
  if (made == 0)
    made = dnn.get(raw, kDnnPlanWorkspace, kDnnIsInt64, 1, &count, &bytes);
  if (made == 0 && bytes > workspace - front)
    made = kDnnNotSupported;
  if (made != 0)
    return made;
  kept.push_back(std::move(owner));
  chosen = raw;
  needed = bytes;
  return 0;
}

std::string DnnGraph::nameOf(void *config, void *engine) const {
  int64_t index = -1, count = 0;
  if (dnn.get(engine, kDnnEngineIndex, kDnnIsInt64, 1, &count, &index))
    return "";
  std::string name = std::to_string(index);
  std::vector<DnnDescriptor> knobs;
  void *raw[kMostKnobs] = {};
  for (void *&knob : raw)
    if (dnn.make(kDnnKnobChoice, &knob) == 0)
      knobs.emplace_back(dnn, knob);
  if (dnn.get(config, kDnnConfigKnobs, kDnnIsDescriptor, kMostKnobs, &count,
              raw) != 0)
    return "";
  for (int64_t i = 0; i < std::min<int64_t>(count, kMostKnobs); ++i) {
    int type = -1;
    int64_t value = 0, one = 0;
    if (dnn.get(raw[i], kDnnKnobType, kDnnIsKnob, 1, &one, &type) ||
        dnn.get(raw[i], kDnnKnobValue, kDnnIsInt64, 1, &one, &value))
      return "";
    name += (i == 0 ? ";" : ",") + std::to_string(type) + "=" +
            std::to_string(value);
  }
  return name;
}

int DnnGraph::choose(int64_t workspace, const std::vector<int> &notes,
                     std::string &engine) {
  void *whole = graph();
  if (status != 0)
    return status;
  int last = kDnnNotSupported;
  for (int mode : {int(kDnnModeA), int(kDnnFallback)}) {
    void *heuristic = make(kDnnHeuristic);
    set(heuristic, kDnnHeurGraph, kDnnIsDescriptor, 1, &whole);
    set(heuristic, kDnnHeurMode, kDnnIsHeurMode, 1, &mode);
    finalize(heuristic);
    void *configs[kMostConfigs] = {};
    for (void *&config : configs)
      config = make(kDnnEngineConfig);
    int64_t count = 0;
    if (status == 0)
      status = dnn.get(heuristic, kDnnHeurResults, kDnnIsDescriptor,
                       kMostConfigs, &count, configs);
    // A mode that knows nothing of such a graph leaves it to the other one.
    if (std::exchange(status, 0) != 0)
      continue;
    for (int64_t i = 0; i < std::min<int64_t>(count, kMostConfigs); ++i) {
      void *own = make(kDnnEngine);
      int64_t one = 0;
      if (!own || dnn.get(configs[i], kDnnConfigEngine, kDnnIsDescriptor, 1,
                          &one, &own))
        continue;
      if (hasNote(own, notes))
        continue;
      std::string name = nameOf(configs[i], own);
      last = name.empty() ? int(kDnnNotSupported) : plan(configs[i], workspace);
      if (last == 0) {
        engine = name;
        return 0;
      }
    }
  }
  return last;
}

int DnnGraph::restore(int64_t workspace, const std::vector<int> &notes,
                      const std::string &engine) {
  void *whole = graph();
  char *at = nullptr;
  int64_t index = std::strtoll(engine.c_str(), &at, 10);
  void *own = make(kDnnEngine);
  set(own, kDnnEngineGraph, kDnnIsDescriptor, 1, &whole);
  set(own, kDnnEngineIndex, kDnnIsInt64, 1, &index);
  finalize(own);
  std::vector<void *> knobs;
  while (status == 0 && (*at == ';' || *at == ',')) {
    int type = static_cast<int>(std::strtol(at + 1, &at, 10));
    int64_t value = *at == '=' ? std::strtoll(at + 1, &at, 10) : -1;
    void *knob = make(kDnnKnobChoice);
    set(knob, kDnnKnobType, kDnnIsKnob, 1, &type);
    set(knob, kDnnKnobValue, kDnnIsInt64, 1, &value);
    finalize(knob);
    knobs.push_back(knob);
  }
  void *config = make(kDnnEngineConfig);
  set(config, kDnnConfigEngine, kDnnIsDescriptor, 1, &own);
  if (!knobs.empty())
    set(config, kDnnConfigKnobs, kDnnIsDescriptor,
        static_cast<int64_t>(knobs.size()), knobs.data());
  finalize(config);
  // The text may be anybody's: what it names is what is written again.
  if (status == 0 && (hasNote(own, notes) || nameOf(config, own) != engine))
    status = kDnnBadParameter;
  return status == 0 ? plan(config, workspace) : status;
}
