//===- SignalHandlers.cpp - DFT, STFT, windows, mel filters ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A discrete Fourier transform is a product with the matrix of its cosines and
// sines, O(n^2) a signal: fine for the frames of audio models, refused for
// long signals. Complex numbers are pairs in the last dimension, so a signal
// of n of them is a row of 2 n numbers and one product does all.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include <numbers>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
struct Transform {
  int64_t length = 0;
  bool inverse = false, onesided = false;

  int64_t half() const { return length / 2 + 1; }
  /// Entries along the axis of operand and result, and numbers for each.
  int64_t inputs() const { return inverse && onesided ? half() : length; }
  int64_t outputs() const { return !inverse && onesided ? half() : length; }
  int64_t outputParts() const { return inverse && onesided ? 1 : 2; }
};
} // namespace

/// Returns the matrix [inputs * parts, outputs * outputParts] of a transform;
/// null after an error.
static Value matrixOf(NodeImporter &n, const Transform &t, int64_t parts,
                      Type element) {
  constexpr int64_t maxLength = 4096;
  if (t.length < 1 || t.length > maxLength) {
    n.unsupported() << "a transform of length " << t.length
                    << "; ckopt multiplies by a matrix up to " << maxLength;
    return {};
  }
  int64_t rows = t.inputs(), columns = t.outputs(), wide = t.outputParts();
  std::vector<double> matrix(size_t(rows * parts * columns * wide), 0);
  double sign = t.inverse ? 1 : -1,
         scale = t.inverse ? 1.0 / double(t.length) : 1;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) {
      double angle =
          2 * std::numbers::pi * double(r * c % t.length) / double(t.length);
      double re = std::cos(angle) * scale, im = sign * std::sin(angle) * scale;
      if (t.inverse && t.onesided) { // the other half is the conjugate
        double twice = r == 0 || 2 * r == t.length ? 1 : 2;
        re *= twice;
        im *= twice;
      }
      auto at = [&](int64_t part, int64_t outPart) -> double & {
        return matrix[size_t(((r * parts + part) * columns + c) * wide +
                             outPart)];
      };
      at(0, 0) = re;
      if (wide == 2)
        at(0, 1) = im;
      if (parts == 2)
        at(1, 0) = -im;
      if (parts == 2 && wide == 2)
        at(1, 1) = re;
    }
  return n.constant(matrix, {rows * parts, columns * wide}, element);
}

/// Transforms `x` [..., entries, parts] along the second last dimension, which
/// is cropped or filled with zeros first.
static Value transform(NodeImporter &n, Value x, const Transform &t) {
  if (!x)
    return {};
  int64_t rank = n.rank(x), axis = rank - 2, has = n.shape(x)[axis];
  int64_t parts = n.shape(x)[rank - 1];
  if (has > t.inputs())
    x = n.sliceAxis(x, axis, 0, t.inputs());
  if (has < t.inputs()) {
    Shape none(size_t(rank), 0), high(none);
    high[size_t(axis)] = t.inputs() - has;
    x = n.make<PadOp>({x}, {n.named("low", none), n.named("high", high),
                            n.named("interior", none)});
  }
  Value matrix = matrixOf(n, t, parts, n.element(x));
  if (!matrix || !x)
    return {};
  Shape rows(n.shape(x).drop_back(2)), shape(rows);
  int64_t count = 1;
  for (int64_t size : rows)
    count *= size;
  shape.append({t.outputs(), t.outputParts()});
  return n.reshape(n.matmul(n.reshape(x, {count, t.inputs() * parts}), matrix),
                   shape);
}

/// Checks that the value is floats of shape [..., 1 or 2].
static bool isSignal(NodeImporter &n, Value x) {
  if (!x)
    return false;
  if (n.rank(x) >= 2 && n.isFloat(x) &&
      (n.shape(x).back() == 1 || n.shape(x).back() == 2))
    return true;
  n.error() << "needs floats with a last dimension of 1 or 2 (real numbers, or "
               "pairs), got "
            << x.getType();
  return false;
}

static LogicalResult dft(NodeImporter &n) {
  Value x = n.in(0);
  if (!isSignal(n, x))
    return failure();
  int64_t rank = n.rank(x), given = n.opset < 20 ? n.attrInt("axis", 1) : -2;
  if (n.opset >= 20 && n.has(2)) {
    auto axis = n.constInts(2);
    if (!axis || axis->size() != 1)
      return failure();
    given = axis->front();
  }
  auto axis = n.normalAxis(given, rank);
  if (!axis || *axis == rank - 1) {
    if (axis)
      n.error() << "cannot transform the last dimension";
    return failure();
  }
  Transform t;
  t.inverse = n.attrInt("inverse", 0) != 0;
  t.onesided = n.attrInt("onesided", 0) != 0;
  int64_t size = n.shape(x)[*axis];
  t.length = t.inverse && t.onesided ? 2 * (size - 1) : size;
  if (n.has(1)) {
    auto length = n.constScalar(1);
    if (!length)
      return failure();
    t.length = int64_t(std::clamp(*length, -1.0, 1e9));
  }
  Shape order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  std::swap(order[size_t(*axis)], order[size_t(rank - 2)]);
  bool moves = *axis != rank - 2;
  Value y = transform(n, moves ? n.transpose(x, order) : x, t);
  n.set(0, moves ? n.transpose(y, order) : y);
  return success();
}

