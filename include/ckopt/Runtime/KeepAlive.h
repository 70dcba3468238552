//===- KeepAlive.h - tells other ranks that this one works ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A rank that plans, compiles, evaluates or writes a file may take longer than
// the others' timeout (World::setTimeout). While a KeepAlive lives, a thread
// tells them that the process runs, unless it waits for others itself; this
// restarts their timeout. A stopped process sends nothing, so it is found.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_KEEPALIVE_H
#define CKOPT_RUNTIME_KEEPALIVE_H

#include "ckopt/Runtime/Export.h"

namespace ckopt::runtime {

/// Does nothing without a world, or if its ranks wait for ever. Must end before
/// the world closes.
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
