//===- World.h - the processes of a run -------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Steps of several ranks exchange tensors through this. Messages go from one
// process to another, into buffers of the caller: sums and their order are
// ckopt's own (AllReduce.cpp). The engine that carries them is a library of its
// own, libckopt_mpi.so, which is opened with the world, so that nothing else
// needs MPI.
//
// Threads: calls come from any of them. One thread of the world's own carries
// out all that ranks do together, in the order in which it was begun, and makes
// all calls of MPI that move bytes; begun work goes on while the caller
// computes.
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

/// Something that ranks do together; false with a reason where it fails.
using Meeting = std::function<bool(std::string &error)>;

/// Bytes that one process sends to another. Those between two processes arrive
/// in the order of their sending.
struct Transfer {
  bool sends = false; ///< else receives
  void *data = nullptr;
  int64_t bytes = 0;
  int32_t peer = 0; ///< the other rank
};

/// What this rank did in one collective of a step.
struct CollectiveRecord {
  const char *kind = ""; ///< the op's name
  int64_t bytes = 0;     ///< of the whole tensors
  int64_t messages = 0;  ///< that this rank sent
  int64_t sentBytes = 0; ///< in them
  double seconds = 0;    ///< others that came later included
};

class CKRT_EXPORT World {
public:
  /// Returns the world that open() made; null: this process runs alone.
  static World *current();
  /// Opens the engine and meets the other processes; "" or why it cannot. With
  /// a timeout of so many seconds, and what launching takes (kLaunchSeconds),
  /// the process ends with exit code 20 where they are not met by then: MPI
  /// itself waits for ever.
  static std::string open(double timeout = 0);
  static constexpr double kLaunchSeconds = 10;
  /// Meets them without MPI: their devices are connected by NCCL, whose id goes
  /// through a file (docs/cuda.md). `timeout` in seconds; 0: five minutes.
  static MessageText openNccl(const std::string &file, int32_t rank,
                              int32_t ranks, double timeout);
  /// Meets them by this engine.
  static std::string open(const MessageEngine &engine);

  int32_t rank() const { return ownRank; }
  int32_t size() const { return ranks; }
  bool isMain() const { return ownRank == 0; }
  /// Returns the machine's name.
  const std::string &host() const { return hostName; }

  /// Waits at most so many seconds for another rank; 0: for ever.
  void setTimeout(double seconds) { timeout = seconds; }
  double waitsAtMost() const { return timeout; }
  /// Tells the others that this rank runs, unless it waits for one of them.
  /// Their time begins anew. From any thread.
  void beat();

  /// Does all transfers and waits for their end. False with a reason that names
  /// the rank which does not answer.
  bool transfer(const std::vector<Transfer> &list, std::string &error);
  /// Gives `bytes` of every rank to every rank: `all` holds size() times as
  /// many, in the order of the ranks.
  bool gatherAll(const void *own, int64_t bytes, void *all, std::string &error);
  /// Gives rank 0's bytes to all others.
  bool broadcast(void *data, int64_t bytes, std::string &error);

  /// Begins work that the world's thread does behind what was begun before.
  /// `key` names it until it is finished.
  void begin(const void *key, Meeting work);
  /// Waits for the end of the work; false with its reason, or that of work
  /// before it: once some has failed, what is behind it is not done.
  bool finish(const void *key, std::string &error);
  /// Does work on the world's thread and waits for its end.
  bool perform(const Meeting &work, std::string &error);
  /// Waits for the end of all work that was begun and never finished, since its
  /// step failed. Later work is done again.
  void drain();

  /// Forgets the collectives so far: a step begins.
  void clearRecords() {
    done.clear();
    recording = false; // one that failed has no end
  }
  /// Begins the record of a collective; what is transferred until endRecord()
  /// counts for it.
  void beginRecord(const char *kind, int64_t bytes);
  void endRecord();
  /// Adds the record of one that a device did.
  void addRecord(const CollectiveRecord &record) { done.push_back(record); }
  /// Returns the collectives since clearRecords(), in their order.
  const std::vector<CollectiveRecord> &records() const { return done; }

  /// Ends all processes of the run with this exit code.
  [[noreturn]] void abort(int code);
  /// Tells the other ranks that this one makes no more calls, and waits until
  /// they have said the same or failed; one that waits for this rank's numbers
  /// gets an error. Where a rank did not answer it ends all instead (20).
  /// current() is null afterwards.
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
  bool recording = false; ///< the last one is under way
  std::vector<bool> gone; ///< peers from which nothing more will come
  bool broken = false;    ///< a peer did not answer, for another reason
  std::mutex mutex;       ///< of the engine
  std::unique_ptr<WorldThread> thread;
  std::atomic<bool> waiting = false; ///< for another rank
  /// What each rank told last: for whom it waits, and when that came.
  struct Told {
    int32_t waitsFor = -1;
    double at = -1e9;
  };
  std::vector<Told> told;
  std::vector<PeerProcess> processes; ///< of all ranks
};

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_WORLD_H
