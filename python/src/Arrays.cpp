//===- Arrays.cpp - arrays of Python as tensors of ckopt ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Bindings.h"

using namespace ckopt;
using namespace ckopt::python;

using Code = nb::dlpack::dtype_code;

std::optional<DType> python::typeOf(nb::dlpack::dtype type) {
  if (type.lanes != 1)
    return std::nullopt;
  switch (Code(type.code)) {
  case Code::Float:
    return type.bits == 64   ? std::optional(DType::F64)
           : type.bits == 32 ? std::optional(DType::F32)
           : type.bits == 16 ? std::optional(DType::F16)
                             : std::nullopt;
  case Code::Bfloat:
    return type.bits == 16 ? std::optional(DType::BF16) : std::nullopt;
  case Code::Int:
    return type.bits == 64   ? DType::I64
           : type.bits == 32 ? DType::I32
           : type.bits == 16 ? DType::I16
                             : DType::I8;
  case Code::UInt:
    return type.bits == 64   ? DType::U64
           : type.bits == 32 ? DType::U32
           : type.bits == 16 ? DType::U16
                             : DType::U8;
  case Code::Bool:
    return type.bits == 8 ? std::optional(DType::Bool) : std::nullopt;
  default:
    return std::nullopt;
  }
}

nb::dlpack::dtype python::dlpackOf(DType type) {
  Code code = type == DType::BF16   ? Code::Bfloat
              : isFloat(type)       ? Code::Float
              : type == DType::Bool ? Code::Bool
              : type == DType::U8 || type == DType::U16 || type == DType::U32 ||
                      type == DType::U64
                  ? Code::UInt
                  : Code::Int;
  return {uint8_t(code), uint8_t(dtypeSize(type) * 8), 1};
}

TensorMap python::toTensors(const nb::dict &arrays) {
  using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
  TensorMap result;
  for (auto [key, value] : arrays) {
    std::string name = nb::cast<std::string>(key);
    Array array;
    if (!nb::try_cast(value, array, /*convert=*/false))
      throw Failure{ExitInputError,
                    "'" + name + "' is no contiguous array on the CPU"};
    auto type = typeOf(array.dtype());
    if (!type)
      throw Failure{ExitInputError,
                    "'" + name +
                        "' has elements of a type that ckopt does "
                        "not know"};
    std::vector<int64_t> shape;
    for (size_t i = 0; i < array.ndim(); ++i)
      shape.push_back(int64_t(array.shape(i)));
    auto owner = std::make_shared<Array>(array);
    result.set(name, HostTensor::view(
                         *type, std::move(shape), owner->data(),
                         std::shared_ptr<const void>(owner, owner->data())));
  }
  return result;
}

nb::dict python::toArrays(TensorMap tensors) {
  nb::dict result;
  for (auto &[name, tensor] : tensors) {
    HostTensor value = tensor.dtype() == DType::BF16 // numpy has none
                           ? take(tensor.convertTo(DType::F32))
                           : std::move(tensor);
    auto *kept = new HostTensor(std::move(value));
    nb::capsule owner(
        kept, [](void *p) noexcept { delete static_cast<HostTensor *>(p); });
    std::vector<size_t> shape(kept->shape().begin(), kept->shape().end());
    nb::ndarray<nb::numpy> array(kept->mutableRawData(), shape.size(),
                                 shape.data(), owner, nullptr,
                                 dlpackOf(kept->dtype()));
    result[name.c_str()] = array.cast();
  }
  return result;
}
