//===- Cudnn.cpp - the stand-in's cuDNN -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for cuDNN's graph interface. Descriptors keep attributes as bytes.
// A graph is executed operation by operation (CudnnOperations.cpp), whatever
// its form. Of the engines that it lists, the first is not deterministic, the
// second rounds operands to halves, the third needs too much workspace, the
// fourth multiplies f32 as TF32, and the last one as f32; the gradient of
// attention needs as much workspace as that of cuDNN 9.14.
//
//===----------------------------------------------------------------------===//
#include "CudnnGraph.h"
#include "Machine.h"

#include <cstdlib>
#include <cstring>

using namespace standin;

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kFailed = 5000;

/// What tells engines apart, in the order in which they are listed.
struct Engine {
  std::vector<int> notes;
  int64_t workspace;
};

bool has(const Descriptor &graph, int kind) {
  for (Descriptor *op : graph.all<Descriptor *>(kDnnGraphOps))
    if (op->kind == kind)
      return true;
  return false;
}

/// Returns what the gradient of attention takes beside its tensors: gradients
/// of scores, and of keys and values by query heads.
int64_t gradientBytes(const Descriptor &graph) {
  int64_t bytes = 256;
  for (Descriptor *op : graph.all<Descriptor *>(kDnnGraphOps)) {
    if (op->kind != kDnnMatMulOp)
      continue;
    auto c = op->one<Descriptor *>(kDnnMatMulC);
    auto size = c->all<int64_t>(kDnnTensorSizes);
    bool isScores = c->one<bool>(kDnnTensorIsVirtual) &&
                    c->one<int>(kDnnTensorType) == kDnnFloat;
    if (isScores)
      bytes = std::max(bytes, size[0] * size[1] * ((size[2] + 63) / 64 * 64) *
                                  ((size[3] + 127) / 128 * 128) * 2);
    else if (c->one<bool>(kDnnTensorIsVirtual))
      bytes += size[0] * size[1] * size[2] * size[3] * 2;
  }
  return bytes;
}

std::vector<Engine> enginesOf(const Descriptor &graph) {
  bool isGradient = has(graph, kDnnReshapeOp);
  int64_t bytes = isGradient ? gradientBytes(graph) : 512;
  return {{{kDnnNotDeterministic, kDnnTensorCores}, 0},
          {{kDnnTensorCores, kDnnNarrowsInputs}, bytes},
          {{}, int64_t(1) << 40},
          {{kDnnTensorCores}, bytes},
          {{}, bytes}};
}
constexpr int64_t kTensorCoreEngine = 3;
constexpr int kKnob = 2;

Descriptor *as(void *descriptor) {
  return static_cast<Descriptor *>(descriptor);
}

/// Lists every engine with one knob, in the configurations that are given.
int list(const Descriptor &heuristic, int64_t most, int64_t *count,
         void **configs) {
  // The modes of one graph are one question.
  static bool isRefused = false;
  *count = 0;
  if (heuristic.one<int>(kDnnHeurMode) == kDnnModeA) {
    Machine::get().log("cudnnBackendGetAttribute engines");
    isRefused = Machine::get().refuses("cudnn");
  }
  if (isRefused)
    return 0;
  auto *graph = heuristic.one<Descriptor *>(kDnnHeurGraph);
  for (size_t i = 0; i < enginesOf(*graph).size() && *count < most; ++i) {
    Descriptor *config = as(configs[(*count)++]);
    config->owned.push_back(std::make_unique<Descriptor>(kDnnEngine));
    config->owned.push_back(std::make_unique<Descriptor>(kDnnKnobChoice));
    Descriptor *engine = config->owned[0].get(), *knob = config->owned[1].get();
    engine->set(kDnnEngineGraph, graph);
    engine->set(kDnnEngineIndex, static_cast<int64_t>(i));
    knob->set(kDnnKnobType, kKnob);
    knob->set(kDnnKnobValue, static_cast<int64_t>(i));
    config->set(kDnnConfigEngine, engine);
    config->set(kDnnConfigKnobs, knob);
    config->finalized = engine->finalized = knob->finalized = true;
  }
  return 0;
}

int finalizeTensor(const Descriptor &tensor) {
  auto sizes = tensor.all<int64_t>(kDnnTensorSizes);
  bool fits = sizes.size() >= 3 &&
              sizes.size() == tensor.all<int64_t>(kDnnTensorStrides).size();
  return fits ? 0 : kDnnBadParameter;
}

int finalizeEngine(const Descriptor &engine) {
  auto *graph = engine.one<Descriptor *>(kDnnEngineGraph);
  auto index = engine.one<int64_t>(kDnnEngineIndex);
  return graph && index >= 0 && index < int64_t(enginesOf(*graph).size())
             ? 0
             : kDnnBadParameter;
}

/// Knobs are those of the engine.
int finalizeConfig(const Descriptor &config) {
  auto *engine = config.one<Descriptor *>(kDnnConfigEngine);
  for (Descriptor *knob : config.all<Descriptor *>(kDnnConfigKnobs))
    if (knob->one<int>(kDnnKnobType) != kKnob ||
        knob->one<int64_t>(kDnnKnobValue) !=
            engine->one<int64_t>(kDnnEngineIndex))
      return kDnnBadParameter;
  return engine ? 0 : kDnnBadParameter;
}

Engine engineOf(const Descriptor &plan) {
  auto *engine = plan.one<Descriptor *>(kDnnPlanConfig)
                     ->one<Descriptor *>(kDnnConfigEngine);
  return enginesOf(*engine->one<Descriptor *>(
      kDnnEngineGraph))[size_t(engine->one<int64_t>(kDnnEngineIndex))];
}

