//===- World.h - the processes of a run -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A World exchanges the tensors of ranks. Messages go from one process to
// another, into buffers of the caller; ckopt itself adds them, in a fixed order
// (AllReduce.cpp). A separate library carries them, libckopt_mpi.so, which is
// opened with the world, so that nothing else needs MPI.
//
// Threads: calls come from any of them. The world's own thread makes all
// transfers, in the order in which they were started, and all MPI calls that
// move bytes; started work goes on while the caller computes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_WORLD_H
#define CKOPT_RUNTIME_WORLD_H

#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/Export.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace ckopt::runtime {

struct MessageEngine;
struct PeerProcess;
class WorldThread;

/// A common task of the ranks; false with a reason on failure.
using Meeting = std::function<bool(std::string &error)>;

/// Bytes that one process sends to another. Messages between two processes
/// arrive in the order of sending.
struct Transfer {
  bool sends = false; ///< false: receives
  void *data = nullptr;
  int64_t bytes = 0;
  int32_t peer = 0; ///< the other rank
};

/// This rank's part in one collective of a step.
struct CollectiveRecord {
  const char *kind = ""; ///< the op's name
  int64_t bytes = 0;     ///< bytes of the whole tensors
  int64_t messages = 0;  ///< messages that this rank sent
  int64_t sentBytes = 0; ///< bytes of these messages
  double seconds = 0;    ///< including the wait for later ranks
};

class CKRT_EXPORT World {
public:
  /// Returns the world that open() made; null: this process runs alone.
  static World *current();
  /// Opens the engine and connects to the other processes; returns "" or the
  /// reason of a failure. If they are not connected within the timeout in
  /// seconds plus the time of launching (kLaunchSeconds), the process ends with
  /// exit code 20, since MPI itself waits for ever.
  static std::string open(double timeout = 0);
  static constexpr double kLaunchSeconds = 10;
  /// Connects without MPI: the devices are connected by NCCL, whose id goes
  /// through a file (docs/cuda.md). `timeout` in seconds; 0: five minutes.
  static MessageText openNccl(const std::string &file, int32_t rank,
                              int32_t ranks, double timeout);
  /// Connects by this engine.
  static std::string open(const MessageEngine &engine);

  int32_t rank() const { return ownRank; }
  int32_t size() const { return ranks; }
  bool isMain() const { return ownRank == 0; }
  /// Returns the machine's name.
  const std::string &host() const { return hostName; }

  /// Sets the seconds to wait for another rank at most; 0: no limit.
  void setTimeout(double seconds) { timeout = seconds; }
  double waitsAtMost() const { return timeout; }
  /// Tells the others that this rank runs, unless it waits for one of them.
  /// This restarts their timeout. From any thread.
  void beat();

  /// Makes all transfers and waits for their end. Returns false with a reason
  /// that names the rank which does not answer.
  bool transfer(const std::vector<Transfer> &list, std::string &error);
  /// Gathers `bytes` of every rank on every rank: `all` holds size() times as
  /// many, in the order of the ranks.
  bool gatherAll(const void *own, int64_t bytes, void *all, std::string &error);
  /// Gives rank 0's bytes to all others.
  bool broadcast(void *data, int64_t bytes, std::string &error);

  /// Starts work on the world's thread, after work started before. `key` names
  /// it until it is finished.
  void begin(const void *key, Meeting work);
  /// Waits for the end of the work. Returns false with its reason, or with that
  /// of earlier work: after a failure, later work is not done.
  bool finish(const void *key, std::string &error);
  /// Does work on the world's thread and waits for its end.
  bool perform(const Meeting &work, std::string &error);
  /// Waits for the end of all work that was started and never finished, since
  /// its step failed. Later work is done again.
  void drain();

  /// Clears the records of collectives, at the begin of a step.
  void clearRecords() {
    done.clear();
    recording = false; // a failed collective has no end
  }
  /// Begins the record of a collective; transfers until endRecord() count for
  /// it.
  void beginRecord(const char *kind, int64_t bytes);
  void endRecord();
  /// Adds the record of a collective that a device ran.
  void addRecord(const CollectiveRecord &record) { done.push_back(record); }
  /// Returns the collectives since clearRecords(), in their order.
  const std::vector<CollectiveRecord> &records() const { return done; }

  /// Ends all processes of the run with this exit code.
  [[noreturn]] void abort(int code);
  /// Tells the other ranks that this one makes no more calls, and waits until
  /// they have said the same or failed. A rank that waits for this one's
  /// numbers gets an error. If a rank did not answer, this ends all processes
  /// instead (20). current() is null afterwards.
  void close();

private:
  World();
  ~World();
  struct Pending {
    bool sends;
    int32_t request, peer;
  };
  void abandon(const std::vector<Pending> &pending);
  bool exchange(const std::vector<Transfer> &list, std::string &error);
  void pause(int64_t asked, double waited);
  bool listen(double now);
  int32_t findSilent(const std::vector<Pending> &pending, double now) const;
  int32_t findEnded(const std::vector<Pending> &pending) const;
  void leave();

  const MessageEngine *engine = nullptr;
  int32_t ownRank = 0, ranks = 1;
  std::string hostName;
  double timeout = 0;
  std::vector<CollectiveRecord> done;
  bool recording = false; ///< the last record is still open
  std::vector<bool> gone; ///< peers that will send nothing more
  bool broken = false;    ///< a peer did not answer, for another reason
  std::mutex mutex;       ///< guards the engine
  std::unique_ptr<WorldThread> thread;
  std::atomic<bool> waiting = false; ///< this rank waits for another one
  /// The last report of each rank: the rank that it waits for, and when the
  /// report came.
  struct Told {
    int32_t waitsFor = -1;
    double at = -1e9;
  };
  std::vector<Told> told;
  std::vector<PeerProcess> processes; ///< of all ranks
};

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_WORLD_H
