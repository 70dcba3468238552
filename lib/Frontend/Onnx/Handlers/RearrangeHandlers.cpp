//===- RearrangeHandlers.cpp - blocks to channels and back ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// DepthToSpace and its relatives are transposes between reshapes. Col2Im is
// the gradient of a convolution whose weight picks one point of the window for
// each channel. MaxUnpool is a scatter.
//
//===----------------------------------------------------------------------===//
#include "Window.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/DenseSet.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Returns the block size of a node on [N, C, H, W]; nothing after an error.
static std::optional<int64_t> blockSize(NodeImporter &n, Value x) {
  if (!x)
    return std::nullopt;
  int64_t block = n.attrInt("blocksize", 0);
  if (n.rank(x) != 4 || block < 1 || block > 1 << 20) {
    n.error() << "needs an input of rank 4 and a positive blocksize, got "
              << x.getType() << " and " << block;
    return std::nullopt;
  }
  return block;
}

static LogicalResult depthToSpace(NodeImporter &n) {
  Value x = n.in(0);
  auto block = blockSize(n, x);
  if (!block)
    return failure();
  int64_t b = *block;
  ArrayRef<int64_t> s = n.shape(x);
  if (s[1] % (b * b)) {
    n.error() << "the channels of " << x.getType()
              << " are no multiple of the block's " << b * b << " points";
    return failure();
  }
  int64_t depth = s[1] / (b * b);
  std::string mode = n.attrString("mode", "DCR");
  Value y;
  if (mode == "DCR")
    y = n.transpose(n.reshape(x, {s[0], b, b, depth, s[2], s[3]}),
                    {0, 3, 4, 1, 5, 2});
  else if (mode == "CRD")
    y = n.transpose(n.reshape(x, {s[0], depth, b, b, s[2], s[3]}),
                    {0, 1, 4, 2, 5, 3});
  else
    n.error() << "mode must be DCR or CRD, not '" << mode << "'";
  n.set(0, n.reshape(y, {s[0], depth, s[2] * b, s[3] * b}));
  return success();
}

static LogicalResult spaceToDepth(NodeImporter &n) {
  Value x = n.in(0);
  auto block = blockSize(n, x);
  if (!block)
    return failure();
  int64_t b = *block;
  ArrayRef<int64_t> s = n.shape(x);
  if (s[2] % b || s[3] % b) {
    n.error() << "the blocksize " << b << " does not divide " << x.getType();
    return failure();
  }
  Value y = n.transpose(n.reshape(x, {s[0], s[1], s[2] / b, b, s[3] / b, b}),
                        {0, 3, 5, 1, 2, 4});
  n.set(0, n.reshape(y, {s[0], s[1] * b * b, s[2] / b, s[3] / b}));
  return success();
}

//===----------------------------------------------------------------------===//
// Col2Im
//===----------------------------------------------------------------------===//

static LogicalResult col2im(NodeImporter &n) {
  Value x = n.in(0);
  auto image = n.constInts(1), block = n.constInts(2);
  if (!x || !image || !block)
    return failure();
  size_t spatial = image->size();
  if (n.rank(x) != 3 || spatial < 1 || block->size() != spatial) {
    n.error() << "needs an input of rank 3, and a block as long as the image's "
                 "shape";
    return failure();
  }
  if (spatial > 3 || !n.isFloat(x)) {
    n.unsupported() << "an image of " << int64_t(spatial)
                    << " dimensions with elements " << n.element(x)
                    << "; ckopt does floats in up to 3";
    return failure();
  }
  Window w;
  if (!readWindow(n, spatial, *block, w))
    return failure();
  int64_t points = 1, windows = 1;
  Shape columns;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t span = (*image)[d] + w.low[d] + w.high[d] - w.extent(d);
    columns.push_back(span < 0 ? 0 : span / w.strides[d] + 1);
    points *= std::min<int64_t>(w.kernel[d], 1 << 10);
    windows *= columns[d];
    if (w.low[d] < 0 || w.high[d] < 0 || (*image)[d] < 1) {
      n.unsupported() << "negative pads, or an empty image";
      return failure();
    }
  }
  ArrayRef<int64_t> s = n.shape(x);
  if (points > 1 << 10 || s[1] % points || s[2] != windows) {
    n.error() << "columns " << x.getType() << " do not fit blocks of " << points
              << " points at " << windows << " places";
    return failure();
  }
  int64_t channels = s[1] / points;
  std::vector<double> identity(size_t(points * points), 0);
  for (int64_t i = 0; i < points; ++i)
    identity[size_t(i * points + i)] = 1;
  Shape weight{points, 1}, grad{s[0] * channels, points};
  weight.append(w.kernel);
  grad.append(columns);
  Shape small{s[0] * channels, 1}, shape{s[0], channels};
  small.append(*image);
  shape.append(*image);
  Value y = n.make<ConvInputGradOp>(
      {n.reshape(x, grad), n.constant(identity, weight, n.element(x))},
      {n.named("strides", w.strides), n.named("pads_low", w.low),
       n.named("pads_high", w.high), n.named("dilations", w.dilations),
       n.named("groups", int64_t(1))},
      {n.tensor(small, n.element(x))});
  n.set(0, n.reshape(y, shape));
  return success();
}

