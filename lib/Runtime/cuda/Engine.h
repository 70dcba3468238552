//===- Engine.h - a device with code and an arena on it ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One context, one module, one allocation: what launching a call of the
// manifest needs, and nothing that orders launches. All entries give the text
// of a failure to ckrt_last_error() and its kind as a status; none of them
// touches the CPU's memory as a way out.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_ENGINE_H
#define CKOPT_LIB_RUNTIME_CUDA_ENGINE_H

#include "Libraries.h"

namespace ckopt::runtime::cuda {

/// A library refused a launch; not one of the driver's numbers.
inline constexpr Result kLibraryFailed = -1;

/// The status that a driver's result stands for, or kLibraryFailed.
ckrt_status statusOf(Result result);

/// Makes a context current on the calling thread for as long as it lives.
class Current {
public:
  Current(const Driver &driver, Context context)
      : driver(driver), context(context),
        result(driver.ctxPushCurrent(context)) {}
  ~Current() {
    // Destroying a context takes it from the thread's stack.
    Context top = nullptr;
    if (result == kSuccess && driver.ctxGetCurrent(&top) == kSuccess &&
        top == context)
      (void)driver.ctxPopCurrent(&top);
  }
  Current(const Current &) = delete;
  Current &operator=(const Current &) = delete;

private:
  const Driver &driver;
  Context context;

public:
  const Result result;
};

class Engine {
public:
  /// Opens device `ordinal`, compiles the program's code for it and allocates
  /// its arena with `tail` bytes behind it. Null with a status on failure;
  /// nothing stays behind.
  static std::unique_ptr<Engine> create(const ckrt_program &program,
                                        int ordinal, int64_t tail,
                                        const std::string &lockPath,
                                        ckrt_status &status);
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  const Driver &driver() const { return cuda; }
  Context context() const { return ownContext; }
  /// Device address of a byte of the arena.
  DevicePointer at(int64_t offset) const {
    return arena + static_cast<DevicePointer>(offset);
  }
  /// Bytes of the arena, rounded up to 64; the tail lies behind them.
  int64_t arenaBytes() const { return used; }
  int64_t allBytes() const { return used + tail; }

  /// Puts one launch into the stream. The context must be current.
  Result launch(const LaunchInfo &launch, Stream stream);

  /// "cuda:0 (NVIDIA H100 80GB HBM3)".
  std::string name() const;
  /// The driver's text of a result, or the library's that refused a launch.
  std::string text(Result result) const;
  /// `what` failed with `result`: its text and status.
  ckrt_status failed(const std::string &what, Result result) const;

  /// Free bytes of the device now, -1 if that cannot be told.
  int64_t freeBytes() const;
  /// What went since `before` bytes were free, -1 if that cannot be told: free
  /// memory cannot be read, or others freed more in between.
  int64_t taken(int64_t before) const;
  /// What a context takes, by making and destroying another one; -1 if that
  /// cannot be told. The engine's own must be current.
  int64_t contextBytes() const;
  ckrt_device_report report = {};

private:
  Engine(const Driver &cuda, const Manifest &manifest)
      : cuda(cuda), manifest(manifest) {}
  ckrt_status openDevice(int ordinal);
  ckrt_status checkDevice();
  ckrt_status loadCode(const std::string &code);
  ckrt_status findKernel(const KernelInfo &kernel);
  ckrt_status allocate();

  const Driver &cuda;
  const Manifest &manifest;
  Device device = 0;
  Context ownContext = nullptr;
  Module module = nullptr;
  std::unique_ptr<Libraries> libraries;
  std::string libraryError; ///< of the last launch that a library refused
  std::vector<Function> functions; ///< by kernel
  DevicePointer arena = 0;
  int64_t used = 0, tail = 0;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_ENGINE_H
