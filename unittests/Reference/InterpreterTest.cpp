//===- InterpreterTest.cpp - running functions ----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ReferenceFixture.h"
#include "ckopt/Base/Philox.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

namespace {
class InterpreterTest : public test::ReferenceFixture {};
} // namespace

/// 1/3 is rounded to f32 only where asked; in double it stays exact enough
/// that three of them make 1 - 2^-54.
TEST_F(InterpreterTest, RoundsWhereAsked) {
  auto function = parse(R"(
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = ckopt.reciprocal %x : (tensor<1xf32>) -> tensor<1xf32>
      return %0 : tensor<1xf32>
    })");
  Tensor three = Tensor::splat(f32({1}), 3);
  EXPECT_EQ(run(function, {three})[0].real(0), double(1.0f / 3.0f));
  Options wide;
  wide.roundToType = false;
  EXPECT_EQ(run(function, {three}, wide)[0].real(0), 1.0 / 3.0);
}

/// A value lives until its last reader, also where an op reads it twice or the
/// function returns it twice.
TEST_F(InterpreterTest, ValuesWithSeveralReaders) {
  auto function = parse(R"(
    func.func @main(%x: tensor<2xf32>, %unused: tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
      %0 = ckopt.add %x, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %1 = ckopt.mul %0, %x : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
      %dead = ckopt.exp %0 : (tensor<2xf32>) -> tensor<2xf32>
      return %1, %0, %1 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
    })");
  Tensor x(f32({2}), std::vector<double>{2, 3});
  SmallVector<Tensor> results = run(function, {x, Tensor(f32({}))});
  EXPECT_EQ(results[0].getReals(), ArrayRef<double>({8, 18}));
  EXPECT_EQ(results[1].getReals(), ArrayRef<double>({4, 6}));
  EXPECT_EQ(results[2].getReals(), ArrayRef<double>({8, 18}));
}

TEST_F(InterpreterTest, CallsAndTheObserver) {
  auto function = parse(R"(
    func.func private @inner(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = ckopt.neg %x : (tensor<1xf32>) -> tensor<1xf32>
      return %0 : tensor<1xf32>
    }
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      %0 = func.call @inner(%x) : (tensor<1xf32>) -> tensor<1xf32>
      %1 = ckopt.kernel_call @inner(%0) : (tensor<1xf32>) -> tensor<1xf32>
      return %1 : tensor<1xf32>
    })");
  std::vector<std::string> seen;
  Options options;
  options.observer = [&](Operation *op, ArrayRef<Tensor> results) {
    seen.push_back(op->getName().getStringRef().str() + " " +
                   std::to_string(int(results[0].real(0))));
  };
  EXPECT_EQ(run(function, {Tensor::splat(f32({1}), 5)}, options)[0].real(0), 5);
  EXPECT_EQ(seen,
            std::vector<std::string>({"ckopt.neg -5", "func.call -5",
                                      "ckopt.neg 5", "ckopt.kernel_call 5"}));
}

TEST_F(InterpreterTest, WrongArgumentsAreErrors) {
  auto function = parse(R"(
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      return %x : tensor<2xf32>
    })");
  EXPECT_EQ(errorOf(function, {}), "takes 1 arguments, got 0");
  EXPECT_EQ(errorOf(function, {Tensor(f32({3}))}),
            "argument 0 needs a 'tensor<2xf32>', got a 'tensor<3xf32>'");
  EXPECT_EQ(errorOf(function, {Tensor(i64({2}))}),
            "argument 0 needs a 'tensor<2xf32>', got a 'tensor<2xi64>'");
  EXPECT_EQ(errorOf(function, {Tensor()}),
            "argument 0 needs a 'tensor<2xf32>'");
}

/// A double argument of an f32 function: rounded on entry unless the run is
/// in double.
TEST_F(InterpreterTest, ArgumentsAreRoundedToo) {
  auto function = parse(R"(
    func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
      return %x : tensor<1xf32>
    })");
  Tensor tenth = Tensor::splat(f32({1}), 0.1);
  EXPECT_EQ(run(function, {tenth})[0].real(0), double(0.1f));
  Options wide;
  wide.roundToType = false;
  EXPECT_EQ(run(function, {tenth}, wide)[0].real(0), 0.1);
}

