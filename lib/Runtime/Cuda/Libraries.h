//===- Libraries.h - all library kernels of a program -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H
#define CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H

#include "Core/Session.h"
#include "Library.h"
#include "LockFile.h"

#include <functional>
#include <memory>

namespace ckopt::runtime::cuda {

/// Decides what runs each primitive that a launch names: a library, or our own
/// kernels if the artifact has them and the library is missing or refuses. The
/// lock file decides; for calls that it does not contain, libraries are tried
/// and the choice is added. Library kernels belong to the context that was
/// current when they were made, and must be destroyed before it.
class Libraries {
public:
  /// Is told of a primitive that a library refuses, and the artifact has no
  /// kernel of ours for; and why.
  using OnRefused = std::function<void(int32_t, const std::string &)>;

  Libraries(const Manifest &manifest, LockFile &lock, OnRefused onRefused = {});

  /// Returns whether launches name libraries at all.
  bool hasCalls() const;
  /// Opens libraries and fixes every algorithm.
  ckrt_status create(const ckrt_device_report &device);
  /// Returns the launches that do the call's work.
  const std::vector<LaunchInfo> &launchesOf(const CallInfo &call) const {
    int32_t primitive = manifest.libraryPrimitive(call);
    return primitive >= 0 && !uses[static_cast<size_t>(primitive)].kernel
               ? call.ownLaunches
               : call.launches;
  }
  /// Launches a primitive; on failure returns false and sets the reason.
  bool enqueue(int32_t primitive, const Places &places, Stream stream,
               std::string &error) const {
    return uses[static_cast<size_t>(primitive)].kernel->enqueue(places, stream,
                                                                error);
  }
  /// Bytes that must be 0 beside the primitive's launch.
  DeviceRange zeros(int32_t primitive, const Places &places) const {
    return uses[static_cast<size_t>(primitive)].kernel->zeros(places);
  }
  /// Replaces a primitive by our own kernels from now on. Returns false if
  /// there are none, which is told, or if the lock file had a library's
  /// algorithm for it.
  bool giveUp(int32_t primitive, const std::string &why);
  bool isPinned(int32_t primitive) const {
    return uses[static_cast<size_t>(primitive)].isPinned;
  }
  /// Describes the choices (ckrt_library_choices).
  void tell(ckrt_library_hook hook, void *user) const;

private:
  /// State of one primitive.
  struct Use {
    int64_t workspace =
        -1; ///< least workspace bytes of all its calls; -1: no launch names it
    int64_t alignment = kDeviceAlignment; ///< alignment of all their addresses
    bool hasOwn = false;   ///< all of its calls have our own kernels
    bool isPinned = false; ///< the lock file had an algorithm when it was read
    std::string key;       ///< key of the lock file
    std::unique_ptr<LibraryKernel> kernel;
    std::string what; ///< the algorithm, or the reason why our own kernel runs

    void align(int64_t offset) {
      alignment = (alignment | offset) & -(alignment | offset);
    }
  };
  struct Opened {
    std::unique_ptr<Library> library;
    std::string why; ///< why there is no library kernel, once that was tried
  };
  ckrt_status open(const PrimitiveDesc &desc, Library *&library,
                   MessageText &why);
  ckrt_status makeKernel(size_t primitive);
  void takeOwn(Use &use, const MessageText &why);
  void tellRefused(size_t primitive, const std::string &why) const;

  const Manifest &manifest;
  LockFile &lock;
  OnRefused onRefused;
  Opened blas, dnn;
  int32_t capability = 0; ///< of the device: 90 is 9.0
  /// By primitive; kernels are destroyed before their libraries.
  std::vector<Use> uses;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_LIBRARIES_H
