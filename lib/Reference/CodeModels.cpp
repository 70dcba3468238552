//===- CodeModels.cpp - meaning of states in codes ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Models.h"
#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::reference;

/// The numbers of the dynamic code book in their order, made as bitsandbytes
/// and torchao make them (create_dynamic_map).
static std::vector<double> dynamicNumbers(bool hasSign) {
  constexpr int kExponentBits = 7;
  std::vector<double> numbers{0, 1};
  for (int i = 0; i < kExponentBits; ++i) {
    int items = (1 << (hasSign ? i : i + 1)) + 1;
    double scale = std::pow(10.0, i - (kExponentBits - 1));
    for (int at = 0; at + 1 < items; ++at) {
      auto boundary = [&](int n) { return 0.1 + 0.9 * n / (items - 1); };
      double mean = scale * (boundary(at) + boundary(at + 1)) / 2;
      numbers.push_back(mean);
      if (hasSign)
        numbers.push_back(-mean);
    }
  }
  llvm::sort(numbers);
  return numbers;
}

static LogicalResult interpretDecode(DecodeDynamicOp op, Operands in,
                                     Results out, const Environment &) {
  std::vector<double> numbers = dynamicNumbers(op.getHasSign());
  for (int64_t i = 0; i < out[0].size(); ++i)
    out[0].real(i) = numbers[size_t(in[0]->integer(i)) % numbers.size()];
  return success();
}

static LogicalResult interpretAssignCodes(AssignCodesOp op, Operands in,
                                          Results out, const Environment &) {
  std::vector<double> numbers = dynamicNumbers(op.getHasSign());
  bool isMade = !op.getMade() || in[3]->integer(0);
  int64_t length = in[0]->getShape()[1];
  for (int64_t row = 0; row < out[1].size(); ++row) {
    double scale = float(1e-12);
    for (int64_t i = row * length; i < (row + 1) * length; ++i) {
      double size = std::abs(in[2]->real(i));
      scale = std::isnan(size) || size > scale ? size : scale;
    }
    for (int64_t i = row * length; i < (row + 1) * length; ++i) {
      double x = in[2]->real(i) / scale;
      auto first = numbers.begin() + (!op.getHasSign() && x > 0);
      auto nearest =
          std::min_element(first, numbers.end(), [&](double a, double b) {
            return std::abs(x - a) < std::abs(x - b);
          });
      if (std::isnan(x))
        nearest = numbers.end() - 1;
      out[0].integer(i) =
          isMade ? nearest - numbers.begin() : in[0]->integer(i);
    }
    out[1].real(row) = isMade ? scale : in[1]->real(row);
  }
  return success();
}

void reference::attachCodeModels(MLIRContext *context) {
  attachModel<DecodeDynamicOp, interpretDecode>(context);
  attachModel<AssignCodesOp, interpretAssignCodes, false>(context);
}
