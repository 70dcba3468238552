//===- QuantizeHandlers.cpp - quantization --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A QuantizeLinear that a DequantizeLinear reads is fake quantization: the
// rounded numbers stay floats between them. Gradients pass through the rounding
// unchanged (straight-through), but only where the rounded number lies within
// the integer's range, as in PyTorch. Scales and zero points are settings, not
// trained. Arithmetic on integers is done in f64, where sums of products of
// 8-bit numbers are exact.
//
//===----------------------------------------------------------------------===//
#include "Window.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Returns the smallest and the largest number of an integer type.
static std::pair<double, double> rangeOf(Type type) {
  auto integer = cast<IntegerType>(type);
  double bits = integer.getWidth();
  if (integer.isUnsigned())
    return {0, std::exp2(bits) - 1};
  return {-std::exp2(bits - 1), std::exp2(bits - 1) - 1};
}

static bool isQuantized(Type type) {
  auto integer = dyn_cast_or_null<IntegerType>(type);
  return integer && integer.getWidth() >= 8 && integer.getWidth() <= 32;
}

/// Reshapes a scale or zero point to broadcast to `x`: it has one number, one
/// for each entry along the axis, or one for each block of entries along it.
static Value spread(NodeImporter &n, Value scale, Value x) {
  if (!scale || !x)
    return {};
  int64_t block = n.attrInt("block_size", 0), rank = n.rank(x);
  if (n.rank(scale) <= 1 && n.type(scale).getNumElements() == 1)
    return n.reshape(scale, {});
  auto axis = n.normalAxis(n.attrInt("axis", 1), rank);
  if (!axis)
    return {};
  int64_t size = n.shape(x)[*axis];
  if (n.rank(scale) == 1 && n.shape(scale)[0] == size) {
    Shape along(size_t(rank), 1);
    along[size_t(*axis)] = size;
    return n.reshape(scale, along);
  }
  Shape blocks(n.shape(x));
  if (block > 0)
    blocks[size_t(*axis)] = (size + block - 1) / block;
  if (block < 1 || n.shape(scale) != ArrayRef<int64_t>(blocks)) {
    n.error() << "scale and zero point of type " << scale.getType()
              << " do not fit " << x.getType() << " along axis " << *axis
              << " with block_size " << block;
    return {};
  }
  Shape inserted(blocks);
  inserted.insert(inserted.begin() + *axis + 1, 1);
  Shape wide(inserted);
  wide[size_t(*axis) + 1] = block;
  blocks[size_t(*axis)] *= block;
  Value all = n.reshape(n.expand(n.reshape(scale, inserted), wide), blocks);
  return n.sliceAxis(all, *axis, 0, size);
}

/// Rounds `x`, halves to even, and keeps it a float.
static Value roundStraightThrough(NodeImporter &n, Value x) {
  return n.make<RoundOp>({x}, {n.flag("ckopt.straight_through")});
}

/// Computes round(x / scale) + zero point within the range of `type`, as f32 or
/// f64.
static Value quantized(NodeImporter &n, Value ratio, Value zero, Type type) {
  if (!ratio)
    return {};
  if (!n.element(ratio).isF64())
    ratio = n.cast(ratio, n.b.getF32Type());
  Value y = roundStraightThrough(n, ratio);
  if (zero && y)
    y = n.add(y, n.cast(zero, n.element(y)));
  auto [least, largest] = rangeOf(type);
  return n.clip(y, least, largest);
}

static LogicalResult quantizeLinear(NodeImporter &n) {
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!x || !scale)
    return failure();
  Type type = n.b.getIntegerType(8, /*isSigned=*/false);
  if (n.attrInt("output_dtype", 0))
    type = n.attrType("output_dtype");
  if (zero)
    type = n.element(zero);
  if (!isQuantized(type)) {
    n.unsupported() << "quantizes to something other than integers of 8 to 32 "
                       "bits";
    return failure();
  }
  Type precision = n.element(scale);
  if (n.attrInt("precision", 0))
    precision = n.attrType("precision");
  if (!isa_and_nonnull<FloatType>(precision)) {
    n.error() << "the scale must be a float";
    return failure();
  }
  scale = spread(n, scale, x);
  zero = zero ? spread(n, zero, x) : zero;
  if (!scale || n.hasFailed())
    return failure();
  Value ratio = n.div(n.cast(x, precision), n.cast(scale, precision));
  n.set(0, n.cast(quantized(n, ratio, zero, type), type));
  return success();
}

