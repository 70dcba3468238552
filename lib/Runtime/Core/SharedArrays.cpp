//===- SharedArrays.cpp - arrays and streams of others --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks arrays of a device against tensors, before the backend moves their
// elements: nothing is converted on a device. Linear in the rank, and
// in the elements where an array goes to the host.
//
//===----------------------------------------------------------------------===//
#include "Session.h"

#include "ckopt/Base/Shape.h"

#include <algorithm>
#include <cstring>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

ckrt_status findShared(const ckrt_session *session, const char *entry,
                       SharedDevice *&shared) {
  if (!session)
    return fail(CKRT_INVALID_ARGUMENT, std::string(entry) + ": no session");
  shared = session->backend->shared();
  return shared ? CKRT_OK
                : fail(CKRT_INVALID_ARGUMENT,
                       std::string(entry) +
                           ": the step runs on the CPU, and has neither "
                           "streams nor memory of a device");
}

/// Reads an array as a tensor without a place; fails if it is none.
ckrt_status readArray(const ckrt_device_array *given, const char *entry,
                      ckrt_device_array &array, TensorInfo &info) {
  auto wrong = [&](const char *what) {
    return fail(CKRT_INVALID_ARGUMENT, std::string(entry) + ": " + what);
  };
  if (!given)
    return wrong("no array");
  array = {};
  std::memcpy(&array, given, std::min(given->size, sizeof(array)));
  info.dtype = static_cast<DType>(array.dtype);
  if (!isDType(info.dtype))
    return wrong("unknown element type");
  if (array.rank < 0 || (array.rank && !array.shape))
    return wrong("the array has no shape");
  info.shape.assign(array.shape, array.shape + array.rank);
  info.strides.assign(info.shape.size(), 1);
  for (size_t d = info.shape.size(); d-- > 0;) {
    bool isLast = d + 1 == info.shape.size();
    info.strides[d] = array.strides ? array.strides[d]
                      : isLast      ? 1
                                    : info.strides[d + 1] * info.shape[d + 1];
    if (info.shape[d] < 0 || info.strides[d] < 0)
      return wrong("the array has a negative extent or stride");
  }
  int64_t last = 0, step = 0, bytes = 0, count = 0;
  bool fits = countElements(info.shape, dtypeSize(info.dtype), count).empty();
  for (size_t d = 0; d < info.shape.size(); ++d)
    fits = fits &&
           !__builtin_mul_overflow(std::max<int64_t>(info.shape[d] - 1, 0),
                                   info.strides[d], &step) &&
           !__builtin_add_overflow(last, step, &last);
  if (!fits || last == INT64_MAX ||
      __builtin_mul_overflow(last + 1, dtypeSize(info.dtype), &bytes))
    return wrong("the array's extents and strides are beyond all memory");
  info.bytes = count ? bytes : 0;
  return info.bytes && !array.data ? wrong("null array") : CKRT_OK;
}

/// Reads an array for a call that has no tensor.
ckrt_status readAlone(const ckrt_session *session,
                      const ckrt_device_array *given, const char *entry,
                      SharedDevice *&shared, ckrt_device_array &array,
                      TensorInfo &info) {
  ckrt_status status = findShared(session, entry, shared);
  return status == CKRT_OK ? readArray(given, entry, array, info) : status;
}

ckrt_status copy(ckrt_session *session, int64_t tensor,
                 const ckrt_device_array *given, bool toTensor,
                 const char *entry) {
  SharedDevice *shared = nullptr;
  if (ckrt_status status = findShared(session, entry, shared))
    return status;
  if (!session->valid(tensor))
    return fail(CKRT_INVALID_ARGUMENT,
                std::string(entry) + ": no tensor " + std::to_string(tensor));
  ckrt_device_array array;
  TensorInfo info;
  if (ckrt_status status = readArray(given, entry, array, info))
    return status;
  const TensorInfo &t = session->manifest().tensors[tensor];
  if (info.dtype != t.dtype || info.shape != t.shape)
    return fail(
        CKRT_MISMATCH,
        "tensor '" + t.name + "' is " + std::string(dtypeName(t.dtype)) + " " +
            shapeString(t.shape) + ", the device's array " +
            std::string(dtypeName(info.dtype)) + " " + shapeString(info.shape));
  array.strides = info.strides.data();
  if (toTensor)
    session->backend->copies.written(t);
  return info.bytes ? shared->copy(t, array, toTensor) : CKRT_OK;
}

} // namespace

