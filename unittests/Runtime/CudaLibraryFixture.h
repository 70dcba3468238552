//===- CudaLibraryFixture.h - one call of a library -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step of one product or convolution, and plain loops over the descriptor's
// own strides to compare it with; small whole numbers, so that any order of
// sums gives the same. The stand-in plays the libraries.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_CUDALIBRARYFIXTURE_H
#define CKOPT_UNITTESTS_RUNTIME_CUDALIBRARYFIXTURE_H

#include "CudaFixture.h"

namespace ckopt::runtime::test {

inline std::string lastError() { return ckrt_last_error(); }

/// Extents that a matrix of the descriptor reaches.
inline int64_t reach(std::initializer_list<std::pair<int64_t, int64_t>> dims) {
  int64_t last = 0;
  for (auto [extent, stride] : dims)
    last += (extent - 1) * stride;
  return last + 1;
}

struct Sizes {
  int64_t elements[3];
};

inline Sizes sizesOf(const PrimitiveDesc &desc) {
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    int64_t b0 = m.batch[0], b1 = m.batch[1];
    return {{reach({{b0, m.aBatch[0]},
                    {b1, m.aBatch[1]},
                    {m.m, m.aRow},
                    {m.k, m.aCol}}),
             reach({{b0, m.bBatch[0]},
                    {b1, m.bBatch[1]},
                    {m.k, m.bRow},
                    {m.n, m.bCol}}),
             reach({{b0, m.cBatch[0]},
                    {b1, m.cBatch[1]},
                    {m.m, m.cRow},
                    {m.n, m.cCol}})}};
  }
  const ConvDesc &c = desc.conv;
  int64_t x = c.batch * c.inChannels, y = c.batch * c.outChannels;
  int64_t w = c.outChannels * c.inChannels / c.groups;
  for (int64_t d = 0; d < c.rank; ++d)
    x *= c.in[d], y *= c.out[d], w *= c.kernel[d];
  if (desc.kind == PrimitiveKind::ConvForward)
    return {{x, w, y}};
  if (desc.kind == PrimitiveKind::ConvInputGrad)
    return {{y, w, x}};
  return {{x, y, w}};
}

/// Adds the product to c.
inline void referenceMatMul(const MatMulDesc &m, const float *a, const float *b,
                            float *c) {
  for (int64_t i = 0; i < m.batch[0]; ++i)
    for (int64_t j = 0; j < m.batch[1]; ++j)
      for (int64_t r = 0; r < m.m; ++r)
        for (int64_t s = 0; s < m.n; ++s) {
          float &sum =
              c[i * m.cBatch[0] + j * m.cBatch[1] + r * m.cRow + s * m.cCol];
          for (int64_t k = 0; k < m.k; ++k)
            sum +=
                a[i * m.aBatch[0] + j * m.aBatch[1] + r * m.aRow + k * m.aCol] *
                b[i * m.bBatch[0] + j * m.bBatch[1] + k * m.bRow + s * m.bCol];
        }
}

/// Index into an activation of the descriptor's order.
inline int64_t place(const ConvDesc &c, int64_t channels,
                     const int64_t *extents, int64_t n, int64_t channel,
                     const int64_t *at) {
  int64_t points = 1, point = 0;
  for (int64_t d = 0; d < c.rank; ++d) {
    points *= extents[d];
    point = point * extents[d] + at[d];
  }
  return c.channelsLast ? (n * points + point) * channels + channel
                        : (n * channels + channel) * points + point;
}

/// All products of the convolution: which of x, w, y is written is `kind`'s.
inline void referenceConv(const PrimitiveDesc &desc, const float *first,
                          const float *second, float *result) {
  const ConvDesc &c = desc.conv;
  auto extent = [&](const int64_t *of, int64_t d) {
    return d < c.rank ? of[d] : 1;
  };
  int64_t perGroup = c.inChannels / c.groups;
  for (int64_t n = 0; n < c.batch; ++n)
    for (int64_t k = 0; k < c.outChannels; ++k)
      for (int64_t g = 0; g < perGroup; ++g)
        for (int64_t o = 0;
             o < extent(c.out, 0) * extent(c.out, 1) * extent(c.out, 2); ++o)
          for (int64_t t = 0; t < extent(c.kernel, 0) * extent(c.kernel, 1) *
                                      extent(c.kernel, 2);
               ++t) {
            int64_t out[3], in[3], taps[3], oLeft = o, tLeft = t, weight = 0;
            bool inside = true;
            for (int64_t d = c.rank - 1; d >= 0; --d) {
              out[d] = oLeft % c.out[d], oLeft /= c.out[d];
              taps[d] = tLeft % c.kernel[d], tLeft /= c.kernel[d];
              in[d] = out[d] * c.strides[d] - c.padsLo[d] +
                      taps[d] * c.dilations[d];
              inside &= in[d] >= 0 && in[d] < c.in[d];
            }
            if (!inside)
              continue;
            int64_t window =
                extent(c.kernel, 0) * extent(c.kernel, 1) * extent(c.kernel, 2);
            weight = c.weightsLast ? (k * window + t) * perGroup + g
                                   : (k * perGroup + g) * window + t;
            int64_t channel = k / (c.outChannels / c.groups) * perGroup + g;
            int64_t x = place(c, c.inChannels, c.in, n, channel, in);
            int64_t y = place(c, c.outChannels, c.out, n, k, out);
            if (desc.kind == PrimitiveKind::ConvForward)
              result[y] += first[x] * second[weight];
            else if (desc.kind == PrimitiveKind::ConvInputGrad)
              result[x] += first[y] * second[weight];
            else
              result[weight] += first[x] * second[y];
          }
}

