//===- Session.h - programs and sessions ------------------------*- C++ -*-===//
#ifndef CKOPT_LIB_RUNTIME_SESSION_H
#define CKOPT_LIB_RUNTIME_SESSION_H

#include "AllocationHook.h"
#include "Arena.h"
#include "Env.h"

#include "ckopt/Runtime/Manifest.h"

#include <chrono>
#include <optional>

struct ckrt_program {
  ckopt::runtime::Manifest manifest;
  std::vector<ckrt_fn> functions; ///< as in the manifest
  const char *data = nullptr;
  void *library = nullptr; ///< dlopen's handle, or null
};

namespace ckopt::runtime {

/// What instrumented code reports to: finite values, recomputed values, times.
class CallChecker final : public CallObserver {
public:
  explicit CallChecker(const Manifest &manifest) : manifest(manifest) {}
  int32_t callDone(int64_t call, char *arena) override;
  void startStep();
  /// True while anything is to be looked at.
  bool active() const { return checkFinite || verify || hook; }

  bool checkFinite = false, verify = false, keep = false;
  ckrt_profile_hook hook = nullptr;
  void *user = nullptr;
  std::string failure;

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
  std::vector<char> repeated; ///< calls that some later call repeats
  std::vector<std::vector<Hash>> hashes;
  std::vector<std::vector<std::string>> kept;
  std::chrono::steady_clock::time_point last;
};

} // namespace ckopt::runtime

struct ckrt_session {
  explicit ckrt_session(ckrt_program &program)
      : program(program), checker(program.manifest) {}
  ckrt_program &program;
  ckrt_env env;
  std::unique_ptr<ckopt::runtime::Arena> arena;
  ckopt::runtime::CallChecker checker;
  std::optional<ckopt::runtime::AllocationHook> allocations;

  const ckopt::runtime::Manifest &manifest() const { return program.manifest; }
  bool valid(int64_t tensor) const {
    return tensor >= 0 &&
           tensor < static_cast<int64_t>(manifest().tensors.size());
  }
};

namespace ckopt::runtime {

/// Every CPU feature of the list that this machine or its kernel lacks.
std::vector<std::string>
missingCpuFeatures(const std::vector<std::string> &features);

/// Calls fn(logical index, byte offset within the tensor) for runs: `count`
/// elements whose physical step is `step` elements.
template <typename Fn> void forEachRun(const TensorInfo &t, Fn fn) {
  int64_t rank = static_cast<int64_t>(t.shape.size());
  int64_t total = 1;
  for (int64_t extent : t.shape)
    total *= extent;
  if (total == 0)
    return;
  int64_t count = rank ? t.shape[rank - 1] : 1;
  int64_t step = rank ? t.strides[rank - 1] : 1;
  std::vector<int64_t> index(rank, 0);
  int64_t offset = 0;
  for (int64_t logical = 0; logical < total; logical += count) {
    fn(logical, offset, count, step);
    for (int64_t d = rank - 2; d >= 0; --d) {
      offset += t.strides[d];
      if (++index[d] < t.shape[d])
        break;
      offset -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

inline int64_t elementCount(const TensorInfo &t) {
  int64_t total = 1;
  for (int64_t extent : t.shape)
    total *= extent;
  return total;
}

/// Writes `value` as an element of type `dtype`.
void storeElement(DType dtype, char *at, double value);
double loadElement(DType dtype, const char *at);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_SESSION_H
