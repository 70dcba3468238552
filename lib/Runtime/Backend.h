//===- Backend.h - where an arena lies and steps run ---------- -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A session is a manifest and one of these. Everything that the C interface
// says about tensors, first values and checks is written once over it; a
// backend knows memory and execution alone.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_BACKEND_H
#define CKOPT_LIB_RUNTIME_BACKEND_H

#include "CallChecker.h"
#include "Pattern.h"
#include "Status.h"

#include <memory>

struct ckrt_program;

namespace ckopt::runtime {

/// What the host does with the bytes of a tensor that it opens.
enum class Access {
  Read,
  Write,  ///< all bytes; what was there is lost
  Update, ///< some bytes; the others stay
};

class Backend {
public:
  virtual ~Backend();

  /// Host memory that holds (Read, Update) or takes (Write, Update) the bytes
  /// of a tensor until close(). One tensor is open at a time.
  virtual ckrt_status open(const TensorInfo &tensor, Access access,
                           char *&bytes) = 0;
  /// Ends open(): what was written is in the arena before the next run.
  virtual ckrt_status close(const TensorInfo &tensor, Access access) = 0;

  /// Runs a function of the manifest; a device may still be at work when it
  /// returns. `checker` looks at each call while it is active.
  virtual ckrt_status run(size_t function, CallChecker &checker) = 0;
  /// Waits for all work, and returns its failure if there was one.
  virtual ckrt_status synchronize() = 0;

  /// The arena, where the host can reach it; else null.
  virtual char *arena() = 0;
  /// True if the session was made with a pattern.
  virtual bool hasPattern() const = 0;
  /// Highest changed byte so far, plus one.
  virtual ckrt_status measure(int64_t &bytes) = 0;
  /// Measures, then fills all but `keep` (sorted, disjoint) with another
  /// pattern.
  virtual ckrt_status refill(const std::vector<ArenaRange> &keep,
                             uint64_t seed) = 0;
  virtual ckrt_status allocations(ckrt_allocation_stats &stats) = 0;
  virtual ckrt_status deviceReport(ckrt_device_report &report) = 0;
};

/// Both give null, with the reason kept for ckrt_last_error() and its code in
/// `status`. Which of them a library has is decided when it is linked: the
/// small library for devices has no CPU backend.
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

#endif // CKOPT_LIB_RUNTIME_BACKEND_H
