//===- Tensors.cpp - named tensors between host and arena -----------------===//
//
// Host data is row-major in the logical shape; the arena holds what the plan
// chose. Copies go run by run along the last logical dimension; equal type and
// dense order is one memcpy. Linear in the elements.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

using namespace ckopt::runtime;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static uint16_t bf16FromFloat(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) // keeps a NaN a NaN
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16);
}

static float floatFromF16(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1F, fraction = half & 0x3FFu;
  if (exponent == 0x1F)
    return std::bit_cast<float>(sign | 0x7F800000u | (fraction << 13));
  if (exponent == 0) {
    float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) |
                              (fraction << 13));
}

/// Rounds to nearest, ties to even; double in, so that there is one rounding.
static uint16_t f16FromDouble(double value) {
  auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  double magnitude = std::fabs(value);
  if (std::isnan(value))
    return sign | 0x7E00;
  if (magnitude >= 65520.0)
    return sign | 0x7C00;
  if (magnitude < 0x1p-14) // denormal: multiples of 2^-24
    return sign | static_cast<uint16_t>(std::nearbyint(magnitude * 0x1p24));
  int exponent;
  double fraction = std::frexp(magnitude, &exponent); // in [0.5, 1)
  auto mantissa = static_cast<uint32_t>(std::nearbyint(fraction * 2048.0));
  // A carry out of the mantissa moves into the exponent by itself.
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) +
                                      static_cast<int>(mantissa) - 1024);
}

