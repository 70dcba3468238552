//===- CudnnOperations.cpp - executes graphs of the stand-in's cuDNN ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Executes operations one by one, in their order. Values are doubles, rounded
// to the type of each tensor when an operation has made all of it; tensors that
// are in memory are read and written with their strides. So a graph of any form
// gives what its operations say, and nothing is known of the forms that engines
// of the library recognize.
//
//===----------------------------------------------------------------------===//
#include "CudnnGraph.h"
#include "Machine.h"
#include "Rounding.h"

#include <cmath>
#include <cstring>

using namespace standin;

namespace {

using Extents = std::vector<int64_t>;

int64_t count(const Extents &sizes) {
  int64_t all = 1;
  for (int64_t size : sizes)
    all *= size;
  return all;
}

/// Advances `index` through all points below `sizes`; false after the last.
bool next(Extents &index, const Extents &sizes) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < sizes[d])
      return true;
    index[d] = 0;
  }
  return false;
}

int64_t dot(const Extents &index, const Extents &strides) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d)
    at += index[d] * strides[d];
  return at;
}

double loaded(const void *from, int type) {
  switch (type) {
  case kDnnDouble:
    return *static_cast<const double *>(from);
  case kDnnHalf:
    return static_cast<const F16 *>(from)->toFloat();
  case kDnnBFloat16:
    return static_cast<const BF16 *>(from)->toFloat();
  default:
    return *static_cast<const float *>(from);
  }
}

void store(void *to, int type, double value) {
  switch (type) {
  case kDnnDouble:
    *static_cast<double *>(to) = value;
    return;
  case kDnnHalf:
    *static_cast<F16 *>(to) = F16(float(value));
    return;
  case kDnnBFloat16:
    *static_cast<BF16 *>(to) = BF16(float(value));
    return;
  default:
    *static_cast<float *>(to) = float(value);
  }
}

double rounded(double value, int type) {
  if (type == kDnnDouble || type == kDnnInt32 || type == kDnnBoolean)
    return value;
  double result = 0;
  store(&result, type, value);
  return loaded(&result, type);
}

/// All elements of a tensor, in the order of its dimensions.
struct Values {
  Extents sizes;
  std::vector<double> values;

  explicit Values(const Extents &sizes)
      : sizes(sizes), values(size_t(count(sizes)), 0) {}
  /// Dimensions of size 1 are broadcast.
  double &at(const Extents &index) {
    int64_t place = 0;
    for (size_t d = 0; d < sizes.size(); ++d)
      place = place * sizes[d] + (sizes[d] == 1 ? 0 : index[d]);
    return values[size_t(place)];
  }
};

double combine(int mode, double x, double b, double t) {
  switch (mode) {
  case kDnnAdd:
    return x + b;
  case kDnnMul:
    return x * b;
  case kDnnDiv:
    return x / b;
  case kDnnSub:
    return x - b;
  case kDnnExp:
    return std::exp(x);
  case kDnnLog:
    return std::log(x);
  case kDnnGreater:
    return x > b;
  case kDnnGreaterEqual:
    return x >= b;
  case kDnnSelect:
    return t != 0 ? x : b;
  default:
    return x; // the identity
  }
}

/// One execution of a graph.
class Run {
public:
  Run(const std::map<int64_t, Operations::Tensor> &tensors, bool tensorCores)
      : tensors(tensors), tensorCores(tensorCores) {}

  void execute(const Operations::Operation &op);

private:
  Values read(int64_t id);
  void write(int64_t id, Values values);
  /// An operand of a product, as the engine rounds it.
  Values factor(int64_t id);
  Values matmul(const Operations::Operation &op);
  Values pointwise(const Operations::Operation &op);
  Values reduce(const Operations::Operation &op);
  Values reshape(const Operations::Operation &op);
  Values convolve(const Operations::Operation &op);

  const std::map<int64_t, Operations::Tensor> &tensors;
  bool tensorCores;
  std::map<int64_t, Values> made;
};

} // namespace

void Operations::run() const {
  Run run(tensors, tensorCores);
  for (const Operation &op : operations)
    run.execute(op);
}

Values Run::read(int64_t id) {
  if (auto found = made.find(id); found != made.end())
    return found->second;
  const Operations::Tensor &tensor = tensors.at(id);
  Values all(tensor.sizes);
  if (tensor.isNumber) {
    all.values[0] = tensor.number;
    return all;
  }
  Extents index(tensor.sizes.size(), 0);
  size_t i = 0;
  do
    all.values[i++] = loaded(static_cast<const char *>(tensor.at) +
                                 size_t(dot(index, tensor.strides)) *
                                     bytesOfType(tensor.type),
                             tensor.type);
  while (next(index, tensor.sizes));
  return all;
}

void Run::write(int64_t id, Values all) {
  const Operations::Tensor &tensor = tensors.at(id);
  for (double &value : all.values)
    value = rounded(value, tensor.type);
  if (!tensor.isVirtual) {
    Extents index(tensor.sizes.size(), 0);
    size_t i = 0;
    do
      store(static_cast<char *>(tensor.at) +
                size_t(dot(index, tensor.strides)) * bytesOfType(tensor.type),
            tensor.type, all.values[i++]);
    while (next(index, tensor.sizes));
  }
  made.erase(id);
  made.emplace(id, std::move(all));
}

