//===- Peers.h - the other processes of this machine ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A process that was killed sends nothing, and who waits for it would wait for
// ever. Those of one machine are found by their number and the time of their
// start, of those that this process can see; others are left to the launcher.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_COMM_PEERS_H
#define CKOPT_LIB_RUNTIME_COMM_PEERS_H

#include <cstdint>
#include <string>
#include <vector>

namespace ckopt::runtime {

/// What ranks tell each other of their processes.
struct PeerProcess {
  int64_t pid = 0;
  uint64_t started = 0; ///< in ticks since the machine's start; 0: it has ended
  char host[128] = "";
};

/// Describes this process.
PeerProcess describeProcess(const char *host);
/// Whether a process of this machine, described as above, has ended.
bool hasEnded(const PeerProcess &process);
/// Drops what this process cannot watch: then `started` is 0.
void keepWatchable(std::vector<PeerProcess> &processes, const char *host);
/// Says why ranks are waited for no longer: with so many seconds, as given.
std::string noAnswerText(double seconds);

} // namespace ckopt::runtime

#endif // CKOPT_LIB_RUNTIME_COMM_PEERS_H
