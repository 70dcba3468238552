//===- Thread.h - threads that may fail to start ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: if a limit of processes is reached (ulimit -u, a container's
// pids.max), std::thread throws, and code without exceptions ends in abort().
// Method: POSIX threads, whose creation returns a code. The caller decides how
// to continue without the thread.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_THREAD_H
#define CKOPT_BASE_THREAD_H

#include <functional>
#include <memory>
#include <pthread.h>

namespace ckopt {

/// A thread that its destructor joins.
class Thread {
public:
  Thread() = default;
  Thread(Thread &&other) : handle(other.handle), runs(other.runs) {
    other.runs = false;
  }
  Thread &operator=(Thread &&other) {
    join();
    handle = other.handle;
    runs = other.runs;
    other.runs = false;
    return *this;
  }
  ~Thread() { join(); }

  /// Runs `work` on a new thread; returns 0, or the reason for a failure
  /// (errno).
  int start(std::function<void()> work) {
    auto given = std::make_unique<std::function<void()>>(std::move(work));
    auto run = [](void *data) -> void * {
      std::unique_ptr<std::function<void()>> work(
          static_cast<std::function<void()> *>(data));
      (*work)();
      return nullptr;
    };
    const int code = pthread_create(&handle, nullptr, run, given.get());
    runs = code == 0;
    if (runs)
      (void)given.release(); // the thread deletes it
    return code;
  }
  bool isRunning() const { return runs; }
  /// Whether the caller is this thread.
  bool isHere() const { return runs && pthread_equal(handle, pthread_self()); }
  void join() {
    if (runs)
      pthread_join(handle, nullptr);
    runs = false;
  }
  /// Detaches the thread.
  void detach() {
    if (runs)
      pthread_detach(handle);
    runs = false;
  }

private:
  pthread_t handle = {};
  bool runs = false;
};

} // namespace ckopt

#endif // CKOPT_BASE_THREAD_H
