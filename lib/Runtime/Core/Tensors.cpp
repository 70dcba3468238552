//===- Tensors.cpp - named tensors between host and arena -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies tensors between host and arena. Host data is row-major in the logical
// shape; in the arena the plan decides. Copies go along the last logical
// dimension; with equal type and dense order they are one memcpy. Linear in the
// elements.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

using namespace ckopt;
using namespace ckopt::runtime;

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

static_assert(
    CKRT_F64 == uint32_t(DType::F64) && CKRT_F32 == uint32_t(DType::F32) &&
        CKRT_F16 == uint32_t(DType::F16) &&
        CKRT_BF16 == uint32_t(DType::BF16) &&
        CKRT_I64 == uint32_t(DType::I64) && CKRT_I32 == uint32_t(DType::I32) &&
        CKRT_I16 == uint32_t(DType::I16) && CKRT_I8 == uint32_t(DType::I8) &&
        CKRT_U8 == uint32_t(DType::U8) && CKRT_BOOL == uint32_t(DType::Bool) &&
        CKRT_U64 == uint32_t(DType::U64) && CKRT_U32 == uint32_t(DType::U32) &&
        CKRT_U16 == uint32_t(DType::U16),
    "ckrt_dtype repeats the numbers of DType");

template <typename T> static T loadAs(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T> static void storeAs(char *at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

/// Reads an integer; 0 for floats. A u64 keeps its bits, so callers who need
/// the value check the type first.
static int64_t loadInteger(DType dtype, const char *at) {
  return dispatchDType(dtype, [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>)
      return *at != 0; // the host's byte may have any value
    else if constexpr (std::is_integral_v<T>)
      return static_cast<int64_t>(loadAs<T>(at));
    else
      return 0;
  });
}

/// Returns false if the value is out of the type's range.
static bool storeInteger(DType dtype, char *at, int64_t value) {
  return dispatchDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>)
      return false;
    else {
      storeAs<T>(at, static_cast<T>(value));
      if constexpr (std::is_same_v<T, bool>)
        return value == 0 || value == 1;
      else
        return std::in_range<T>(value);
    }
  });
}

double ckopt::runtime::loadElement(DType dtype, const char *at) {
  return dispatchDType(dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, bool>)
      return static_cast<double>(*at != 0);
    else
      return static_cast<double>(loadAs<T>(at));
  });
}

void ckopt::runtime::storeElement(DType dtype, char *at, double value) {
  switch (dtype) {
  case DType::F64:
    return storeAs(at, value);
  case DType::F32:
    return storeAs(at, static_cast<float>(value));
  case DType::F16:
    return storeAs(at, Half(value));
  case DType::BF16: // through f32, on which the first values of parameters rely
    return storeAs(at, floatToBFloat16(static_cast<float>(value)));
  case DType::U64:
    return storeAs(at, static_cast<uint64_t>(value));
  default:
    storeInteger(dtype, at, static_cast<int64_t>(value));
  }
}

/// Converts one element to another type; false if it is out of range.
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

} // namespace

