//===- ConvTest.cpp - convolutions and gradients against plain loops ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ConvReference.h"
#include "PrimitiveFixture.h"

#include <array>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

/// Compares the convolution and both gradients, of operands of type T with
/// results of type R, with sums of products of what `number` makes of operands.
/// Steps compute in f32 what no kernel of bf16 is known to be right for.
template <typename R, typename T, typename Number>
void checkKinds(PrimitiveDesc desc, const std::vector<T> &xs,
                const std::vector<T> &ws, const std::vector<T> &ys,
                Number number, double tolerance) {
  const ConvDesc &c = desc.conv;
  Sizes sizes(c);
  auto checkKind = [&](PrimitiveKind kind, const std::vector<T> &a,
                       const std::vector<T> &b, int64_t count, auto add) {
    desc.kind = kind;
    SCOPED_TRACE(describe(desc));
    if (desc.dtype == DType::BF16 && !multipliesHalves(desc))
      return;
    std::vector<double> expected(size_t(count), 0.0);
    forEachProduct(
        c, [&](int64_t i, int64_t k, int64_t o) { add(expected, i, k, o); });
    EXPECT_LT(worst(runPrimitive<T, R>(desc, a, b, count), expected),
              tolerance);
  };
  checkKind(PrimitiveKind::ConvForward, xs, ws, sizes.y,
            [&](auto &sums, int64_t i, int64_t k, int64_t o) {
              sums[o] += number(xs[i]) * number(ws[k]);
            });
  checkKind(PrimitiveKind::ConvInputGrad, ys, ws, sizes.x,
            [&](auto &sums, int64_t i, int64_t k, int64_t o) {
              sums[i] += number(ys[o]) * number(ws[k]);
            });
  checkKind(PrimitiveKind::ConvWeightGrad, xs, ys, sizes.w,
            [&](auto &sums, int64_t i, int64_t k, int64_t o) {
              sums[k] += number(xs[i]) * number(ys[o]);
            });
}

template <typename T> void check(ConvDesc c, double tolerance) {
  Sizes sizes(c);
  PrimitiveDesc desc;
  desc.dtype = sizeof(T) == 8 ? DType::F64 : DType::F32;
  desc.conv = c;
  checkKinds<T>(
      desc, values<T>(sizes.x, 1), values<T>(sizes.w, 2), values<T>(sizes.y, 3),
      [](T value) { return double(value); }, tolerance);
}

/// From bf16, with sums in f32.
void checkHalves(ConvDesc c) {
  Sizes sizes(c);
  PrimitiveDesc desc;
  desc.dtype = DType::BF16;
  desc.wideResult = true;
  desc.conv = c;
  checkKinds<float>(
      desc, halves(values<float>(sizes.x, 1)),
      halves(values<float>(sizes.w, 2)), halves(values<float>(sizes.y, 3)),
      [](uint16_t bits) { return double(ckopt::bfloat16ToFloat(bits)); }, 1e-5);
}

/// Chooses the order of activations and weights, 0 to 2, and the output.
void inOrder(ConvDesc &c, int order) {
  for (int64_t d = 0; d < c.rank; ++d)
    c.out[d] = (c.in[d] + c.padsLo[d] + c.padsHi[d] -
                (c.kernel[d] - 1) * c.dilations[d] - 1) /
                   c.strides[d] +
               1;
  c.channelsLast = order > 0;
  c.weightsLast = order > 1;
}

/// All kinds, both types, all orders.
void all(ConvDesc c) {
  for (int order : {0, 1, 2}) {
    inOrder(c, order);
    check<float>(c, 1e-5);
    check<double>(c, 1e-13);
  }
}

