//===- DnnGraph.cpp - an operation graph of cuDNN -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {
/// Heuristics list no more configurations than this, in each of their modes.
constexpr int kMostConfigs = 16;
constexpr int kMostKnobs = 64, kMostNotes = 32;
} // namespace

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

void *DnnGraph::make(int kind) {
  void *raw = nullptr;
  if (status == 0)
    status = dnn.make(kind, &raw);
  if (status != 0)
    return nullptr;
  kept.emplace_back(dnn, raw);
  return raw;
}

void DnnGraph::set(void *descriptor, int attribute, int type, int64_t count,
                   const void *values) {
  if (status == 0)
    status = dnn.set(descriptor, attribute, type, count, values);
}

void DnnGraph::set(void *descriptor, int attribute, Tensor tensor) {
  if (tensor == kNone || status != 0)
    return;
  void *raw = tensors[static_cast<size_t>(tensor)].descriptor.get();
  set(descriptor, attribute, kDnnIsDescriptor, 1, &raw);
}

void DnnGraph::finalize(void *descriptor) {
  if (status == 0)
    status = dnn.finalize(descriptor);
}

void DnnGraph::addOperation(void *descriptor) {
  finalize(descriptor);
  operations.push_back(descriptor);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

DnnGraph::Tensor DnnGraph::add(int type, const Extents &sizes,
                               const Extents &strides, bool isVirtual,
                               bool isNumber, int64_t bytes) {
  void *raw = nullptr;
  if (status == 0)
    status = dnn.make(kDnnTensor, &raw);
  auto id = static_cast<int64_t>(tensors.size()) + 1;
  tensors.push_back({DnnDescriptor(dnn, raw)});
  tensors.back().isNumber = isNumber;
  set(raw, kDnnTensorType, kDnnIsType, 1, &type);
  auto rank = static_cast<int64_t>(sizes.size());
  set(raw, kDnnTensorSizes, kDnnIsInt64, rank, sizes.data());
  set(raw, kDnnTensorStrides, kDnnIsInt64, rank, strides.data());
  set(raw, kDnnTensorId, kDnnIsInt64, 1, &id);
  set(raw, kDnnTensorAlignment, kDnnIsInt64, 1, &bytes);
  set(raw, kDnnTensorIsVirtual, kDnnIsBool, 1, &isVirtual);
  set(raw, kDnnTensorIsByValue, kDnnIsBool, 1, &isNumber);
  finalize(raw);
  return static_cast<Tensor>(tensors.size()) - 1;
}

DnnGraph::Tensor DnnGraph::argument(size_t place, int type,
                                    const Extents &sizes,
                                    const Extents &strides, int64_t most) {
  Tensor tensor =
      add(type, sizes, strides, false, false, std::min(alignment, most));
  tensors.back().place = static_cast<int64_t>(place);
  return tensor;
}

DnnGraph::Tensor DnnGraph::inWorkspace(int type, const Extents &sizes,
                                       const Extents &strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d)
    last += (sizes[d] - 1) * strides[d];
  int64_t bytes = (last + 1) * (type == kDnnDouble  ? 8
                                : type == kDnnFloat ? 4
                                                    : 2);
  Tensor tensor = add(type, sizes, strides, false, false, alignment);
  tensors.back().offset = front;
  front += (bytes + 255) / 256 * 256;
  return tensor;
}

DnnGraph::Tensor DnnGraph::between(int type, const Extents &sizes,
                                   const Extents &strides) {
  return add(type, sizes, strides, true, false, alignment);
}

