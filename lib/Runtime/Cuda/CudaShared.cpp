//===- CudaShared.cpp - arrays and streams of others on a device ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: who fills a batch or reads a weight on the device works in a stream
// of his own, which knows nothing of a session's. Method: an event in one
// stream, for which the other waits; the host waits only where it reads. What
// is wrong with the caller's stream or array is his failure and not the
// session's, which goes on.
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"

#include <algorithm>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// The default stream by its own handle: null could be that of the thread,
/// where a program is compiled so.
static Stream streamOf(void *given) {
  return given ? static_cast<Stream>(given) : reinterpret_cast<Stream>(1);
}

void *CudaBackend::address(const TensorInfo &tensor) const {
  return engine ? reinterpret_cast<void *>(engine->at(tensor.offset)) : nullptr;
}

/// Returns whether elements lie one behind another, in one order.
static bool isOneBlock(const std::vector<StridedCopy::Dimension> &dimensions) {
  return dimensions.empty() ||
         (dimensions.size() == 1 && dimensions[0].from == 1 &&
          dimensions[0].to == 1);
}

/// Fails for a stream that is captured, since what waits for it would be, too.
ckrt_status CudaBackend::checkStream(Stream caller) {
  int capturing = 0;
  Result result = engine->driver().streamIsCapturing(caller, &capturing);
  if (result != kSuccess)
    return engine->failed("cannot use the caller's stream", result);
  return capturing ? fail(CKRT_INVALID_ARGUMENT,
                          engine->name() +
                              ": the caller's stream is being captured into a "
                              "graph, which cannot hold a step: call the step "
                              "outside of the capture")
                   : CKRT_OK;
}

/// Returns how many of `bytes` from an address on lie in memory of this device,
/// as far as the driver tells: all of them where it does not. What cuMemAlloc
/// gave ends with its range; virtual memory and that of pools may go on in the
/// next one.
int64_t CudaBackend::bytesBehind(DevicePointer address, int64_t bytes) const {
  const Driver &cuda = engine->driver();
  auto ask = [&](auto &value, PointerAttribute attribute, DevicePointer at) {
    return cuda.pointerGetAttribute(&value, attribute, at);
  };
  const DevicePointer end = address + DevicePointer(bytes);
  for (DevicePointer at = address; at < end;) {
    DevicePointer start = 0;
    size_t size = 0;
    if (ask(start, kPointerRangeStart, at) != kSuccess ||
        ask(size, kPointerRangeSize, at) != kSuccess || start > at ||
        size <= at - start)
      break;
    const DevicePointer next = start + size;
    int isLegacy = 0, ordinal = -1;
    if (next < end &&
        ((ask(isLegacy, kPointerIsLegacy, at) == kSuccess && isLegacy) ||
         ask(ordinal, kPointerDeviceOrdinal, next) == kInvalidValue))
      return int64_t(next - address);
    at = next;
  }
  return bytes;
}

/// Fails for a stream that is captured, and for bytes that are none of this
/// device's memory: a kernel there would end the session.
ckrt_status CudaBackend::checkArray(Stream caller, const void *data,
                                    int64_t bytes) {
  if (ckrt_status status = checkStream(caller))
    return status;
  int ordinal = -1;
  auto address = reinterpret_cast<DevicePointer>(data);
  Result result = engine->driver().pointerGetAttribute(
      &ordinal, kPointerDeviceOrdinal, address);
  if (result == kSuccess && ordinal == options.device) {
    int64_t there = bytesBehind(address, bytes);
    return there == bytes
               ? CKRT_OK
               : fail(CKRT_MISMATCH,
                      engine->name() + ": the caller's array takes " +
                          std::to_string(bytes) + " bytes, and its memory " +
                          "ends behind " + std::to_string(there));
  }
  if (result != kSuccess && result != kInvalidValue)
    return engine->failed("cannot ask where the caller's array is", result);
  return fail(CKRT_MISMATCH,
              engine->name() +
                  ": the caller's array is not in this device's "
                  "memory" +
                  (result == kSuccess
                       ? ", but in that of cuda:" + std::to_string(ordinal)
                       : ""));
}

/// Lets streams wait for all that the caller's has so far.
ckrt_status CudaBackend::follow(Stream caller,
                                std::initializer_list<Stream> own) {
  const Driver &cuda = engine->driver();
  Result result = kSuccess;
  if (!handover)
    result = cuda.eventCreate(&handover, kEventDisableTiming);
  if (result == kSuccess)
    result = cuda.eventRecord(handover, caller);
  for (Stream one : own)
    if (result == kSuccess)
      result = cuda.streamWaitEvent(one, handover, 0);
  return result == kSuccess
             ? CKRT_OK
             : engine->failed("cannot wait for the caller's stream", result);
}

ckrt_status CudaBackend::waitFor(void *stream) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  Stream caller = streamOf(stream);
  if (ckrt_status status = checkStream(caller))
    return status;
  return follow(caller, {stepStream, copyStream});
}

