//===- CudaNumbers.cpp - single numbers of a session on a CUDA device -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the host asks of a device while it works: a loss, and whether all
// numbers of a state are finite.
//
//===----------------------------------------------------------------------===//
#include "CudaBackend.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// The next run waits for the copy, since it writes the tensor again.
ckrt_status CudaBackend::fetch(const TensorInfo &tensor) {
  if (!engine)
    return repeatFailure();
  Staging::Slot *slot = staging->find(tensor);
  if (!slot)
    return Backend::fetch(tensor);
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  Result result = kSuccess;
  for (Event event : {stepDone, copyDone})
    if (result == kSuccess)
      result = cuda.streamWaitEvent(lossStream, event, 0);
  if (result == kSuccess)
    result =
        cuda.memcpyDtoHAsync(slot->bytes, engine->at(placeOf(tensor)),
                             static_cast<size_t>(tensor.bytes), lossStream);
  for (Event event : {slot->copied, lossRead})
    if (result == kSuccess)
      result = cuda.eventRecord(event, lossStream);
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot read '" + tensor.name + "'", result);
}

ckrt_status CudaBackend::fetched(const TensorInfo &tensor, const char *&bytes) {
  if (!engine)
    return repeatFailure();
  Staging::Slot *slot = staging->find(tensor);
  if (!slot)
    return Backend::fetched(tensor, bytes);
  Current current(engine->driver(), engine->context());
  bytes = slot->bytes;
  Result result = engine->wait(slot->copied);
  return result == kSuccess
             ? CKRT_OK
             : broken("cannot read '" + tensor.name + "'", result);
}

Result CudaBackend::needFiniteCheck() {
  if (finiteCheck)
    return kSuccess;
  auto made = std::make_unique<FiniteCheck>(*engine);
  Result result = made->create();
  if (result != kOutOfMemory)
    finiteCheck = std::move(made);
  return result;
}

/// Where there is no memory for the kernel, the host looks.
ckrt_status
CudaBackend::allFinite(const std::vector<const TensorInfo *> &tensors,
                       bool &finite) {
  if (!engine)
    return repeatFailure();
  const Driver &cuda = engine->driver();
  Current current(cuda, engine->context());
  Result result = needFiniteCheck();
  if (result == kOutOfMemory)
    return Backend::allFinite(tensors, finite);
  uint32_t found = 0;
  if (result == kSuccess)
    result = cuda.streamWaitEvent(stepStream, copyDone, 0);
  if (result == kSuccess)
    result = finiteCheck->begin(stepStream);
  for (const TensorInfo *tensor : tensors)
    if (result == kSuccess)
      result = finiteCheck->add(engine->at(tensor->offset), tensor->bytes,
                                tensor->dtype, stepStream);
  if (result == kSuccess)
    result = finiteCheck->end(found, stepStream);
  if (result == kSuccess)
    result = cuda.eventRecord(stepDone, stepStream);
  if (result == kSuccess)
    result = engine->wait(stepStream);
  if (result != kSuccess)
    return broken("cannot look whether numbers are finite", result);
  finite = found == 0;
  for (const TensorInfo *tensor : tensors)
    if (ckrt_status status =
            lookFrom(*tensor, FiniteCheck::bytesSeen(tensor->bytes), finite))
      return status;
  return CKRT_OK;
}
