//===- KernelBandwidth.cpp - bytes a second of generated kernels ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One thread against memcpy of the same bytes. Not part of a normal run:
// ConversionTests --gtest_also_run_disabled_tests --gtest_filter='*Bandwidth*'
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include <chrono>
#include <cstring>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::test;

static double seconds(llvm::function_ref<void()> fn) {
  double best = 1e9;
  for (int i = 0; i < 7; ++i) {
    auto start = std::chrono::steady_clock::now();
    fn();
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    best = std::min(best, time.count());
  }
  return best;
}

static void measure(const char *name, const std::string &text,
                    const std::vector<int64_t> &scalars = {}) {
  KernelJit jit(text);
  if (!jit.ok())
    return;
  std::vector<std::vector<char, std::allocator<char>>> buffers;
  std::vector<void *> args;
  int64_t bytes = 0;
  auto add = [&](mlir::Type type) {
    int64_t size = getByteSize(mlir::cast<mlir::RankedTensorType>(type));
    bytes += size;
    buffers.emplace_back(size + 64);
    void *p = buffers.back().data();
    size_t space = size + 64;
    p = std::align(64, size, p, space);
    float *f = static_cast<float *>(p);
    bool floats = mlir::isa<mlir::FloatType>(mlir::getElementTypeOrSelf(type));
    for (int64_t i = 0; i < size / 4; ++i)
      f[i] = floats ? float((i * 37) % 101) * 0.01f + 0.01f : 0.0f;
    args.push_back(p);
  };
  for (mlir::Type type : jit.kernel().getArgumentTypes())
    add(type);
  for (mlir::Type type : jit.kernel().getResultTypes())
    add(type);
  std::vector<char> scratch(jit.code().workspaceBytes + 64);
  void *aligned = scratch.data();
  size_t space = scratch.size();
  aligned = std::align(64, 1, aligned, space);
  double time = seconds([&] { jit.run(args.data(), scalars.data(), aligned); });
  std::vector<char> from(bytes / 2 + 64, 1), to(bytes / 2 + 64, 2);
  double copy =
      seconds([&] { memcpy(to.data(), from.data(), size_t(bytes / 2)); });
  printf("%-44s %8.1f MB %7.2f ms %6.1f GB/s, memcpy %6.1f GB/s: %.2f\n", name,
         double(bytes) * 1e-6, time * 1e3, double(bytes) / time * 1e-9,
         double(bytes) / copy * 1e-9, copy / time);
}

static std::string t(const std::string &type) { return "tensor<" + type + ">"; }

TEST(DISABLED_KernelBandwidth, Elementwise) {
  for (std::string n : {"262144", "16777216"})
    measure(("add " + n).c_str(),
            kernelText("elementwise",
                       "%x: " + t(n + "xf32") + ", %y: " + t(n + "xf32"),
                       t(n + "xf32"),
                       "%0 = ckopt.add %x, %y : (" + t(n + "xf32") + ", " +
                           t(n + "xf32") + ") -> " + t(n + "xf32") +
                           "\n return %0 : " + t(n + "xf32") + "\n"));
  std::string x = "tensor<2048x3072xf32>", c = "tensor<3072xf32>";
  for (const char *op : {"gelu", "gelu tanh", "relu", "exp", "tanh"}) {
    std::string name = op, attribute = "";
    if (name == "gelu tanh") {
      name = "gelu";
      attribute = "{tanh}";
    }
    measure(("bias + " + std::string(op) + " 2048x3072").c_str(),
            kernelText("elementwise", "%x: " + x + ", %b: " + c, x,
                       "%0 = ckopt.add %x, %b : (" + x + ", " + c + ") -> " +
                           x + "\n%1 = ckopt." + name + " %0 " + attribute +
                           " : (" + x + ") -> " + x + "\n return %1 : " + x +
                           "\n"));
  }
  measure("dropout 2048x3072",
          kernelText("elementwise",
                     "%x: " + x + ", %s: tensor<i64>, %t: tensor<i64>", x,
                     "%0 = ckopt.dropout %x, %s, %t {ratio = 0.1 : f64, site "
                     "= 0 : i64} : (" +
                         x + ", tensor<i64>, tensor<i64>) -> " + x +
                         "\n return %0 : " + x + "\n"),
          {1});
  std::string n = "tensor<16777216xf32>";
  measure("adamw 16M",
          kernelText("elementwise",
                     "%p: " + n + ", %g: " + n + ", %m: " + n + ", %v: " + n +
                         ", %l: tensor<f32>, %s: tensor<i64>",
                     n + ", " + n + ", " + n,
                     "%0:3 = ckopt.adam %p, %g, %m, %v, %l, %s {beta1 = 0.9 : "
                     "f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, "
                     "weight_decay = 0.01 : f64, decoupled} : (" +
                         n + ", " + n + ", " + n + ", " + n +
                         ", tensor<f32>, tensor<i64>) -> (" + n + ", " + n +
                         ", " + n + ")\n return %0#0, %0#1, %0#2 : " + n +
                         ", " + n + ", " + n + "\n"));
}