/// Returns the floats that QuantizeLinear rounded to make `x`, or null.
static Value roundedFloats(Value x) {
  auto cast = x.getDefiningOp<CastOp>();
  if (!cast || !isQuantized(NodeImporter::element(x)))
    return {};
  auto clip = cast.getInput().getDefiningOp<ClipOp>();
  auto [least, largest] = rangeOf(NodeImporter::element(x));
  if (!clip || !NodeImporter::isFloat(clip) ||
      clip.getMin().convertToDouble() != least ||
      clip.getMax().convertToDouble() != largest)
    return {};
  Value sum = clip.getInput();
  if (auto add = sum.getDefiningOp<AddOp>())
    sum = add.getLhs();
  auto round = sum.getDefiningOp<RoundOp>();
  return round && round->hasAttr("ckopt.straight_through") ? clip.getOutput()
                                                           : Value();
}

namespace {
/// A tensor of integers as it is dequantized: in a shape of its own, where
/// blocks along an axis, and both nibbles of a byte, are dimensions, so that
/// scales broadcast and all ops are elementwise. The result is a view.
struct StoredForm {
  Shape whole;      ///< the tensor's own shape
  int64_t axis = 0; ///< of scales, if they are several
  int64_t block = 0;
  bool pairs = false;

  /// Returns the shape with blocks apart.
  Shape blocks() const {
    Shape shape(whole);
    if (!block)
      return shape;
    shape[size_t(axis)] /= block;
    shape.insert(shape.begin() + axis + 1, block);
    return shape;
  }
  /// Brings scales or zero points into the form.
  Value spread(NodeImporter &n, Value scale) const {
    if (!scale || n.type(scale).getNumElements() == 1)
      return n.reshape(scale, {});
    Shape shape(n.shape(scale));
    if (block) {
      shape.insert(shape.begin() + axis + 1, 1);
    } else {
      shape.assign(whole.size(), 1);
      shape[size_t(axis)] = whole[size_t(axis)];
    }
    if (pairs) {
      int64_t pair = shape.back() > 1 ? 2 : 1;
      shape.back() /= pair;
      shape.push_back(pair);
    }
    return n.reshape(scale, shape);
  }
};
} // namespace

/// Computes (numbers - zero) * scale.
static Value dequantized(NodeImporter &n, Value numbers, Value zero,
                         Value scale, Type type) {
  Type work = type.isF64() ? Type(n.b.getF64Type()) : n.b.getF32Type();
  numbers = n.cast(numbers, work);
  if (zero)
    numbers = n.sub(numbers, n.cast(zero, work));
  return n.cast(n.mul(numbers, n.cast(scale, work)), type);
}

/// Returns the form in which initializers are dequantized; nothing where
/// another way has to (blocks that do not divide the axis, odd rows).
static std::optional<StoredForm> storedForm(NodeImporter &n, Value x,
                                            Value scale) {
  StoredForm form;
  form.whole = Shape(n.shape(x));
  form.pairs = n.graph.nibblesOf(n.node.inputs[0]);
  int64_t block = n.attrInt("block_size", 0), rank = n.rank(x);
  bool single = n.rank(scale) <= 1 && n.type(scale).getNumElements() == 1;
  if (!single) {
    auto axis = n.normalAxis(n.attrInt("axis", 1), rank);
    if (!axis)
      return std::nullopt;
    form.axis = *axis;
    int64_t size = form.whole[size_t(*axis)];
    if (n.rank(scale) != 1 || n.shape(scale)[0] != size) {
      if (block < 1 || size % block)
        return std::nullopt;
      Shape fits(form.whole);
      fits[size_t(*axis)] = size / block;
      if (n.shape(scale) != ArrayRef<int64_t>(fits))
        return std::nullopt;
      form.block = block;
    }
  }
  if (form.pairs && (!rank || form.blocks().back() % 2))
    return std::nullopt;
  return form;
}

/// Dequantizes an initializer.
static Value dequantizeStored(NodeImporter &n, Value x, Value scale, Value zero,
                              const StoredForm &form, Type type) {
  Value numbers;
  if (form.pairs) {
    TensorBuilder b(n.b, n.loc);
    const std::string &name = n.node.inputs[0];
    numbers = unpackPairs(b, n.graph.bytesOf(name), form.blocks(),
                          n.graph.nibblesOf(name)->isSigned);
  } else {
    numbers = n.reshape(x, form.blocks());
  }
  Value wide = dequantized(n, numbers, zero ? form.spread(n, zero) : zero,
                           form.spread(n, scale), type);
  return n.reshape(wide, form.whole);
}

