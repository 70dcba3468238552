//===- Peers.h - the other processes of this machine ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A killed process sends nothing, and a rank that waits for it would wait for
// ever. Processes of the same machine are therefore watched by their number and
// start time, if they are visible; others are left to the launcher.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COMM_PEERS_H
#define CKOPT_LIB_RUNTIME_COMM_PEERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ckopt::runtime {

/// A process, as ranks report it to each other.
struct PeerProcess {
  int64_t pid = 0;
  uint64_t started = 0; ///< in ticks since the machine's start; 0: it has ended
  char host[128] = "";
};

/// Describes this process.
PeerProcess describeProcess(const char *host);
/// Whether a process of this machine, described as above, has ended.
bool hasEnded(const PeerProcess &process);
/// Clears processes that this one cannot watch: then `started` is 0.
void keepWatchable(std::vector<PeerProcess> &processes, const char *host);
/// Returns the reason why a wait for ranks ended, with the seconds as given.
std::string noAnswerText(double seconds);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COMM_PEERS_H
