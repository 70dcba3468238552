//===- MatMulHandlers.cpp - matrix products -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// As in numpy.matmul, a vector counts as a row at the left and as a column at
/// the right.
static LogicalResult matmul(NodeImporter &n) {
  Value x = n.in(0), y = n.in(1);
  if (!x || !y)
    return failure();
  bool rowVector = n.rank(x) == 1, columnVector = n.rank(y) == 1;
  if (n.rank(x) == 0 || n.rank(y) == 0) {
    n.error() << "needs operands of rank 1 or more";
    return failure();
  }
  if (rowVector)
    x = n.reshape(x, {1, n.shape(x)[0]});
  if (columnVector)
    y = n.reshape(y, {n.shape(y)[0], 1});
  Value operands[] = {x, y};
  if (BatchScaling *scaling = n.graph.getScaling())
    if (!x || !y || !scaling->align(n, operands, /*skip=*/2))
      return failure();
  Value z = n.matmul(operands[0], operands[1]);
  if (z && (rowVector || columnVector)) {
    Shape shape(n.shape(z));
    if (columnVector)
      shape.pop_back();
    if (rowVector)
      shape.erase(shape.end() - (columnVector ? 1 : 2));
    z = n.reshape(z, shape);
  }
  n.set(0, z);
  return success();
}

/// Computes alpha * A' * B' + beta * C.
static LogicalResult gemm(NodeImporter &n) {
  Value a = n.in(0), c = n.optional(2);
  double alpha = n.attrFloat("alpha", 1), beta = n.attrFloat("beta", 1);
  Value y = n.matmul(a, n.in(1), n.attrInt("transA", 0) != 0,
                     n.attrInt("transB", 0) != 0);
  if (y && n.rank(y) != 2) {
    n.error() << "needs matrices";
    return failure();
  }
  if (alpha != 1)
    y = n.mul(y, n.scalar(alpha, y));
  if (c && beta != 0) {
    if (beta != 1)
      c = n.mul(c, n.scalar(beta, c));
    Value sum = n.add(y, c);
    if (sum && y && n.shape(sum) != n.shape(y)) {
      n.error() << "operand C of type " << c.getType()
                << " does not broadcast to " << y.getType();
      return failure();
    }
    y = sum;
  }
  n.set(0, y);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::matmulHandlers() {
  static const HandlerEntry entries[] = {
      {"Gemm", 1, gemm},
      {"MatMul", 1, matmul},
  };
  return entries;
}
