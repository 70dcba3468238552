//===- ConstantHandlers.cpp - constants and what depends on shapes alone --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

static LogicalResult constant(NodeImporter &n) {
  StringRef name = n.node.outputs.empty() ? StringRef() : n.node.outputs[0];
  auto put = [&](const HostTensor &value) {
    n.set(0, n.graph.constant(n.loc, value, name));
    return success();
  };
  if (const auto *attribute = n.find("value"); attribute && attribute->tensor)
    return put(*attribute->tensor);
  if (n.hasAttr("value_float"))
    return put(HostTensor::scalar<float>(float(n.attrFloat("value_float", 0))));
  if (n.hasAttr("value_int"))
    return put(HostTensor::scalar<int64_t>(n.attrInt("value_int", 0)));
  if (n.hasAttr("value_ints")) {
    Shape ints = n.attrInts("value_ints");
    return put(HostTensor::of<int64_t>({int64_t(ints.size())}, ints));
  }
  if (n.hasAttr("value_floats")) {
    std::vector<double> wide = n.attrFloats("value_floats");
    std::vector<float> floats(wide.begin(), wide.end());
    return put(HostTensor::of<float>({int64_t(floats.size())}, floats));
  }
  n.unsupported() << "a constant of "
                  << (n.hasAttr("sparse_value") ? "sparse_tensor" : "string")
                  << " type; ckopt has dense tensors of numbers only";
  return failure();
}

/// Reads a shape from an operand; sizes must be possible for a tensor.
static std::optional<Shape> shapeOperand(NodeImporter &n, size_t i) {
  auto shape = n.constInts(i);
  if (!shape)
    return std::nullopt;
  auto count = checkedNumElements(*shape, 8);
  if (!count) {
    n.error() << "wants a tensor of shape " << shapeString(*shape) << ": "
              << llvm::toString(count.takeError());
    return std::nullopt;
  }
  return shape;
}

static LogicalResult constantOfShape(NodeImporter &n) {
  auto shape = shapeOperand(n, 0);
  if (!shape)
    return failure();
  const auto *attribute = n.find("value");
  HostTensor value = HostTensor::scalar<float>(0);
  if (attribute && attribute->tensor)
    value = *attribute->tensor;
  if (value.numElements() != 1) {
    n.error() << "attribute 'value' must hold one element";
    return failure();
  }
  Value scalar = n.graph.constant(n.loc, value.reshaped({}), "");
  n.set(0, n.expand(scalar, *shape));
  return success();
}

static LogicalResult shapeOf(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  int64_t rank = n.rank(x);
  auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  int64_t start = bound(n.attrInt("start", 0));
  int64_t end = bound(n.attrInt("end", rank));
  n.set(0, n.intConstant(
               n.shape(x).slice(start, std::max<int64_t>(end - start, 0))));
  return success();
}

static LogicalResult sizeOf(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  n.set(0,
        n.scalarOfType(double(n.type(x).getNumElements()), n.b.getI64Type()));
  return success();
}

static LogicalResult range(NodeImporter &n) {
  auto start = n.constScalar(0), limit = n.constScalar(1);
  auto delta = n.constScalar(2);
  if (!start || !limit || !delta)
    return failure();
  double count = std::ceil((*limit - *start) / *delta);
  if (!(*delta != 0) || !(count < 1e9)) {
    n.error() << "counts from " << *start << " to " << *limit << " by "
              << *delta;
    return failure();
  }
  int64_t size = std::max<int64_t>(int64_t(count), 0);
  n.set(0, n.iota({size}, n.element(n.in(0)), 0, *start, *delta));
  return success();
}

static LogicalResult eyeLike(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  if (n.rank(x) != 2) {
    n.error() << "needs a matrix";
    return failure();
  }
  Type element = n.hasAttr("dtype") ? n.attrType("dtype") : n.element(x);
  if (!element)
    return failure();
  Type index = n.b.getI64Type();
  Value row = n.iota({n.shape(x)[0], 1}, index, 0, double(n.attrInt("k", 0)));
  Value column = n.iota({1, n.shape(x)[1]}, index, 1);
  n.set(0, n.cast(n.compare(ComparePredicate::EQ, row, column), element));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::constantHandlers() {
  static const HandlerEntry entries[] = {
      {"Constant", 1, constant}, {"ConstantOfShape", 9, constantOfShape},
      {"EyeLike", 9, eyeLike},   {"Range", 11, range},
      {"Shape", 1, shapeOf},     {"Size", 1, sizeOf},
  };
  return entries;
}
