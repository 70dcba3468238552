//===- GemmConv.cpp - convolutions by im2col and gemm ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of f64, and those of f32 of which no sweep has found a kernel of
// oneDNN right: for correctness rather than speed. Each image and group is
// unfolded into a matrix [channels/group * kernel points, output points] in the
// workspace, then multiplied by one gemm. Any rank up to 3, order, group count,
// padding and dilation is supported. Images are summed one after another, so
// the bits depend only on the descriptor and the number of threads.
//
//===----------------------------------------------------------------------===//
#include "OpenBlas.h"
#include "PrimitiveImpl.h"

#include <cstring>

using namespace ckopt::runtime;

namespace {

void gemm(CBLAS_TRANSPOSE aOrder, CBLAS_TRANSPOSE bOrder, blasint m, blasint n,
          blasint k, const double *a, blasint lda, const double *b, blasint ldb,
          double beta, double *c, blasint ldc) {
  cblas_dgemm(CblasRowMajor, aOrder, bOrder, m, n, k, 1.0, a, lda, b, ldb, beta,
              c, ldc);
}

void gemm(CBLAS_TRANSPOSE aOrder, CBLAS_TRANSPOSE bOrder, blasint m, blasint n,
          blasint k, const float *a, blasint lda, const float *b, blasint ldb,
          float beta, float *c, blasint ldc) {
  cblas_sgemm(CblasRowMajor, aOrder, bOrder, m, n, k, 1.0f, a, lda, b, ldb,
              beta, c, ldc);
}

template <typename T> class GemmConv final : public Primitive {
public:
  explicit GemmConv(const PrimitiveDesc &desc) : kind(desc.kind), c(desc.conv) {
    for (int64_t d = c.rank; d < 3; ++d) {
      c.in[d] = c.out[d] = c.kernel[d] = c.strides[d] = c.dilations[d] = 1;
      c.padsLo[d] = c.padsHi[d] = 0;
    }
    channels = c.inChannels / c.groups;
    filters = c.outChannels / c.groups;
    taps = c.kernel[0] * c.kernel[1] * c.kernel[2];
    inPoints = c.in[0] * c.in[1] * c.in[2];
    outPoints = c.out[0] * c.out[1] * c.out[2];
  }

  int64_t workspaceBytes() const override {
    // No padding, because a step must write every byte below its planned peak.
    return channels * taps * outPoints * int64_t(sizeof(T));
  }
  std::string implementation() const override {
    return sizeof(T) == 8 ? "im2col + dgemm" : "im2col + sgemm";
  }

  bool execute(void *const *args, void *workspace, std::string &) override {
    auto *columns = static_cast<T *>(workspace);
    bool forward = kind == PrimitiveKind::ConvForward;
    bool inputGrad = kind == PrimitiveKind::ConvInputGrad;
    auto *x = static_cast<T *>(args[inputGrad ? 2 : 0]);
    auto *y = static_cast<T *>(args[forward ? 2 : inputGrad ? 0 : 1]);
    auto *w = static_cast<T *>(args[forward || inputGrad ? 1 : 2]);
    if (inputGrad)
      std::memset(x, 0, sizeof(T) * c.batch * c.inChannels * inPoints);
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t g = 0; g < c.groups; ++g)
        runOne(n, g, x, w + g * filters * channels * taps, y, columns);
    return true;
  }

private:
  /// Calls fn(column element, x element) for all elements inside of x.
  template <typename Fn>
  void unfold(T *columns, T *x, int64_t point, Fn fn) const {
    // Rows lie as the weights of an output channel do.
    int64_t tap = 0;
    for (int64_t k0 = 0; k0 < c.kernel[0]; ++k0)
      for (int64_t k1 = 0; k1 < c.kernel[1]; ++k1)
        for (int64_t k2 = 0; k2 < c.kernel[2]; ++k2, ++tap)
          for (int64_t ch = 0; ch < channels; ++ch) {
            int64_t row = c.weightsLast ? tap * channels + ch : ch * taps + tap;
            unfoldRow(columns + row * outPoints,
                      x + (c.channelsLast ? ch : ch * inPoints), point, k0, k1,
                      k2, fn);
          }
  }

  template <typename Fn>
  void unfoldRow(T *column, T *x, int64_t point, int64_t k0, int64_t k1,
                 int64_t k2, Fn fn) const {
    for (int64_t o0 = 0; o0 < c.out[0]; ++o0)
      for (int64_t o1 = 0; o1 < c.out[1]; ++o1)
        for (int64_t o2 = 0; o2 < c.out[2]; ++o2, ++column) {
          int64_t i0 = o0 * c.strides[0] + k0 * c.dilations[0] - c.padsLo[0];
          int64_t i1 = o1 * c.strides[1] + k1 * c.dilations[1] - c.padsLo[1];
          int64_t i2 = o2 * c.strides[2] + k2 * c.dilations[2] - c.padsLo[2];
          bool inside = i0 >= 0 && i0 < c.in[0] && i1 >= 0 && i1 < c.in[1] &&
                        i2 >= 0 && i2 < c.in[2];
          fn(*column, inside ? x + ((i0 * c.in[1] + i1) * c.in[2] + i2) * point
                             : nullptr);
        }
  }

  void runOne(int64_t n, int64_t g, T *x, T *w, T *y, T *columns) const {
    // Strides that locate element (channel, point) in an image's group.
    int64_t xPoint = c.channelsLast ? c.inChannels : 1;
    T *xg = x + n * c.inChannels * inPoints +
            g * channels * (c.channelsLast ? 1 : inPoints);
    T *yg = y + n * c.outChannels * outPoints +
            g * filters * (c.channelsLast ? 1 : outPoints);
    auto f = static_cast<blasint>(filters);
    auto ck = static_cast<blasint>(channels * taps);
    auto p = static_cast<blasint>(outPoints);
    // y's group is read as [filters, points]; in memory it is transposed if
    // channels are last.
    CBLAS_TRANSPOSE yOrder = c.channelsLast ? CblasTrans : CblasNoTrans;
    auto ldy = static_cast<blasint>(c.channelsLast ? c.outChannels : outPoints);
    if (kind == PrimitiveKind::ConvInputGrad) {
      // columns[ck, p] = w^T[ck, f] * dy[f, p], then fold.
      gemm(CblasTrans, yOrder, ck, p, f, w, ck, yg, ldy, 0, columns, p);
      unfold(columns, xg, xPoint, [](T &column, T *at) {
        if (at)
          *at += column;
      });
      return;
    }
    unfold(columns, xg, xPoint,
           [](T &column, T *at) { column = at ? *at : T(0); });
    if (kind == PrimitiveKind::ConvWeightGrad) {
      // dw[f, ck] += dy[f, p] * columns^T[p, ck].
      gemm(yOrder, CblasTrans, f, ck, p, yg, ldy, columns, p, n == 0 ? 0 : 1, w,
           ck);
    } else if (c.channelsLast) {
      // y^T[p, f] = columns^T[p, ck] * w^T[ck, f].
      gemm(CblasTrans, CblasTrans, p, f, ck, columns, p, w, ck, 0, yg, ldy);
    } else {
      gemm(CblasNoTrans, CblasNoTrans, f, p, ck, w, ck, columns, p, 0, yg, ldy);
    }
  }

  PrimitiveKind kind;
  ConvDesc c;
  int64_t channels, filters, taps, inPoints, outPoints;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createGemmConv(const PrimitiveDesc &desc) {
  if (desc.dtype == DType::F64)
    return std::make_unique<GemmConv<double>>(desc);
  return std::make_unique<GemmConv<float>>(desc);
}