ConvDesc conv2d(int64_t batch, int64_t in, int64_t out, int64_t h, int64_t w,
                int64_t kernel, int64_t stride = 1, int64_t pad = 0,
                int64_t dilation = 1, int64_t groups = 1) {
  ConvDesc c;
  c.batch = batch, c.inChannels = in, c.outChannels = out, c.groups = groups;
  c.in[0] = h, c.in[1] = w;
  for (int d = 0; d < 2; ++d) {
    c.kernel[d] = kernel, c.strides[d] = stride, c.dilations[d] = dilation;
    c.padsLo[d] = c.padsHi[d] = pad;
  }
  return c;
}

} // namespace

TEST(Conv, ThreeByThree) {
  all(conv2d(2, 16, 32, 10, 12, 3, 1, 1));
  all(conv2d(3, 5, 7, 9, 8, 3, 1, 1));
  all(conv2d(1, 1, 6, 12, 12, 5));
}

TEST(Conv, OneByOne) {
  all(conv2d(2, 64, 48, 7, 7, 1));
  all(conv2d(2, 32, 64, 8, 8, 1, 2));
  all(conv2d(2, 3, 5, 6, 5, 1));
  // Many weights: run as products where channels are last.
  all(conv2d(2, 512, 520, 3, 2, 1));
}

TEST(Conv, Strides) {
  all(conv2d(2, 16, 16, 11, 13, 3, 2, 1));
  all(conv2d(1, 3, 16, 23, 23, 7, 2, 3));
  // The stride leaves a column over.
  all(conv2d(1, 8, 8, 10, 10, 3, 3, 0));
}

// Windows that lie side by side: gradients of weights see more, smaller images.
TEST(Conv, WindowsSideBySide) {
  all(conv2d(2, 16, 24, 8, 12, 2, 2));
  all(conv2d(1, 17, 5, 6, 9, 3, 3));
  all(conv2d(2, 4, 8, 8, 8, 4, 4)); // too few channels
  ConvDesc c = conv2d(2, 20, 12, 9, 8, 3, 3);
  c.kernel[1] = c.strides[1] = 2;
  all(c);
  c.kernel[0] = c.strides[0] = 1;
  all(c);
}

TEST(Conv, AsymmetricPadding) {
  ConvDesc c = conv2d(2, 8, 8, 9, 9, 3, 2);
  c.padsHi[0] = 1, c.padsHi[1] = 1;
  all(c);
  c = conv2d(1, 4, 6, 7, 8, 4);
  c.padsLo[0] = 1, c.padsHi[0] = 2, c.padsLo[1] = 2, c.padsHi[1] = 1;
  all(c);
}

TEST(Conv, Dilation) {
  all(conv2d(1, 8, 8, 13, 13, 3, 1, 2, 2));
  all(conv2d(2, 3, 4, 12, 12, 3, 2, 3, 3));
  all(conv2d(2, 8, 8, 6, 6, 1, 2, 0, 3));
  all(conv2d(2, 8, 8, 13, 13, 3, 2, 2, 2, 8));
}

TEST(Conv, GroupsAndDepthwise) {
  all(conv2d(2, 16, 16, 8, 8, 3, 1, 1, 1, 16));
  all(conv2d(2, 16, 32, 9, 9, 3, 2, 1, 1, 16));
  all(conv2d(2, 24, 16, 8, 8, 3, 1, 1, 1, 4));
  all(conv2d(1, 6, 6, 7, 7, 3, 1, 1, 1, 6));
  all(conv2d(1, 32, 64, 6, 6, 1, 1, 0, 1, 2));
}

TEST(Conv, OneAndThreeDimensions) {
  ConvDesc c;
  c.rank = 1;
  c.batch = 2, c.inChannels = 6, c.outChannels = 8;
  c.in[0] = 20, c.kernel[0] = 5, c.strides[0] = 2;
  c.padsLo[0] = 2, c.padsHi[0] = 1;
  all(c);
  c = ConvDesc();
  c.rank = 3;
  c.batch = 2, c.inChannels = 4, c.outChannels = 6;
  int64_t in[3] = {5, 6, 7}, kernel[3] = {3, 2, 3};
  std::copy(in, in + 3, c.in);
  std::copy(kernel, kernel + 3, c.kernel);
  c.padsLo[0] = c.padsHi[0] = 1;
  c.strides[2] = 2;
  all(c);
}

