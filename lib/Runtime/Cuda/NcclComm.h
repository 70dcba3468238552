//===- NcclComm.h - the ranks' devices, connected by NCCL -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A communicator of all ranks of the run, on this rank's device. The process
// has only one: sessions, and messages of a World without MPI, share it, so
// that all of NCCL's traffic has one order on all ranks.
//
// Waiting never blocks inside of the driver, since a device waits for ever for
// a dead rank. Instead the host polls the stream, NCCL and the ranks'
// processes, and aborts work that cannot end.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_NCCLCOMM_H
#define CKOPT_LIB_RUNTIME_CUDA_NCCLCOMM_H

#include "Nccl.h"

#include <functional>
#include <memory>
#include <vector>

namespace ckopt::runtime::cuda {

/// A message of a group: device bytes, to or from another rank.
struct DeviceTransfer {
  bool sends = false;
  DevicePointer at = 0;
  int64_t bytes = 0;
  int32_t peer = 0;
};

/// A rank's process, which is watched for its end.
struct RankProcess {
  std::string host, machine; ///< `machine`: of processes that see each other
  int64_t pid = 0, started = 0;

  static RankProcess own();
  /// Returns whether it belongs to this machine and has ended.
  bool hasEnded() const;
};

class NcclComm {
public:
  /// Returns the process's communicator; null: there is none.
  static std::shared_ptr<NcclComm> current();
  /// Makes it, together with the other ranks: on a device with its primary
  /// context, which stays until the communicator goes. `timeout` in seconds, 0:
  /// for ever. Null with the reason.
  struct Place {
    int32_t rank = 0, ranks = 1;
    int ordinal = 0;
    double timeout = 0;
    std::vector<RankProcess> processes; ///< by rank; empty: unknown
  };
  static std::shared_ptr<NcclComm> create(const Driver &cuda,
                                          const NcclEntries &nccl,
                                          const Place &place, const NcclId &id,
                                          std::string &error);
  ~NcclComm();
  NcclComm(const NcclComm &) = delete;
  NcclComm &operator=(const NcclComm &) = delete;

  int32_t rank() const { return place.rank; }
  int32_t size() const { return place.ranks; }
  int ordinal() const { return place.ordinal; }
  Context context() const { return ownContext; }
  const Driver &driver() const { return cuda; }
  std::string version() const { return nccl.version(); }
  /// Bytes of the device that it took when it was made; -1: unknown.
  int64_t bytes() const { return takenBytes; }
  void setTimeout(double seconds) { place.timeout = seconds; }

  /// Puts all transfers into the stream as one group. Returns false with a
  /// reason on failure.
  bool enqueue(const std::vector<DeviceTransfer> &list, Stream stream,
               std::string &error);
  /// Waits until `ask` answers anything but "not ready". False: the ranks
  /// cannot go on; the communicator is aborted, and `error` names the rank if
  /// it is known.
  bool wait(const std::function<Result()> &ask, Result &result,
            std::string &error);
  /// Returns "", or the reason why the ranks cannot go on.
  std::string trouble();
  /// Ends everything that is under way.
  void abort();

private:
  NcclComm(const Driver &cuda, const NcclEntries &nccl, Place place)
      : cuda(cuda), nccl(nccl), place(std::move(place)) {}
  bool init(const NcclId &id, std::string &error);
  std::string text(const char *call, int code) const;
  std::string deviceText() const;

  const Driver &cuda;
  const NcclEntries &nccl;
  Place place;
  Device device = 0;
  Context ownContext = nullptr;
  void *comm = nullptr;
  std::string failure;
  int64_t takenBytes = -1;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_NCCLCOMM_H
