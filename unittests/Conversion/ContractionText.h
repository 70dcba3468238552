//===- ContractionText.h - products, convolutions as text -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_CONVERSION_CONTRACTIONTEXT_H
#define CKOPT_UNITTESTS_CONVERSION_CONTRACTIONTEXT_H

#include "KernelJit.h"
#include "llvm/ADT/ArrayRef.h"

namespace ckopt::test {

inline KernelOptions within(double absolute, double relative = 2e-6) {
  KernelOptions options;
  options.absolute = absolute;
  options.relative = relative;
  return options;
}

inline std::string library(const std::string &args, const std::string &result,
                           const std::string &op) {
  return kernelText("library", args, result,
                    "%0 = ckopt." + op + " -> " + result +
                        "\n return %0 : " + result + "\n");
}

inline std::string tensor(llvm::ArrayRef<int64_t> shape,
                          const std::string &element,
                          const std::string &layout = "") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + (layout.empty() ? "" : ", " + layout) + ">";
}

inline std::string matmul(const std::string &a, const std::string &b,
                          const std::string &c, const std::string &attrs = "") {
  return library("%a: " + a + ", %b: " + b, c,
                 "matmul %a, %b " + attrs + " : (" + a + ", " + b + ")");
}

/// A convolution with batch, channels and spatial dimensions.
struct Conv {
  std::vector<int64_t> in, weight, out; ///< [N, C, ...], [O, C / groups, ...]
  std::vector<int64_t> strides, low, high, dilations;
  int64_t groups = 1;
  bool channelsLast = false;
};

/// Kernels of the forward op, the input's and the weight's gradient.
inline std::vector<std::string> convTexts(const Conv &c,
                                          const std::string &type) {
  auto list = [](const std::vector<int64_t> &values) {
    std::string text = "array<i64: ";
    for (size_t i = 0; i < values.size(); ++i)
      text += (i ? ", " : "") + std::to_string(values[i]);
    return text + ">";
  };
  std::string layout;
  if (c.channelsLast)
    layout = c.in.size() == 4 ? "#ckopt.layout<[0, 2, 3, 1]>"
                              : "#ckopt.layout<[0, 2, 1]>";
  std::string x = tensor(c.in, type, layout), w = tensor(c.weight, type),
              y = tensor(c.out, type, layout);
  std::string attrs =
      " {strides = " + list(c.strides) + ", pads_low = " + list(c.low) +
      ", pads_high = " + list(c.high) + ", dilations = " + list(c.dilations) +
      ", groups = " + std::to_string(c.groups) + " : i64}";
  auto generic = [&](const std::string &name, const std::string &one,
                     const std::string &two, const std::string &result) {
    return kernelText("library", "%a: " + one + ", %b: " + two, result,
                      "%0 = \"ckopt." + name + "\"(%a, %b)" + attrs + " : (" +
                          one + ", " + two + ") -> " + result +
                          "\n return %0 : " + result + "\n");
  };
  return {generic("conv", x, w, y), generic("conv_input_grad", y, w, x),
          generic("conv_weight_grad", y, x, w)};
}

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_CONVERSION_CONTRACTIONTEXT_H
