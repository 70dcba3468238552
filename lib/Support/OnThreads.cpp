//===- OnThreads.cpp - independent pieces of work on threads --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each thread takes the next number until none is left, so that no thread waits
// for a piece that takes longer than others. Threads last for one call:
// starting one takes some 20 us, and an image or a model takes a hundred times
// that, or more. Where no thread can be had, the others do its work.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/OnThreads.h"
#include "ckopt/Base/Thread.h"
#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

using namespace llvm;

namespace ckopt {

Error onThreads(int64_t threads, int64_t count,
                function_ref<Error(int64_t)> work) {
  std::atomic<int64_t> next = 0;
  std::mutex mutex; // of the failure
  std::atomic<int64_t> failedAt = INT64_MAX;
  Error failure = Error::success();
  auto note = [&](int64_t i, Error error) {
    std::lock_guard lock(mutex);
    Error &dropped = i < failedAt ? failure : error;
    consumeError(std::move(dropped));
    if (i >= failedAt)
      return;
    failure = std::move(error);
    failedAt = i;
  };
  auto loop = [&] {
    while (failedAt == INT64_MAX) {
      const int64_t i = next++;
      if (i >= count)
        return;
      if (Error error = work(i))
        note(i, std::move(error));
    }
  };
  if (threads <= 0)
    threads = std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<Thread> others(
        size_t(std::clamp<int64_t>(count - 1, 0, threads - 1)));
    for (Thread &thread : others)
      if (thread.start(loop) != 0)
        break;
    loop();
  } // joins
  return failure;
}

} // namespace ckopt