/// About half of the elements of a large tensor survive a ratio of 0.5; every
/// step and every site drops others; the op is its own gradient.
TEST_F(InterpreterTest, DropoutStatistics) {
  auto function = parse(R"(
    func.func @main(%x: tensor<10000xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> (tensor<10000xf32>, tensor<10000xf32>) {
      %0 = ckopt.dropout %x, %seed, %step {ratio = 0.5 : f64, site = 0 : i64} : (tensor<10000xf32>, tensor<i64>, tensor<i64>) -> tensor<10000xf32>
      %1 = ckopt.dropout %x, %seed, %step {ratio = 0.5 : f64, site = 1 : i64} : (tensor<10000xf32>, tensor<i64>, tensor<i64>) -> tensor<10000xf32>
      return %0, %1 : tensor<10000xf32>, tensor<10000xf32>
    })");
  auto at = [&](int64_t step) {
    return run(function,
               {Tensor::splat(f32({10000}), 1), Tensor::splat(i64({}), 42),
                Tensor::splat(i64({}), double(step))});
  };
  SmallVector<Tensor> first = at(1), second = at(2);
  int64_t kept = llvm::count(first[0].getReals(), 2.0);
  EXPECT_EQ(kept + llvm::count(first[0].getReals(), 0.0), 10000);
  EXPECT_NEAR(double(kept), 5000, 250); // five standard deviations
  auto agreement = [](const Tensor &a, const Tensor &b) {
    int64_t same = 0;
    for (int64_t i = 0; i < a.size(); ++i)
      same += a.real(i) == b.real(i);
    return double(same);
  };
  EXPECT_NEAR(agreement(first[0], first[1]), 5000, 250);
  EXPECT_NEAR(agreement(first[0], second[0]), 5000, 250);
  EXPECT_EQ(agreement(first[0], at(1)[0]), 10000);
}

/// Uniform numbers are Philox's words; normal ones have the moments of their
/// distribution, and neighbours, made from the same words, are independent.
TEST_F(InterpreterTest, RandomNumbers) {
  constexpr int64_t count = 40000;
  auto function = parse(R"(
    func.func @main(%seed: tensor<i64>, %step: tensor<i64>) -> (tensor<200x200xf64>, tensor<200x200xf64>) {
      %0 = ckopt.random uniform %seed, %step {site = 3 : i64} : (tensor<i64>, tensor<i64>) -> tensor<200x200xf64>
      %1 = ckopt.random normal %seed, %step {site = 3 : i64} : (tensor<i64>, tensor<i64>) -> tensor<200x200xf64>
      return %0, %1 : tensor<200x200xf64>, tensor<200x200xf64>
    })");
  SmallVector<Tensor> results =
      run(function, {Tensor::splat(i64({}), 42), Tensor::splat(i64({}), 7)});
  const Tensor &uniform = results[0], &normal = results[1];
  for (int64_t i : {0, 5, 39999}) {
    PhiloxCounter words = philox4x32({uint32_t(i / 4), 0, 7, 3}, {42, 0});
    EXPECT_EQ(uniform.real(i), double(words[size_t(i) % 4] >> 8) * 0x1p-24);
  }
  double moments[5] = {}, product = 0, low = 1, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    double power = 1;
    for (double &moment : moments) {
      moment += power / count;
      power *= normal.real(i);
    }
    if (i % 2)
      product += normal.real(i - 1) * normal.real(i) / (count / 2);
    low = std::min(low, uniform.real(i));
    high = std::max(high, uniform.real(i));
  }
  // Five standard deviations of each mean.
  EXPECT_NEAR(moments[1], 0, 0.025);
  EXPECT_NEAR(moments[2], 1, 0.036);
  EXPECT_NEAR(moments[3], 0, 0.1);
  EXPECT_NEAR(moments[4], 3, 0.25);
  EXPECT_NEAR(product, 0, 0.036);
  EXPECT_TRUE(low >= 0 && low < 1e-3 && high < 1 && high > 0.999);
}
