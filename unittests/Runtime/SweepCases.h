//===- SweepCases.h - random products and convolutions ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Shapes of which kernels of a library have been wrong, as often as others:
// taps in padding only, odd channels, groups, dilation, extents around
// multiples of 16, with the results that plain loops give.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_RUNTIME_SWEEPCASES_H
#define CKOPT_UNITTESTS_RUNTIME_SWEEPCASES_H

#include "../../lib/Runtime/allocations/AllocationHook.h"
#include "ConvReference.h"
#include "Operands.h"
#include "ckopt/Runtime/Primitive.h"

#include <random>
#include <string>

namespace ckopt::runtime::test {

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

class Shapes {
public:
  Shapes(uint64_t seed, int64_t index) : engine(seed * 1000003 + index) {}

  PrimitiveDesc next() {
    for (;;) {
      PrimitiveDesc desc;
      desc.dtype = oneIn(3) ? DType::BF16 : DType::F32;
      desc.wideResult = desc.dtype == DType::BF16 && oneIn(2);
      desc.kind = PrimitiveKind(upTo(4) - 1);
      if (desc.kind == PrimitiveKind::MatMul)
        setProduct(desc);
      else
        setConvolution(desc);
      if (check(desc).empty())
        return desc;
    }
  }
  int64_t upTo(int64_t most) { return 1 + int64_t(engine() % uint64_t(most)); }
  bool oneIn(int64_t count) { return upTo(count) == 1; }

private:
  int64_t extent() {
    if (oneIn(8))
      return 1;
    return std::max<int64_t>(1, (upTo(6) - 1) * 16 +
                                    (oneIn(2) ? upTo(40) - 1 : upTo(3) - 2));
  }

  void setProduct(PrimitiveDesc &desc) {
    MatMulDesc &m = desc.matmul;
    m.m = extent(), m.n = extent(), m.k = upTo(200);
    m.batch[1] = oneIn(3) ? upTo(4) : 1;
    m.batch[0] = m.batch[1] > 1 && oneIn(3) ? upTo(3) : 1;
    auto place = [&](int64_t rows, int64_t cols, int64_t &row, int64_t &col,
                     int64_t (&batch)[2]) {
      int64_t gap = oneIn(6) ? upTo(20) : 0;
      bool transposed = oneIn(2);
      row = transposed ? 1 : cols + gap, col = transposed ? rows + gap : 1;
      int64_t size = transposed ? cols * (rows + gap) : rows * (cols + gap);
      // Batches one after the other, or between the rows, as heads are.
      bool heads = !transposed && m.batch[1] > 1 && oneIn(4);
      if (heads)
        row *= m.batch[1];
      batch[1] = heads ? cols + gap : size;
      batch[0] = size * m.batch[1];
    };
    place(m.m, m.k, m.aRow, m.aCol, m.aBatch);
    place(m.k, m.n, m.bRow, m.bCol, m.bBatch);
    place(m.m, m.n, m.cRow, m.cCol, m.cBatch);
    if (oneIn(8))
      (oneIn(2) ? m.aBatch : m.bBatch)[upTo(2) - 1] = 0;
    desc.accumulate = oneIn(4);
    if (desc.dtype == DType::BF16)
      desc.wideResult |= desc.accumulate;
    desc.form = oneIn(3) ? LibraryForm::Packed : LibraryForm::InPlace;
  }

