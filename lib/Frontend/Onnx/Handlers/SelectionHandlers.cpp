//===- SelectionHandlers.cpp - results whose size depends on values -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operators whose result size depends on values. If these values are constants,
// the selected positions are computed here and the data is gathered at them.
// Otherwise the node is refused, because a training step has static shapes.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

/// Returns the constant operand `i`; otherwise reports that the result size
/// depends on it.
static DenseElementsAttr decidingConstant(NodeImporter &n, size_t i) {
  Value value = n.in(i);
  if (!value)
    return {};
  DenseElementsAttr constant = n.constantOf(value);
  if (!constant)
    n.needConstant(value, "operand " + std::to_string(i) + " ('" +
                              n.node.inputs[i] +
                              "'), which decides the shape of the result,");
  return constant;
}

/// Returns keys that sort like the elements, with NaN after all numbers.
static std::vector<double> floatKeys(DenseElementsAttr values) {
  std::vector<double> keys;
  for (APFloat x : values.getValues<APFloat>()) {
    bool lost;
    x.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    keys.push_back(x.convertToDouble());
  }
  return keys;
}

static std::vector<double> numbersOf(DenseElementsAttr values) {
  if (isa<FloatType>(values.getElementType()))
    return floatKeys(values);
  auto type = cast<IntegerType>(values.getElementType());
  bool isUnsigned = type.isUnsigned() || type.getWidth() == 1;
  std::vector<double> keys;
  for (const APInt &x : values.getValues<APInt>())
    keys.push_back(isUnsigned ? double(x.getZExtValue())
                              : double(x.getSExtValue()));
  return keys;
}

/// Integers beyond 2^53 are compared as integers, which keeps their order.
static std::vector<int64_t> integerKeys(DenseElementsAttr values) {
  auto type = cast<IntegerType>(values.getElementType());
  std::vector<int64_t> keys;
  for (const APInt &x : values.getValues<APInt>())
    keys.push_back(type.isUnsigned() && type.getWidth() == 64
                       ? int64_t(x.getZExtValue() ^ (uint64_t(1) << 63))
                   : type.isUnsigned() || type.getWidth() == 1
                       ? int64_t(x.getZExtValue())
                       : x.getSExtValue());
  return keys;
}

static Value gatherAt(NodeImporter &n, Value x, ArrayRef<int64_t> positions,
                      int64_t axis) {
  return n.make<GatherOp>({x, n.intConstant(positions)},
                          {n.named("axis", axis)});
}

//===----------------------------------------------------------------------===//
// Compress, NonZero
//===----------------------------------------------------------------------===//

static LogicalResult compress(NodeImporter &n) {
  Value x = n.in(0);
  DenseElementsAttr condition = decidingConstant(n, 1);
  if (!x || !condition)
    return failure();
  int64_t axis = 0;
  if (n.hasAttr("axis")) {
    auto given = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
    if (!given || n.cutsBatch(*given))
      return failure();
    axis = *given;
  } else {
    x = n.reshape(x, {n.type(x).getNumElements()});
  }
  if (!x)
    return failure();
  Shape positions;
  for (auto [i, number] : llvm::enumerate(numbersOf(condition)))
    if (number != 0)
      positions.push_back(int64_t(i));
  if (!positions.empty() && positions.back() >= n.shape(x)[axis]) {
    n.error() << "selects entry " << positions.back() << " of "
              << n.shape(x)[axis];
    return failure();
  }
  n.set(0, gatherAt(n, x, positions, axis));
  return success();
}

