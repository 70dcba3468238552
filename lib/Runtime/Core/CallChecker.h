//===- CallChecker.h - looking at values between kernels --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_CALLCHECKER_H
#define CKOPT_LIB_RUNTIME_CORE_CALLCHECKER_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"

#include <chrono>
#include <string>
#include <vector>

namespace ckopt::runtime {

/// Observes each finished kernel call of instrumented code.
class CallObserver {
public:
  virtual ~CallObserver() = default;
  /// Handles a finished call. Nonzero ends the step; the observer keeps the
  /// reason.
  virtual int32_t callDone(int64_t call, char *arena) = 0;
};

/// Receives the calls of instrumented code, to check finite values and
/// recomputed values, and to measure times.
class CallChecker final : public CallObserver {
public:
  explicit CallChecker(const Manifest &manifest) : manifest(manifest) {}
  int32_t callDone(int64_t call, char *arena) override;
  void startStep();
  /// Returns whether any check is on.
  bool active() const { return checkFinite || verify || hook; }

  bool checkFinite = false, verify = false, keep = false;
  ckrt_profile_hook hook = nullptr;
  void *user = nullptr;
  MessageText failure;

private:
  struct Hash {
    uint64_t a = 0, b = 0;
    bool operator==(const Hash &) const = default;
  };
  static Hash hashOf(const char *data, int64_t bytes);
  int32_t checkValues(const CallInfo &call, const char *arena);
  int32_t verifyCall(int64_t index, const char *arena);
  void record(int64_t index, const char *arena);
  void prepareVerify();

  const Manifest &manifest;
  std::vector<char> repeated; ///< set for calls that a later call repeats
  std::vector<std::vector<Hash>> hashes;
  std::vector<std::vector<std::string>> kept;
  std::chrono::steady_clock::time_point last;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_CORE_CALLCHECKER_H
