//===- WorldThreadTest.cpp - the order of meetings ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Comm/WorldThread.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

using namespace ckopt::runtime;

namespace {

/// Keys are addresses; any will do.
const char kKeys[4] = {};

TEST(WorldThread, DoesWorkInTheOrderOfItsBeginning) {
  WorldThread thread;
  std::string done, error;
  for (int i = 0; i < 4; ++i)
    thread.begin(&kKeys[i], [&done, i](std::string &) {
      done += char('a' + i);
      return true;
    });
  // The last one ends after all others, and waits may come in any order.
  EXPECT_TRUE(thread.finish(&kKeys[3], error));
  EXPECT_EQ(done, "abcd");
  for (int i : {1, 0, 2})
    EXPECT_TRUE(thread.finish(&kKeys[i], error));
}

TEST(WorldThread, GoesOnWhileItsOwnerDoesOtherThings) {
  WorldThread thread;
  std::atomic<bool> went{false}, seen{false};
  std::string error;
  thread.begin(&kKeys[0], [&](std::string &) {
    went = true;
    while (!seen)
      std::this_thread::yield();
    return true;
  });
  // Ends only if the work runs while this thread does not wait for it.
  while (!went)
    std::this_thread::yield();
  EXPECT_FALSE(thread.isHere());
  EXPECT_FALSE(thread.isAwaited());
  seen = true;
  EXPECT_TRUE(thread.finish(&kKeys[0], error));
}

TEST(WorldThread, DoesNothingBehindWhatFailed) {
  WorldThread thread;
  bool ran = false;
  std::string error;
  thread.begin(&kKeys[0], [](std::string &why) {
    why = "rank 1 has left";
    return false;
  });
  thread.begin(&kKeys[1], [&](std::string &) { return ran = true; });
  EXPECT_FALSE(thread.finish(&kKeys[1], error));
  EXPECT_EQ(error, "rank 1 has left");
  EXPECT_FALSE(ran);
  thread.drain();
  // The step has ended; what comes now is new.
  thread.begin(&kKeys[1], [&](std::string &) { return ran = true; });
  EXPECT_TRUE(thread.finish(&kKeys[1], error));
  EXPECT_TRUE(ran);
}

TEST(WorldThread, AFailureThatWasToldIsNoLaterOnes) {
  WorldThread thread;
  std::string error;
  thread.begin(&kKeys[0], [](std::string &) { return false; });
  EXPECT_FALSE(thread.finish(&kKeys[0], error));
  thread.begin(&kKeys[0], [](std::string &) { return true; });
  EXPECT_TRUE(thread.finish(&kKeys[0], error));
  EXPECT_FALSE(thread.finish(&kKeys[0], error));
  EXPECT_EQ(error, "nothing was begun that is waited for");
}

TEST(WorldThread, SumsAsTheThreadThatBeganThem) {
  WorldThread thread;
  std::string error;
  unsigned before = _mm_getcsr(), inside = 0;
  _mm_setcsr(before | 0x8040); // denormals are zeros
  thread.begin(&kKeys[0], [&](std::string &) {
    inside = _mm_getcsr();
    return true;
  });
  _mm_setcsr(before);
  EXPECT_TRUE(thread.finish(&kKeys[0], error));
  EXPECT_EQ(inside & 0x8040u, 0x8040u);
}

} // namespace
