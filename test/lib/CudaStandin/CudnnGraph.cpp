//===- CudnnGraph.cpp - graphs of the stand-in's cuDNN --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads operations and tensors from descriptors, and checks the addresses of an
// execution against live memory and the alignment that was said.
//
//===----------------------------------------------------------------------===//
#include "CudnnGraph.h"

#include "Machine.h"

#include <set>

using namespace standin;

namespace {

/// Attributes of an operation's tensors and of its parameters.
struct Names {
  int kind;
  std::vector<int> inputs, outputs;
  int parameters;
};
const std::vector<Names> &knownOperations() {
  static const std::vector<Names> all = {
      {kDnnMatMulOp, {kDnnMatMulA, kDnnMatMulB}, {kDnnMatMulC}, kDnnMatMulDesc},
      {kDnnPointwiseOp,
       {kDnnPointwiseX, kDnnPointwiseB, kDnnPointwiseT},
       {kDnnPointwiseY},
       kDnnPointwiseDesc},
      {kDnnReductionOp, {kDnnReductionX}, {kDnnReductionY}, kDnnReductionDesc},
      {kDnnReshapeOp, {kDnnReshapeX}, {kDnnReshapeY}, -1},
      {kDnnConvForwardOp,
       {kDnnForwardX, kDnnForwardW},
       {kDnnForwardY},
       kDnnForwardConv},
      {kDnnConvDataOp, {kDnnDataY, kDnnDataW}, {kDnnDataX}, kDnnDataConv},
      {kDnnConvFilterOp,
       {kDnnFilterX, kDnnFilterY},
       {kDnnFilterW},
       kDnnFilterConv}};
  return all;
}

const Names *namesOf(int kind) {
  for (const Names &names : knownOperations())
    if (names.kind == kind)
      return &names;
  return nullptr;
}

int64_t idOf(const Descriptor *tensor) {
  return tensor ? tensor->one<int64_t>(kDnnTensorId) : 0;
}

bool isConvolution(int kind) {
  return kind == kDnnConvForwardOp || kind == kDnnConvDataOp ||
         kind == kDnnConvFilterOp;
}

} // namespace

size_t standin::sizeOfAttribute(int type) {
  switch (type) {
  case kDnnIsBool:
    return 1;
  case kDnnIsType:
  case kDnnIsFloat:
  case kDnnIsConvMode:
  case kDnnIsHeurMode:
  case kDnnIsKnob:
  case kDnnIsNote:
  case kDnnIsPointwiseMode:
  case kDnnIsReduction:
    return 4;
  case kDnnIsHandle:
  case kDnnIsInt64:
  case kDnnIsDouble:
  case kDnnIsPointer:
  case kDnnIsDescriptor:
    return 8;
  default:
    return 0;
  }
}

size_t standin::bytesOfType(int type) {
  return type == kDnnDouble                         ? 8
         : type == kDnnFloat || type == kDnnInt32   ? 4
         : type == kDnnHalf || type == kDnnBFloat16 ? 2
                                                    : 1;
}

bool standin::checkOperations(const Descriptor &graph) {
  std::set<int64_t> ready;
  for (Descriptor *op : graph.all<Descriptor *>(kDnnGraphOps)) {
    const Names *names = namesOf(op->kind);
    if (!names)
      return false;
    for (int name : names->inputs) {
      auto *tensor = op->one<Descriptor *>(name);
      if (tensor && tensor->one<bool>(kDnnTensorIsVirtual) &&
          !ready.count(idOf(tensor)))
        return false;
      if (isConvolution(op->kind) &&
          (!tensor || tensor->all<int64_t>(kDnnTensorSizes).size() < 4))
        return false;
    }
    for (int name : names->outputs)
      ready.insert(idOf(op->one<Descriptor *>(name)));
  }
  return true;
}

Operations::Operations(const Descriptor &graph, bool tensorCores)
    : tensorCores(tensorCores) {
  for (Descriptor *from : graph.all<Descriptor *>(kDnnGraphOps)) {
    const Names &names = *namesOf(from->kind);
    Operation op;
    op.kind = from->kind;
    auto take = [&](const std::vector<int> &attributes,
                    std::vector<int64_t> &ids) {
      for (int attribute : attributes) {
        auto *tensor = from->one<Descriptor *>(attribute);
        ids.push_back(idOf(tensor));
        if (!tensor)
          continue;
        Tensor &t = tensors[ids.back()];
        t.type = tensor->one<int>(kDnnTensorType);
        t.sizes = tensor->all<int64_t>(kDnnTensorSizes);
        t.strides = tensor->all<int64_t>(kDnnTensorStrides);
        t.alignment = tensor->one<int64_t>(kDnnTensorAlignment);
        t.isVirtual = tensor->one<bool>(kDnnTensorIsVirtual);
        t.isNumber = tensor->one<bool>(kDnnTensorIsByValue);
      }
    };
    take(names.inputs, op.inputs);
    take(names.outputs, op.outputs);
    if (names.parameters >= 0) {
      auto *how = from->one<Descriptor *>(names.parameters);
      bool reduces = op.kind == kDnnReductionOp;
      op.mode =
          how->one<int>(reduces ? kDnnReductionOperator : kDnnPointwiseMode);
      op.axis = how->attributes.count(kDnnPointwiseAxis)
                    ? how->one<int64_t>(kDnnPointwiseAxis)
                    : -1;
      op.pads = how->all<int64_t>(kDnnConvPadsLo);
      op.strides = how->all<int64_t>(kDnnConvStrides);
      op.dilations = how->all<int64_t>(kDnnConvDilations);
    }
    operations.push_back(std::move(op));
  }
}

std::string Operations::bind(const std::vector<int64_t> &ids,
                             const std::vector<void *> &pointers) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (auto found = tensors.find(ids[i]); found != tensors.end())
      found->second.at = pointers[i];
  for (auto &[id, tensor] : tensors) {
    if (tensor.isVirtual != !tensor.at)
      return "cudnnBackendExecute without an address, or with one for a "
             "tensor that has none";
    if (tensor.isNumber)
      tensor.number = *static_cast<const float *>(tensor.at);
    if (tensor.isVirtual || tensor.isNumber)
      continue;
    int64_t last = 0;
    for (size_t d = 0; d < tensor.sizes.size(); ++d)
      last += (tensor.sizes[d] - 1) * tensor.strides[d];
    auto at = reinterpret_cast<uint64_t>(tensor.at);
    if (at % uint64_t(tensor.alignment) ||
        !Machine::get().deviceBlock(at, size_t(last + 1) *
                                            bytesOfType(tensor.type)))
      return "cudnnBackendExecute with a tensor that is outside of live "
             "memory, or less aligned than said";
  }
  return "";
}

std::string Operations::shape() const {
  std::string text;
  for (const auto &[id, tensor] : tensors)
    if (!tensor.isVirtual)
      for (int64_t size : tensor.sizes)
        text += std::to_string(size) + "x";
  return text;
}