/// Transforms frames that may overlap, each multiplied by a window.
static LogicalResult stft(NodeImporter &n) {
  Value x = n.in(0);
  auto step = n.constScalar(1);
  if (!isSignal(n, x) || !step)
    return failure();
  if (n.rank(x) != 3) {
    n.error() << "needs a signal [batch, length, 1 or 2], got " << x.getType();
    return failure();
  }
  Transform t;
  t.onesided = n.attrInt("onesided", 1) != 0;
  t.length = n.shape(x)[1];
  Value window = n.optional(2);
  if (window)
    t.length = n.type(window).getNumElements();
  if (n.has(3)) {
    auto length = n.constScalar(3);
    if (!length)
      return failure();
    t.length = int64_t(std::clamp(*length, -1.0, 1e9));
  }
  int64_t size = n.shape(x)[1];
  if (!(*step >= 1) || t.length < 1 || t.length > size ||
      (window && n.type(window).getNumElements() != t.length)) {
    n.error() << "frames of " << t.length << " with a step of " << *step
              << " do not fit a signal of " << size
              << ", or the window has another length";
    return failure();
  }
  auto hop = int64_t(std::min(*step, 1e9));
  int64_t frames = 1 + (size - t.length) / hop;
  Value places = n.add(n.iota({frames, 1}, n.b.getI64Type(), 0, 0, double(hop)),
                       n.iota({t.length}, n.b.getI64Type(), 0));
  Value y = n.make<GatherOp>({x, places}, {n.named("axis", int64_t(1))});
  if (window)
    y = n.mul(y, n.reshape(window, {t.length, 1}));
  n.set(0, transform(n, y, t));
  return success();
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

/// Returns the element type that attribute output_datatype names, or f32.
static Type tableType(NodeImporter &n) {
  return n.hasAttr("output_datatype") ? n.attrType("output_datatype")
                                      : n.graph.elementType(DType::F32);
}

/// Computes a - b cos(2 pi i / N) + c cos(4 pi i / N).
static LogicalResult cosineWindow(NodeImporter &n, double a, double b,
                                  double c) {
  auto size = n.constScalar(0);
  Type type = tableType(n);
  if (!size || !type)
    return failure();
  if (!(*size >= 0 && *size <= 1 << 24)) {
    n.error() << "a window of " << *size << " entries";
    return failure();
  }
  double period = *size - (n.attrInt("periodic", 1) ? 0 : 1);
  std::vector<double> values;
  for (int64_t i = 0; i < int64_t(*size); ++i) {
    double angle = 2 * std::numbers::pi * double(i) / period;
    values.push_back(
        period == 0 ? 1 : a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  n.set(0, n.constant(values, {int64_t(values.size())}, type));
  return success();
}

static LogicalResult hannWindow(NodeImporter &n) {
  return cosineWindow(n, 0.5, 0.5, 0);
}
static LogicalResult hammingWindow(NodeImporter &n) {
  return cosineWindow(n, 25.0 / 46, 21.0 / 46, 0);
}
static LogicalResult blackmanWindow(NodeImporter &n) {
  return cosineWindow(n, 0.42, 0.5, 0.08);
}

/// Computes triangular filters whose centers are evenly spaced in mel.
static LogicalResult melWeightMatrix(NodeImporter &n) {
  double numbers[5];
  for (size_t i = 0; i < 5; ++i) {
    auto number = n.constScalar(i);
    if (!number)
      return failure();
    numbers[i] = *number;
  }
  auto [bins, length, rate, low, high] = numbers;
  Type type = tableType(n);
  if (!type)
    return failure();
  int64_t rows = int64_t(length) / 2 + 1, columns = int64_t(bins);
  if (!(bins >= 1 && bins <= 1 << 16 && length >= 1 && length <= 1 << 20 &&
        rate > 0) ||
      rows * columns > 1 << 26) {
    n.error() << "cannot make " << bins << " filters over transforms of length "
              << length << " at a rate of " << rate;
    return failure();
  }
  auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  double step = (mel(high) - mel(low)) / (bins + 2);
  Shape edges;
  for (int64_t i = 0; i < columns + 2; ++i) {
    double hertz =
        700 * (std::pow(10, (double(i) * step + mel(low)) / 2595) - 1);
    edges.push_back(std::clamp<int64_t>(
        int64_t(std::floor((double(int64_t(length)) + 1) * hertz / rate)), 0,
        rows - 1));
  }
  std::vector<double> matrix(size_t(rows * columns), 0);
  for (int64_t i = 0; i < columns; ++i) {
    int64_t left = edges[size_t(i)], middle = edges[size_t(i) + 1],
            right = edges[size_t(i) + 2];
    auto at = [&](int64_t row) -> double & {
      return matrix[size_t(row * columns + i)];
    };
    if (middle == left)
      at(middle) = 1;
    else
      for (int64_t j = left; j <= middle; ++j)
        at(j) = double(j - left) / double(middle - left);
    for (int64_t j = middle; j < right; ++j)
      at(j) = double(right - j) / double(right - middle);
  }
  n.set(0, n.constant(matrix, {rows, columns}, type));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::signalHandlers() {
  static const HandlerEntry entries[] = {
      {"BlackmanWindow", 17, blackmanWindow},
      {"DFT", 17, dft},
      {"DFT", 20, dft},
      {"HammingWindow", 17, hammingWindow},
      {"HannWindow", 17, hannWindow},
      {"MelWeightMatrix", 17, melWeightMatrix},
      {"STFT", 17, stft},
  };
  return entries;
}