void ckopt::runtime::copySame(int64_t size, char *dst, int64_t dstStep,
                              const char *src, int64_t srcStep, int64_t count) {
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

namespace {

/// `first`: of the elements that are transferred, where these are not all.
ckrt_status checkTransfer(const ckrt_session *session, int64_t tensor,
                          const void *data, uint32_t dtype, int64_t elements,
                          const char *entry,
                          std::optional<int64_t> first = std::nullopt) {
  if (!session || !session->valid(tensor))
    return fail(CKRT_INVALID_ARGUMENT,
                std::string(entry) + ": no tensor " + std::to_string(tensor));
  const TensorInfo &t = session->manifest().tensors[tensor];
  if (!isDType(static_cast<DType>(dtype)))
    return fail(CKRT_INVALID_ARGUMENT,
                std::string(entry) + ": unknown element type");
  int64_t all = elementCount(t);
  if (first && (*first < 0 || elements < 0 || *first > all - elements))
    return fail(CKRT_MISMATCH, "tensor '" + t.name + "' has " +
                                   std::to_string(all) +
                                   " elements, and none in the part of " +
                                   std::to_string(elements) + " from " +
                                   std::to_string(*first) + " on");
  if (!first && elements != all)
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

/// Refuses labels and indices that the step would clamp, before anything is
/// written. Integers alone: others are refused already.
ckrt_status checkLimits(const TensorInfo &t, const TensorLimits &allowed,
                        DType from, const char *host,
                        std::span<const int64_t> shape) {
  auto beyond = findBeyond(allowed, from, host, shape);
  if (!beyond)
    return CKRT_OK;
  const IntegerLimits &limits = beyond->limits;
  std::string text = "tensor '" + t.name + "': element " +
                     std::to_string(beyond->element) + " is " + beyond->value +
                     ", but ";
  if (!beyond->isLabel)
    return fail(CKRT_MISMATCH, text + "indices lie in [-" +
                                   std::to_string(limits.rows) + ", " +
                                   std::to_string(limits.rows) + ")");
  text += "labels lie in [0, " + std::to_string(limits.classes) + ")";
  if (limits.hasIgnored)
    text += ", or are " + std::to_string(limits.ignored);
  return fail(CKRT_MISMATCH, text);
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
  if (status == CKRT_OK)
    status = checkLimits(t, t.limits, from, static_cast<const char *>(data),
                         t.shape);
  if (status != CKRT_OK)
    return status;
  OpenTensor open(*session, t, accessToWrite(t));
  if (open.status != CKRT_OK)
    return open.status;
  char *base = open.bytes;
  auto *host = static_cast<const char *>(data);
  int64_t size = dtypeSize(t.dtype), hostSize = dtypeSize(from);
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
                    " (" + integerText(from, host + wrong * hostSize) +
                    ") does not fit in " + std::string(dtypeName(t.dtype)));
  return CKRT_OK;
}

/// Calls fn as forEachRun() does, with the parts of runs that lie within
/// `elements` elements from the logical one `first` on.
template <typename Fn>
static void forEachRunOf(const TensorInfo &t, int64_t first, int64_t elements,
                         Fn fn) {
  forEachRun(t,
             [&](int64_t logical, int64_t offset, int64_t count, int64_t step) {
               int64_t skipped = std::max(first - logical, int64_t(0));
               count = std::min(count, first + elements - logical) - skipped;
               if (count > 0)
                 fn(logical + skipped, offset + skipped * step, count, step);
             });
}

/// Copies `elements` elements from the logical one `first` on, of which the
/// bytes between the first and the last in the arena are read.
static ckrt_status readElements(ckrt_session *session, const TensorInfo &t,
                                int64_t first, void *data, DType to,
                                int64_t elements) {
  ckrt_status status = refuseConversion(t, t.dtype, to);
  if (status != CKRT_OK)
    return status;
  int64_t low = INT64_MAX, high = 0;
  forEachRunOf(t, first, elements,
               [&](int64_t, int64_t offset, int64_t count, int64_t step) {
                 low = std::min(low, offset);
                 high = std::max(high, offset + (count - 1) * step + 1);
               });
  if (low >= high)
    return CKRT_OK;
  int64_t size = dtypeSize(t.dtype), hostSize = dtypeSize(to);
  const char *base = nullptr;
  status = session->backend->read(t, low * size, (high - low) * size, base);
  if (status != CKRT_OK)
    return status;
  auto *host = static_cast<char *>(data);
  bool fits = true;
  forEachRunOf(
      t, first, elements,
      [&](int64_t logical, int64_t offset, int64_t count, int64_t step) {
        const char *src = base + (offset - low) * size;
        char *dst = host + (logical - first) * hostSize;
        if (to == t.dtype)
          return copySame(size, dst, 1, src, step, count);
        for (int64_t i = 0; i < count; ++i)
          fits &=
              convert(to, dst + i * hostSize, t.dtype, src + i * step * size);
      });
  return fits ? CKRT_OK
              : fail(CKRT_MISMATCH, "tensor '" + t.name +
                                        "' holds values that do not fit in " +
                                        std::string(dtypeName(to)));
}

ckrt_status ckrt_tensor_read(ckrt_session *session, int64_t tensor, void *data,
                             ckrt_dtype dtype, int64_t elements) {
  ckrt_status status =
      checkTransfer(session, tensor, data, dtype, elements, "ckrt_tensor_read");
  if (status != CKRT_OK)
    return status;
  return readElements(session, session->manifest().tensors[tensor], 0, data,
                      static_cast<DType>(dtype), elements);
}

ckrt_status ckrt_tensor_read_part(ckrt_session *session, int64_t tensor,
                                  int64_t first, void *data, ckrt_dtype dtype,
                                  int64_t elements) {
  ckrt_status status = checkTransfer(session, tensor, data, dtype, elements,
                                     "ckrt_tensor_read_part", first);
  if (status != CKRT_OK)
    return status;
  return readElements(session, session->manifest().tensors[tensor], first, data,
                      static_cast<DType>(dtype), elements);
}

ckrt_status ckrt_tensor_fetch(ckrt_session *session, int64_t tensor) {
  if (!session || !session->valid(tensor) ||
      elementCount(session->manifest().tensors[tensor]) != 1)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_tensor_fetch: no tensor of one "
                                       "element " +
                                           std::to_string(tensor));
  ckrt_status status =
      session->backend->fetch(session->manifest().tensors[tensor]);
  session->fetching = status == CKRT_OK ? tensor : -1;
  return status;
}

ckrt_status ckrt_tensor_fetched(ckrt_session *session, int64_t tensor,
                                double *value) {
  if (!session || !value || tensor < 0 || session->fetching != tensor)
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_tensor_fetched: ckrt_tensor_fetch did not begin with "
                "tensor " +
                    std::to_string(tensor));
  session->fetching = -1;
  const TensorInfo &t = session->manifest().tensors[tensor];
  const char *bytes = nullptr;
  ckrt_status status = session->backend->fetched(t, bytes);
  if (status == CKRT_OK)
    *value = loadElement(t.dtype, bytes);
  return status;
}

ckrt_status ckrt_tensors_finite(ckrt_session *session, const int64_t *tensors,
                                int64_t count, int *finite) {
  if (!session || count < 0 || (count && !tensors) || !finite)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_tensors_finite: wrong argument");
  std::vector<const TensorInfo *> looked;
  for (int64_t i = 0; i < count; ++i) {
    if (!session->valid(tensors[i]))
      return fail(CKRT_INVALID_ARGUMENT, "ckrt_tensors_finite: no tensor " +
                                             std::to_string(tensors[i]));
    const TensorInfo &t = session->manifest().tensors[tensors[i]];
    if (isFloat(t.dtype) && elementCount(t))
      looked.push_back(&t);
  }
  bool all = true;
  ckrt_status status = session->backend->allFinite(looked, all);
  *finite = all;
  return status;
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
  // One value for all places keeps the limits of all parts.
  TensorLimits every = {t.limits.all, {}};
  for (const PartLimits &part : t.limits.parts)
    every.all.narrow(part.limits);
  if (elementCount(t))
    if (ckrt_status status = checkLimits(t, every, t.dtype, element, {}))
      return status;
  OpenTensor open(*session, t, accessToWrite(t));
  if (open.status != CKRT_OK)
    return open.status;
  char *base = open.bytes;
  int64_t size = dtypeSize(t.dtype);
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
