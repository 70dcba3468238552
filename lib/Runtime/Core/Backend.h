//===- Backend.h - where an arena lies and steps run ---------- -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The interface between a session and its device. The C interface's functions
// on tensors, first values and checks are written once over it; a backend only
// knows memory and execution.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_BACKEND_H
#define CKOPT_LIB_RUNTIME_CORE_BACKEND_H

#include "CallChecker.h"
#include "Pattern.h"
#include "Status.h"

#include <memory>
#include <vector>

struct ckrt_program;

namespace ckopt::runtime {

/// How the host accesses the bytes of a tensor that it opens.
enum class Access {
  Read,
  Write,  ///< writes all bytes; old contents are lost
  Update, ///< writes some bytes; the others stay
};

/// How ckrt_time_launches times, and who gets the times.
struct LaunchTiming {
  int32_t launches, replays;
  ckrt_launch_hook hook;
  void *user;
};

/// Memory of a device and streams that others use, too (ckrt_device_array).
/// Arrays have a tensor's type and shape where one is given.
class SharedDevice {
public:
  virtual ~SharedDevice();
  virtual int32_t ordinal() const = 0;
  virtual void *address(const TensorInfo &tensor) const = 0;
  virtual ckrt_status waitFor(void *stream) = 0;
  virtual ckrt_status letWait(void *stream) = 0;
  /// Copies an array, whose strides are set.
  virtual ckrt_status copy(const TensorInfo &tensor,
                           const ckrt_device_array &array, bool toTensor) = 0;
  /// Copies bytes behind what the stream has so far, and waits.
  virtual ckrt_status readBytes(const void *from, int64_t bytes, void *stream,
                                char *to) = 0;
  /// Looks at `bytes` bytes of floats of an array.
  virtual ckrt_status isFinite(const ckrt_device_array &array, int64_t bytes,
                               bool &finite) = 0;
};

/// Whether a device's copies of weights (TensorRole::Copy) may differ from
/// them.
class WeightCopies {
public:
  bool isStale() const { return stale; }
  void refreshed() { stale = isShown; }
  void written(const TensorInfo &tensor) { stale |= concerns(tensor); }
  /// The caller has the place of a tensor: it may write there at any time.
  void shown(const TensorInfo &tensor) {
    isShown |= concerns(tensor);
    stale |= isShown;
  }

private:
  static bool concerns(const TensorInfo &tensor) {
    return tensor.role == TensorRole::Parameter ||
           tensor.role == TensorRole::Copy;
  }
  bool stale = true, isShown = false;
};

class Backend {
public:
  virtual ~Backend();
  WeightCopies copies;

  /// Returns the device that the session shares with others; null on the CPU.
  virtual SharedDevice *shared() { return nullptr; }

  /// Returns host memory with the bytes of a tensor (Read, Update), or to be
  /// filled with them (Write), valid until close(). One tensor is open at a
  /// time.
  virtual ckrt_status open(const TensorInfo &tensor, Access access,
                           char *&bytes) = 0;
  /// Returns host memory with the bytes [begin, begin + size) of a tensor,
  /// valid until the next call.
  virtual ckrt_status read(const TensorInfo &tensor, int64_t begin,
                           int64_t size, const char *&bytes) = 0;
  /// Begins to copy a small tensor to the host as the runs so far leave it; a
  /// device goes on meanwhile. One tensor is copied at a time.
  virtual ckrt_status fetch(const TensorInfo &tensor);
  /// Waits for that copy, and returns its bytes, valid until the next fetch.
  virtual ckrt_status fetched(const TensorInfo &tensor, const char *&bytes);
  /// Finds out whether all numbers of these tensors of floats are finite.
  virtual ckrt_status allFinite(const std::vector<const TensorInfo *> &tensors,
                                bool &finite);
  /// Ends open(); bytes that were written reach the arena before the next run.
  virtual ckrt_status close(const TensorInfo &tensor, Access access) = 0;

  /// Returns whether another session of the same arena has written to it, so
  /// that constants are lost, since this one last did; it counts as this one's
  /// again.
  virtual bool returnsToArena() { return false; }
  /// Runs a function of the manifest; a device may still be at work when it
  /// returns. An active `checker` inspects each call.
  virtual ckrt_status run(size_t function, CallChecker &checker) = 0;
  /// Returns the number of this process among the ranks of a run.
  virtual int64_t rank() const { return 0; }
  /// Waits for all work, and returns its failure if there was one.
  virtual ckrt_status synchronize() = 0;

  /// Returns the arena if the host can access it, else null.
  virtual char *arena() = 0;
  /// Returns whether the session was made with a pattern.
  virtual bool hasPattern() const = 0;
  /// Returns the end of the highest byte that was ever changed.
  virtual ckrt_status measure(int64_t &bytes) = 0;
  /// Measures changes, then fills all but `keep` (sorted, disjoint) with
  /// another pattern.
  virtual ckrt_status refill(const std::vector<ArenaRange> &keep,
                             uint64_t seed) = 0;
  virtual ckrt_status allocations(ckrt_allocation_stats &stats) = 0;
  /// Says which device each rank of a run has; "" where there are none.
  virtual std::string rankDevices() { return ""; }
  virtual ckrt_status deviceReport(ckrt_device_report &report) = 0;
  /// Times each launch of a function (ckrt_time_launches); only a device can.
  virtual ckrt_status timeLaunches(size_t function, const LaunchTiming &timing);
  /// Tells who runs what libraries may run; only a device can.
  virtual ckrt_status libraryChoices(ckrt_library_hook hook, void *user);

protected:
  /// Clears `finite` if a number of the tensor from byte `begin` on is not.
  ckrt_status lookFrom(const TensorInfo &tensor, int64_t begin, bool &finite);

private:
  std::vector<char> copied; ///< by fetch()
};

/// Returns whether all of `bytes` bytes of numbers are finite.
bool areFinite(DType dtype, const char *from, int64_t bytes);

/// Both return null on failure, with the reason in ckrt_last_error() and its
/// code in `status`. The linker decides which of them a library has: the small
/// library for devices has no CPU backend.
std::unique_ptr<Backend> makeCpuBackend(ckrt_program &program,
                                        const ckrt_session_options &options,
                                        ckrt_status &status);
std::unique_ptr<Backend> makeCudaBackend(ckrt_program &program,
                                         const ckrt_session_options &options,
                                         ckrt_status &status);

/// Loads a shared library (an artifact for the CPU).
ckrt_status loadSharedLibrary(const std::string &path, ckrt_program **program);
/// Loads a folder (an artifact for a device).
ckrt_status loadDeviceFolder(const std::string &path, ckrt_program **program);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_BACKEND_H
