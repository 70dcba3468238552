//===- World.cpp - the processes of a run ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A wait polls the engine again and again, which makes MPI progress. If nothing
// comes for long, it sleeps between polls, since the awaited rank may need the
// core. It sleeps from the first poll on if this rank's kernels need the core.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/World.h"

#include "Collective.h"
#include "Comm/Mpi/Engine.h"
#include "Cuda/NcclEngine.h"
#include "Peers.h"
#include "WorldThread.h"
#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Base/Thread.h"

#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace ckopt::runtime;

namespace {

World *theWorld = nullptr;

/// Polls before the core is yielded, and before sleeping.
constexpr int64_t kSpins = 1000, kYields = 10000;
constexpr std::chrono::microseconds kNap{50};
/// The longer sleep, for waits beyond kLate seconds: a rank that late loses
/// little by a later poll.
constexpr std::chrono::microseconds kLongNap{500};
constexpr double kLate = 1;
/// Seconds in which sent messages still reach ranks that fail, too.
constexpr double kSettles = 2;
/// Seconds between checks whether the others still run.
constexpr std::chrono::milliseconds kLook{100};

/// Clocks count nanoseconds in 64 bits, which hold 292 years: with more seconds
/// than this the wait has no end.
constexpr double kMostSeconds = 1e9;

/// Ends the process where a scope takes too long.
class StartWatch {
public:
  explicit StartWatch(double seconds) {
    if (seconds > 0 && seconds < kMostSeconds)
      (void)watcher.start(
          [this, seconds] { watch(seconds); }); // else it waits without end
  }
  ~StartWatch() {
    {
      std::lock_guard lock(mutex);
      over = true;
    }
    changed.notify_all();
    watcher.join();
  }

private:
  void watch(double seconds) {
    std::unique_lock lock(mutex);
    if (changed.wait_for(lock, std::chrono::duration<double>(seconds),
                         [this] { return over; }))
      return;
    std::fprintf(stderr,
                 "ckopt: error: MPI has not started all ranks within %g "
                 "seconds: one of them never began, or cannot be reached\n",
                 seconds);
    std::_Exit(ckopt::ExitRank);
  }

  std::mutex mutex; ///< guards `over`
  std::condition_variable changed;
  bool over = false;
  ckopt::Thread watcher;
};

/// Seconds of a clock that never goes back.
double steadySeconds() {
  std::chrono::duration<double> now =
      std::chrono::steady_clock::now().time_since_epoch();
  return now.count();
}

} // namespace

World::World() = default;
World::~World() = default;

World *World::current() { return theWorld; }

World *ckopt::runtime::findWorld(int64_t ranks, std::string &error) {
  World *world = World::current();
  if (world && world->size() == ranks)
    return world;
  error = "the step is one of " + std::to_string(ranks) + " ranks, and " +
          (world ? "there are " + std::to_string(world->size())
                 : std::string("this process runs alone"));
  return nullptr;
}

std::string World::open(double timeout) {
  StartWatch watch(timeout > 0 ? timeout + kLaunchSeconds : 0);
  std::string error;
  const MessageEngine *engine = openMpiEngine(error);
  return engine ? open(*engine) : error;
}

ckopt::MessageText World::openNccl(const std::string &file, int32_t rank,
                                   int32_t ranks, double timeout) {
  // A rank that is not started at all must not be waited for without end.
  constexpr double kMeetingSeconds = 300;
  ckopt::MessageText error;
  const MessageEngine *engine = cuda::openNcclEngine(
      {file, rank, ranks, timeout > 0 ? timeout : kMeetingSeconds}, error);
  return engine ? ckopt::MessageText(open(*engine)) : error;
}

std::string World::open(const MessageEngine &engine) {
  auto *world = new World;
  world->engine = &engine;
  if (const char *why = engine.start(world->ownRank, world->ranks)) {
    delete world;
    return why;
  }
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  world->hostName = name;
  world->gone.resize(size_t(world->ranks));
  world->told.resize(size_t(world->ranks));
  world->thread = std::make_unique<WorldThread>();
  if (!world->thread->isRunning()) {
    delete world;
    return "the system gives no thread to meet other ranks on (ulimit -u, or a "
           "container's limit of processes)";
  }
  PeerProcess own = describeProcess(name);
  std::vector<PeerProcess> all(size_t(world->ranks));
  std::string error;
  if (!world->gatherAll(&own, sizeof(own), all.data(), error)) {
    delete world;
    return error;
  }
  keepWatchable(all, name);
  world->processes = std::move(all);
  theWorld = world;
  return "";
}

