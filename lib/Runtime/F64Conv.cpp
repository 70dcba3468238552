//===- F64Conv.cpp - f64 convolutions by im2col and dgemm -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Convolutions of f64, for correctness checks rather than speed. Each image and
// group is unfolded into a matrix [channels/group * kernel points, output
// points] in the workspace, then multiplied by one dgemm. Any rank up to 3,
// order, group count, padding and dilation is supported. Images are summed one
// after another, so the bits depend only on the descriptor and the number of
// threads.
//
//===----------------------------------------------------------------------===//
#include "PrimitiveImpl.h"

#include <cblas.h>
#include <cstring>

using namespace ckopt::runtime;

namespace {

class F64Conv final : public Primitive {
public:
  explicit F64Conv(const PrimitiveDesc &desc) : kind(desc.kind), c(desc.conv) {
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
    return channels * taps * outPoints * int64_t(sizeof(double));
  }
  std::string implementation() const override { return "im2col + dgemm"; }

  bool execute(void *const *args, void *workspace, std::string &) override {
    auto *columns = static_cast<double *>(workspace);
    bool forward = kind == PrimitiveKind::ConvForward;
    bool inputGrad = kind == PrimitiveKind::ConvInputGrad;
    auto *x = static_cast<double *>(args[inputGrad ? 2 : 0]);
    auto *y = static_cast<double *>(args[forward ? 2 : inputGrad ? 0 : 1]);
    auto *w = static_cast<double *>(args[forward || inputGrad ? 1 : 2]);
    if (inputGrad)
      std::memset(x, 0, sizeof(double) * c.batch * c.inChannels * inPoints);
    for (int64_t n = 0; n < c.batch; ++n)
      for (int64_t g = 0; g < c.groups; ++g)
        runOne(n, g, x, w + g * filters * channels * taps, y, columns);
    return true;
  }

private:
  /// Calls fn(column element, x element) for all elements inside of x.
  template <typename Fn>
  void unfold(double *columns, double *x, int64_t point, Fn fn) const {
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
  void unfoldRow(double *column, double *x, int64_t point, int64_t k0,
                 int64_t k1, int64_t k2, Fn fn) const {
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

  void runOne(int64_t n, int64_t g, double *x, double *w, double *y,
              double *columns) const {
    // Strides that locate element (channel, point) in an image's group.
    int64_t xPoint = c.channelsLast ? c.inChannels : 1;
    double *xg = x + n * c.inChannels * inPoints +
                 g * channels * (c.channelsLast ? 1 : inPoints);
    double *yg = y + n * c.outChannels * outPoints +
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
      cblas_dgemm(CblasRowMajor, CblasTrans, yOrder, ck, p, f, 1.0, w, ck, yg,
                  ldy, 0.0, columns, p);
      unfold(columns, xg, xPoint, [](double &column, double *at) {
        if (at)
          *at += column;
      });
      return;
    }
    unfold(columns, xg, xPoint,
           [](double &column, double *at) { column = at ? *at : 0.0; });
    if (kind == PrimitiveKind::ConvWeightGrad) {
      // dw[f, ck] += dy[f, p] * columns^T[p, ck].
      cblas_dgemm(CblasRowMajor, yOrder, CblasTrans, f, ck, p, 1.0, yg, ldy,
                  columns, p, n == 0 ? 0.0 : 1.0, w, ck);
    } else if (c.channelsLast) {
      // y^T[p, f] = columns^T[p, ck] * w^T[ck, f].
      cblas_dgemm(CblasRowMajor, CblasTrans, CblasTrans, p, f, ck, 1.0, columns,
                  p, w, ck, 0.0, yg, ldy);
    } else {
      cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, f, p, ck, 1.0, w,
                  ck, columns, p, 0.0, yg, ldy);
    }
  }

  PrimitiveKind kind;
  ConvDesc c;
  int64_t channels, filters, taps, inPoints, outPoints;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createF64Conv(const PrimitiveDesc &desc) {
  return std::make_unique<F64Conv>(desc);
}