Stream current = nullptr; ///< the handle's stream

} // namespace

STANDIN int cudnnCreate(void **handle) {
  if (Machine::get().enter("cudnnCreate", ""))
    return 1001;
  *handle = &current;
  return 0;
}
STANDIN int cudnnDestroy(void *) {
  Machine::get().log("cudnnDestroy");
  return 0;
}
STANDIN size_t cudnnGetVersion() {
  const char *text = std::getenv("CKOPT_STANDIN_LIBRARY");
  return text ? static_cast<size_t>(std::atoll(text)) : 120400;
}
STANDIN const char *cudnnGetErrorString(int status) {
  return status == kDnnNotSupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                    : "CUDNN_STATUS_OF_STANDIN";
}
STANDIN int cudnnSetStream(void *, Stream stream) {
  current = stream;
  return 0;
}

STANDIN int cudnnBackendCreateDescriptor(int kind, void **made) {
  *made = new Descriptor(kind);
  return 0;
}
STANDIN int cudnnBackendDestroyDescriptor(void *descriptor) {
  delete as(descriptor);
  return 0;
}

STANDIN int cudnnBackendSetAttribute(void *descriptor, int attribute, int type,
                                     int64_t count, const void *values) {
  size_t size = sizeOfAttribute(type);
  if (size == 0 || as(descriptor)->finalized) {
    Machine::get().violation("sets an attribute of an unknown type, or of a "
                             "finalized descriptor");
    return kDnnBadParameter;
  }
  if (type == kDnnIsDescriptor)
    for (int64_t i = 0; i < count; ++i)
      if (!static_cast<Descriptor *const *>(values)[i]->finalized) {
        Machine::get().violation("uses a descriptor that is not finalized");
        return kDnnBadParameter;
      }
  auto *from = static_cast<const char *>(values);
  as(descriptor)->attributes[attribute] = {from, from + size_t(count) * size};
  return 0;
}

STANDIN int cudnnBackendGetAttribute(void *descriptor, int attribute, int type,
                                     int64_t most, int64_t *count,
                                     void *values) {
  Descriptor *from = as(descriptor);
  if (!from->finalized)
    return kDnnBadParameter;
  if (attribute == kDnnHeurResults)
    return list(*from, most, count, static_cast<void **>(values));
  if (attribute == kDnnEngineNotes) {
    auto notes = enginesOf(*from->one<Descriptor *>(
        kDnnEngineGraph))[size_t(from->one<int64_t>(kDnnEngineIndex))]
                     .notes;
    from->attributes[attribute].assign(
        reinterpret_cast<char *>(notes.data()),
        reinterpret_cast<char *>(notes.data() + notes.size()));
  }
  if (attribute == kDnnPlanWorkspace)
    from->set(attribute, engineOf(*from).workspace);
  const std::vector<char> &held = from->attributes[attribute];
  *count = int64_t(held.size() / sizeOfAttribute(type));
  if (type != kDnnIsDescriptor) {
    std::memcpy(values, held.data(),
                std::min(held.size(), size_t(most) * sizeOfAttribute(type)));
    return 0;
  }
  // Descriptors are copied into those that are given.
  for (int64_t i = 0; i < std::min(*count, most); ++i)
    as(static_cast<void **>(values)[i])
        ->copy(*from->all<Descriptor *>(attribute)[size_t(i)]);
  return 0;
}

STANDIN int cudnnBackendFinalize(void *descriptor) {
  Descriptor *made = as(descriptor);
  int status = 0;
  if (made->kind == kDnnTensor)
    status = finalizeTensor(*made);
  else if (made->kind == kDnnEngine)
    status = finalizeEngine(*made);
  else if (made->kind == kDnnEngineConfig)
    status = finalizeConfig(*made);
  else if (made->kind == kDnnPlan &&
           Machine::get().refuses("cudnn", /*counts=*/false))
    status = kDnnNotSupported;
  else if (made->kind == kDnnGraph)
    status = checkOperations(*made) ? 0 : kDnnNotSupported;
  made->finalized = status == 0;
  return status;
}

STANDIN int cudnnBackendExecute(void *, void *plan, void *pack) {
  Machine &machine = Machine::get();
  if (machine.enter("cudnnBackendExecute", ""))
    return kFailed;
  auto *engine = as(plan)
                     ->one<Descriptor *>(kDnnPlanConfig)
                     ->one<Descriptor *>(kDnnConfigEngine);
  auto index = engine->one<int64_t>(kDnnEngineIndex);
  auto *graph = engine->one<Descriptor *>(kDnnEngineGraph);
  int64_t bytes = engineOf(*as(plan)).workspace;
  auto *workspace = as(pack)->one<void *>(kDnnPackWorkspace);
  Operations operations(*graph, index == kTensorCoreEngine);
  std::string wrong = operations.bind(as(pack)->all<int64_t>(kDnnPackIds),
                                      as(pack)->all<void *>(kDnnPackPointers));
  if (wrong.empty() &&
      (!current || !machine.deviceBlock(reinterpret_cast<uint64_t>(workspace),
                                        size_t(bytes))))
    wrong = "cudnnBackendExecute with a workspace that is none";
  if (!wrong.empty()) {
    machine.violation(wrong);
    return kDnnBadParameter;
  }
  machine.log("cudnnBackendExecute engine " + std::to_string(index));
  Launch made;
  made.name = "cudnnBackendExecute";
  made.shape = operations.shape();
  made.body = [operations, workspace, bytes] {
    // What an engine leaves in its workspace is no one's.
    std::memset(workspace, 0xA5, size_t(bytes));
    operations.run();
  };
  return machine.enqueue(current, std::move(made)) ? kDnnBadParameter : 0;
}
