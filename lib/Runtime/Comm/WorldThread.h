//===- WorldThread.h - the thread that meets other ranks --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COMM_WORLDTHREAD_H
#define CKOPT_LIB_RUNTIME_COMM_WORLDTHREAD_H

#include "ckopt/Base/Thread.h"
#include "ckopt/Runtime/World.h"

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>

namespace ckopt::runtime {

/// Carries out meetings one behind the other.
class WorldThread {
public:
  /// Begins the thread; see isRunning().
  WorldThread();
  /// Ends the thread; nothing is under way then.
  ~WorldThread();

  void begin(const void *key, Meeting work);
  bool finish(const void *key, std::string &error);
  void drain();

  /// Whether the caller is the thread itself.
  bool isHere() const { return worker.isHere(); }
  /// False: the system gave no thread.
  bool isRunning() const { return worker.isRunning(); }
  /// Whether another thread has nothing to do but wait for this one.
  bool isAwaited() const { return waiters.load(std::memory_order_relaxed) > 0; }

private:
  struct Task {
    const void *key;
    Meeting work;
    unsigned floatMode; ///< of the thread that began it: sums depend on it
    bool done = false, failed = false;
    std::string error;
  };
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::list<Task> tasks; ///< in the order of their beginning, unfinished ones
  bool ending = false;
  bool failed = false; ///< until no task is left, or drain()
  std::string reason;  ///< of the first failure
  std::atomic<int> waiters{0};
  ckopt::Thread worker;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COMM_WORLDTHREAD_H