Values Run::factor(int64_t id) {
  Values all = read(id);
  if (tensorCores && tensors.at(id).type == kDnnFloat)
    for (double &value : all.values)
      value = standin::rounded(float(value), Rounding::TF32);
  return all;
}

Values Run::matmul(const Operations::Operation &op) {
  Values a = factor(op.inputs[0]), b = factor(op.inputs[1]);
  Values c(tensors.at(op.outputs[0]).sizes);
  size_t rank = c.sizes.size();
  int64_t terms = a.sizes[rank - 1];
  // Heads of b are for groups of a's.
  int64_t group = rank > 2 ? c.sizes[rank - 3] / b.sizes[rank - 3] : 1;
  Extents at(rank, 0);
  do {
    double sum = 0;
    for (int64_t k = 0; k < terms; ++k) {
      Extents left = at, right = at;
      left[rank - 1] = right[rank - 2] = k;
      if (rank > 2)
        right[rank - 3] /= group;
      sum += a.at(left) * b.at(right);
    }
    c.at(at) = sum;
  } while (next(at, c.sizes));
  return c;
}

Values Run::pointwise(const Operations::Operation &op) {
  Values y(tensors.at(op.outputs[0]).sizes), none({1});
  auto operand = [&](size_t i) {
    return op.inputs[i] ? read(op.inputs[i]) : none;
  };
  Values x = operand(0), b = operand(1), t = operand(2);
  Extents at(y.sizes.size(), 0);
  do
    y.at(at) = op.mode == kDnnIndex
                   ? double(at[size_t(op.axis)])
                   : combine(op.mode, x.at(at), b.at(at), t.at(at));
  while (next(at, y.sizes));
  return y;
}

/// Dimensions that are smaller in the result are reduced, in equal groups.
Values Run::reduce(const Operations::Operation &op) {
  Values x = read(op.inputs[0]), y(tensors.at(op.outputs[0]).sizes);
  bool isMax = op.mode == kDnnMax;
  if (isMax)
    y.values.assign(y.values.size(), -INFINITY);
  Extents at(x.sizes.size(), 0);
  do {
    Extents to = at;
    for (size_t d = 0; d < to.size(); ++d)
      to[d] /= x.sizes[d] / y.sizes[d];
    double &into = y.at(to);
    into = isMax ? std::max(into, x.at(at)) : into + x.at(at);
  } while (next(at, x.sizes));
  return y;
}

/// As the library's graphs of attention use it: the last two dimensions change
/// places.
Values Run::reshape(const Operations::Operation &op) {
  Values x = read(op.inputs[0]), y(tensors.at(op.outputs[0]).sizes);
  size_t rank = y.sizes.size();
  Extents at(rank, 0);
  do {
    Extents from = at;
    std::swap(from[rank - 1], from[rank - 2]);
    y.at(at) = x.at(from);
  } while (next(at, y.sizes));
  return y;
}

Values Run::convolve(const Operations::Operation &op) {
  int64_t x = 0, w = 0, y = 0;
  if (op.kind == kDnnConvForwardOp)
    x = op.inputs[0], w = op.inputs[1], y = op.outputs[0];
  else if (op.kind == kDnnConvDataOp)
    y = op.inputs[0], w = op.inputs[1], x = op.outputs[0];
  else
    x = op.inputs[0], y = op.inputs[1], w = op.outputs[0];
  auto operand = [&](int64_t id) {
    return id == op.outputs[0] ? Values(tensors.at(id).sizes) : factor(id);
  };
  Values image = operand(x), weights = operand(w), result = operand(y);
  int64_t groups = image.sizes[1] / weights.sizes[1];
  Extents out(result.sizes.size(), 0);
  do {
    Extents tap(weights.sizes.begin() + 1, weights.sizes.end());
    const Extents taps = tap;
    tap.assign(tap.size(), 0);
    do {
      Extents in = out, weight{out[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      in[1] = out[1] / (result.sizes[1] / groups) * weights.sizes[1] + tap[0];
      bool inside = true;
      for (size_t d = 0; d + 2 < in.size(); ++d) {
        in[d + 2] = out[d + 2] * op.strides[d] - op.pads[d] +
                    tap[d + 1] * op.dilations[d];
        inside &= in[d + 2] >= 0 && in[d + 2] < image.sizes[d + 2];
      }
      if (!inside)
        continue;
      if (op.kind == kDnnConvForwardOp)
        result.at(out) += image.at(in) * weights.at(weight);
      else if (op.kind == kDnnConvDataOp)
        image.at(in) += result.at(out) * weights.at(weight);
      else
        weights.at(weight) += image.at(in) * result.at(out);
    } while (next(tap, taps));
  } while (next(out, result.sizes));
  return op.kind == kDnnConvForwardOp ? result
         : op.kind == kDnnConvDataOp  ? image
                                      : weights;
}

void Run::execute(const Operations::Operation &op) {
  Values result = op.kind == kDnnMatMulOp      ? matmul(op)
                  : op.kind == kDnnPointwiseOp ? pointwise(op)
                  : op.kind == kDnnReductionOp ? reduce(op)
                  : op.kind == kDnnReshapeOp   ? reshape(op)
                                               : convolve(op);
  write(op.outputs[0], std::move(result));
}