ckrt_status ckrt_tensor_locate(ckrt_session *session, int64_t tensor,
                               ckrt_tensor_place *place) {
  if (!session || !session->valid(tensor) || !place)
    return fail(CKRT_INVALID_ARGUMENT,
                "ckrt_tensor_locate: no tensor " + std::to_string(tensor));
  const TensorInfo &t = session->manifest().tensors[tensor];
  ckrt_tensor_place full = {};
  full.size = std::min(place->size, sizeof(full));
  full.strides = t.strides.data();
  full.device = -1;
  if (SharedDevice *shared = session->backend->shared()) {
    session->backend->copies.shown(t);
    full.data = shared->address(t);
    full.device = shared->ordinal();
  } else {
    const char *bytes = nullptr;
    if (ckrt_status status = session->backend->read(t, 0, t.bytes, bytes))
      return status;
    full.data = const_cast<char *>(bytes);
  }
  if (!full.data) // the device is lost: the call says why
    return session->backend->synchronize();
  std::memcpy(place, &full, full.size);
  return CKRT_OK;
}

ckrt_status ckrt_wait_for_stream(ckrt_session *session, void *stream) {
  SharedDevice *shared = nullptr;
  ckrt_status status = findShared(session, "ckrt_wait_for_stream", shared);
  return status == CKRT_OK ? shared->waitFor(stream) : status;
}

ckrt_status ckrt_let_stream_wait(ckrt_session *session, void *stream) {
  SharedDevice *shared = nullptr;
  ckrt_status status = findShared(session, "ckrt_let_stream_wait", shared);
  return status == CKRT_OK ? shared->letWait(stream) : status;
}

ckrt_status ckrt_tensor_write_array(ckrt_session *session, int64_t tensor,
                                    const ckrt_device_array *array) {
  return copy(session, tensor, array, true, "ckrt_tensor_write_array");
}

ckrt_status ckrt_tensor_read_array(ckrt_session *session, int64_t tensor,
                                   const ckrt_device_array *array) {
  return copy(session, tensor, array, false, "ckrt_tensor_read_array");
}

ckrt_status ckrt_array_read(ckrt_session *session,
                            const ckrt_device_array *given, void *data) {
  SharedDevice *shared = nullptr;
  ckrt_device_array array;
  TensorInfo info;
  ckrt_status status =
      readAlone(session, given, "ckrt_array_read", shared, array, info);
  if (status != CKRT_OK || info.bytes == 0)
    return status;
  if (!data)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_array_read: null buffer");
  std::vector<char> bytes(static_cast<size_t>(info.bytes));
  status =
      shared->readBytes(array.data, info.bytes, array.stream, bytes.data());
  if (status != CKRT_OK)
    return status;
  const int64_t size = dtypeSize(info.dtype);
  auto *to = static_cast<char *>(data);
  forEachRun(info,
             [&](int64_t logical, int64_t offset, int64_t count, int64_t step) {
               copySame(size, to + logical * size, 1,
                        bytes.data() + offset * size, step, count);
             });
  return CKRT_OK;
}

ckrt_status ckrt_array_finite(ckrt_session *session,
                              const ckrt_device_array *given, int *finite) {
  SharedDevice *shared = nullptr;
  ckrt_device_array array;
  TensorInfo info;
  ckrt_status status =
      readAlone(session, given, "ckrt_array_finite", shared, array, info);
  if (status == CKRT_OK && (!finite || !isDense(info)))
    status = fail(CKRT_INVALID_ARGUMENT,
                  "ckrt_array_finite: the array is not dense");
  bool all = true;
  if (status == CKRT_OK && isFloat(info.dtype) && info.bytes)
    status = shared->isFinite(array, info.bytes, all);
  if (status == CKRT_OK)
    *finite = all;
  return status;
}
