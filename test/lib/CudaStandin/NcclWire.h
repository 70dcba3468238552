//===- NcclWire.h - how the stand-in's ranks are connected ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every two ranks of a communicator have a socket. Bytes on it are frames of a
// header and, for data, the bytes. A socket's end tells that a rank has gone.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_NCCLWIRE_H
#define CKOPT_TEST_LIB_CUDASTANDIN_NCCLWIRE_H

#include "../../../lib/Runtime/Cuda/Nccl.h"

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace standin {

/// The bytes of an element, by NCCL's number of its type.
inline constexpr int64_t kNcclTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

/// What is in front of a message's bytes.
struct Header {
  uint32_t magic = 0x4E43434C;
  uint32_t type = 0;  ///< of elements; kTaken: an answer
  uint64_t count = 0; ///< elements
};
inline constexpr uint32_t kTaken = 1000;

/// The connection to another rank.
struct Peer {
  int fd = -1;
  bool gone = false;
  std::string out, in; ///< bytes to be sent, and received so far
  std::deque<std::pair<Header, std::string>> messages;
  int64_t taken = 0; ///< answers that nobody waited for yet

  /// Sends and takes what can be sent and taken now.
  void progress();
  /// Begins to send a message, or the answer to one that was taken.
  void post(uint32_t type, uint64_t count, const void *bytes);
};

enum class Meeting { Good, Twice, Differs, Gone };

/// Connects this rank with all others, which do the same: peers[r] is the
/// connection to rank r. Twice: the rank is there already; Differs: another
/// rank counts other ranks, or has the same device.
Meeting connectAll(const ckopt::runtime::cuda::NcclId &id, int rank, int ranks,
                   int device, std::vector<Peer> &peers);

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_NCCLWIRE_H