static LogicalResult dequantizeLinear(NodeImporter &n) {
  if (n.has(0))
    n.graph.keepStored(n.node.inputs[0]);
  Value x = n.in(0), scale = n.in(1), zero = n.optional(2);
  if (!x || !scale)
    return failure();
  if (!isQuantized(n.element(x)) || !n.isFloat(scale)) {
    n.unsupported() << "dequantizes " << x.getType() << " by a scale of type "
                    << scale.getType();
    return failure();
  }
  Type type = n.element(scale);
  if (n.attrInt("output_dtype", 0))
    type = n.attrType("output_dtype");
  if (!type)
    return failure();
  bool stored = n.graph.initializer(n.node.inputs[0]) ||
                n.graph.nibblesOf(n.node.inputs[0]);
  if (stored && n.element(x).getIntOrFloatBitWidth() < 32)
    if (auto form = storedForm(n, x, scale)) {
      n.set(0, dequantizeStored(n, x, scale, zero, *form, type));
      return success();
    }
  if (n.hasFailed())
    return failure();
  // 32-bit integers are subtracted as such; others are exact as f32.
  Value factor = spread(n, scale, x);
  Value numbers = roundedFloats(x);
  Value offset = zero ? spread(n, zero, x) : zero;
  if (!factor || n.hasFailed())
    return failure();
  if (!numbers && offset && n.element(x).getIntOrFloatBitWidth() == 32) {
    numbers = n.sub(x, offset);
    offset = {};
  }
  n.set(0, dequantized(n, numbers ? numbers : x, offset, factor, type));
  return success();
}

//===----------------------------------------------------------------------===//
// MatMulNBits
//===----------------------------------------------------------------------===//

namespace {
/// The weight of a MatMulNBits: [outputs, inputs], in blocks along inputs.
struct BlockedWeight {
  int64_t outputs, inputs, bits, block;
  int64_t blocks() const { return (inputs + block - 1) / block; }
};
} // namespace

/// Returns integers of the node's operand `i`, bytes, as [outputs, blocks,
/// size], where nibbles are pairs in a dimension more.
static Value numbersOf(NodeImporter &n, Value bytes, const BlockedWeight &w,
                       int64_t size) {
  Shape shape{w.outputs, w.blocks(), size};
  if (w.bits == 8)
    return n.reshape(bytes, shape);
  TensorBuilder b(n.b, n.loc);
  return unpackPairs(b, bytes, shape, /*isSigned=*/false);
}

/// Returns the zero points in the form of scales.
static Value zeroPoints(NodeImporter &n, Value zero, const BlockedWeight &w,
                        ArrayRef<int64_t> form) {
  if (!zero)
    return n.scalarOfType(std::exp2(double(w.bits) - 1), n.b.getF32Type());
  if (n.isFloat(zero) || w.bits == 8)
    return n.reshape(zero, form);
  // Rows of nibbles begin at whole bytes.
  TensorBuilder b(n.b, n.loc);
  int64_t row = (w.blocks() + 1) / 2 * 2;
  Value all = n.reshape(unpackPairs(b, zero, {w.outputs, row}, false),
                        {w.outputs, row});
  return n.reshape(n.sliceAxis(all, 1, 0, w.blocks()), form);
}

/// Reads the attributes, and checks the operands against them.
static std::optional<BlockedWeight> blockedWeight(NodeImporter &n) {
  BlockedWeight w{n.attrInt("N", 0), n.attrInt("K", 0), n.attrInt("bits", 4),
                  n.attrInt("block_size", 0)};
  if (n.hasFailed())
    return std::nullopt;
  if ((w.bits != 4 && w.bits != 8) || n.has(4)) {
    n.unsupported() << "needs 4 or 8 bits, and no g_idx";
    return std::nullopt;
  }
  auto isOf = [&](size_t i, int64_t bytes) {
    Value value = n.optional(i);
    return !value || n.type(value).getNumElements() ==
                         (n.isFloat(value) ? w.outputs * w.blocks() : bytes);
  };
  bool sound = w.outputs > 0 && w.inputs > 0 && w.block >= 2 &&
               w.block % 2 == 0 && w.block <= (int64_t(1) << 20) && n.in(1) &&
               n.in(2) && n.isFloat(n.in(2)) && !n.isFloat(n.in(1)) &&
               n.element(n.in(1)).isUnsignedInteger(8);
  if (sound)
    sound = isOf(1, w.outputs * w.blocks() * (w.block * w.bits / 8)) &&
            isOf(2, 0) && isOf(3, w.outputs * ((w.blocks() * w.bits + 7) / 8));
  if (!sound && !n.hasFailed())
    n.error() << "operands do not fit N " << w.outputs << ", K " << w.inputs
              << ", bits " << w.bits << ", block_size " << w.block;
  return sound ? std::optional(w) : std::nullopt;
}

