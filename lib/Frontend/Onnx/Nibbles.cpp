//===- Nibbles.cpp - integers of four bits --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of int4 and uint4 stay as they are stored, two numbers in a byte, and
// ops take them apart. Where the last extent is even, both numbers of a byte
// become a dimension of their own, so that a kernel computes all of it element
// by element. Others are taken apart as one list, in memory. O(1) ops.
//
//===----------------------------------------------------------------------===//
#include "GraphImporter.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;

Value onnx_frontend::unpackPairs(TensorBuilder &b, Value bytes,
                                 ArrayRef<int64_t> shape, bool isSigned) {
  SmallVector<int64_t> pairs(shape);
  pairs.back() /= 2;
  pairs.push_back(1);
  Type word = b.builder.getI32Type();
  Value words = b.cast(b.reshape(bytes, pairs), word);
  Value shifts = b.make<ConstantOp>(DenseElementsAttr::get(
      RankedTensorType::get({2}, word), ArrayRef<int32_t>{0, 4}));
  Value low = b.make<ShiftRightOp>(words, shifts);
  Value nibbles = b.make<AndOp>(low, b.number(low, 15));
  if (!isSigned)
    return nibbles;
  Value sign = b.number(nibbles, 8);
  return b.sub(b.make<XorOp>(nibbles, sign), sign);
}

Value onnx_frontend::unpackNibbles(TensorBuilder &b, Value bytes,
                                   const Nibbles &nibbles) {
  ArrayRef<int64_t> shape = nibbles.shape;
  Type element = b.builder.getIntegerType(8);
  if (!nibbles.isSigned)
    element = b.builder.getIntegerType(8, /*isSigned=*/false);
  if (!shape.empty() && shape.back() % 2 == 0)
    return b.reshape(
        b.cast(unpackPairs(b, bytes, shape, nibbles.isSigned), element), shape);
  int64_t count = 1, all = 2 * tensorType(bytes).getNumElements();
  for (int64_t size : shape)
    count *= size;
  Value list = b.cast(unpackPairs(b, bytes, {all}, nibbles.isSigned), element);
  list = b.reshape(list, {all});
  if (count != all)
    list = b.make<SliceOp>(list, b.ints({0}), b.ints({count}), b.ints({1}));
  return b.reshape(list, shape);
}
