//===- KeepAlive.h - work that other ranks wait for -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank that plans, compiles, evaluates or writes a file may take longer than
// others are told to wait for it (World::setTimeout). While one of these lives,
// a thread tells them that the process runs, unless it waits for others itself:
// their time begins anew. A process that is stopped tells nothing, and is
// found.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_KEEPALIVE_H
#define CKOPT_RUNTIME_KEEPALIVE_H

#include "ckopt/Runtime/Export.h"

namespace ckopt::runtime {

/// Does nothing without a world, or where its ranks wait for ever. Must end
/// before the world closes.
class CKRT_EXPORT KeepAlive {
public:
  KeepAlive();
  ~KeepAlive();
  KeepAlive(const KeepAlive &) = delete;

private:
  struct Thread;
  Thread *thread = nullptr;
};

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_KEEPALIVE_H