static LogicalResult nonZero(NodeImporter &n) {
  DenseElementsAttr constant = decidingConstant(n, 0);
  if (!constant)
    return failure();
  ArrayRef<int64_t> shape = constant.getType().getShape();
  std::vector<double> numbers = numbersOf(constant);
  Shape where;
  for (auto [i, number] : llvm::enumerate(numbers))
    if (number != 0)
      where.push_back(int64_t(i));
  Shape result;
  int64_t below = constant.getNumElements();
  for (int64_t size : shape) {
    below = size ? below / size : 0;
    for (int64_t at : where)
      result.push_back(at / below % size);
  }
  int64_t rank = int64_t(shape.size()), count = int64_t(where.size());
  n.set(0, n.reshape(n.intConstant(result), {rank, count}));
  return success();
}

//===----------------------------------------------------------------------===//
// Unique
//===----------------------------------------------------------------------===//

namespace {
struct Distinct {
  Shape first, inverse, counts;
};
} // namespace

/// Finds equal rows of `count` under `less`; lists them in its order or by
/// appearance.
static Distinct distinctRows(int64_t count, bool sorted,
                             llvm::function_ref<bool(int64_t, int64_t)> less) {
  Shape order = llvm::to_vector(llvm::seq<int64_t>(0, count));
  llvm::sort(order, [&](int64_t x, int64_t y) {
    return less(x, y) || (!less(y, x) && x < y);
  });
  std::vector<Shape> groups;
  for (int64_t row : order) {
    if (groups.empty() || less(groups.back().front(), row))
      groups.emplace_back();
    groups.back().push_back(row);
  }
  if (!sorted)
    llvm::sort(groups, [](const Shape &x, const Shape &y) {
      return x.front() < y.front();
    });
  Distinct result;
  result.inverse.resize(size_t(count));
  for (auto [number, group] : llvm::enumerate(groups)) {
    result.first.push_back(group.front());
    result.counts.push_back(int64_t(group.size()));
    for (int64_t row : group)
      result.inverse[size_t(row)] = int64_t(number);
  }
  return result;
}

template <typename Key>
static Distinct distinct(const std::vector<Key> &keys, ArrayRef<int64_t> shape,
                         int64_t axis, bool sorted) {
  int64_t rows = shape[size_t(axis)], inner = 1;
  for (int64_t size : shape.drop_front(size_t(axis) + 1))
    inner *= size;
  int64_t width = rows ? int64_t(keys.size()) / rows : 0;
  auto key = [&](int64_t row, int64_t i) {
    return keys[size_t((i / inner * rows + row) * inner + i % inner)];
  };
  return distinctRows(rows, sorted, [&](int64_t x, int64_t y) {
    for (int64_t i = 0; i < width; ++i) {
      Key a = key(x, i), b = key(y, i);
      if (a < b || (a == a && b != b)) // NaN comes last
        return true;
      if (b < a || (a != a && b == b))
        return false;
    }
    return false;
  });
}

static LogicalResult unique(NodeImporter &n) {
  Value x = n.in(0);
  DenseElementsAttr constant = decidingConstant(n, 0);
  if (!x || !constant)
    return failure();
  int64_t axis = 0;
  Shape shape(n.shape(x));
  if (n.hasAttr("axis")) {
    auto given = n.normalAxis(n.attrInt("axis", 0), n.rank(x));
    if (!given)
      return failure();
    axis = *given;
  } else {
    shape = {n.type(x).getNumElements()};
  }
  bool sorted = n.attrInt("sorted", 1) != 0;
  Distinct found = n.isFloat(x)
                       ? distinct(floatKeys(constant), shape, axis, sorted)
                       : distinct(integerKeys(constant), shape, axis, sorted);
  n.set(0, gatherAt(n, n.reshape(x, shape), found.first, axis));
  n.set(1, n.intConstant(found.first));
  n.set(2, n.intConstant(found.inverse));
  n.set(3, n.intConstant(found.counts));
  return success();
}

//===----------------------------------------------------------------------===//
// NonMaxSuppression
//===----------------------------------------------------------------------===//

namespace {
struct Box {
  double top, left, bottom, right;
  double area() const { return (bottom - top) * (right - left); }
};
} // namespace