TEST(DISABLED_KernelBandwidth, Reductions) {
  for (auto [c, hw] :
       std::vector<std::pair<std::string, std::string>>{{"64", "56x56"},
                                                        {"256", "56x56"},
                                                        {"512", "28x28"},
                                                        {"2048", "7x7"}}) {
    std::string x = "tensor<8x" + c + "x" + hw +
                    "xf32, #ckopt.layout<[0, 2, 3, 1]>>",
                v = "tensor<" + c + "xf32>", v4 = "tensor<" + c + "x1x1xf32>";
    measure(("moments NHWC " + c + " " + hw).c_str(),
            kernelText("reduction", "%x: " + x, v + ", " + v,
                       "%0:2 = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : "
                       "(" +
                           x + ") -> (" + v + ", " + v +
                           ")\n return %0#0, %0#1 : " + v + ", " + v + "\n"));
    measure(("bn backward sums NHWC " + c + " " + hw).c_str(),
            kernelText(
                "reduction", "%g: " + x + ", %x: " + x + ", %m: " + v4,
                v + ", " + v,
                "%0 = ckopt.sub %x, %m : (" + x + ", " + v4 + ") -> " + x +
                    "\n%1 = ckopt.mul %g, %0 : (" + x + ", " + x + ") -> " + x +
                    "\n%2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, "
                    "keepdims = false} : (" +
                    x + ") -> " + v +
                    "\n%3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, "
                    "keepdims = false} : (" +
                    x + ") -> " + v + "\n return %2, %3 : " + v + ", " + v +
                    "\n"));
    measure(
        ("bn apply + relu NHWC " + c + " " + hw).c_str(),
        kernelText("elementwise", "%x: " + x + ", %m: " + v4 + ", %v: " + v4, x,
                   "%e = ckopt.constant dense<1.0e-5> : tensor<f32>\n"
                   "%0 = ckopt.add %v, %e : (" +
                       v4 + ", tensor<f32>) -> " + v4 +
                       "\n%1 = ckopt.rsqrt %0 : (" + v4 + ") -> " + v4 +
                       "\n%2 = ckopt.sub %x, %m : (" + x + ", " + v4 + ") -> " +
                       x + "\n%3 = ckopt.mul %2, %1 : (" + x + ", " + v4 +
                       ") -> " + x + "\n%4 = ckopt.relu %3 : (" + x + ") -> " +
                       x + "\n return %4 : " + x + "\n"));
  }
  std::string x = "tensor<2048x768xf32>", b = "tensor<768xf32>";
  measure("bias gradient 2048x768",
          kernelText("reduction", "%x: " + x, b,
                     "%0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims "
                     "= false} : (" +
                         x + ") -> " + b + "\n return %0 : " + b + "\n"));
  std::string w = "tensor<50257x768xf32>";
  measure("sum of all 50257x768",
          kernelText("reduction", "%x: " + w, "tensor<f32>",
                     "%0 = ckopt.reduce sum %x {axes = array<i64: 0, 1>, "
                     "keepdims = false} : (" +
                         w + ") -> tensor<f32>\n return %0 : tensor<f32>\n"));
}

