//===- KeepAlive.cpp - tells other ranks that this one works --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/KeepAlive.h"

#include "ckopt/Base/Thread.h"
#include "ckopt/Runtime/World.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

using namespace ckopt::runtime;

struct KeepAlive::Thread {
  explicit Thread(World &world)
      : interval(std::clamp(world.waitsAtMost() / 5, 0.02, 5.0)), world(world) {
    // If the thread cannot be started, ranks that wait long take this one for
    // dead.
    (void)thread.start([this] { run(); });
  }
  ~Thread() {
    {
      std::lock_guard lock(mutex);
      ends = true;
    }
    woken.notify_all();
    thread.join();
  }

private:
  void run() {
    std::unique_lock lock(mutex);
    while (!woken.wait_for(lock, interval, [this] { return ends; }))
      world.beat();
  }

  std::chrono::duration<double> interval;
  World &world;
  std::mutex mutex; ///< guards `ends`
  std::condition_variable woken;
  bool ends = false;
  ckopt::Thread thread;
};

KeepAlive::KeepAlive() {
  World *world = World::current();
  if (world && world->waitsAtMost() > 0)
    thread = new Thread(*world);
}

KeepAlive::~KeepAlive() { delete thread; }
