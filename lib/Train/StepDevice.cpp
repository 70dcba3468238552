//===- StepDevice.cpp - batches and weights that stay on a device ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Arrays of the step's device are checked as those of the host are, and copied
// within it. Numbers are looked at there; what the host has to look at (labels,
// indices, targets of a range) does not come here.
//
//===----------------------------------------------------------------------===//
#include "StepRunImpl.h"

#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;

/// What is wrong with an argument is wrong with one of the caller's here.
static llvm::Error errorOf(ckrt_status status) {
  if (status == CKRT_OK)
    return llvm::Error::success();
  return makeError(status == CKRT_INVALID_ARGUMENT ? ExitUsage
                                                   : exitCodeOf(status),
                   runtime::lastFailure());
}

static ckrt_device_array inC(const DeviceArray &array) {
  return {sizeof(ckrt_device_array),
          array.data,
          static_cast<ckrt_dtype>(array.dtype),
          int64_t(array.shape.size()),
          array.shape.data(),
          array.strides.data(),
          array.stream};
}

bool StepRun::Impl::copiesOnDevice(const FieldSpec &field) const {
  return session->manifest().target == runtime::Target::Cuda &&
         !session->ranks().areSeveral() && !field.limits.exist() &&
         !field.signs && !field.probabilities && field.dtype != DType::Bool;
}

bool StepRun::copiesOnDevice(const FieldSpec &field) const {
  return impl->copiesOnDevice(field);
}

std::optional<int32_t> StepRun::device() const {
  ckrt_tensor_place place = {};
  place.size = sizeof(place);
  bool isKnown = !ckrt_tensor_locate(impl->session->handle(), 0, &place);
  return isKnown && place.device >= 0 ? std::optional(place.device)
                                      : std::nullopt;
}

llvm::Error StepRun::waitFor(void *stream) {
  return errorOf(ckrt_wait_for_stream(impl->session->handle(), stream));
}

llvm::Error StepRun::letWait(void *stream) {
  return errorOf(ckrt_let_stream_wait(impl->session->handle(), stream));
}

llvm::Expected<HostTensor> StepRun::readArray(const DeviceArray &array) const {
  HostTensor result(array.dtype, array.shape);
  const ckrt_device_array given = inC(array);
  if (llvm::Error error = errorOf(ckrt_array_read(
          impl->session->handle(), &given, result.mutableRawData())))
    return std::move(error);
  return result;
}

/// Checks an array of the device for a field of the batch.
llvm::Error StepRun::Impl::checkDeviceArray(const FieldSpec &field,
                                            const DeviceArray &array) const {
  auto inBatch = [&](llvm::Error error) {
    return withContext(std::move(error), data.path);
  };
  if (!copiesOnDevice(field))
    return inBatch(inputError("array '" + field.array +
                              "' cannot be copied within a device here: pass "
                              "it from the host, which looks at its values"));
  if (llvm::Error error = checkShape(field, array.shape))
    return inBatch(std::move(error));
  if (array.dtype != field.dtype)
    return inBatch(inputError("array '" + field.array + "' on the device is " +
                              llvm::Twine(dtypeName(array.dtype)) +
                              ", the step takes " + dtypeName(field.dtype)));
  if (field.batched)
    if (llvm::Error error = checkCount(array.shape.front()))
      return error;
  const ckrt_device_array given = inC(array);
  int finite = 1;
  if (llvm::Error error =
          errorOf(ckrt_array_finite(session->handle(), &given, &finite)))
    return withContext(std::move(error), "array '" + field.array + "'");
  return finite ? llvm::Error::success()
                : inBatch(inputError("array '" + field.array +
                                     "' on the device has numbers that are not "
                                     "finite (NaN or infinite)"));
}

/// Writes a batch of which arrays are on the device. Nothing is written where
/// one is wrong.
llvm::Error StepRun::Impl::feedFromDevice(const Batch &arrays) const {
  for (const DeviceArray &array : arrays.onDevice)
    if (llvm::Error error = checkArray(array.name))
      return error;
  std::vector<FieldSpec> onHost;
  std::vector<std::pair<const FieldSpec *, const DeviceArray *>> copies;
  for (const FieldSpec &field : fields) {
    auto array = llvm::find_if(arrays.onDevice, [&](const DeviceArray &is) {
      return is.name == field.array;
    });
    if (array == arrays.onDevice.end())
      onHost.push_back(field);
    else
      copies.emplace_back(&field, array);
  }
  if (!onHost.empty()) {
    auto samples = readSamples(arrays.host, onHost);
    if (!samples)
      return samples.takeError();
    if (llvm::any_of(onHost, [](const FieldSpec &is) { return is.batched; }))
      if (llvm::Error error = checkCount(samples->numSamples()))
        return error;
  }
  for (auto [field, array] : copies)
    if (llvm::Error error = checkDeviceArray(*field, *array))
      return error;
  for (const FieldSpec &field : onHost) {
    auto index = session->find(field.name);
    if (!index)
      return index.takeError();
    if (llvm::Error error =
            session->write(*index, *arrays.host.find(field.array)))
      return error;
  }
  for (auto [field, array] : copies) {
    auto index = session->find(field->name);
    if (!index)
      return index.takeError();
    const ckrt_device_array given = inC(*array);
    if (llvm::Error error =
            errorOf(ckrt_tensor_write_array(session->handle(), *index, &given)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<std::vector<WeightPlace>> StepRun::locateWeights() const {
  std::vector<WeightPlace> result;
  for (TensorSpec &spec : describeWeights()) {
    auto index = impl->session->find(spec.name);
    if (!index)
      return index.takeError();
    if (impl->session->infoOf(*index).shards > 1)
      return usageError("'" + spec.name +
                        "' is shared by ranks, and no process has all of it");
    ckrt_tensor_place place = {};
    place.size = sizeof(place);
    if (llvm::Error error = errorOf(
            ckrt_tensor_locate(impl->session->handle(), *index, &place)))
      return std::move(error);
    std::vector<int64_t> strides(place.strides,
                                 place.strides + spec.shape.size());
    result.push_back(
        {std::move(spec), std::move(strides), place.data, place.device});
  }
  return std::move(result);
}
