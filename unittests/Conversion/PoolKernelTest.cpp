//===- PoolKernelTest.cpp - pooling and scatter ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

namespace {
struct Pool {
  const char *in, *out, *kernel, *strides, *low, *high, *dilations;
};
} // namespace

static std::string window(const Pool &p) {
  auto list = [](const char *name, const char *values) {
    return std::string(name) + " = array<i64: " + values + ">";
  };
  return list("kernel", p.kernel) + ", " + list("strides", p.strides) + ", " +
         list("pads_low", p.low) + ", " + list("pads_high", p.high) + ", " +
         list("dilations", p.dilations);
}

TEST(PoolKernel, AllFour) {
  for (const char *layout : {"", ", #ckopt.layout<[0, 2, 3, 1]>"})
    for (Pool p :
         {Pool{"2x20x8x8", "2x20x4x4", "2,2", "2,2", "0,0", "0,0", "1,1"},
          {"2x3x9x7", "2x3x5x4", "3,3", "2,2", "1,1", "1,1", "1,1"},
          {"1x17x7x7", "1x17x7x7", "3,3", "1,1", "1,1", "1,1", "1,1"},
          {"1x4x9x9", "1x4x5x5", "3,2", "1,1", "0,0", "0,-2", "2,2"},
          {"2x5x6x6", "2x5x1x1", "6,6", "1,1", "0,0", "0,0", "1,1"}}) {
      std::string x = std::string("tensor<") + p.in + "xf32" + layout + ">",
                  y = std::string("tensor<") + p.out + "xf32" + layout + ">",
                  i = std::string("tensor<") + p.out + "xi8" + layout + ">";
      checkKernel(kernelText(
          "elementwise", "%x: " + x, y + ", " + i,
          "%0:2 = ckopt.max_pool %x {" + window(p) + "} : (" + x + ") -> (" +
              y + ", " + i + ")\n return %0#0, %0#1 : " + y + ", " + i + "\n"));
      checkKernel(kernelText("elementwise", "%g: " + y + ", %i: " + i, x,
                             "%0 = ckopt.max_pool_grad %g, %i {" + window(p) +
                                 "} : (" + y + ", " + i + ") -> " + x +
                                 "\n return %0 : " + x + "\n"));
      for (const char *include : {"", ", count_include_pad"}) {
        checkKernel(kernelText("elementwise", "%x: " + x, y,
                               "%0 = ckopt.avg_pool %x {" + window(p) +
                                   include + "} : (" + x + ") -> " + y +
                                   "\n return %0 : " + y + "\n"));
        checkKernel(kernelText("elementwise", "%g: " + y, x,
                               "%0 = ckopt.avg_pool_grad %g {" + window(p) +
                                   include + "} : (" + y + ") -> " + x +
                                   "\n return %0 : " + x + "\n"));
      }
    }
}

TEST(ScatterKernel, Add) {
  struct Case {
    const char *init, *indices, *updates, *axis;
  };
  for (Case c : {Case{"9x37xf32", "2x6xi64", "2x6x37xf32", "0"},
                 {"9x300xf32", "7xi64", "7x300xf32", "0"},
                 {"3x9x4xf64", "5xi64", "3x5x4xf64", "1"},
                 {"3x9xf32", "5xi32", "3x5xf32", "1"},
                 {"9xf32", "20xi64", "20xf32", "0"}}) {
    auto t = [](const char *type) {
      return std::string("tensor<") + type + ">";
    };
    std::string types = " : (" + t(c.init) + ", " + t(c.indices) + ", " +
                        t(c.updates) + ") -> " + t(c.init) +
                        "\n return %0 : " + t(c.init) + "\n";
    std::string op = std::string(", %i, %u {axis = ") + c.axis + " : i64}";
    KernelOptions options;
    options.intLow = -3;
    options.intHigh = 9;
    checkKernel(kernelText("structured",
                           "%x: " + t(c.init) + ", %i: " + t(c.indices) +
                               ", %u: " + t(c.updates),
                           t(c.init), "%0 = ckopt.scatter_add %x" + op + types),
                options);
    checkKernel(kernelText("structured",
                           "%i: " + t(c.indices) + ", %u: " + t(c.updates),
                           t(c.init),
                           "%z = ckopt.constant dense<0.0> : " + t(c.init) +
                               "\n%0 = ckopt.scatter_add %z" + op + types),
                options);
  }
}