  void setConvolution(PrimitiveDesc &desc) {
    ConvDesc &c = desc.conv;
    c.rank = oneIn(4) ? 3 : oneIn(3) ? 1 : 2;
    c.batch = upTo(3);
    bool wide = oneIn(8); // channels that fill many vectors
    int64_t channels = wide ? 16 * upTo(8) : upTo(40);
    int64_t filters = wide ? 16 * upTo(8) : upTo(40);
    bool grouped = oneIn(3);
    bool depthwise = grouped && oneIn(2);
    c.groups = depthwise ? upTo(40) : grouped ? 1 + upTo(4) : 1;
    c.inChannels = depthwise ? c.groups : c.groups * channels;
    c.outChannels = c.groups * (depthwise ? (oneIn(2) ? 1 : upTo(3)) : filters);
    int64_t kernel = oneIn(3) ? 1 : upTo(5), stride = oneIn(2) ? 1 : upTo(4);
    int64_t dilation = oneIn(4) ? 1 + upTo(3) : 1, pad = upTo(4) - 1;
    int64_t size = oneIn(3) ? upTo(3) : c.rank == 3 ? upTo(8) : upTo(30);
    for (int64_t d = 0; d < c.rank; ++d) {
      c.kernel[d] = oneIn(4) ? upTo(4) : kernel;
      c.strides[d] = oneIn(4) ? upTo(3) : stride;
      c.dilations[d] = c.kernel[d] == 1 ? 1 : dilation;
      c.padsLo[d] = pad, c.padsHi[d] = oneIn(4) ? upTo(3) - 1 : pad;
      c.in[d] = oneIn(4) ? upTo(8) : size;
      int64_t least = (c.kernel[d] - 1) * c.dilations[d] + 1;
      c.in[d] = std::max(c.in[d], least - c.padsLo[d] - c.padsHi[d]);
      c.out[d] =
          (c.in[d] + c.padsLo[d] + c.padsHi[d] - least) / c.strides[d] + 1;
    }
    c.channelsLast = !oneIn(3);
    c.weightsLast = c.channelsLast && oneIn(2);
    desc.form = LibraryForm::Convolution;
  }

  std::mt19937_64 engine;
};

//===----------------------------------------------------------------------===//
// One case: operands and what comes out
//===----------------------------------------------------------------------===//

struct Case {
  PrimitiveDesc desc;
  std::vector<float> a, b, addend;
  std::vector<double> expected; ///< NaN: is not written
};

/// Numbers that both types hold.
inline std::vector<float> operand(const PrimitiveDesc &desc, int64_t count,
                                  uint32_t seed) {
  std::vector<float> numbers = values<float>(count, seed);
  if (desc.dtype == DType::BF16)
    for (float &number : numbers)
      number = bfloat16ToFloat(floatToBFloat16(number));
  return numbers;
}

inline int64_t span(const MatMulDesc &m, const int64_t (&batch)[2],
                    int64_t rows, int64_t row, int64_t cols, int64_t col) {
  return (m.batch[0] - 1) * batch[0] + (m.batch[1] - 1) * batch[1] +
         (rows - 1) * row + (cols - 1) * col + 1;
}

inline void setProduct(Case &test) {
  const MatMulDesc &m = test.desc.matmul;
  test.a = operand(test.desc, span(m, m.aBatch, m.m, m.aRow, m.k, m.aCol), 1);
  test.b = operand(test.desc, span(m, m.bBatch, m.k, m.bRow, m.n, m.bCol), 2);
  int64_t size = span(m, m.cBatch, m.m, m.cRow, m.n, m.cCol);
  if (test.desc.accumulate)
    test.addend = operand(test.desc, size, 3);
  test.expected.assign(size_t(size), NAN);
  for (int64_t i = 0; i < m.batch[0]; ++i)
    for (int64_t j = 0; j < m.batch[1]; ++j)
      for (int64_t r = 0; r < m.m; ++r)
        for (int64_t s = 0; s < m.n; ++s) {
          const float *x =
              &test.a[size_t(i * m.aBatch[0] + j * m.aBatch[1] + r * m.aRow)];
          const float *y =
              &test.b[size_t(i * m.bBatch[0] + j * m.bBatch[1] + s * m.bCol)];
          auto at = size_t(i * m.cBatch[0] + j * m.cBatch[1] + r * m.cRow +
                           s * m.cCol);
          double sum = test.addend.empty() ? 0 : test.addend[at];
          for (int64_t k = 0; k < m.k; ++k)
            sum += double(x[k * m.aCol]) * double(y[k * m.bRow]);
          test.expected[at] = sum;
        }
}

inline void setConvolution(Case &test) {
  const ConvDesc &c = test.desc.conv;
  Sizes sizes(c);
  bool forward = test.desc.kind == PrimitiveKind::ConvForward;
  bool ofInput = test.desc.kind == PrimitiveKind::ConvInputGrad;
  std::vector<double> &e = test.expected;
  auto set = [&](int64_t a, int64_t b, int64_t result) {
    test.a = operand(test.desc, a, 1), test.b = operand(test.desc, b, 2);
    e.assign(size_t(result), 0.0);
  };
  if (forward)
    set(sizes.x, sizes.w, sizes.y);
  else if (ofInput)
    set(sizes.y, sizes.w, sizes.x);
  else
    set(sizes.x, sizes.y, sizes.w);
  forEachProduct(c, [&](int64_t x, int64_t w, int64_t y) {
    int64_t a = ofInput ? y : x, b = forward || ofInput ? w : y;
    e[size_t(forward   ? y
             : ofInput ? x
                       : w)] +=
        double(test.a[size_t(a)]) * double(test.b[size_t(b)]);
  });
}

/// Multiplications that plain loops make.
inline double workOf(const PrimitiveDesc &desc) {
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    return double(m.batch[0] * m.batch[1]) * double(m.m * m.n) * double(m.k);
  }
  Sizes sizes(desc.conv);
  return double(sizes.y) * double(sizes.w) / double(desc.conv.outChannels);
}

