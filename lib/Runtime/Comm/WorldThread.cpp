//===- WorldThread.cpp - the thread that runs collectives -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: messages must progress, and arriving ones be added, while kernels
// run; and only one thread at a time may call MPI. Method: one thread runs the
// ranks' common tasks from a queue, in the order in which they were started,
// which is the same on all ranks. Guarantee: a failed exchange leaves messages
// that later ones would be confused with, so no later task runs until its step
// has ended. The thread sleeps if there is nothing to do.
//
//===----------------------------------------------------------------------===//
#include "WorldThread.h"

#include <algorithm>
#include <csignal>
#include <pthread.h>
#include <xmmintrin.h>

using namespace ckopt::runtime;

WorldThread::WorldThread() {
  // Signals belong to the threads of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  (void)worker.start([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

WorldThread::~WorldThread() {
  {
    std::lock_guard lock(mutex);
    ending = true;
  }
  changed.notify_all();
  worker.join();
}

void WorldThread::begin(const void *key, Meeting work) {
  {
    std::lock_guard lock(mutex);
    tasks.push_back({key, std::move(work), _mm_getcsr(), false, false, ""});
  }
  changed.notify_all();
}

bool WorldThread::finish(const void *key, std::string &error) {
  std::unique_lock lock(mutex);
  auto found = std::find_if(tasks.begin(), tasks.end(),
                            [&](const Task &task) { return task.key == key; });
  if (found == tasks.end()) {
    error = "nothing was begun that is waited for";
    return false;
  }
  ++waiters;
  changed.wait(lock, [&] { return found->done; });
  --waiters;
  bool fine = !found->failed;
  error = found->error;
  tasks.erase(found);
  failed &= !tasks.empty();
  return fine;
}

void WorldThread::drain() {
  std::unique_lock lock(mutex);
  ++waiters;
  changed.wait(lock, [&] {
    return std::all_of(tasks.begin(), tasks.end(),
                       [](const Task &task) { return task.done; });
  });
  --waiters;
  tasks.clear();
  failed = false;
}

void WorldThread::run() {
  std::unique_lock lock(mutex);
  while (true) {
    auto next = tasks.end();
    changed.wait(lock, [&] {
      next = std::find_if(tasks.begin(), tasks.end(),
                          [](const Task &task) { return !task.done; });
      return ending || next != tasks.end();
    });
    if (next == tasks.end())
      return;
    Task &task = *next;
    if (failed) {
      task.failed = true;
      task.error = reason;
    } else {
      lock.unlock();
      _mm_setcsr(task.floatMode);
      std::string error;
      bool fine = task.work(error);
      lock.lock();
      task.failed = !fine;
      task.error = std::move(error);
      if (!fine) {
        failed = true;
        reason = task.error;
      }
    }
    task.done = true;
    changed.notify_all();
  }
}