ckrt_status CudaBackend::letWait(void *stream) {
  if (!engine)
    return repeatFailure();
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  Stream caller = streamOf(stream);
  if (ckrt_status status = checkStream(caller))
    return status;
  Result result = kSuccess;
  for (Event event : {stepDone, copyDone})
    if (result == kSuccess)
      result = cuda.streamWaitEvent(caller, event, 0);
  return result == kSuccess
             ? CKRT_OK
             : engine->failed("cannot let the caller's stream wait", result);
}

/// Returns the bytes from an array's first element to the end of its last one.
static int64_t bytesOf(const TensorInfo &tensor,
                       const ckrt_device_array &array) {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d)
    last += std::max<int64_t>(tensor.shape[d] - 1, 0) * array.strides[d];
  return tensor.bytes ? (last + 1) * dtypeSize(tensor.dtype) : 0;
}

ckrt_status CudaBackend::copy(const TensorInfo &tensor,
                              const ckrt_device_array &array, bool toTensor) {
  if (!engine)
    return repeatFailure();
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  std::vector<StridedCopy::Dimension> dimensions;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    int64_t from = array.strides[d], to = tensor.strides[d];
    if (!toTensor)
      std::swap(from, to);
    dimensions.push_back({tensor.shape[d], from, to});
  }
  dimensions = StridedCopy::merge(std::move(dimensions));
  if (dimensions.size() > StridedCopy::kMostDimensions)
    return fail(CKRT_MISMATCH,
                engine->name() + ": the array for '" + tensor.name +
                    "' lies in too many pieces: make it contiguous");
  Stream caller = streamOf(array.stream);
  ckrt_status status = checkArray(caller, array.data, bytesOf(tensor, array));
  if (status == CKRT_OK)
    status = follow(caller, {copyStream});
  if (status != CKRT_OK)
    return status;
  if (!stridedCopy)
    stridedCopy = std::make_unique<StridedCopy>(cuda);
  const bool fed = toTensor && isFedTwice(tensor);
  auto to = engine->at(placeOf(tensor));
  auto from = reinterpret_cast<DevicePointer>(array.data);
  if (!toTensor)
    std::swap(to, from);
  Result result =
      cuda.streamWaitEvent(copyStream, fed ? fedTaken : stepDone, 0);
  if (result == kSuccess && isOneBlock(dimensions))
    result = cuda.memcpyDtoDAsync(to, from, static_cast<size_t>(tensor.bytes),
                                  copyStream);
  else if (result == kSuccess)
    result = stridedCopy->copy(to, from, dimensions, dtypeSize(tensor.dtype),
                               copyStream);
  if (result == kOutOfMemory) // for the kernel: nothing was begun
    return engine->failed("cannot copy the array for '" + tensor.name + "'",
                          result);
  if (result == kSuccess)
    result = cuda.eventRecord(copyDone, copyStream);
  if (result == kSuccess)
    result = cuda.streamWaitEvent(caller, copyDone, 0);
  if (result != kSuccess)
    return broken("cannot copy '" + tensor.name + "'", result);
  fedWaits |= fed;
  if (toTensor)
    peak = std::max(peak, placeOf(tensor) + tensor.bytes);
  return CKRT_OK;
}

ckrt_status CudaBackend::readBytes(const void *from, int64_t bytes,
                                   void *stream, char *to) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  Stream caller = streamOf(stream);
  if (ckrt_status status = checkArray(caller, from, bytes))
    return status;
  Result result = engine->driver().memcpyDtoHAsync(
      to, reinterpret_cast<DevicePointer>(from), static_cast<size_t>(bytes),
      caller);
  if (result == kSuccess)
    result = engine->wait(caller);
  return result == kSuccess
             ? CKRT_OK
             : engine->failed("cannot read the caller's array", result);
}

/// The host looks at what the kernel does not.
ckrt_status CudaBackend::isFinite(const ckrt_device_array &array, int64_t bytes,
                                  bool &finite) {
  if (!engine)
    return repeatFailure();
  Current current(engine->driver(), engine->context());
  Stream caller = streamOf(array.stream);
  ckrt_status status = checkArray(caller, array.data, bytes);
  if (status != CKRT_OK)
    return status;
  auto from = reinterpret_cast<DevicePointer>(array.data);
  auto dtype = static_cast<DType>(array.dtype);
  Result result = needFiniteCheck();
  int64_t seen = 0;
  uint32_t found = 0;
  if (result == kSuccess && from % sizeof(uint32_t) == 0) {
    seen = FiniteCheck::bytesSeen(bytes);
    result = finiteCheck->begin(caller);
    if (result == kSuccess)
      result = finiteCheck->add(from, bytes, dtype, caller);
    if (result == kSuccess)
      result = finiteCheck->end(found, caller);
    if (result == kSuccess)
      result = engine->wait(caller);
  }
  if (result != kSuccess && result != kOutOfMemory)
    return engine->failed("cannot look at the caller's array", result);
  finite = found == 0;
  if (!finite || seen == bytes)
    return CKRT_OK;
  std::vector<char> rest(static_cast<size_t>(bytes - seen));
  status = readBytes(static_cast<const char *>(array.data) + seen, bytes - seen,
                     array.stream, rest.data());
  if (status == CKRT_OK)
    finite = areFinite(dtype, rest.data(), bytes - seen);
  return status;
}