inline int tensorsOf(const PrimitiveDesc &desc) {
  return 3 + desc.accumulate + desc.hasBias;
}

inline int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// One call of the primitive: operands a and b, result c, a tensor like c that
/// the product is added to and a bias, if it has these, and 4 KiB of workspace.
inline Manifest manifestOf(const PrimitiveDesc &desc) {
  Manifest m = deviceManifest();
  m.kernels.clear(), m.calls.clear();
  m.functions = {{"step", "ckopt_fn_step", {0, 1}, {2}}};
  m.tensors.clear();
  Sizes sizes = sizesOf(desc);
  int64_t at = 0;
  CallInfo call;
  call.source = "/node/library";
  call.primitive = 0;
  LaunchInfo launch;
  launch.primitive = 0;
  const TensorRole roles[] = {TensorRole::Input, TensorRole::Parameter,
                              TensorRole::Output, TensorRole::Parameter,
                              TensorRole::Parameter};
  const char *names[] = {"a", "b", "c", "addend", "bias"};
  for (int i = 0; i < tensorsOf(desc); ++i) {
    int64_t count = i == 4 ? desc.matmul.n : sizes.elements[std::min(i, 2)];
    DType dtype = i >= 2 && desc.wideResult ? DType::F32 : desc.dtype;
    int64_t bytes = count * dtypeSize(dtype);
    m.tensors.push_back(tensor(names[i], roles[i], dtype, {count}, at));
    launch.pointers.push_back({at, bytes});
    at += aligned(bytes);
  }
  auto result = launch.pointers.begin() + 2;
  std::rotate(result, result + 1, launch.pointers.end());
  launch.scratchOffset = call.workspaceOffset = at;
  call.workspaceBytes = 4096;
  m.arenaBytes = at + 4096;
  call.results = {
      {m.tensors[2].dtype, m.tensors[2].offset, m.tensors[2].bytes}};
  call.launches = {launch};
  m.calls = {call};
  m.primitives = {desc};
  m.device.precision = desc.precision;
  return m;
}

inline PrimitiveDesc matmul(MatMulDesc m) {
  PrimitiveDesc desc;
  desc.matmul = m;
  return desc;
}

/// A row-major product.
inline MatMulDesc plain(int64_t m, int64_t n, int64_t k) {
  MatMulDesc d;
  d.m = m, d.n = n, d.k = k;
  d.aRow = k, d.aCol = 1, d.bRow = n, d.bCol = 1, d.cRow = n, d.cCol = 1;
  return d;
}

class CudaLibrary : public Cuda {
protected:
  Environment libraries(Environment more = {}) {
    more.insert(more.begin(), {{"CKOPT_CUBLASLT", CKOPT_STANDIN},
                               {"CKOPT_CUDNN", CKOPT_STANDIN}});
    return more;
  }

  void expectEqual(const PrimitiveDesc &desc) {
    ASSERT_EQ(check(desc), "");
    inChild(libraries(), [&] {
      Sizes sizes = sizesOf(desc);
      std::vector<float> values[5];
      int tensors = tensorsOf(desc);
      for (int i = 0; i < tensors; ++i)
        values[i].resize(static_cast<size_t>(
            i == 4 ? desc.matmul.n : sizes.elements[std::min(i, 2)]));
      for (int i : {0, 1, 3, 4})
        for (size_t e = 0; e < values[i].size(); ++e)
          values[i][e] = static_cast<float>((e * 7 + i * 3) % 11) - 5;
      OnDevice on(manifestOf(desc));
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      for (int i = 0; i < tensors; ++i)
        ASSERT_EQ(ckrt_tensor_write(on.session, i, values[i].data(), CKRT_F32,
                                    int64_t(values[i].size())),
                  CKRT_OK);
      ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK) << lastError();
      std::vector<float> got(values[2].size());
      ASSERT_EQ(ckrt_tensor_read(on.session, 2, got.data(), CKRT_F32,
                                 sizes.elements[2]),
                CKRT_OK)
          << lastError();
      if (desc.accumulate)
        values[2] = values[3];
      for (int64_t i = 0; desc.hasBias && i < desc.matmul.m; ++i)
        for (int64_t j = 0; j < desc.matmul.n; ++j)
          values[2][static_cast<size_t>(i * desc.matmul.cRow + j)] +=
              values[4][static_cast<size_t>(j)];
      if (desc.kind == PrimitiveKind::MatMul)
        referenceMatMul(desc.matmul, values[0].data(), values[1].data(),
                        values[2].data());
      else
        referenceConv(desc, values[0].data(), values[1].data(),
                      values[2].data());
      EXPECT_EQ(got, values[2]) << describe(desc);
    });
    expectClean();
  }
};

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_CUDALIBRARYFIXTURE_H
