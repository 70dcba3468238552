//===- Stopping.cpp - runs that end before their time ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Stopping.h"

#include "ckopt/Support/Error.h"

#include <array>
#include <atomic>
#include <csignal>

using namespace ckopt;

static constexpr std::array kSignals = {SIGINT, SIGTERM, SIGUSR1};
static std::atomic<int> caughtSignal = 0;
static std::array<struct sigaction, kSignals.size()> before;

static void handle(int number) {
  int none = 0;
  if (caughtSignal.compare_exchange_strong(none, number))
    return;
  for (size_t i = 0; i < kSignals.size(); ++i)
    if (kSignals[i] == number)
      sigaction(number, &before[i], nullptr);
  raise(number);
}

SignalCatcher::SignalCatcher() {
  caughtSignal = 0;
  struct sigaction action = {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < kSignals.size(); ++i)
    sigaction(kSignals[i], &action, &before[i]);
}

SignalCatcher::~SignalCatcher() {
  for (size_t i = 0; i < kSignals.size(); ++i)
    sigaction(kSignals[i], &before[i], nullptr);
}

int SignalCatcher::caught() { return caughtSignal; }

const char *ckopt::signalName(int number) {
  return number == SIGINT    ? "SIGINT"
         : number == SIGTERM ? "SIGTERM"
                             : "SIGUSR1";
}

llvm::Expected<int> StopCheck::afterStep() {
  if (!asked)
    return 0;
  if (!ranks.areSeveral())
    return asked();
  if (++steps < interval)
    return 0;
  struct Numbers {
    int64_t asked, interval;
  };
  // Rank 0 says when they talk next.
  double seconds = secondsSince(last);
  double next = double(interval) * 0.2 / std::max(seconds, 1e-6);
  Numbers own = {asked(), int64_t(std::clamp(next, 1.0, 1000.0))};
  auto all = ranks.gather(own);
  if (!all)
    return all.takeError();
  interval = all->front().interval;
  steps = 0;
  last = ProgressClock::now();
  for (const Numbers &one : *all)
    if (one.asked)
      return int(one.asked);
  return 0;
}