TEST(Conv, OneThreadGivesItsOwnWorkspace) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::ConvWeightGrad;
  desc.conv = conv2d(2, 16, 16, 10, 10, 3, 1, 1);
  desc.conv.out[0] = desc.conv.out[1] = 10;
  auto x = values<float>(2 * 16 * 100, 1), dy = values<float>(2 * 16 * 100, 2);
  auto one = runPrimitive<float>(desc, x, dy, 16 * 16 * 9, 1);
  auto two = runPrimitive<float>(desc, x, dy, 16 * 16 * 9, 2);
  EXPECT_LT(worst(one, std::vector<double>(two.begin(), two.end())), 1e-5);
}

TEST(Conv, RefusesWrongGeometry) {
  PrimitiveDesc desc;
  desc.kind = PrimitiveKind::ConvForward;
  desc.conv = conv2d(1, 4, 4, 8, 8, 3);
  desc.conv.out[0] = 6, desc.conv.out[1] = 7;
  std::string error;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
  EXPECT_NE(error.find("output extent 7 of dimension 1"), std::string::npos)
      << error;
  desc.conv.out[1] = 6;
  desc.conv.groups = 3;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
  EXPECT_NE(error.find("groups"), std::string::npos) << error;
  desc.conv.groups = 1;
  desc.conv.weightsLast = true;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
  EXPECT_NE(error.find("activations are not"), std::string::npos) << error;
  desc.conv.weightsLast = false;
  desc.dtype = DType::F16;
  if (Primitive::create(desc, 2, error) == nullptr) {
    EXPECT_NE(error.find("f16"), std::string::npos) << error;
  }
  desc.dtype = DType::F32;
  desc.conv.batch = int64_t(1) << 31;
  EXPECT_EQ(primitiveWorkspace(desc, 2, error), -1);
  EXPECT_NE(error.find("no extents above 2^30"), std::string::npos) << error;
}

// oneDNN 2.6 computes input gradients of single taps wrongly where output
// channels are odd in number, and their points 30 or a multiple.
TEST(Conv, PointwiseInputGradientsOfHalves) {
  for (int64_t out : {1, 5, 6, 21})
    for (int64_t stride : {1, 2, 3})
      for (auto [height, width] : {std::pair(6, 5), {9, 10}, {5, 5}}) {
        ConvDesc c =
            conv2d(3, 26, out, height * stride, width * stride, 1, stride, 0);
        inOrder(c, 1);
        checkHalves(c);
      }
}

// Gradients of weights and results in f32, from activations of bf16.
TEST(Conv, SumsOfHalvesInF32) {
  for (int order : {0, 1, 2}) {
    ConvDesc c = conv2d(2, 16, 32, 7, 6, 3, 1, 1);
    inOrder(c, order);
    checkHalves(c);
  }
}

ConvDesc conv3d(int64_t batch, int64_t in, int64_t out,
                std::array<int64_t, 3> extent, int64_t kernel, int64_t stride,
                int64_t groups) {
  ConvDesc c;
  c.rank = 3;
  c.batch = batch, c.inChannels = in, c.outChannels = out, c.groups = groups;
  for (int d = 0; d < 3; ++d) {
    c.in[d] = extent[size_t(d)];
    c.kernel[d] = kernel, c.strides[d] = stride;
    c.padsLo[d] = c.padsHi[d] = 1;
  }
  return c;
}

