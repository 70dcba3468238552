//===- Collectives.h - collectives on a device ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the traffic of a collective's launch (DeviceCollectives.h) into a
// stream: messages of NCCL, copies and zeros. The additions between them are
// kernels of the artifact. All of it may be captured in a graph. A launch uses
// only the given stream, so collectives that start on another stream and are
// waited for later need nothing here.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_COLLECTIVES_H
#define CKOPT_LIB_RUNTIME_CUDA_COLLECTIVES_H

#include "Core/Session.h"
#include "NcclComm.h"

#include "ckopt/Runtime/DeviceCollectives.h"
#include "ckopt/Runtime/World.h"

namespace ckopt::runtime::cuda {

/// Returns the number of ranks of a step; 1: a single process.
int64_t ranksOf(const Manifest &manifest);

/// Returns the device of this rank: LOCAL_RANK or the launcher's name for it,
/// else its `place` among the ranks of its machine, modulo the devices that the
/// driver shows. Returns -1 with the reason on failure.
int rankDevice(const Driver &cuda, int64_t place, std::string &error);
/// The same, called on all ranks of a world.
int rankDevice(const Driver &cuda, World &world, std::string &error);

class Collectives {
public:
  /// Connects the ranks' devices, together with all other ranks. Does nothing
  /// for a step of one process.
  static ckrt_status create(const Manifest &manifest, const Driver &cuda,
                            const ckrt_device_report &device,
                            std::unique_ptr<Collectives> &made);

  /// Puts a launch into the stream. On failure returns the driver's result, or
  /// kRankFailed and sets `error`.
  Result enqueue(const LaunchInfo &launch, DevicePointer arena, Stream stream,
                 std::string &error);
  /// Records the messages of the function's ops in the world's records.
  void record(size_t function) const;
  NcclComm &connection() { return *comm; }
  /// Returns a text with the device of each rank.
  const std::string &devices() const { return devicesText; }

private:
  struct Parts; ///< traffic of a launch
  Collectives(const Manifest &manifest, const Driver &cuda)
      : manifest(manifest), cuda(cuda) {}
  void whole(const PrimitiveDesc &desc, Parts &parts) const;
  void sumAll(const PrimitiveDesc &desc, RankPhase phase, SumPiece piece,
              Parts &parts) const;
  void sumRows(const PrimitiveDesc &desc, RankPhase phase, SumPiece piece,
               Parts &parts) const;
  Parts partsOf(const LaunchInfo &launch, DevicePointer arena) const;
  void countTraffic();

  const Manifest &manifest;
  const Driver &cuda;
  std::shared_ptr<NcclComm> comm;
  std::string devicesText;
  std::vector<std::vector<CollectiveRecord>> traffic; ///< by function
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_COLLECTIVES_H
