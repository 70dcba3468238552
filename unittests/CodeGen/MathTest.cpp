//===- MathTest.cpp - accuracy of the inlined functions -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Largest errors in units of the last place of the correctly rounded result,
// over a sweep of the whole range; and special values.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>

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

/// The same of two operands.
static std::vector<float> lanesOf(const std::string &op, std::vector<float> x,
                                  std::vector<float> y) {
  std::string t = "tensor<" + std::to_string(x.size()) + "xf32>";
  std::string type = " : (" + t + ", " + t + ") -> " + t;
  KernelJit jit(
      kernelText("elementwise", "%x: " + t + ", %y: " + t, t,
                 "%0 = ckopt." + op + type + "\n return %0 : " + t + "\n"));
  std::vector<float> z(x.size());
  void *args[] = {x.data(), y.data(), z.data()};
  if (jit.ok())
    jit.run(args, nullptr, nullptr);
  return z;
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

/// Floats of all magnitudes and many signs.
static std::vector<float> anyFloats(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values;
  while (values.size() < count) {
    uint32_t bits = random();
    float value;
    memcpy(&value, &bits, sizeof value);
    if (std::isnormal(value))
      values.push_back(value);
  }
  return values;
}

TEST(Math, Trigonometry) {
  std::vector<float> x = anyFloats(300000, 1);
  for (int i = -200000; i <= 200000; ++i)
    x.push_back(float(i) / 10000);
  // Where a multiple of pi / 2 is nearest: the fraction has the fewest bits.
  for (float hard : {0x1.921fb6p0f, 0x1.921fb6p1f, 0x1.d12ed2p12f,
                     0x1.6ac5b2p50f, 0x1.6ac5b2p100f, 0x1.fffffep127f})
    x.push_back(hard);
  std::vector<float> s = lanesOf("sin", x), c = lanesOf("cos", x);
  double sine = 0, cosine = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sine = std::max(sine, ulpError(s[i], std::sin(double(x[i]))));
    cosine = std::max(cosine, ulpError(c[i], std::cos(double(x[i]))));
  }
  printf("sin        %.2f ulp\ncos        %.2f ulp\n", sine, cosine);
  EXPECT_LE(sine, 2);
  EXPECT_LE(cosine, 2);
  std::vector<float> a = lanesOf("atan", x);
  double tangent = 0;
  for (size_t i = 0; i < x.size(); ++i)
    tangent = std::max(tangent, ulpError(a[i], std::atan(double(x[i]))));
  printf("atan       %.2f ulp\n", tangent);
  EXPECT_LE(tangent, 2);
  auto ends = lanesOf("atan", {INFINITY, -INFINITY, NAN, 0, -0.0f});
  EXPECT_EQ(ends[0], float(M_PI / 2));
  EXPECT_EQ(ends[1], float(-M_PI / 2));
  EXPECT_TRUE(std::isnan(ends[2]));
  EXPECT_TRUE(ends[3] == 0 && !std::signbit(ends[3]));
  EXPECT_TRUE(ends[4] == 0 && std::signbit(ends[4]));
  auto special = lanesOf("sin", {0, -0.0f, INFINITY, -INFINITY, NAN});
  EXPECT_TRUE(special[0] == 0 && !std::signbit(special[0]));
  EXPECT_TRUE(special[1] == 0 && std::signbit(special[1]));
  for (int i : {2, 3, 4})
    EXPECT_TRUE(std::isnan(special[i]));
  EXPECT_EQ(lanesOf("cos", {0})[0], 1);
}

TEST(Math, Powers) {
  std::vector<float> x = anyFloats(300000, 2), y;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> uniform(-1, 1);
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 2) // near one, large exponents
      x[i] = float(1 + 0.3 * uniform(random));
    double log2 = std::log2(std::fabs(double(x[i])));
    y.push_back(float(140 * uniform(random) / (std::fabs(log2) + 1e-9)));
    if (x[i] < 0)
      y.back() = std::round(y.back());
  }
  std::vector<float> z = lanesOf("pow %x, %y", x, y);
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    double want = std::pow(double(x[i]), double(y[i]));
    if (std::fabs(want) > 0x1p-126) // what is below may be flushed
      largest = std::max(largest, ulpError(z[i], want));
  }
  printf("pow        %.2f ulp\n", largest);
  EXPECT_LE(largest, 2);
}

TEST(Math, PowersOfSpecialValues) {
  const float some[] = {0,     -0.0f,  1,        -1,        0.5f, -0.5f,
                        2,     -2,     3,        -3,        1.5f, -1.5f,
                        1e30f, -1e30f, INFINITY, -INFINITY, NAN,  16777215};
  std::vector<float> x, y;
  for (float a : some)
    for (float b : some) {
      x.push_back(a);
      y.push_back(b);
    }
  std::vector<float> z = lanesOf("pow %x, %y", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    float want = std::pow(x[i], y[i]);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(z[i])) << x[i] << "^" << y[i] << " = " << z[i];
    else
      EXPECT_TRUE(ulpError(z[i], want) <= 2 &&
                  std::signbit(z[i]) == std::signbit(want))
          << x[i] << "^" << y[i] << " = " << z[i] << ", not " << want;
  }
}

TEST(Math, RemaindersAreExact) {
  std::vector<float> x = anyFloats(20000, 4), y = anyFloats(20000, 5);
  for (size_t i = 0; i < x.size(); i += 2) // near each other, too
    y[i] = x[i] / float(1 + i % 1000) * (i % 3 ? 1 : -1);
  const float some[] = {0,    -0.0f, 1,        -1,        3,
                        0.7f, 1e38f, INFINITY, -INFINITY, NAN};
  for (float a : some)
    for (float b : some) {
      x.push_back(a);
      y.push_back(b);
    }
  std::vector<float> z = lanesOf("mod %x, %y {fmod}", x, y);
  for (size_t i = 0; i < x.size(); ++i) {
    float want = std::fmod(x[i], y[i]);
    if (std::isnan(want))
      EXPECT_TRUE(std::isnan(z[i])) << x[i] << " % " << y[i];
    else
      EXPECT_TRUE(z[i] == want && std::signbit(z[i]) == std::signbit(want))
          << x[i] << " % " << y[i] << " = " << z[i] << ", not " << want;
  }
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
