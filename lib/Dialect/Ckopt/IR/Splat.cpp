//===- Splat.cpp - constants that hold one number -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

std::optional<double> ckopt::splatNumber(Value value) {
  DenseElementsAttr elements;
  if (!value || !matchPattern(value, m_Constant(&elements)) ||
      !elements.isSplat())
    return std::nullopt;
  if (isa<FloatType>(elements.getElementType())) {
    APFloat number = elements.getSplatValue<APFloat>();
    bool lossy;
    number.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lossy);
    return number.convertToDouble();
  }
  auto integer = dyn_cast<IntegerType>(elements.getElementType());
  if (!integer)
    return std::nullopt;
  APInt number = elements.getSplatValue<APInt>();
  return integer.getWidth() == 1 || integer.isUnsigned()
             ? double(number.getZExtValue())
             : double(number.getSExtValue());
}
