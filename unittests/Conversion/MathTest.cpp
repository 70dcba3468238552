//===- MathTest.cpp - accuracy of the inlined functions -------------------===//
//
// Largest errors in units of the last place of the correctly rounded result,
// over a sweep of the whole range; and special values.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

static std::vector<float> lanesOf(const std::string &op,
                                  const std::vector<float> &x) {
  std::string t = "tensor<" + std::to_string(x.size()) + "xf32>";
  KernelJit jit(kernelText("elementwise", "%x: " + t, t,
                           "%0 = ckopt." + op + " %x : (" + t + ") -> " + t +
                               "\n return %0 : " + t + "\n"));
  std::vector<float> input(x), y(x.size());
  void *args[] = {input.data(), y.data()};
  if (jit.ok())
    jit.run(args, nullptr, nullptr);
  return y;
}

static double ulpError(float got, double want) {
  float rounded = float(want);
  if (std::isnan(want) || std::isinf(rounded))
    return std::isnan(want) == std::isnan(got) &&
                   (std::isnan(want) || rounded == got)
               ? 0
               : 1e9;
  float next = std::nextafter(std::fabs(rounded), INFINITY);
  double unit = std::max(double(next) - std::fabs(double(rounded)), 0x1p-149);
  return std::fabs(double(got) - want) / unit;
}

template <typename Fn>
static double worst(const std::string &op, float low, float high, Fn exact) {
  std::vector<float> x;
  const int count = 200000;
  for (int i = 0; i <= count; ++i)
    x.push_back(float(low + (double(high) - low) * i / count));
  // And all magnitudes.
  for (float magnitude = 1e-30f; magnitude < 1e30f; magnitude *= 1.37f)
    for (float sign : {-1.0f, 1.0f})
      if (float v = sign * magnitude; v >= low && v <= high)
        x.push_back(v);
  std::vector<float> y = lanesOf(op, x);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double error = ulpError(y[i], exact(double(x[i])));
    if (error > largest) {
      largest = error;
      if (error > 16) {
        ADD_FAILURE() << op << "(" << x[i] << ") = " << y[i] << ", not "
                      << exact(double(x[i]));
        break;
      }
    }
  }
  printf("%-10s %.2f ulp\n", op.c_str(), largest);
  return largest;
}

TEST(Math, Accuracy) {
  EXPECT_LE(worst("exp", -103, 89, [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst("log", 1e-38f, 1e30f, [](double x) { return std::log(x); }),
            2);
  EXPECT_LE(worst("log", 0.5f, 2, [](double x) { return std::log(x); }), 2);
  EXPECT_LE(worst("tanh", -10, 10, [](double x) { return std::tanh(x); }), 4);
  EXPECT_LE(worst("erf", -5, 5, [](double x) { return std::erf(x); }), 5);
  EXPECT_LE(worst("sigmoid", -80, 80,
                  [](double x) { return 1 / (1 + std::exp(-x)); }),
            4);
  EXPECT_LE(worst("softplus", -80, 80,
                  [](double x) {
                    return std::max(x, 0.0) +
                           std::log1p(std::exp(-std::fabs(x)));
                  }),
            4);
}

TEST(Math, SpecialValues) {
  float inf = INFINITY, nan = NAN;
  auto e = lanesOf("exp", {0, -0.0f, inf, -inf, nan, 88.8f, -200, 88.72f});
  EXPECT_EQ(e[0], 1);
  EXPECT_EQ(e[1], 1);
  EXPECT_EQ(e[2], inf);
  EXPECT_EQ(e[3], 0);
  EXPECT_TRUE(std::isnan(e[4]));
  EXPECT_EQ(e[5], inf);
  EXPECT_EQ(e[6], 0);
  EXPECT_NEAR(e[7] / std::exp(88.72f), 1, 1e-6);
  auto l = lanesOf("log", {0, 1, -1, inf, nan, 1e-40f});
  EXPECT_EQ(l[0], -inf);
  EXPECT_EQ(l[1], 0);
  EXPECT_TRUE(std::isnan(l[2]));
  EXPECT_EQ(l[3], inf);
  EXPECT_TRUE(std::isnan(l[4]));
  EXPECT_NEAR(l[5], std::log(1e-40), 1e-3);
  for (const char *op : {"tanh", "erf"}) {
    auto t = lanesOf(op, {inf, -inf, nan, 0});
    EXPECT_EQ(t[0], 1);
    EXPECT_EQ(t[1], -1);
    EXPECT_TRUE(std::isnan(t[2]));
    EXPECT_EQ(t[3], 0);
  }
  auto r = lanesOf("relu", {nan, -1, 2, -inf});
  EXPECT_TRUE(std::isnan(r[0]));
  EXPECT_EQ(r[1], 0);
  EXPECT_EQ(r[2], 2);
  EXPECT_EQ(r[3], 0);
}