TEST(DISABLED_KernelBandwidth, Rows) {
  std::string x = "tensor<2048x768xf32>", b = "tensor<768xf32>",
              m = "tensor<2048xf32>";
  measure("layer norm 2048x768",
          kernelText("row", "%x: " + x + ", %s: " + b + ", %b: " + b,
                     x + ", " + m + ", " + m,
                     "%0:3 = ckopt.layer_norm %x scale %s bias %b {axis = 1 : "
                     "i64, epsilon = 1.0e-5 : f64} : (" +
                         x + ", " + b + ", " + b + ") -> (" + x + ", " + m +
                         ", " + m + ")\n return %0#0, %0#1, %0#2 : " + x +
                         ", " + m + ", " + m + "\n"));
  measure("layer norm gradient 2048x768",
          kernelText("row",
                     "%g: " + x + ", %x: " + x + ", %m: " + m + ", %r: " + m +
                         ", %s: " + b,
                     x,
                     "%0 = ckopt.layer_norm_grad %g, %x, %m, %r scale %s "
                     "{axis = 1 : i64} : (" +
                         x + ", " + x + ", " + m + ", " + m + ", " + b +
                         ") -> " + x + "\n return %0 : " + x + "\n"));
  std::string a = "tensor<2x12x1024x1024xf32>";
  measure("softmax 24x1024x1024",
          kernelText("row", "%x: " + a, a,
                     "%0 = ckopt.softmax %x {axis = 3 : i64} : (" + a +
                         ") -> " + a + "\n return %0 : " + a + "\n"));
  measure("softmax gradient 24x1024x1024",
          kernelText("row", "%g: " + a + ", %y: " + a, a,
                     "%0 = ckopt.softmax_grad %g, %y {axis = 3 : i64} : (" + a +
                         ", " + a + ") -> " + a + "\n return %0 : " + a +
                         "\n"));
  std::string l = "tensor<1024x50257xf32>", i = "tensor<1024xi64>",
              y = "tensor<1024xf32>";
  measure("cross entropy 1024x50257",
          kernelText("row", "%x: " + l + ", %t: " + i, y + ", " + y,
                     "%0:2 = ckopt.cross_entropy %x, %t {axis = 1 : i64} : (" +
                         l + ", " + i + ") -> (" + y + ", " + y +
                         ")\n return %0#0, %0#1 : " + y + ", " + y + "\n"));
  measure("cross entropy gradient 1024x50257",
          kernelText("row",
                     "%g: " + y + ", %x: " + l + ", %t: " + i + ", %l: " + y, l,
                     "%0 = ckopt.cross_entropy_grad %g, %x, %t, %l {axis = 1 : "
                     "i64} : (" +
                         y + ", " + l + ", " + i + ", " + y + ") -> " + l +
                         "\n return %0 : " + l + "\n"));
}

TEST(DISABLED_KernelBandwidth, Movement) {
  std::string x = "tensor<2x1024x12x64xf32>", y = "tensor<2x12x1024x64xf32>";
  measure("split heads 2x1024x12x64",
          kernelText("elementwise", "%x: " + x, y,
                     "%0 = ckopt.transpose %x {permutation = array<i64: 0, 2, "
                     "1, 3>} : (" +
                         x + ") -> " + y + "\n return %0 : " + y + "\n"));
  std::string q = "tensor<1024x1024xf32>";
  measure("transpose 1024x1024",
          kernelText("elementwise", "%x: " + q, q,
                     "%0 = ckopt.transpose %x {permutation = array<i64: 1, "
                     "0>} : (" +
                         q + ") -> " + q + "\n return %0 : " + q + "\n"));
  std::string nchw = "tensor<8x64x56x56xf32>",
              nhwc = "tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>";
  measure("NCHW to NHWC 8x64x56x56",
          kernelText("elementwise", "%x: " + nchw, nhwc,
                     "%0 = ckopt.relayout %x : (" + nchw + ") -> " + nhwc +
                         "\n return %0 : " + nhwc + "\n"));
  measure("NHWC to NCHW 8x64x56x56",
          kernelText("elementwise", "%x: " + nhwc, nchw,
                     "%0 = ckopt.relayout %x : (" + nhwc + ") -> " + nchw +
                         "\n return %0 : " + nchw + "\n"));
  std::string in = "tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>>",
              index = "tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>";
  std::string window =
      "{kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_low = "
      "array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: "
      "1, 1>}";
  measure("max pool 3x3/2 8x64x112x112",
          kernelText("elementwise", "%x: " + in, nhwc + ", " + index,
                     "%0:2 = ckopt.max_pool %x " + window + " : (" + in +
                         ") -> (" + nhwc + ", " + index +
                         ")\n return %0#0, %0#1 : " + nhwc + ", " + index +
                         "\n"));
  measure("max pool gradient",
          kernelText("elementwise", "%g: " + nhwc + ", %i: " + index, in,
                     "%0 = ckopt.max_pool_grad %g, %i " + window + " : (" +
                         nhwc + ", " + index + ") -> " + in +
                         "\n return %0 : " + in + "\n"));
  std::string e = "tensor<50257x768xf32>", rows = "tensor<2048xi64>",
              u = "tensor<2048x768xf32>";
  measure("embedding gradient",
          kernelText("structured", "%i: " + rows + ", %u: " + u, e,
                     "%z = ckopt.constant dense<0.0> : " + e +
                         "\n%0 = ckopt.scatter_add %z, %i, %u {axis = 0 : "
                         "i64} : (" +
                         e + ", " + rows + ", " + u + ") -> " + e +
                         "\n return %0 : " + e + "\n"));
}