template <typename T> static T loadAs(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T> static void storeAs(char *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

static bool isFloat(DType dtype) {
  return static_cast<uint32_t>(dtype) <= static_cast<uint32_t>(DType::BF16);
}

static int64_t loadInteger(DType dtype, const char *at) {
  switch (dtype) {
  case DType::I64:
    return loadAs<int64_t>(at);
  case DType::I32:
    return loadAs<int32_t>(at);
  case DType::I16:
    return loadAs<int16_t>(at);
  case DType::I8:
    return loadAs<int8_t>(at);
  case DType::U8:
    return loadAs<uint8_t>(at);
  case DType::Bool:
    return loadAs<uint8_t>(at) != 0;
  case DType::U64: // as the same bits; who needs the value asks first
    return static_cast<int64_t>(loadAs<uint64_t>(at));
  case DType::U32:
    return loadAs<uint32_t>(at);
  case DType::U16:
    return loadAs<uint16_t>(at);
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    break;
  }
  return 0;
}

/// False if the value is out of the type's range.
static bool storeInteger(DType dtype, char *at, int64_t value) {
  auto put = [&](auto low, auto high) {
    using T = decltype(low);
    storeAs<T>(at, static_cast<T>(value));
    return value >= static_cast<int64_t>(low) &&
           value <= static_cast<int64_t>(high);
  };
  switch (dtype) {
  case DType::I64:
    storeAs<int64_t>(at, value);
    return true;
  case DType::I32:
    return put(std::numeric_limits<int32_t>::min(),
               std::numeric_limits<int32_t>::max());
  case DType::I16:
    return put(std::numeric_limits<int16_t>::min(),
               std::numeric_limits<int16_t>::max());
  case DType::I8:
    return put(std::numeric_limits<int8_t>::min(),
               std::numeric_limits<int8_t>::max());
  case DType::U8:
    return put(uint8_t(0), std::numeric_limits<uint8_t>::max());
  case DType::Bool:
    return put(uint8_t(0), uint8_t(1));
  case DType::U64:
    storeAs<uint64_t>(at, static_cast<uint64_t>(value));
    return value >= 0;
  case DType::U32:
    return put(uint32_t(0), std::numeric_limits<uint32_t>::max());
  case DType::U16:
    return put(uint16_t(0), std::numeric_limits<uint16_t>::max());
  case DType::F64:
  case DType::F32:
  case DType::F16:
  case DType::BF16:
    break;
  }
  return false;
}

double ckopt::runtime::loadElement(DType dtype, const char *at) {
  switch (dtype) {
  case DType::F64:
    return loadAs<double>(at);
  case DType::F32:
    return loadAs<float>(at);
  case DType::F16:
    return floatFromF16(loadAs<uint16_t>(at));
  case DType::BF16:
    return std::bit_cast<float>(uint32_t(loadAs<uint16_t>(at)) << 16);
  case DType::U64:
    return static_cast<double>(loadAs<uint64_t>(at));
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
  case DType::U8:
  case DType::Bool:
  case DType::U32:
  case DType::U16:
    break;
  }
  return static_cast<double>(loadInteger(dtype, at));
}

void ckopt::runtime::storeElement(DType dtype, char *at, double value) {
  switch (dtype) {
  case DType::F64:
    return storeAs<double>(at, value);
  case DType::F32:
    return storeAs<float>(at, static_cast<float>(value));
  case DType::F16:
    return storeAs<uint16_t>(at, f16FromDouble(value));
  case DType::BF16:
    return storeAs<uint16_t>(at, bf16FromFloat(static_cast<float>(value)));
  case DType::U64:
    return storeAs<uint64_t>(at, static_cast<uint64_t>(value));
  case DType::I64:
  case DType::I32:
  case DType::I16:
  case DType::I8:
  case DType::U8:
  case DType::Bool:
  case DType::U32:
  case DType::U16:
    storeInteger(dtype, at, static_cast<int64_t>(value));
  }
}

/// One element from one type to another; false if out of range.
static bool convert(DType to, char *dst, DType from, const char *src) {
  if (isFloat(to)) {
    storeElement(to, dst, loadElement(from, src));
    return true;
  }
  int64_t value = loadInteger(from, src);
  bool beyond = from == DType::U64 && value < 0; // 2^63 or more
  return storeInteger(to, dst, value) && !beyond;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

namespace {

template <typename T>
void copyRun(char *dst, int64_t dstStep, const char *src, int64_t srcStep,
             int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(dst + i * dstStep * int64_t(sizeof(T)),
                src + i * srcStep * int64_t(sizeof(T)), sizeof(T));
}

/// Strided run of equal types.
void copySame(int64_t size, char *dst, int64_t dstStep, const char *src,
              int64_t srcStep, int64_t count) {
  if (dstStep == 1 && srcStep == 1)
    std::memcpy(dst, src, static_cast<size_t>(count * size));
  else if (size == 8)
    copyRun<uint64_t>(dst, dstStep, src, srcStep, count);
  else if (size == 4)
    copyRun<uint32_t>(dst, dstStep, src, srcStep, count);
  else if (size == 2)
    copyRun<uint16_t>(dst, dstStep, src, srcStep, count);
  else
    copyRun<uint8_t>(dst, dstStep, src, srcStep, count);
}

ckrt_status checkTransfer(const ckrt_session *session, int64_t tensor,
                          const void *data, uint32_t dtype, int64_t elements,
                          const char *entry) {
  if (!session || !session->valid(tensor))
    return fail(CKRT_INVALID_ARGUMENT,
                std::string(entry) + ": no tensor " + std::to_string(tensor));
  const TensorInfo &t = session->manifest().tensors[tensor];
  if (dtype >= kNumDTypes)
    return fail(CKRT_INVALID_ARGUMENT,
                std::string(entry) + ": unknown element type");
  if (elements != elementCount(t))
    return fail(CKRT_MISMATCH, "tensor '" + t.name + "' has " +
                                   std::to_string(elementCount(t)) +
                                   " elements, the host's buffer " +
                                   std::to_string(elements));
  if (elements && !data)
    return fail(CKRT_INVALID_ARGUMENT, std::string(entry) + ": null buffer");
  return CKRT_OK;
}

ckrt_status refuseConversion(const TensorInfo &t, DType from, DType to) {
  if (isFloat(to) || !isFloat(from))
    return CKRT_OK;
  return fail(CKRT_MISMATCH,
              "tensor '" + t.name + "' is " + std::string(dtypeName(t.dtype)) +
                  "; will not turn " + std::string(dtypeName(from)) + " into " +
                  std::string(dtypeName(to)));
}

} // namespace

ckrt_status ckrt_tensor_write(ckrt_session *session, int64_t tensor,
                              const void *data, ckrt_dtype dtype,
                              int64_t elements) {
  ckrt_status status = checkTransfer(session, tensor, data, dtype, elements,
                                     "ckrt_tensor_write");
  if (status != CKRT_OK)
    return status;
  const TensorInfo &t = session->manifest().tensors[tensor];
  auto from = static_cast<DType>(dtype);
  status = refuseConversion(t, from, t.dtype);
  if (status != CKRT_OK)
    return status;
  OpenTensor open(*session, t, accessToWrite(t));
  if (open.status != CKRT_OK)
    return open.status;
  char *base = open.bytes;
  auto *host = static_cast<const char *>(data);
  int64_t size = dtypeBytes(t.dtype), hostSize = dtypeBytes(from);
  int64_t wrong = -1;
  forEachRun(t, [&](int64_t logical, int64_t offset, int64_t count,
                    int64_t step) {
    char *dst = base + offset * size;
    const char *src = host + logical * hostSize;
    if (from == t.dtype && from != DType::Bool)
      return copySame(size, dst, step, src, 1, count);
    for (int64_t i = 0; i < count; ++i)
      if (!convert(t.dtype, dst + i * step * size, from, src + i * hostSize) &&
          wrong < 0)
        wrong = logical + i;
  });
  if (ckrt_status closed = open.close())
    return closed;
  if (wrong >= 0)
    return fail(CKRT_MISMATCH,
                "tensor '" + t.name + "': element " + std::to_string(wrong) +
                    " (" +
                    std::to_string(loadInteger(from, host + wrong * hostSize)) +
                    ") does not fit in " + std::string(dtypeName(t.dtype)));
  return CKRT_OK;
}

ckrt_status ckrt_tensor_read(ckrt_session *session, int64_t tensor, void *data,
                             ckrt_dtype dtype, int64_t elements) {
  ckrt_status status =
      checkTransfer(session, tensor, data, dtype, elements, "ckrt_tensor_read");
  if (status != CKRT_OK)
    return status;
  const TensorInfo &t = session->manifest().tensors[tensor];
  auto to = static_cast<DType>(dtype);
  status = refuseConversion(t, t.dtype, to);
  if (status != CKRT_OK)
    return status;
  OpenTensor open(*session, t, Access::Read);
  if (open.status != CKRT_OK)
    return open.status;
  const char *base = open.bytes;
  auto *host = static_cast<char *>(data);
  int64_t size = dtypeBytes(t.dtype), hostSize = dtypeBytes(to);
  bool fits = true;
  forEachRun(t, [&](int64_t logical, int64_t offset, int64_t count,
                    int64_t step) {
    const char *src = base + offset * size;
    char *dst = host + logical * hostSize;
    if (to == t.dtype)
      return copySame(size, dst, 1, src, step, count);
    for (int64_t i = 0; i < count; ++i)
      fits &= convert(to, dst + i * hostSize, t.dtype, src + i * step * size);
  });
  return fits ? CKRT_OK
              : fail(CKRT_MISMATCH, "tensor '" + t.name +
                                        "' holds values that do not fit in " +
                                        std::string(dtypeName(to)));
}

ckrt_status ckrt_tensor_fill(ckrt_session *session, int64_t tensor,
                             double value) {
  if (!session || !session->valid(tensor))
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_tensor_fill: no tensor " + std::to_string(tensor));
  const TensorInfo &t = session->manifest().tensors[tensor];
  char element[8] = {};
  storeElement(t.dtype, element, value);
  if (!isFloat(t.dtype) && loadElement(t.dtype, element) != value)
    return fail(CKRT_MISMATCH,
                "tensor '" + t.name + "': " + std::to_string(value) +
                    " is no value of " + std::string(dtypeName(t.dtype)));
  OpenTensor open(*session, t, accessToWrite(t));
  if (open.status != CKRT_OK)
    return open.status;
  char *base = open.bytes;
  int64_t size = dtypeBytes(t.dtype);
  forEachRun(t, [&](int64_t, int64_t offset, int64_t count, int64_t step) {
    copySame(size, base + offset * size, step, element, 0, count);
  });
  return open.close();
}

//===----------------------------------------------------------------------===//
// Getters
//===----------------------------------------------------------------------===//

int64_t ckrt_tensor_count(const ckrt_session *session) {
  return static_cast<int64_t>(session->manifest().tensors.size());
}

int64_t ckrt_tensor_find(const ckrt_session *session, const char *name) {
  const auto &tensors = session->manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].name == name)
      return static_cast<int64_t>(i);
  return -1;
}

int64_t ckrt_tensor_find_in(const ckrt_session *session, const char *function,
                            const char *name) {
  for (const FunctionInfo &f : session->manifest().functions) {
    if (f.name != function)
      continue;
    for (const auto *indices : {&f.inputs, &f.outputs})
      for (int32_t index : *indices)
        if (session->manifest().tensors[index].name == name)
          return index;
  }
  return -1;
}

const char *ckrt_tensor_name(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor)
             ? session->manifest().tensors[tensor].name.c_str()
             : "";
}

const char *ckrt_tensor_role(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor)
             ? roleName(session->manifest().tensors[tensor].role).data()
             : "";
}

ckrt_dtype ckrt_tensor_dtype(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor) ? static_cast<ckrt_dtype>(
                                      session->manifest().tensors[tensor].dtype)
                                : CKRT_F64;
}

int64_t ckrt_tensor_rank(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor)
             ? static_cast<int64_t>(
                   session->manifest().tensors[tensor].shape.size())
             : -1;
}

const int64_t *ckrt_tensor_shape(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor)
             ? session->manifest().tensors[tensor].shape.data()
             : nullptr;
}

int64_t ckrt_tensor_elements(const ckrt_session *session, int64_t tensor) {
  return session->valid(tensor)
             ? elementCount(session->manifest().tensors[tensor])
             : -1;
}