static Box boxAt(ArrayRef<double> four, bool centered) {
  if (centered) // x, y, width, height
    return {four[1] - four[3] / 2, four[0] - four[2] / 2, four[1] + four[3] / 2,
            four[0] + four[2] / 2};
  return {std::min(four[0], four[2]), std::min(four[1], four[3]),
          std::max(four[0], four[2]), std::max(four[1], four[3])};
}

/// Returns the intersection over union.
static double overlap(const Box &x, const Box &y) {
  double height = std::min(x.bottom, y.bottom) - std::max(x.top, y.top);
  double width = std::min(x.right, y.right) - std::max(x.left, y.left);
  double common = std::max(height, 0.0) * std::max(width, 0.0);
  double whole = x.area() + y.area() - common;
  return whole > 0 ? common / whole : 0;
}

/// Returns the best boxes of one class, best first, none of which overlaps a
/// better one by more than `threshold`.
static Shape suppress(ArrayRef<double> boxes, ArrayRef<double> scores,
                      bool centered, int64_t limit, double threshold,
                      std::optional<double> least) {
  Shape order, kept;
  for (int64_t i = 0; i < int64_t(scores.size()); ++i)
    if (!least || scores[size_t(i)] > *least)
      order.push_back(i);
  llvm::sort(order, [&](int64_t x, int64_t y) {
    double first = scores[size_t(x)], second = scores[size_t(y)];
    return first != second ? first > second : x < y;
  });
  for (int64_t candidate : order) {
    if (int64_t(kept.size()) >= limit)
      break;
    Box box = boxAt(boxes.slice(size_t(candidate) * 4, 4), centered);
    if (llvm::none_of(kept, [&](int64_t better) {
          return overlap(box, boxAt(boxes.slice(size_t(better) * 4, 4),
                                    centered)) > threshold;
        }))
      kept.push_back(candidate);
  }
  return kept;
}

static LogicalResult nonMaxSuppression(NodeImporter &n) {
  DenseElementsAttr boxes = decidingConstant(n, 0);
  DenseElementsAttr scores = decidingConstant(n, 1);
  if (!boxes || !scores)
    return failure();
  auto number = [&](size_t i, double missing) -> std::optional<double> {
    return n.has(i) ? n.constScalar(i) : missing;
  };
  auto limit = number(2, 0), threshold = number(3, 0), least = number(4, 0);
  if (!limit || !threshold || !least)
    return failure();
  ArrayRef<int64_t> shape = boxes.getType().getShape();
  ArrayRef<int64_t> rated = scores.getType().getShape();
  if (shape.size() != 3 || rated.size() != 3 || shape[2] != 4 ||
      rated[0] != shape[0] || rated[2] != shape[1]) {
    n.error() << "boxes of type " << boxes.getType() << " and scores of type "
              << scores.getType() << " do not fit";
    return failure();
  }
  bool centered = n.attrInt("center_point_box", 0) != 0;
  std::vector<double> corners = numbersOf(boxes), rating = numbersOf(scores);
  auto count = size_t(shape[1]);
  Shape result;
  for (int64_t batch = 0; batch < rated[0]; ++batch)
    for (int64_t kind = 0; kind < rated[1]; ++kind)
      for (int64_t box : suppress(
               ArrayRef(corners).slice(size_t(batch) * count * 4, count * 4),
               ArrayRef(rating).slice(size_t(batch * rated[1] + kind) * count,
                                      count),
               centered, int64_t(*limit), *threshold,
               n.has(4) ? least : std::nullopt))
        result.append({batch, kind, box});
  n.set(0, n.reshape(n.intConstant(result), {int64_t(result.size()) / 3, 3}));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::selectionHandlers() {
  static const HandlerEntry entries[] = {
      {"Compress", 9, compress},
      {"NonMaxSuppression", 10, nonMaxSuppression},
      {"NonZero", 9, nonZero},
      {"Unique", 11, unique},
  };
  return entries;
}
