//===- HostTensor.cpp - a dense row-major tensor in host memory -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Copies are O(1) until written, reads O(1) an element.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/MemAlloc.h"
#include <cstring>

using namespace llvm;

namespace ckopt {

Expected<int64_t> checkedNumElements(ArrayRef<int64_t> shape,
                                     int64_t elementSize) {
  int64_t count = 0;
  const std::string error = countElements(shape, elementSize, count);
  if (!error.empty())
    return inputError(error);
  return count;
}

std::string indexString(int64_t i, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = shape[d] ? i % shape[d] : 0;
    i = shape[d] ? i / shape[d] : 0;
  }
  return shapeString(index);
}

static int64_t product(ArrayRef<int64_t> shape) {
  int64_t result = 1;
  for (int64_t extent : shape) {
    assert(extent >= 0 && "shapes from files go through checkedNumElements");
    result *= extent;
  }
  return result;
}

static std::shared_ptr<const void> allocate(int64_t size) {
  // Aligning to cache lines keeps vector loads aligned; at least one byte is
  // allocated, so that the pointer is never null.
  void *memory = allocate_buffer(size_t(std::max<int64_t>(size, 1)), 64);
  return std::shared_ptr<const void>(memory, [size](const void *memory) {
    deallocate_buffer(const_cast<void *>(memory),
                      size_t(std::max<int64_t>(size, 1)), 64);
  });
}

HostTensor::HostTensor(DType dtype, std::vector<int64_t> shape)
    : type(dtype), writable(true), count(product(shape)),
      extents(std::move(shape)) {
  owner = allocate(sizeInBytes());
  bytes = owner.get();
  std::memset(const_cast<void *>(bytes), 0, size_t(sizeInBytes()));
}

HostTensor HostTensor::view(DType dtype, std::vector<int64_t> shape,
                            const void *data,
                            std::shared_ptr<const void> keeper) {
  if (reinterpret_cast<uintptr_t>(data) % uintptr_t(dtypeSize(dtype))) {
    HostTensor copy(dtype, std::move(shape));
    std::memcpy(copy.mutableRawData(), data, size_t(copy.sizeInBytes()));
    return copy;
  }
  HostTensor result;
  result.type = dtype;
  result.count = product(shape);
  result.extents = std::move(shape);
  result.bytes = data;
  result.owner = std::move(keeper);
  return result;
}

void HostTensor::makeUnique() {
  if (writable && owner.use_count() == 1)
    return;
  std::shared_ptr<const void> copy = allocate(sizeInBytes());
  if (count)
    std::memcpy(const_cast<void *>(copy.get()), bytes, size_t(sizeInBytes()));
  owner = std::move(copy);
  bytes = owner.get();
  writable = true;
}

std::string HostTensor::typeString() const {
  return std::string(dtypeName(type)) + " " + shapeString(extents);
}

HostTensor HostTensor::reshaped(std::vector<int64_t> shape) const {
  assert(product(shape) == count && "a reshape keeps the elements");
  HostTensor result = *this;
  result.extents = std::move(shape);
  return result;
}

double HostTensor::getDouble(int64_t i) const {
  return dispatchDType(type, [&](auto zero) {
    return double(static_cast<const decltype(zero) *>(bytes)[i]);
  });
}

int64_t HostTensor::getInt(int64_t i) const {
  return dispatchDType(type, [&](auto zero) {
    using T = decltype(zero);
    const T value = static_cast<const T *>(bytes)[i];
    if constexpr (std::is_integral_v<T>)
      return int64_t(value);
    else
      return int64_t(double(value));
  });
}

void HostTensor::setDouble(int64_t i, double value) {
  void *memory = mutableRawData();
  dispatchDType(type, [&](auto zero) {
    using T = decltype(zero);
    static_cast<T *>(memory)[i] = T(value);
  });
}

bool HostTensor::bitEqual(const HostTensor &other) const {
  return type == other.type && extents == other.extents &&
         (count == 0 ||
          std::memcmp(bytes, other.bytes, size_t(sizeInBytes())) == 0);
}

bool TensorMap::insert(StringRef name, HostTensor tensor) {
  if (!index.try_emplace(name, entries.size()).second)
    return false;
  entries.emplace_back(name.str(), std::move(tensor));
  return true;
}

void TensorMap::set(StringRef name, HostTensor tensor) {
  if (HostTensor *old = find(name))
    *old = std::move(tensor);
  else
    insert(name, std::move(tensor));
}

const HostTensor *TensorMap::find(StringRef name) const {
  auto it = index.find(name);
  return it == index.end() ? nullptr : &entries[it->second].second;
}
HostTensor *TensorMap::find(StringRef name) {
  auto it = index.find(name);
  return it == index.end() ? nullptr : &entries[it->second].second;
}

} // namespace ckopt