/// Ends the messages of a failed transfer, since later messages would be taken
/// for them. A leaving rank receives what was sent to it before, which may take
/// a while.
void World::abandon(const std::vector<Pending> &pending) {
  double end = steadySeconds() + kSettles;
  for (const Pending &one : pending) {
    bool done = false;
    const char *why = nullptr;
    if (!one.sends) {
      if (engine->cancel(one.request))
        gone[size_t(one.peer)] = true;
      continue;
    }
    while (!(why = engine->test(one.request, done)) && !done &&
           steadySeconds() < end && findEnded({one}) < 0)
      std::this_thread::sleep_for(kNap);
    if (why || !done)
      broken = true; // the bytes may be gone when the peer receives them
  }
}

void World::begin(const void *key, Meeting work) {
  thread->begin(key, std::move(work));
}

bool World::finish(const void *key, std::string &error) {
  return thread->finish(key, error);
}

bool World::perform(const Meeting &work, std::string &error) {
  if (thread->isHere())
    return work(error);
  thread->begin(&work, work);
  return thread->finish(&work, error);
}

void World::drain() { thread->drain(); }

/// Returns a rank whose message is awaited and whose process has ended, or -1.
int32_t World::findEnded(const std::vector<Pending> &pending) const {
  for (const Pending &one : pending)
    if (size_t(one.peer) < processes.size() &&
        hasEnded(processes[size_t(one.peer)]))
      return one.peer;
  return -1;
}

void World::beat() {
  // Not sent while this rank waits, since it must not prolong the waits of
  // others.
  if (waiting || !engine->beat || !mutex.try_lock())
    return;
  engine->beat(kWorks);
  mutex.unlock();
}

bool World::transfer(const std::vector<Transfer> &list, std::string &error) {
  return perform([&](std::string &why) { return exchange(list, why); }, error);
}

/// Yields the core between two polls.
void World::pause(int64_t asked, double waited) {
  bool awaited = thread->isAwaited();
  if (awaited && asked < kSpins)
    return;
  if (asked < (awaited ? kYields : kSpins / 100))
    sched_yield();
  else
    std::this_thread::sleep_for(waited < kLate ? kNap : kLongNap);
}

/// Takes the others' reports; true: one of them works, so the wait goes on.
bool World::listen(double now) {
  bool works = false;
  int32_t from = 0, waitsFor = 0;
  while (engine->heard && engine->heard(from, waitsFor)) {
    works |= waitsFor == kWorks;
    if (waitsFor != kWorks)
      told[size_t(from)] = {waitsFor, now};
  }
  return works;
}

/// Returns the rank to blame if none of `pending` answers. Ranks that report
/// for whom they wait are not blamed, but the rank that they wait for may be.
int32_t World::findSilent(const std::vector<Pending> &pending,
                          double now) const {
  auto waits = [&](int32_t rank) {
    return now - told[size_t(rank)].at < timeout / 2;
  };
  for (const Pending &one : pending)
    if (!waits(one.peer))
      return one.peer;
  int32_t at = pending.front().peer;
  for (int32_t i = 0; i < ranks && at != ownRank; ++i) {
    at = told[size_t(at)].waitsFor;
    if (at != ownRank && !waits(at))
      return at;
  }
  return pending.front().peer;
}

