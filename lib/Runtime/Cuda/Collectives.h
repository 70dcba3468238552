//===- Collectives.h - ops of several ranks on a device ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts what a launch of an op of several ranks moves (DeviceCollectives.h) into
// a stream: messages of NCCL, copies and zeros. The additions between are
// kernels of the artifact. All of it may be captured in a graph. A launch uses
// the stream that it is given and no other, so that ops which begin on a stream
// of their own and are waited for later need nothing here.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_COLLECTIVES_H
#define CKOPT_LIB_RUNTIME_CUDA_COLLECTIVES_H

#include "Core/Session.h"
#include "NcclComm.h"

#include "ckopt/Runtime/DeviceCollectives.h"
#include "ckopt/Runtime/World.h"

namespace ckopt::runtime::cuda {

/// Returns how many ranks a step is for; 1: it is one process's.
int64_t ranksOf(const Manifest &manifest);

/// Returns the device of this rank: LOCAL_RANK or the launcher's name for it,
/// else its `place` among the ranks of its machine, modulo the devices that the
/// driver shows. -1 with the reason.
int rankDevice(const Driver &cuda, int64_t place, std::string &error);
/// The same where all ranks of a world ask.
int rankDevice(const Driver &cuda, World &world, std::string &error);

class Collectives {
public:
  /// Connects the ranks' devices, together with all other ranks. Makes nothing
  /// for a step of one process.
  static ckrt_status create(const Manifest &manifest, const Driver &cuda,
                            const ckrt_device_report &device,
                            std::unique_ptr<Collectives> &made);

  /// Puts a launch into the stream. On failure returns the driver's result, or
  /// kRankFailed and sets `error`.
  Result enqueue(const LaunchInfo &launch, DevicePointer arena, Stream stream,
                 std::string &error);
  /// Notes in the world's records what the function's ops have sent.
  void record(size_t function) const;
  NcclComm &connection() { return *comm; }
  /// Says which rank has which device.
  const std::string &devices() const { return devicesText; }

private:
  struct Parts; ///< what a launch moves
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
