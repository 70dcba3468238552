//===- RateFitTest.cpp - rates from kernels' times ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/RateFit.h"
#include "TestModule.h"
#include "ckopt/Analysis/CostModel.h"
#include "gtest/gtest.h"

#include <random>

using namespace ckopt;

/// One call of a kernel on a machine that follows the model.
static double secondsOn(const MachineRates &machine, const KernelWork &work) {
  double arithmetic = 0;
  for (const NamedRate &named : kNamedRates)
    if (named.work && named.work != &KernelWork::bytes)
      arithmetic += work.*named.work / (machine.*named.rate);
  return std::max(arithmetic, work.bytes / machine.bandwidth) +
         machine.overhead;
}

// On a machine that follows the model, kernels of one kind each show its rates,
// however far the built-in ones are from them.
TEST(RateFit, FindsTheRatesOfAMachine) {
  MachineRates machine{90e9, 2e12, 1.5e12, 300e9, 1, 700e9, 5e-6};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> size(1e7, 1e9);
  std::vector<TimedKernel> kernels;
  for (const NamedRate &named : kNamedRates)
    for (int i = 0; i < 6; ++i) {
      KernelWork work;
      // Products read little memory for their flops.
      if (named.work)
        work.*named.work = named.work == &KernelWork::bytes
                               ? size(random)
                               : size(random) * 1e3;
      int64_t calls = 1 + i;
      kernels.push_back(
          {work, calls, double(calls) * secondsOn(machine, work)});
    }
  std::vector<FittedRate> fitted = fitRates(kernels, MachineRates());
  ASSERT_EQ(fitted.size(), std::size(kNamedRates));
  for (const FittedRate &entry : fitted) {
    EXPECT_EQ(entry.kernels, 6) << entry.rate.name;
    EXPECT_NEAR(entry.value / (machine.*entry.rate.rate), 1, 0.02)
        << entry.rate.name;
  }
}

// What no kernel shows stays as it was, and is not given as measured.
TEST(RateFit, LeavesWhatNoKernelShows) {
  KernelWork product;
  product.matmul = 1e12;
  TimedKernel kernel{product, 1, 2.0};
  std::vector<FittedRate> fitted = fitRates(kernel, MachineRates());
  MachineRates rates = withFitted(MachineRates(), fitted);
  EXPECT_NEAR(rates.matmul, 0.5e12, 1e9);
  EXPECT_EQ(rates.conv, MachineRates().conv);
  EXPECT_EQ(rates.bandwidth, MachineRates().bandwidth);
  EXPECT_EQ(rates.overhead, MachineRates().overhead);
}

// Without kernels nothing is fitted.
TEST(RateFit, NoKernels) {
  for (const FittedRate &entry : fitRates({}, MachineRates()))
    EXPECT_EQ(entry.value, 0) << entry.rate.name;
}

// Products of halves count as the products of f32 that take as long, so that
// the rate which is fitted to their times is that of f32.
TEST(RateFit, CountsProductsOfHalvesAtTheirRate) {
  TestModule test(R"(
    func.func @kernel(%a: tensor<256x256xbf16>, %b: tensor<256x256xbf16>)
        -> tensor<256x256xbf16> {
      %0 = ckopt.matmul %a, %b : (tensor<256x256xbf16>, tensor<256x256xbf16>)
          -> tensor<256x256xbf16>
      return %0 : tensor<256x256xbf16>
    })");
  ASSERT_TRUE(test.module);
  MachineRates rates;
  rates.halves = 2;
  KernelWork work = kernelWork(test.function("kernel"), rates);
  EXPECT_GT(work.matmul, 0);
  EXPECT_NEAR(kernelWork(test.function("kernel")).matmul / work.matmul, 2,
              1e-9);
  double predicted = CostModel(rates).kernelSeconds(test.function("kernel"));
  EXPECT_NEAR(secondsOn(rates, work) / predicted, 1, 1e-9);
}

// Where the device approximates functions, half of GELU's operations are left,
// and all of a logarithm's.
TEST(RateFit, CountsApproximatedFunctions) {
  TestModule test(R"(
    func.func @gelu(%a: tensor<256xf32>) -> tensor<256xf32> {
      %0 = ckopt.gelu %a : (tensor<256xf32>) -> tensor<256xf32>
      return %0 : tensor<256xf32>
    }
    func.func @log(%a: tensor<256xf32>) -> tensor<256xf32> {
      %0 = ckopt.log %a : (tensor<256xf32>) -> tensor<256xf32>
      return %0 : tensor<256xf32>
    })");
  ASSERT_TRUE(test.module);
  auto left = [&](llvm::StringRef function) {
    MachineRates rates;
    double exact = kernelWork(test.function(function), rates).vector;
    rates.approximates = 1;
    return kernelWork(test.function(function), rates).vector / exact;
  };
  EXPECT_EQ(left("gelu"), 0.5);
  EXPECT_EQ(left("log"), 1);
}