bool World::exchange(const std::vector<Transfer> &list, std::string &error) {
  std::vector<Pending> pending;
  std::unique_lock lock(mutex);
  struct Wait {
    std::atomic<bool> &flag;
    explicit Wait(std::atomic<bool> &flag) : flag(flag) { flag = true; }
    ~Wait() { flag = false; }
  } wait(waiting);
  auto fail = [&](int32_t peer, const char *why) {
    bool left = std::strcmp(why, kHasLeft) == 0;
    bool answered =
        left || std::strncmp(why, kOtherSize, sizeof(kOtherSize) - 1) == 0;
    if (left)
      gone[size_t(peer)] = true;
    error = "rank " + std::to_string(peer) +
            (answered ? " " : " cannot be reached: ") + why;
    broken |= !answered;
    if (answered)
      abandon(pending);
    return false;
  };
  // A rank that has left sends nothing more, but it waits for this one's
  // farewell.
  for (const Transfer &t : list)
    if (gone[size_t(t.peer)] && !(t.sends && t.bytes == kLeavingBytes))
      return fail(t.peer, kHasLeft);
  // Receives first, so that messages are taken while sends wait.
  for (bool sends : {false, true})
    for (const Transfer &t : list) {
      if (t.sends != sends || t.bytes == 0)
        continue;
      if (t.bytes > INT_MAX)
        return fail(t.peer, "a message has 2 GiB or more");
      int32_t request = 0;
      const char *why = sends
                            ? engine->send(t.data, t.bytes, t.peer, request)
                            : engine->receive(t.data, t.bytes, t.peer, request);
      if (why)
        return fail(t.peer, why);
      pending.push_back({sends, request, t.peer});
      if (sends && recording) {
        ++done.back().messages;
        done.back().sentBytes += t.bytes;
      }
    }
  auto start = std::chrono::steady_clock::now();
  auto nextLook = start + kLook;
  double nextWord = 0, lastCame = steadySeconds(), lastLook = lastCame;
  int32_t ended = -1;
  for (int64_t asked = 0; !pending.empty(); ++asked) {
    for (size_t i = 0; i < pending.size();) {
      bool done = false;
      if (const char *why = engine->test(pending[i].request, done)) {
        int32_t peer = pending[i].peer;
        pending.erase(pending.begin() + int64_t(i));
        return fail(peer, why);
      }
      if (done) {
        pending.erase(pending.begin() + int64_t(i));
        lastCame = steadySeconds();
      } else {
        ++i;
      }
    }
    if (pending.empty())
      break;
    lock.unlock(); // the thread that ends the run may have to call the engine
    pause(asked, steadySeconds() - lastCame);
    lock.lock();
    auto now = std::chrono::steady_clock::now();
    if (now >= nextLook) {
      nextLook = now + kLook;
      double seconds = steadySeconds();
      // While this process itself was stopped, others may have answered.
      bool wasStopped = seconds - lastLook > timeout / 2;
      lastLook = seconds;
      if (listen(seconds) || wasStopped)
        start = now;
      // Only a rank whose kernels do not run is known to wait.
      if (timeout > 0 && engine->beat && seconds >= nextWord &&
          thread->isAwaited()) {
        nextWord = seconds + timeout / 8;
        engine->beat(pending.front().peer);
      }
      // A message sent before the end may still be on its way: look twice.
      int32_t before = std::exchange(ended, findEnded(pending));
      if (ended >= 0 && ended == before) {
        broken = true;
        error = "rank " + std::to_string(ended) + " on " +
                processes[size_t(ended)].host +
                " was killed, or has ended; its own message says why, if it "
                "had one";
        return false;
      }
    }
    std::chrono::duration<double> waited = now - start;
    if (timeout > 0 && waited.count() > timeout) {
      broken = true;
      int32_t peer = findSilent(pending, steadySeconds());
      error = "rank " + std::to_string(peer) + " on " +
              processes[size_t(peer)].host + " has " + noAnswerText(timeout);
      return false;
    }
  }
  return true;
}

void World::beginRecord(const char *kind, int64_t bytes) {
  done.push_back({kind, bytes, 0, 0, -steadySeconds()});
  recording = true;
}

void World::endRecord() {
  done.back().seconds += steadySeconds();
  recording = false;
}

bool World::gatherAll(const void *own, int64_t bytes, void *all,
                      std::string &error) {
  std::vector<Transfer> list;
  auto *slots = static_cast<char *>(all);
  for (int32_t peer = 0; peer < ranks; ++peer) {
    if (peer == ownRank) {
      std::memcpy(slots + peer * bytes, own, size_t(bytes));
      continue;
    }
    list.push_back({true, const_cast<void *>(own), bytes, peer});
    list.push_back({false, slots + peer * bytes, bytes, peer});
  }
  return transfer(list, error);
}

bool World::broadcast(void *data, int64_t bytes, std::string &error) {
  std::vector<Transfer> list;
  if (ownRank != 0)
    list.push_back({false, data, bytes, 0});
  for (int32_t peer = 1; ownRank == 0 && peer < ranks; ++peer)
    list.push_back({true, data, bytes, peer});
  return transfer(list, error);
}

void World::abort(int code) {
  std::lock_guard lock(mutex);
  engine->abort(code);
  std::_Exit(code);
}

/// Sends and receives the farewell messages.
void World::leave() {
  char leaving[kLeavingBytes] = {}, taken[kLeavingBytes];
  std::string error;
  for (int32_t peer = 0; peer < ranks && !broken; ++peer)
    if (peer != ownRank)
      transfer({{true, leaving, kLeavingBytes, peer}}, error);
  for (int32_t peer = 0; peer < ranks && !broken; ++peer)
    // A failed rank first sends its last message, and then that it leaves.
    while (peer != ownRank && !gone[size_t(peer)] && !broken)
      gone[size_t(peer)] =
          transfer({{false, taken, kLeavingBytes, peer}}, error);
}

void World::close() {
  theWorld = nullptr;
  timeout = 0;
  bool alive = engine->alive();
  if (alive && engine->saysFarewell)
    leave();
  thread.reset();
  if (alive && broken) // that rank will not reach the end, either
    abort(ExitRank);
  if (alive)
    engine->finish();
  delete this;
}
