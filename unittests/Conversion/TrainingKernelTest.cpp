//===- TrainingKernelTest.cpp - updates and dropout -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Reference/Tensor.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;
using reference::Tensor;

/// The step number of update kernels comes as random integer: 1 to 3.
static KernelOptions updateOptions(uint64_t seed) {
  KernelOptions options;
  options.low = 0.01;
  options.intLow = 1;
  options.intHigh = 4;
  options.relative = 2e-5;
  options.seed = seed;
  return options;
}

TEST(UpdateKernel, Adam) {
  for (const char *type : {"f32", "f64"})
    for (const char *attributes : {"", ", decoupled"})
      for (uint64_t seed : {1, 2, 3}) {
        std::string t = std::string("tensor<7x45x") + type + ">";
        std::string l = std::string("tensor<") + type + ">";
        std::string results = t + ", " + t + ", " + t;
        std::string text = kernelText(
            "elementwise",
            "%p: " + t + ", %g: " + t + ", %m: " + t + ", %v: " + t +
                ", %l: " + l + ", %s: tensor<i64>",
            results,
            "%0:3 = ckopt.adam %p, %g, %m, %v, %l, %s {beta1 = 0.9 : f64, "
            "beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 "
            ": f64" +
                std::string(attributes) + "} : (" + t + ", " + t + ", " + t +
                ", " + t + ", " + l + ", tensor<i64>) -> (" + results +
                ")\n return %0#0, %0#1, %0#2 : " + results + "\n");
        checkKernel(text, updateOptions(seed));
        KernelJit jit(text);
        std::pair<unsigned, unsigned> parameter{0, 0}, second{3, 2};
        EXPECT_TRUE(llvm::is_contained(jit.code().reuse, parameter));
        EXPECT_TRUE(llvm::is_contained(jit.code().reuse, second));
      }
}

TEST(UpdateKernel, Sgd) {
  for (const char *attributes :
       {"momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64",
        "momentum = 0.9 : f64, dampening = 0.1 : f64, weight_decay = 0.1 : f64",
        "momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : "
        "f64, nesterov"})
    for (uint64_t seed : {1, 2, 3}) {
      std::string t = "tensor<345xf32>", l = "tensor<f32>";
      checkKernel(kernelText("elementwise",
                             "%p: " + t + ", %g: " + t + ", %l: " + l +
                                 ", %s: tensor<i64>, %v: " + t,
                             t + ", " + t,
                             "%0:2 = ckopt.sgd %p, %g, %l, %s velocity %v {" +
                                 std::string(attributes) + "} : (" + t + ", " +
                                 t + ", " + l + ", tensor<i64>, " + t +
                                 ") -> (" + t + ", " + t +
                                 ")\n return %0#0, %0#1 : " + t + ", " + t +
                                 "\n"),
                  updateOptions(seed));
    }
}

TEST(UpdateKernel, MovingAverageAccumulateAssign) {
  std::string t = "tensor<45xf32>";
  for (const char *op : {"moving_average %x, %y {momentum = 0.9 : f64}",
                         "accumulate %x, %y", "assign %x, %y"})
    checkKernel(kernelText("elementwise", "%x: " + t + ", %y: " + t, t,
                           std::string("%0 = ckopt.") + op + " : (" + t + ", " +
                               t + ") -> " + t + "\n return %0 : " + t + "\n"));
}

TEST(UpdateKernel, BatchNormInference) {
  KernelOptions options;
  options.low = 0.1;
  options.relative = 1e-5;
  for (const char *layout : {"", ", #ckopt.layout<[0, 2, 3, 1]>"}) {
    std::string x = std::string("tensor<2x20x3x3xf32") + layout + ">",
                c = "tensor<20xf32>";
    checkKernel(kernelText("elementwise",
                           "%x: " + x + ", %s: " + c + ", %b: " + c +
                               ", %m: " + c + ", %v: " + c,
                           x,
                           "%0 = ckopt.batch_norm_inference %x, %s, %b, %m, %v "
                           "{epsilon = 1.0e-5 : f64} : (" +
                               x + ", " + c + ", " + c + ", " + c + ", " + c +
                               ") -> " + x + "\n return %0 : " + x + "\n"),
                options);
  }
}

// The mask is a function of the logical element alone: bit-equal to the
// interpreter's in every layout and however loops merge.
TEST(DropoutKernel, SameMaskEverywhere) {
  for (const char *type :
       {"100xf32", "3x5xf32", "4x64xf32", "7x33xf64", "2x20x3x5xf32",
        "2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>", "1xf32", "10000xf32"}) {
    std::string t = std::string("tensor<") + type + ">";
    KernelOptions options;
    options.scalars = {11, 77};
    options.low = 0.5;
    options.intHigh = 1000;
    checkKernel(
        kernelText("elementwise",
                   "%x: " + t + ", %seed: tensor<i64>, %step: tensor<i64>", t,
                   "%0 = ckopt.dropout %x, %seed, %step {ratio = 0.3 : f64, "
                   "site = 1 : i64} : (" +
                       t + ", tensor<i64>, tensor<i64>) -> " + t +
                       "\n return %0 : " + t + "\n"),
        options);
  }
}

// Two states from one formula: what they share is computed once, and both lie
// where the old ones were.
TEST(UpdateKernel, AssignedFormula) {
  std::string t = "tensor<5x45xf32>";
  std::string two = " : (" + t + ", " + t + ") -> " + t + "\n";
  std::string text = kernelText(
      "elementwise", "%p: " + t + ", %g: " + t + ", %v: " + t, t + ", " + t,
      "%0 = ckopt.mul %g, %g" + two + "%1 = ckopt.add %v, %0" + two +
          "%2 = ckopt.sqrt %1 : (" + t + ") -> " + t +
          "\n%3 = ckopt.div %g, %2" + two + "%4 = ckopt.sub %p, %3" + two +
          "%5 = ckopt.assign %v, %1" + two + "%6 = ckopt.assign %p, %4" + two +
          " return %5, %6 : " + t + ", " + t + "\n");
  KernelOptions options;
  options.low = 0.1;
  checkKernel(text, options);
  KernelJit jit(text);
  std::pair<unsigned, unsigned> parameter{0, 1}, state{2, 0};
  EXPECT_TRUE(llvm::is_contained(jit.code().reuse, parameter));
  EXPECT_TRUE(llvm::is_contained(jit.code().reuse, state));
}

// The numbers, too, are functions of the logical element alone.
TEST(RandomKernel, SameNumbersEverywhere) {
  for (const char *kind : {"uniform", "normal"})
    for (const char *type :
         {"100xf32", "7x33xf64", "2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>",
          "f32", "10000xf32", "3x33xf16"}) {
      std::string t = std::string("tensor<") + type + ">";
      KernelOptions options;
      options.scalars = {11, 77};
      options.intHigh = 1000;
      checkKernel(kernelText("elementwise",
                             "%seed: tensor<i64>, %step: tensor<i64>", t,
                             std::string("%0 = ckopt.random ") + kind +
                                 " %seed, %step {site = 1 : i64} : "
                                 "(tensor<i64>, tensor<i64>) -> " +
                                 t + "\n return %0 : " + t + "\n"),
                  options);
    }
}