DnnGraph::Tensor DnnGraph::number(float value, size_t rank) {
  Extents ones(rank, 1);
  Tensor tensor = add(kDnnFloat, ones, ones, false, true, alignment);
  tensors.back().value = value;
  return tensor;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

void DnnGraph::matmul(Tensor a, Tensor b, Tensor c) {
  void *how = make(kDnnMatMul);
  int type = kDnnFloat;
  set(how, kDnnMatMulType, kDnnIsType, 1, &type);
  finalize(how);
  void *op = make(kDnnMatMulOp);
  set(op, kDnnMatMulA, a);
  set(op, kDnnMatMulB, b);
  set(op, kDnnMatMulC, c);
  set(op, kDnnMatMulDesc, kDnnIsDescriptor, 1, &how);
  addOperation(op);
}

void DnnGraph::pointwise(int mode, Tensor x, Tensor b, Tensor t, Tensor y,
                         int type, int64_t axis) {
  void *how = make(kDnnPointwise);
  set(how, kDnnPointwiseMode, kDnnIsPointwiseMode, 1, &mode);
  set(how, kDnnPointwiseType, kDnnIsType, 1, &type);
  if (axis >= 0)
    set(how, kDnnPointwiseAxis, kDnnIsInt64, 1, &axis);
  finalize(how);
  void *op = make(kDnnPointwiseOp);
  set(op, kDnnPointwiseDesc, kDnnIsDescriptor, 1, &how);
  set(op, kDnnPointwiseX, x);
  set(op, kDnnPointwiseB, b);
  set(op, kDnnPointwiseT, t);
  set(op, kDnnPointwiseY, y);
  addOperation(op);
}

void DnnGraph::reduce(int mode, Tensor x, Tensor y) {
  void *how = make(kDnnReduction);
  int type = kDnnFloat;
  set(how, kDnnReductionType, kDnnIsType, 1, &type);
  set(how, kDnnReductionOperator, kDnnIsReduction, 1, &mode);
  finalize(how);
  void *op = make(kDnnReductionOp);
  set(op, kDnnReductionDesc, kDnnIsDescriptor, 1, &how);
  set(op, kDnnReductionX, x);
  set(op, kDnnReductionY, y);
  addOperation(op);
}

void DnnGraph::reshape(Tensor x, Tensor y) {
  void *op = make(kDnnReshapeOp);
  set(op, kDnnReshapeX, x);
  set(op, kDnnReshapeY, y);
  addOperation(op);
}

void DnnGraph::convolution(const ConvDesc &conv, PrimitiveKind kind, Tensor x,
                           Tensor w, Tensor y, int type) {
  struct Attributes {
    int op, conv, x, w, y, alpha, beta;
  };
  const Attributes names =
      kind == PrimitiveKind::ConvForward
          ? Attributes{kDnnConvForwardOp, kDnnForwardConv, kDnnForwardX,
                       kDnnForwardW,      kDnnForwardY,    kDnnForwardAlpha,
                       kDnnForwardBeta}
      : kind == PrimitiveKind::ConvInputGrad
          ? Attributes{kDnnConvDataOp, kDnnDataConv,  kDnnDataX,   kDnnDataW,
                       kDnnDataY,      kDnnDataAlpha, kDnnDataBeta}
          : Attributes{kDnnConvFilterOp, kDnnFilterConv, kDnnFilterX,
                       kDnnFilterW,      kDnnFilterY,    kDnnFilterAlpha,
                       kDnnFilterBeta};
  // The library wants two spatial dimensions at least.
  int64_t rank = std::max<int64_t>(conv.rank, 2);
  auto padded = [&](const int64_t *values, int64_t fill) {
    Extents all(static_cast<size_t>(rank), fill);
    std::copy(values, values + conv.rank, all.begin());
    return all;
  };
  void *how = make(kDnnConv);
  int mode = kDnnCrossCorrelation;
  set(how, kDnnConvType, kDnnIsType, 1, &type);
  set(how, kDnnConvMode, kDnnIsConvMode, 1, &mode);
  set(how, kDnnConvRank, kDnnIsInt64, 1, &rank);
  for (auto [attribute, values, fill] :
       {std::tuple(kDnnConvDilations, conv.dilations, 1),
        {kDnnConvStrides, conv.strides, 1},
        {kDnnConvPadsLo, conv.padsLo, 0},
        {kDnnConvPadsHi, conv.padsHi, 0}})
    set(how, attribute, kDnnIsInt64, rank, padded(values, fill).data());
  finalize(how);
  void *op = make(names.op);
  set(op, names.conv, kDnnIsDescriptor, 1, &how);
  set(op, names.x, x);
  set(op, names.w, w);
  set(op, names.y, y);
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  bool isF64 = type == kDnnDouble;
  int isNumber = isF64 ? kDnnIsDouble : kDnnIsFloat;
  set(op, names.alpha, isNumber, 1,
      isF64 ? static_cast<const void *>(&one64) : &one);
  set(op, names.beta, isNumber, 1,
      isF64 ? static_cast<const void *>(&zero64) : &zero);
  addOperation(op);
}

//===----------------------------------------------------------------------===//
// Engines
//===----------------------------------------------------------------------===//

void *DnnGraph::graph() {
  if (built || status != 0)
    return built;
  void *made = make(kDnnGraph);
  set(made, kDnnGraphOps, kDnnIsDescriptor,
      static_cast<int64_t>(operations.size()), operations.data());
  set(made, kDnnGraphHandle, kDnnIsHandle, 1, &handle);
  finalize(made);
  if (status == 0)
    built = made;
  return built;
}

bool DnnGraph::hasNote(void *engine, std::initializer_list<int> notes) const {
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

int DnnGraph::choose(int64_t workspace, std::initializer_list<int> notes,
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

int DnnGraph::restore(int64_t workspace, std::initializer_list<int> notes,
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

int DnnGraph::enqueue(const DevicePointer *args, DevicePointer workspace,
                      Stream stream) const {
  std::vector<int64_t> ids;
  std::vector<void *> pointers;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Entry &tensor = tensors[i];
    void *at = nullptr;
    if (tensor.place >= 0)
      at = reinterpret_cast<void *>(args[tensor.place]);
    else if (tensor.offset >= 0)
      at = reinterpret_cast<void *>(workspace +
                                    static_cast<DevicePointer>(tensor.offset));
    else if (tensor.isNumber)
      at = const_cast<float *>(&tensor.value);
    if (!at)
      continue;
    ids.push_back(static_cast<int64_t>(i) + 1);
    pointers.push_back(at);
  }
  auto *scratch =
      reinterpret_cast<void *>(workspace + static_cast<DevicePointer>(front));
  void *raw = nullptr;
  int ran = dnn.make(kDnnVariantPack, &raw);
  if (ran != 0)
    return ran;
  DnnDescriptor pack(dnn, raw);
  auto count = static_cast<int64_t>(ids.size());
  ran = dnn.set(raw, kDnnPackIds, kDnnIsInt64, count, ids.data());
  if (ran == 0)
    ran = dnn.set(raw, kDnnPackPointers, kDnnIsPointer, count, pointers.data());
  if (ran == 0)
    ran = dnn.set(raw, kDnnPackWorkspace, kDnnIsPointer, 1, &scratch);
  if (ran == 0)
    ran = dnn.finalize(raw);
  if (ran == 0)
    ran = dnn.setStream(handle, stream);
  return ran == 0 ? dnn.execute(handle, chosen, raw) : ran;
}
