//===- Driver.cpp - the CUDA driver, opened at run time -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Driver.h"

#include <cstdlib>
#include <dlfcn.h>
#include <memory>
#include <mutex>

using namespace ckopt::runtime::cuda;

namespace {

const char *libraryName() {
  const char *chosen = std::getenv("CKOPT_CUDA_DRIVER");
  return chosen && *chosen ? chosen : "libcuda.so.1";
}

/// Opens the driver's library, or sets the reason of the failure.
void *openLibrary(ckopt::MessageText &error) {
  const char *name = libraryName();
  if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
    return library;
  const char *reason = dlerror();
  error = std::string("no CUDA driver: cannot load ") + name + " (" +
          (reason ? reason : "unknown reason") +
          "); install NVIDIA's driver, or compile with " +
          ckopt::Setting("target", "cpu");
  return nullptr;
}

/// Looks all entries up. If even the first ones are missing, the library is not
/// a driver; if others are missing, the driver is too old.
bool lookUp(void *library, Driver &driver, ckopt::MessageText &error,
            bool &tooOld) {
  if (!dlsym(library, "cuInit")) {
    error = std::string(libraryName()) +
            " is no CUDA driver: it has no entry cuInit";
    return false;
  }
#define CKOPT_LATER_ENTRY(member, symbol, parameters)                          \
  driver.member =                                                              \
      reinterpret_cast<Result(*) parameters>(dlsym(library, #symbol));
#define CKOPT_ENTRY(member, symbol, parameters)                                \
  driver.member =                                                              \
      reinterpret_cast<Result(*) parameters>(dlsym(library, #symbol));         \
  if (!driver.member) {                                                        \
    error = std::string("the CUDA driver is too old: ") + libraryName() +      \
            " has no entry " #symbol                                           \
            "; ckopt needs one for CUDA 11.0 or later: update NVIDIA's "       \
            "driver";                                                          \
    tooOld = true;                                                             \
    return false;                                                              \
  }
#include "DriverEntries.def"
#undef CKOPT_ENTRY
  return true;
}

std::unique_ptr<Driver> openDriver(ckopt::MessageText &error, bool &tooOld) {
  void *library = openLibrary(error);
  if (!library)
    return nullptr;
  auto driver = std::make_unique<Driver>();
  Result result = kSuccess;
  if (!lookUp(library, *driver, error, tooOld)) {
    dlclose(library);
    return nullptr;
  }
  result = driver->init(0);
  if (result == kSuccess)
    result = driver->driverGetVersion(&driver->version);
  if (result == kSuccess)
    return driver;
  error = result == kNoDevice
              ? "the CUDA driver finds no device"
              : "the CUDA driver does not start: " + driver->text(result);
  if (result == kSystemDriverMismatch)
    error += "; after an update of the driver the machine needs a restart";
  // Threads of a half-initialized driver may still run, so the library stays
  // mapped.
  return nullptr;
}

} // namespace

const Driver *Driver::open(ckopt::MessageText &error, bool &tooOld) {
  tooOld = false;
  static std::mutex mutex;
  // Never destroyed, since sessions may outlive main.
  static Driver *opened = nullptr;
  std::lock_guard<std::mutex> lock(mutex);
  if (!opened)
    opened = openDriver(error, tooOld).release();
  return opened;
}

std::string Driver::text(Result result) const {
  const char *name = nullptr, *what = nullptr;
  if (getErrorName(result, &name) != kSuccess || !name)
    return "error " + std::to_string(result);
  if (getErrorString(result, &what) != kSuccess || !what)
    return name;
  return std::string(what) + " (" + name + ")";
}

std::string ckopt::runtime::cuda::versionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}
