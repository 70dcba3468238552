//===- DevicePattern.h - the arena's pattern, on the device -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a run that shows which bytes it used fills the whole arena before
// the first step and compares it behind the last (Pattern.h); the copies of
// tens of gigabytes take longer than many steps. Method: one kernel writes the
// pattern's words where they lie, another marks the pieces of 1 MiB in which a
// word differs. The host copies the marks, 4 bytes a piece, and the highest
// marked piece. Words have 8 bytes; less at a range's ends is the host's work.
// Cost: one pass over the bytes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_DEVICEPATTERN_H
#define CKOPT_LIB_RUNTIME_CUDA_DEVICEPATTERN_H

#include "Core/Pattern.h"
#include "OwnKernel.h"

namespace ckopt::runtime::cuda {

class DevicePattern {
public:
  static constexpr int64_t kPieceBytes = 1 << 20;

  /// The arena's address; it must be aligned to 8. The context must be current
  /// for every call.
  DevicePattern(const Driver &cuda, DevicePointer arena)
      : filling(cuda), comparing(cuda), cuda(cuda), arena(arena) {}
  Result create();

  /// Returns the pieces of a range of whole words, of which each has a mark.
  static int64_t piecesOf(int64_t bytes) {
    return (bytes + kPieceBytes - 1) / kPieceBytes;
  }
  /// Puts into the stream: the range, of whole words, has the pattern.
  Result fill(const PatternSegment &range, Stream stream);
  /// Puts into the stream: the mark of each piece, a word of 32 bits at
  /// `marks`, is 0 if the range has the pattern there.
  Result compare(const PatternSegment &range, DevicePointer marks,
                 Stream stream);

private:
  Result launch(OwnKernel &kernel, const PatternSegment &range,
                DevicePointer marks, Stream stream);

  OwnKernel filling, comparing;
  const Driver &cuda;
  DevicePointer arena;
};

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_DEVICEPATTERN_H
