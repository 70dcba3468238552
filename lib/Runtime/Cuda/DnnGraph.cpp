//===- DnnGraph.cpp - an operation graph of cuDNN -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DnnGraph.h"

#include <algorithm>
#include <tuple>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

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
