//===- WorldThread.h - the thread that runs collectives ---------*- C++ -*-===//
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

/// Runs the ranks' common tasks one after the other.
class WorldThread {
public:
  /// Begins the thread; see isRunning().
  WorldThread();
  /// Ends the thread; no task may be running.
  ~WorldThread();

  void begin(const void *key, Meeting work);
  bool finish(const void *key, std::string &error);
  void drain();

  /// Whether the caller is the thread itself.
  bool isHere() const { return worker.isHere(); }
  /// False: the system could not start a thread.
  bool isRunning() const { return worker.isRunning(); }
  /// Whether another thread only waits for this one.
  bool isAwaited() const { return waiters.load(std::memory_order_relaxed) > 0; }

private:
  struct Task {
    const void *key;
    Meeting work;
    /// Float mode of the starting thread, on which sums depend.
    unsigned floatMode;
    bool done = false, failed = false;
    std::string error;
  };
  void run();

  std::mutex mutex;
  std::condition_variable changed;
  std::list<Task> tasks; ///< unfinished tasks, in the order of their start
  bool ending = false;
  bool failed = false; ///< until no task is left, or drain()
  std::string reason;  ///< reason of the first failure
  std::atomic<int> waiters{0};
  ckopt::Thread worker;
};

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COMM_WORLDTHREAD_H