static LogicalResult matmulNBits(NodeImporter &n) {
  for (size_t i : {1, 3})
    if (n.has(i))
      n.graph.keepStored(n.node.inputs[i]);
  Value x = n.in(0);
  auto w = blockedWeight(n);
  if (!x || !w)
    return failure();
  Shape form{w->outputs, w->blocks(), 1};
  if (w->bits == 4)
    form.push_back(1);
  Value wide = dequantized(n, numbersOf(n, n.in(1), *w, w->block),
                           zeroPoints(n, n.optional(3), *w, form),
                           n.reshape(n.in(2), form), n.element(x));
  wide = n.reshape(wide, {w->outputs, w->blocks() * w->block});
  if (w->blocks() * w->block != w->inputs)
    wide = n.sliceAxis(wide, 1, 0, w->inputs);
  Value y = n.matmul(x, wide, /*transposeX=*/false, /*transposeY=*/true);
  if (n.has(5))
    y = n.add(y, n.in(5));
  n.set(0, y);
  return success();
}

/// Quantizes to u8 with the scale and zero point that cover the data and 0.
static LogicalResult dynamicQuantizeLinear(NodeImporter &n) {
  Value x = n.in(0);
  if (!x)
    return failure();
  Shape all = llvm::to_vector(llvm::seq<int64_t>(0, n.rank(x)));
  Value none = n.scalar(0, x), top = n.scalar(255, x);
  Value most =
      n.broadcast<MaximumOp>({n.reduce(ReduceKind::Max, x, all, false), none});
  Value least =
      n.broadcast<MinimumOp>({n.reduce(ReduceKind::Min, x, all, false), none});
  Value span = n.sub(most, least);
  span = n.select(n.compare(ComparePredicate::EQ, span, none), n.scalar(1, x),
                  span);
  Value scale = n.div(span, top);
  Value zero =
      n.make<RoundOp>({n.clip(n.sub(none, n.div(least, scale)), 0, 255)});
  Type type = n.b.getIntegerType(8, /*isSigned=*/false);
  n.set(0, n.cast(quantized(n, n.div(x, scale), zero, type), type));
  if (n.wants(1))
    n.set(1, scale);
  if (n.wants(2))
    n.set(2, n.cast(zero, type));
  return success();
}

//===----------------------------------------------------------------------===//
// Integer arithmetic
//===----------------------------------------------------------------------===//

/// Returns `x` minus its zero point as f64. If the zero point has one entry for
/// each row (or channel), `axis` is that dimension of `x`.
static Value shifted(NodeImporter &n, Value x, Value zero, int64_t axis) {
  if (!x)
    return {};
  Value wide = n.cast(x, n.b.getF64Type());
  if (!zero)
    return wide;
  if (n.type(zero).getNumElements() == 1) {
    zero = n.reshape(zero, {});
  } else if (n.rank(zero) == 1) {
    if (axis >= n.rank(x)) {
      n.error() << "has a zero point of " << n.shape(zero)[0]
                << " entries for an operand of rank " << n.rank(x);
      return {};
    }
    Shape along(size_t(n.rank(x) - axis), 1);
    along[0] = n.shape(zero)[0];
    zero = n.reshape(zero, along);
  }
  return n.sub(wide, n.cast(zero, n.b.getF64Type()));
}

/// Returns the matrix product of f64; vectors are handled as in numpy.
static Value product(NodeImporter &n, Value x, Value y) {
  if (!x || !y)
    return {};
  bool row = n.rank(x) == 1, column = n.rank(y) == 1;
  if (row)
    x = n.reshape(x, {1, n.shape(x)[0]});
  if (column)
    y = n.reshape(y, {n.shape(y)[0], 1});
  Value z = n.matmul(x, y);
  if (!z || (!row && !column))
    return z;
  Shape shape(n.shape(z));
  if (column)
    shape.pop_back();
  if (row)
    shape.erase(shape.end() - (column ? 1 : 2));
  return n.reshape(z, shape);
}