// Strides that leave taps in padding for all outputs: their gradients are 0,
// where oneDNN's kernels for bf16 added what lay in the scratchpad.
TEST(Conv, TapsWithoutData) {
  bool halves = false;
  for (int64_t rank : {1, 2, 3})
    for (auto [extent, stride, pad] :
         {std::array<int64_t, 3>{1, 2, 1}, {2, 4, 1}, {3, 4, 2}})
      for (int64_t groups : {1, 16}) {
        ConvDesc c =
            conv3d(2, 16, 16, {extent, extent, extent}, 3, stride, groups);
        c.rank = rank;
        for (int64_t d = 0; d < 3; ++d)
          c.padsLo[d] = c.padsHi[d] = d < rank ? pad : 0;
        for (int64_t d = rank; d < 3; ++d)
          c.in[d] = c.out[d] = c.kernel[d] = c.strides[d] = 1;
        for (int order : {0, 1, 2}) {
          inOrder(c, order);
          check<float>(c, 1e-5);
          checkHalves(c);
          PrimitiveDesc desc;
          desc.kind = PrimitiveKind::ConvWeightGrad;
          desc.dtype = DType::BF16;
          desc.conv = c;
          halves |= multipliesHalves(desc);
        }
      }
  if (!halves)
    GTEST_SKIP() << "in f32 alone: this CPU has no convolutions of bf16";
}

// Shapes for which oneDNN 2.6's first choice reads or writes beyond its memory.
TEST(Conv, AvoidsDefectiveKernels) {
  ConvDesc strided = conv2d(1, 7, 3, 6, 18, 1, 2);
  strided.strides[1] = 1;
  for (ConvDesc c : {strided, conv2d(3, 10, 8, 6, 18, 1, 2),
                     conv2d(1, 12, 12, 20, 32, 3, 1, 1, 2, 3),
                     conv2d(2, 32, 32, 32, 35, 3, 1, 2, 2, 4),
                     conv3d(1, 14, 33, {4, 5, 5}, 4, 2, 1),
                     conv3d(3, 4, 14, {5, 7, 9}, 4, 3, 2),
                     conv3d(1, 65, 40, {5, 8, 4}, 4, 1, 1)})
    for (int order : {1, 2}) {
      inOrder(c, order);
      check<float>(c, 1e-5);
      checkHalves(c);
    }
}

// The library has a kernel for each kind of shape, and not all are right (see
// isDefective() in DnnlConv.cpp): sizes at random, with single taps, odd
// channels, groups, dilation and three dimensions as often as others. Guards of
// NaN show what is read beyond operands, or in the workspace before it is set.
TEST(Conv, ManyShapes) {
  uint32_t state = 1;
  auto upTo = [&](int64_t most) {
    state = state * 1664525u + 1013904223u;
    return 1 + int64_t(state >> 8) % most;
  };
  auto rarely = [&] { return upTo(4) == 1; };
  for (int i = 0; i < 120; ++i) {
    ConvDesc c;
    c.rank = rarely() ? 3 : rarely() ? 1 : 2;
    c.batch = upTo(3);
    c.groups = upTo(3) == 1 ? 1 + upTo(3) : 1;
    c.inChannels = c.groups * upTo(24), c.outChannels = c.groups * upTo(20);
    int64_t kernel = upTo(2) == 1 ? 1 : upTo(5), stride = upTo(3);
    int64_t dilation = rarely() ? 1 + upTo(3) : 1, pad = upTo(3) - 1;
    for (int64_t d = 0; d < c.rank; ++d) {
      c.kernel[d] = rarely() ? upTo(3) : kernel;
      c.strides[d] = rarely() ? 1 : stride;
      c.dilations[d] = c.kernel[d] == 1 ? 1 : dilation;
      c.padsLo[d] = pad, c.padsHi[d] = rarely() ? 0 : pad;
      int64_t least = (c.kernel[d] - 1) * c.dilations[d] + 1;
      c.in[d] = std::max(least, c.rank == 3 ? 2 + upTo(6) : 4 + upTo(30));
    }
    inOrder(c, int(upTo(3)) - 1);
    SCOPED_TRACE("case " + std::to_string(i));
    check<float>(c, 1e-5);
    checkHalves(c);
    if (HasFailure())
      return;
  }
}
