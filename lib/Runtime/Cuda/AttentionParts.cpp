//===- AttentionParts.cpp - executions of cuDNN's attention ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: cuDNN's deterministic gradient of attention keeps the gradients of
// all scores in its workspace, which grow with the square of the rows: 2 GiB
// for 64 heads of 4,096.
// Method: heads do not depend on each other. A gradient is several executions,
// for whole samples or for a few heads of one, with at least as many blocks of
// rows as fill a large device.
// Guarantee: the workspace grows with the rows alone (64 KiB for each, or what
// one key head's queries take), and is known when a step is planned. Parts
// depend on sizes alone, as the bits may.
//
//===----------------------------------------------------------------------===//
#include "AttentionParts.h"

#include "ckopt/Runtime/CudaLibraries.h"

#include <algorithm>
#include <iterator>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Rows of a block of an engine, and as many blocks as keep the multiprocessors
/// of a large device busy twice (an H200 has 132).
static constexpr int64_t kBlockRows = 128, kLeastBlocks = 256;

/// Bytes of an engine beside what its tensors take.
static constexpr int64_t kEngineBytes = 1024;

static int64_t blocksOf(int64_t rows) {
  return (rows + kBlockRows - 1) / kBlockRows;
}

/// Returns the least divisor of `all` that is no less than `least`.
static int64_t divisorFrom(int64_t all, int64_t least) {
  int64_t part = std::min(std::max<int64_t>(least, 1), all);
  while (all % part)
    ++part;
  return part;
}

AttentionParts ckopt::runtime::cuda::attentionParts(const PrimitiveDesc &desc) {
  const AttentionDesc &a = desc.attention;
  AttentionParts parts{a.batch, a.keyHeads};
  if (desc.kind != PrimitiveKind::AttentionGrad)
    return parts;
  auto partsFor = [](int64_t blocks) {
    return (kLeastBlocks + blocks - 1) / blocks;
  };
  int64_t group = a.heads / a.keyHeads;
  int64_t blocks = group * blocksOf(a.queries);
  if (a.keyHeads * blocks <= kLeastBlocks)
    parts.samples = divisorFrom(a.batch, partsFor(a.keyHeads * blocks));
  else
    parts = {1, divisorFrom(a.keyHeads, partsFor(blocks))};
  return parts;
}

int64_t ckopt::runtime::cuda::attentionWorkspace(const PrimitiveDesc &desc) {
  const AttentionDesc &a = desc.attention;
  if (desc.kind == PrimitiveKind::Attention)
    return kEngineBytes;
  AttentionParts parts = attentionParts(desc);
  int64_t heads = parts.samples * parts.keyHeads * (a.heads / a.keyHeads);
  // Counted with cuDNN 9.14 and 9.28: gradients of scores in 16 bits, then
  // gradients of all query heads, and sums of rows, which are ours.
  int64_t block = kBlockRows * kBlockRows * 2;
  int64_t bytes =
      kEngineBytes + heads * blocksOf(a.queries) * blocksOf(a.keys) * block;
  if (a.heads != a.keyHeads)
    bytes += heads * a.keys * (a.depth + a.width) * 2;
  return bytes + heads * a.queries * 4;
}

void ckopt::runtime::cuda::forEachPart(
    const PrimitiveDesc &desc, const DevicePointer *args,
    const std::function<bool(const DevicePointer *)> &run) {
  const AttentionDesc &a = desc.attention;
  AttentionParts parts = attentionParts(desc);
  const int64_t group = a.heads / a.keyHeads;
  const int64_t lse[] = {a.heads * a.queries, a.queries};
  struct {
    const int64_t *strides; ///< of samples and heads
    bool ofKeys;
    int64_t size = 2; ///< bytes of an element
  } tensors[] = {{a.q, false},     {a.k, true},     {a.v, true},
                 {a.o, false},     {lse, false, 4}, {a.grad, false},
                 {a.qGrad, false}, {a.kGrad, true}, {a.vGrad, true}};
  for (int64_t sample = 0; sample < a.batch; sample += parts.samples)
    for (int64_t head = 0; head < a.keyHeads; head += parts.keyHeads) {
      DevicePointer moved[std::size(tensors)];
      for (size_t i = 0; i < cudaLibraryArguments(desc); ++i) {
        const auto &t = tensors[i];
        int64_t elements = sample * t.strides[0] +
                           head * (t.ofKeys ? 1 : group) * t.strides[1];
        moved[i] = args[i] + static_cast<DevicePointer>(elements * t.size);
      }
      if (!run(moved))
        return;
    }
}