//===----------------------------------------------------------------------===//
// MaxUnpool
//===----------------------------------------------------------------------===//

/// Returns the shape of the tensor that a MaxPool's indices point into, or
/// nothing where `places` are no such indices.
static std::optional<Shape> pooledShape(Value places) {
  SmallVector<Value> open{places};
  llvm::DenseSet<Value> seen;
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (!getElementTypeOrSelf(value).isInteger() || !seen.insert(value).second)
      continue;
    Operation *op = value.getDefiningOp();
    if (auto pool = dyn_cast_or_null<MaxPoolOp>(op))
      return Shape(cast<ShapedType>(pool->getOperand(0).getType()).getShape());
    if (op)
      open.append(op->operand_begin(), op->operand_end());
  }
  return std::nullopt;
}

/// Finds the shape that positions count in, and the one of the result, which
/// has zeros at its end where it is larger. Positions of a MaxPool count in
/// what it pooled; others in the shape that the windows imply, as in ONNX's
/// reference.
static bool unpooledShapes(NodeImporter &n, Shape implied, Shape &counted,
                           Shape &result) {
  counted = result = implied;
  if (n.has(2)) {
    auto wanted = n.constInts(2);
    if (!wanted)
      return false;
    result.assign(wanted->begin(), wanted->end());
  }
  auto pooled = pooledShape(n.in(1));
  if (pooled && *pooled != implied) {
    if (*pooled != result) {
      n.error() << "indices point into the " << shapeString(*pooled)
                << " entries that MaxPool read, not into a result of "
                << shapeString(result) << "; give output_shape what was pooled";
      return false;
    }
    counted = *pooled;
  }
  if (counted.size() == result.size() &&
      llvm::all_of(llvm::zip(counted, result), [](auto sizes) {
        return std::get<0>(sizes) <= std::get<1>(sizes);
      }))
    return true;
  n.error() << "output_shape " << shapeString(result)
            << " is smaller than the windows' " << shapeString(counted);
  return false;
}

/// Scatters each value to its position in a tensor of zeros.
static LogicalResult maxUnpool(NodeImporter &n) {
  Value x = n.in(0), places = n.in(1);
  if (!x || !places)
    return failure();
  size_t spatial = n.rank(x) < 3 ? 0 : size_t(n.rank(x) - 2);
  Window w;
  if (!spatial || n.shape(places) != n.shape(x)) {
    n.error() << "needs an input of rank 3 or more and as many indices, got "
              << x.getType() << " and " << places.getType();
    return failure();
  }
  if (!readWindow(n, spatial, n.attrInts("kernel_shape"), w))
    return failure();
  Shape implied(n.shape(x).take_front(2)), shape, result;
  for (size_t d = 0; d < spatial; ++d)
    implied.push_back((n.shape(x)[d + 2] - 1) * w.strides[d] - w.low[d] -
                      w.high[d] + w.kernel[d]);
  if (!unpooledShapes(n, implied, shape, result))
    return failure();
  int64_t count = 1;
  Shape none(spatial + 2, 0), high;
  for (auto [d, size] : llvm::enumerate(shape)) {
    if (size < 1 || llvm::MulOverflow(count, size, count)) {
      n.error() << "the result would have " << size
                << " entries along dimension " << int64_t(d);
      return failure();
    }
    high.push_back(result[d] - size);
  }
  int64_t each = n.type(x).getNumElements();
  Value y = n.make<ScatterElementsOp>(
      {n.splat(0, n.tensor({count}, n.element(x))),
       n.reshape(n.cast(places, n.b.getI64Type()), {each}),
       n.reshape(x, {each})},
      {n.named("kind",
               ScatterKindAttr::get(n.b.getContext(), ScatterKind::Set)),
       n.named("axis", int64_t(0))});
  n.set(0, n.make<PadOp>({n.reshape(y, shape)},
                         {n.named("low", none), n.named("high", high),
                          n.named("interior", none)}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::rearrangeHandlers() {
  static const HandlerEntry entries[] = {
      {"Col2Im", 18, col2im},
      {"DepthToSpace", 1, depthToSpace},
      {"MaxUnpool", 9, maxUnpool},
      {"SpaceToDepth", 1, spaceToDepth},
  };
  return entries;
}