static LogicalResult matmulInteger(NodeImporter &n) {
  Value x = n.in(0), y = n.in(1);
  if (!x || !y)
    return failure();
  Value z = product(
      n, shifted(n, x, n.optional(2), std::max<int64_t>(n.rank(x) - 2, 0)),
      shifted(n, y, n.optional(3), n.rank(y) - 1));
  n.set(0, n.cast(z, n.b.getI32Type()));
  return success();
}

static LogicalResult convInteger(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(1);
  Value y = convolve(n, shifted(n, x, n.optional(2), 1),
                     shifted(n, weight, n.optional(3), 0));
  n.set(0, n.cast(y, n.b.getI32Type()));
  return success();
}

/// Computes round(sum * scales / scale) + zero point, in the zero point's type.
/// The product of scales is rounded to f32, as ONNX rounds each step.
static Value requantize(NodeImporter &n, Value sum, Value factor, Value zero) {
  if (!sum || !factor || !zero)
    return {};
  Type wide = n.b.getF64Type();
  Value y = n.mul(sum, n.cast(factor, wide));
  y = n.make<RoundOp>({n.add(y, n.cast(zero, wide))});
  auto [least, largest] = rangeOf(n.element(zero));
  return n.cast(n.clip(y, least, largest), n.element(zero));
}

/// Returns a single scale unchanged, and several along dimension `axis` of
/// `rank`.
static Value along(NodeImporter &n, Value scale, int64_t rank, int64_t axis) {
  if (!scale || n.rank(scale) != 1)
    return scale;
  if (n.shape(scale)[0] == 1)
    return n.reshape(scale, {});
  if (axis >= rank) {
    n.error() << "has " << n.shape(scale)[0]
              << " scales or zero points for a result of rank " << rank;
    return {};
  }
  Shape shape(size_t(rank - axis), 1);
  shape[0] = n.shape(scale)[0];
  return n.reshape(scale, shape);
}

static LogicalResult qlinearMatMul(NodeImporter &n) {
  Value x = n.in(0), y = n.in(3), zero = n.in(7);
  if (!x || !y || !zero || !isQuantized(n.element(zero))) {
    if (!n.hasFailed())
      n.unsupported() << "needs integers of 8 to 32 bits";
    return failure();
  }
  int64_t row = std::max<int64_t>(n.rank(x) - 2, 0);
  Value sum = product(n, shifted(n, x, n.in(2), row),
                      shifted(n, y, n.in(5), n.rank(y) - 1));
  if (!sum)
    return failure();
  int64_t rank = n.rank(sum);
  Value factor =
      n.div(n.mul(along(n, n.in(1), rank, std::max<int64_t>(rank - 2, 0)),
                  along(n, n.in(4), rank, rank - 1)),
            along(n, n.in(6), rank, rank - 1));
  n.set(0, requantize(n, sum, factor, along(n, zero, rank, rank - 1)));
  return success();
}

static LogicalResult qlinearConv(NodeImporter &n) {
  Value x = n.in(0), weight = n.in(3), zero = n.in(7);
  if (!x || !weight || !zero || !isQuantized(n.element(zero))) {
    if (!n.hasFailed())
      n.unsupported() << "needs integers of 8 to 32 bits";
    return failure();
  }
  Value sum =
      convolve(n, shifted(n, x, n.in(2), 1), shifted(n, weight, n.in(5), 0));
  if (n.has(8) && sum)
    sum = n.addChannelBias(sum, n.cast(n.in(8), n.b.getF64Type()));
  if (!sum)
    return failure();
  Value factor = n.div(n.mul(along(n, n.in(1), n.rank(sum), 1),
                             along(n, n.in(4), n.rank(sum), 1)),
                       along(n, n.in(6), n.rank(sum), 1));
  n.set(0, requantize(n, sum, factor, along(n, zero, n.rank(sum), 1)));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::quantizeHandlers() {
  static const HandlerEntry entries[] = {
      {"ConvInteger", 10, convInteger},
      {"DequantizeLinear", 10, dequantizeLinear},
      {"DynamicQuantizeLinear", 11, dynamicQuantizeLinear},
      {"MatMulInteger", 10, matmulInteger},
      {"MatMulNBits", 1, matmulNBits, "com.microsoft"},
      {"QLinearConv", 10, qlinearConv},
      {"QLinearMatMul", 10, qlinearMatMul},
      {"QuantizeLinear", 10, quantizeLinear},
  };
  return entries;
}
