//===- Engine.h - a device with loaded code and an arena --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Holds a device's primary context, one module and one allocation, which
// launching a call of the manifest needs; the order of launches is decided
// elsewhere. On failure, all functions put the text into ckrt_last_error() and
// return a status; none falls back to the CPU's memory.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_ENGINE_H
#define CKOPT_LIB_RUNTIME_CUDA_ENGINE_H

#include "CodeFile.h"
#include "Collectives.h"
#include "Libraries.h"

namespace ckopt::runtime::cuda {

/// The result of a launch that a library refused; not one of the driver's
/// numbers.
inline constexpr Result kLibraryFailed = -1;
/// The result of work without an answer from another rank.
inline constexpr Result kRankFailed = -2;

/// Converts a driver's result, or kLibraryFailed, to a status.
ckrt_status statusOf(Result result);

/// Makes a context current on the calling thread for as long as it lives.
class Current {
public:
  Current(const Driver &driver, Context context)
      : driver(driver), context(context),
        result(driver.ctxPushCurrent(context)) {}
  ~Current() {
    // Destroying a context removes it from the thread's stack.
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
  /// its arena with `tail` bytes after it. On failure returns null with a
  /// status, and frees everything.
  /// `lock` was read, and lives as long as the engine.
  static std::unique_ptr<Engine> create(const ckrt_program &program,
                                        int ordinal, int64_t tail,
                                        LockFile &lock, ckrt_status &status,
                                        Libraries::OnRefused onRefused = {});
  ~Engine();
  Engine(const Engine &) = delete;
  Engine &operator=(const Engine &) = delete;

  /// Whether results depend on how a generation of devices rounds: on its
  /// tensor cores, or on instructions that approximate.
  static bool isOfGeneration(const ckrt_program &program);

  const Driver &driver() const { return cuda; }
  Context context() const { return retained; }
  /// Returns the device address of a byte of the arena.
  DevicePointer at(int64_t offset) const {
    return arena + static_cast<DevicePointer>(offset);
  }
  /// Returns the bytes of the arena, rounded up to 64; the tail lies after
  /// them.
  int64_t arenaBytes() const { return used; }

  /// Returns the launches that do the call's work here.
  const std::vector<LaunchInfo> &launchesOf(const CallInfo &call) const {
    return libraries->launchesOf(call);
  }
  /// Replaces a launch that a library refused by our own kernels; false if that
  /// is not possible.
  bool giveUp(const LaunchInfo &launch) {
    return libraries->giveUp(launch.primitive, libraryError);
  }
  const Libraries &whoRunsWhat() const { return *libraries; }
  /// Puts one launch into the stream. The context must be current.
  /// `behindKernel`: what the stream was given last is a kernel of the step's,
  /// and nothing since, so that a kernel may begin before that one has ended.
  Result launch(const LaunchInfo &launch, Stream stream,
                bool behindKernel = false);

  /// Wait for a stream's work, or for an event. If the work contains
  /// collectives, a dead rank makes them fail instead of hang.
  Result wait(Stream stream);
  Result wait(Event event);
  /// Collectives; null for a step of one process.
  const Collectives *ofRanks() const { return collectives.get(); }

  /// Returns "cuda:0 (NVIDIA H100 80GB HBM3)", for example.
  std::string name() const;
  /// Returns the driver's text of a result, or that of the library that refused
  /// a launch.
  std::string text(Result result) const;
  /// Reports that `what` failed with `result`.
  ckrt_status failed(const MessageText &what, Result result) const;

  /// Returns the free bytes of the device now, or -1 if unknown.
  int64_t freeBytes() const;
  /// Returns the bytes used since `before` bytes were free, or -1 if unknown:
  /// free memory cannot be read, or others freed more in between.
  int64_t taken(int64_t before) const;
  /// Measures the bytes of a context by making and destroying another one; -1
  /// if unknown. The engine's own context must be current.
  int64_t contextBytes() const;
  ckrt_device_report report = {};

private:
  Engine(const Driver &cuda, const Manifest &manifest)
      : cuda(cuda), manifest(manifest) {}
  ckrt_status openDevice(int ordinal);
  ckrt_status checkDevice();
  ckrt_status lockGeneration(const ckrt_program &program, LockFile &lock) const;
  ckrt_status loadCode(const std::string &code, const LockFile &lock);
  Result loadModule(const std::string &code, const CodeFile &file, char *log,
                    size_t size);
  Result link(const std::string &code, std::string &made) const;
  ckrt_status findKernel(const KernelInfo &kernel);
  bool launchesEarly() const;
  /// Returns the bytes of shared memory that a launch requests: all of a
  /// kernel's if these are more than code may declare.
  static int dynamicBytes(const KernelInfo &kernel);
  ckrt_status allocate();
  int64_t allBytes() const { return used + tail; }

  const Driver &cuda;
  const Manifest &manifest;
  Device device = 0;
  Context retained = nullptr; ///< the device's primary one
  Module module = nullptr;
  std::unique_ptr<Libraries> libraries;
  std::string libraryError; ///< the reason of a library's last refusal
  std::unique_ptr<Collectives> collectives;
  std::string rankError;           ///< why ranks cannot go on
  std::vector<Function> functions; ///< by kernel
  DevicePointer arena = 0;
  int64_t used = 0, tail = 0;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_ENGINE_H
