//===- Attention.cpp - attention as a primitive ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Divides the key heads of all samples among the threads; AttentionBlocks.cpp
// says what happens to one. Bits do not depend on who takes which.
//
//===----------------------------------------------------------------------===//
#include "AttentionBlocks.h"
#include "OpenMP.h"

#include <bit>
#include <cmath>

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

template <typename S> class AttentionPrimitive final : public Primitive {
  using Blocks = AttentionBlocks<S>;
  using T = typename Blocks::T;
  using Tensors = typename Blocks::Tensors;

public:
  AttentionPrimitive(const PrimitiveDesc &desc, int32_t threads)
      : a(desc.attention), gradient(desc.kind == PrimitiveKind::AttentionGrad),
        threads(threads), blocks(a, gradient) {}

  int64_t workspaceBytes() const override { return blocks.bytes() * threads; }
  std::string implementation() const override {
    return "blocks of " + std::to_string(blocks.rowsOfBlock()) + " rows and " +
           std::to_string(blocks.keysOfBlock()) + " keys" +
           (blocks.multipliesByTiles() ? ", by tiles of bf16" : "");
  }

  bool execute(void *const *args, void *workspace, std::string &) override {
    Run run{this, bind(args), static_cast<char *>(workspace)};
    if (threads == 1)
      work(run, 0);
    else
      GOMP_parallel(
          [](void *data) {
            auto *run = static_cast<Run *>(data);
            run->self->work(*run, omp_get_thread_num());
          },
          &run, static_cast<unsigned>(threads), 0);
    return true;
  }

private:
  struct Run {
    AttentionPrimitive *self;
    Tensors t;
    char *workspace;
  };

  Tensors bind(void *const *args) const {
    Tensors t;
    int i = 0;
    t.q = static_cast<const S *>(args[i++]);
    t.k = static_cast<const S *>(args[i++]);
    t.v = static_cast<const S *>(args[i++]);
    if (a.hasBias)
      t.bias = static_cast<const T *>(args[i++]);
    if (a.hasMask)
      t.mask = static_cast<const unsigned char *>(args[i++]);
    if (a.hasSegments)
      t.segments = static_cast<const int64_t *>(args[i++]);
    const void *const *random = args + i;
    i += a.hasDropout ? 2 : 0;
    t.o = static_cast<S *>(args[i++]);
    t.lse = static_cast<RowLse<T> *>(args[i++]);
    if (gradient) {
      t.grad = static_cast<const S *>(args[i++]);
      t.qGrad = static_cast<S *>(args[i++]);
      t.kGrad = static_cast<S *>(args[i++]);
      t.vGrad = static_cast<S *>(args[i++]);
    }
    if (a.hasDropout) {
      auto seed = *static_cast<const uint64_t *>(random[0]);
      auto step = *static_cast<const uint64_t *>(random[1]);
      auto site = *static_cast<const int64_t *>(args[i]);
      double least = std::ceil(std::ldexp(std::bit_cast<double>(a.ratio), 24));
      t.words = {{uint32_t(seed), uint32_t(seed >> 32)},
                 uint32_t(step),
                 uint32_t(site),
                 uint32_t(least),
                 int64_t(step >> 32) *
                     (a.batch * a.heads * a.queries * a.keys / 4 * 4)};
    }
    return t;
  }

  /// The key heads of all samples, divided evenly.
  void work(const Run &run, int64_t thread) const {
    int64_t units = a.batch * a.keyHeads;
    T *space = reinterpret_cast<T *>(run.workspace + thread * blocks.bytes());
    for (int64_t unit = units * thread / threads,
                 end = units * (thread + 1) / threads;
         unit < end; ++unit)
      for (int64_t key = 0; key < a.keys; key += blocks.keysOfBlock())
        blocks.keyBlock(run.t, unit / a.keyHeads, unit % a.keyHeads, key,
                        space);
  }

  AttentionDesc a;
  bool gradient;
  int64_t threads;
  Blocks blocks;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createAttention(const PrimitiveDesc &desc, int32_t threads) {
  if (desc.dtype == DType::F64)
    return std::make_unique<AttentionPrimitive<double>>(desc, threads);
  if (desc.dtype == DType::BF16)
    return std::make_unique<AttentionPrimitive<BFloat16>>(desc, threads);
  if (desc.dtype == DType::F16)
    return std::make_unique<AttentionPrimitive<Half>>(desc, threads);
  return std::make_unique<AttentionPrimitive<float>>(desc, threads);
}
