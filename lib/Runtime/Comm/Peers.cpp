//===- Peers.cpp - the other processes of this machine --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Peers.h"

#include <cstdio>
#include <cstring>
#include <string>
#include <unistd.h>

using namespace ckopt::runtime;

/// Returns when a process began; 0 if there is none, or only a zombie.
static uint64_t startOf(int64_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE *file = std::fopen(path.c_str(), "r");
  if (!file)
    return 0;
  char text[1024];
  size_t length = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[length] = 0;
  // The name, in parentheses, may hold blanks; "STATE" follows it, then numbers
  // of which the 19th is the time.
  const char *at = std::strrchr(text, ')');
  if (!at || at[1] != ' ' || std::strchr("ZXx", at[2]))
    return 0;
  unsigned long long started = 0;
  if (std::sscanf(at + 4,
                  "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%*s %*s %*s %*s %llu",
                  &started) != 1)
    return 0;
  return started;
}

PeerProcess ckopt::runtime::describeProcess(const char *host) {
  PeerProcess process;
  process.pid = getpid();
  process.started = startOf(process.pid);
  std::strncpy(process.host, host, sizeof(process.host) - 1);
  return process;
}

bool ckopt::runtime::hasEnded(const PeerProcess &process) {
  return process.started && startOf(process.pid) != process.started;
}

void ckopt::runtime::keepWatchable(std::vector<PeerProcess> &processes,
                                   const char *host) {
  // Processes may be invisible, or have another number here (containers).
  for (PeerProcess &process : processes)
    if (std::strcmp(process.host, host) != 0 || hasEnded(process))
      process.started = 0;
}

std::string ckopt::runtime::noAnswerText(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", seconds);
  return std::string("not answered for ") + text + " seconds";
}
