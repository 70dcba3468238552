//===- DeviceFacts.cpp - what a device is, before anything runs on it -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A compiler that makes code for a device of its own machine asks that device
// for what the code depends on, and for the memory that a step may take.
//
//===----------------------------------------------------------------------===//
#include "DeviceFacts.h"
#include "Engine.h"

#include <cstring>

using namespace ckopt::runtime;
using ckopt::MessageText;
using namespace ckopt::runtime::cuda;

static std::string nameOf(int ordinal) {
  return "cuda:" + std::to_string(ordinal);
}

static ckrt_status failed(const Driver &cuda, int ordinal, const char *what,
                          Result result) {
  return fail(statusOf(result),
              nameOf(ordinal) + ": " + what + ": " + cuda.text(result));
}

ckrt_status ckopt::runtime::cuda::describeDevice(const Driver &cuda,
                                                 int ordinal, Device &device,
                                                 ckrt_device_facts &facts) {
  int count = 0;
  Result result = cuda.deviceGetCount(&count);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot count the devices", result);
  if (count == 0)
    return fail(CKRT_NO_DEVICE, "the CUDA driver finds no device");
  if (ordinal < 0 || ordinal >= count)
    return fail(
        CKRT_NO_DEVICE,
        "no device " + nameOf(ordinal) + ": this machine has cuda:0" +
            (count > 1 ? " to cuda:" + std::to_string(count - 1) : " alone"));
  result = cuda.deviceGet(&device, ordinal);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot open the device", result);
  result = cuda.deviceGetName(facts.name, sizeof(facts.name), device);
  facts.name[sizeof(facts.name) - 1] = '\0';
  int major = 0, minor = 0;
  for (auto [attribute, value] :
       {std::pair(kComputeCapabilityMajor, &major),
        std::pair(kComputeCapabilityMinor, &minor),
        std::pair(kMultiprocessorCount, &facts.multiprocessors),
        std::pair(kSharedOfBlock, &facts.block_shared_bytes),
        std::pair(kSharedOfMultiprocessor, &facts.multiprocessor_shared_bytes)})
    if (result == kSuccess)
      result = cuda.deviceGetAttribute(value, attribute, device);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot ask the device what it is", result);
  facts.compute_capability = major * 10 + minor;
  facts.driver_version = cuda.version;
  return CKRT_OK;
}

/// Opens the driver and the device.
static ckrt_status openDevice(int ordinal, const Driver *&cuda, Device &device,
                              ckrt_device_facts &facts) {
  MessageText error;
  bool tooOld = false;
  cuda = Driver::open(error, tooOld);
  if (!cuda)
    return fail(tooOld ? CKRT_DEVICE_TOO_OLD : CKRT_NO_DEVICE, error);
  return describeDevice(*cuda, ordinal, device, facts);
}

ckrt_status ckrt_describe_device(int32_t ordinal, ckrt_device_facts *facts) {
  if (!facts)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_describe_device: null argument");
  const Driver *cuda = nullptr;
  Device device = 0;
  ckrt_device_facts full = {};
  if (ckrt_status status = openDevice(ordinal, cuda, device, full))
    return status;
  size_t size = std::min(facts->size, sizeof(full));
  full.size = size;
  std::memcpy(facts, &full, size);
  return CKRT_OK;
}

ckrt_status ckrt_device_free_bytes(int32_t ordinal, int64_t *bytes) {
  if (!bytes)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_device_free_bytes: null argument");
  const Driver *cuda = nullptr;
  Device device = 0;
  ckrt_device_facts facts = {};
  if (ckrt_status status = openDevice(ordinal, cuda, device, facts))
    return status;
  Context context = nullptr;
  Result result = cuda->primaryRetain(&context, device);
  if (result != kSuccess)
    return failed(*cuda, ordinal, "cannot make a context", result);
  size_t available = 0, total = 0;
  {
    Current current(*cuda, context);
    result = current.result;
    if (result == kSuccess)
      result = cuda->memGetInfo(&available, &total);
  }
  (void)cuda->primaryRelease(device);
  if (result != kSuccess)
    return failed(*cuda, ordinal, "cannot ask for its free memory", result);
  *bytes = static_cast<int64_t>(available);
  return CKRT_OK;
}
