//===- Env.h - what generated code's calls see ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CORE_ENV_H
#define CKOPT_LIB_RUNTIME_CORE_ENV_H

#include "CallChecker.h"
#include "Status.h"

#include "ckopt/Runtime/Primitive.h"

#include <memory>
#include <string>
#include <vector>

namespace ckopt::runtime {

/// Sets SSE's control word on the calling thread, so that denormals are flushed
/// (results and operands) or kept; returns the old one.
unsigned floatMode(bool keepDenormals);

/// Puts the calling thread's team of `threads` in the given floating-point mode
/// and tells OpenMP (and so the libraries) how many threads to use. Restores
/// the caller's mode on all of them at the end. Returns in `delivered` how many
/// threads OpenMP gave.
class TeamScope {
public:
  TeamScope(int32_t threads, bool keepDenormals);
  ~TeamScope();
  TeamScope(const TeamScope &) = delete;
  TeamScope &operator=(const TeamScope &) = delete;
  int32_t delivered = 0;

private:
  unsigned savedMode;
  int savedThreads, savedDynamic;
};

} // namespace ckopt::runtime

struct ckrt_env {
  int32_t threads = 1;
  bool keepDenormals = false;
  int64_t openSize = 0; ///< of OpenSize; 0: there is none
  std::vector<std::unique_ptr<ckopt::runtime::Primitive>> owned;
  std::vector<ckopt::runtime::PrimitiveDesc> ownedDescs;
  /// Primitives by manifest index; equal descriptors share one.
  std::vector<ckopt::runtime::Primitive *> primitives;
  ckopt::runtime::CallObserver *observer = nullptr;
  /// Why a primitive failed; ckrt_run returns it.
  mutable std::string failure;

  /// Makes (or shares) a primitive and appends it to `primitives`.
  bool addPrimitive(const ckopt::runtime::PrimitiveDesc &desc,
                    std::string &error);
};

#endif // CKOPT_LIB_RUNTIME_CORE_ENV_H