inline Case makeCase(uint64_t seed, int64_t index) {
  constexpr double kMostWork = 1e6;
  Shapes shapes(seed, index);
  Case test;
  do
    test.desc = shapes.next();
  while (workOf(test.desc) > kMostWork);
  if (test.desc.kind == PrimitiveKind::MatMul)
    setProduct(test);
  else
    setConvolution(test);
  return test;
}

inline std::vector<char> bytesOf(const std::vector<float> &numbers,
                                 DType dtype) {
  std::vector<char> bytes(numbers.size() * dtypeSize(dtype));
  if (dtype == DType::F32)
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  else
    for (size_t i = 0; i < numbers.size(); ++i) {
      uint16_t half = floatToBFloat16(numbers[i]);
      std::memcpy(&bytes[2 * i], &half, 2);
    }
  return bytes;
}

/// Runs the primitive once; returns what is wrong, or nothing.
inline std::string runOnce(const Case &test, Primitive &primitive,
                           std::vector<char> &made) {
  DType type = test.desc.wideResult ? DType::F32 : test.desc.dtype;
  std::vector<char> a = bytesOf(test.a, test.desc.dtype),
                    b = bytesOf(test.b, test.desc.dtype),
                    addend = bytesOf(test.addend, type);
  Guarded first(a), second(b), added(addend),
      workspace(primitive.workspaceBytes()),
      result(int64_t(test.expected.size() * dtypeSize(type)));
  std::vector<void *> args = {first.data(), second.data()};
  if (test.desc.accumulate)
    args.push_back(added.data());
  args.push_back(result.data());
  std::string error;
  ckopt_allocation_hook.begin();
  bool ran = primitive.execute(args.data(), workspace.data(), error);
  ckopt_allocation_hook.end();
  if (!ran)
    return error;
  if (!first.holds(a) || !second.holds(b) || !added.holds(addend))
    return "operands changed";
  if (!first.intact() || !second.intact() || !workspace.intact() ||
      !result.intact())
    return "wrote beyond its memory";
  auto *bytes = static_cast<char *>(result.data());
  made.assign(bytes, bytes + test.expected.size() * dtypeSize(type));
  return "";
}

inline std::string compare(const Case &test, const std::vector<char> &made) {
  bool wide = test.desc.wideResult || test.desc.dtype == DType::F32;
  double scale = 1, worst = 0;
  for (size_t i = 0; i < test.expected.size(); ++i) {
    double got = 0;
    if (wide) {
      float number;
      std::memcpy(&number, &made[4 * i], 4);
      got = number;
    } else {
      uint16_t half;
      std::memcpy(&half, &made[2 * i], 2);
      got = bfloat16ToFloat(half);
    }
    double wanted = test.expected[i];
    if (std::isnan(wanted) != std::isnan(got))
      return std::isnan(got) ? "an element is NaN" : "wrote between elements";
    if (std::isnan(wanted))
      continue;
    scale = std::max(scale, std::fabs(wanted));
    worst = std::max(worst, std::fabs(got - wanted));
  }
  double relative = worst / scale;
  return relative < (wide ? 1e-5 : 1e-2)
             ? ""
             : "differs by " + std::to_string(relative);
}

} // namespace ckopt::runtime::test

#endif // CKOPT_UNITTESTS_RUNTIME_SWEEPCASES_H
