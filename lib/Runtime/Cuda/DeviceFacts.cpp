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
        std::pair(kMultiprocessorCount, &facts.multiprocessors)})
    if (result == kSuccess)
      result = cuda.deviceGetAttribute(value, attribute, device);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot ask the device what it is", result);
  facts.compute_capability = major * 10 + minor;
  facts.driver_version = cuda.version;
  return CKRT_OK;
}

namespace {
/// A device without a session.
struct OpenedDevice {
  const Driver *cuda = nullptr;
  Device device = 0;
  ckrt_device_facts facts = {};

  /// Opens the driver and the device.
  ckrt_status open(int ordinal) {
    MessageText error;
    bool tooOld = false;
    cuda = Driver::open(error, tooOld);
    return cuda ? describeDevice(*cuda, ordinal, device, facts)
                : fail(tooOld ? CKRT_DEVICE_TOO_OLD : CKRT_NO_DEVICE, error);
  }
};
} // namespace

ckrt_status ckrt_describe_device(int32_t ordinal, ckrt_device_facts *facts) {
  if (!facts)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_describe_device: null argument");
  OpenedDevice opened;
  if (ckrt_status status = opened.open(ordinal))
    return status;
  size_t size = std::min(facts->size, sizeof(opened.facts));
  opened.facts.size = size;
  std::memcpy(facts, &opened.facts, size);
  return CKRT_OK;
}

ckrt_status ckrt_device_free_bytes(int32_t ordinal, int64_t *bytes) {
  if (!bytes)
    return fail(CKRT_INVALID_ARGUMENT, "ckrt_device_free_bytes: null argument");
  OpenedDevice opened;
  if (ckrt_status status = opened.open(ordinal))
    return status;
  const Driver &cuda = *opened.cuda;
  Context context = nullptr;
  Result result = cuda.primaryRetain(&context, opened.device);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot make a context", result);
  size_t available = 0, total = 0;
  {
    Current current(cuda, context);
    result = current.result;
    if (result == kSuccess)
      result = cuda.memGetInfo(&available, &total);
  }
  (void)cuda.primaryRelease(opened.device);
  if (result != kSuccess)
    return failed(cuda, ordinal, "cannot ask for its free memory", result);
  *bytes = static_cast<int64_t>(available);
  return CKRT_OK;
}
