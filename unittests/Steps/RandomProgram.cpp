//===- RandomProgram.cpp - random ONNX models for tests -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "RandomProgram.h"

#include <algorithm>
#include <numeric>

using namespace ckopt::test;
using Shape = RandomProgram::Shape;
using Value = RandomProgram::Value;

static int64_t count(const Shape &shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t(1),
                         std::multiplies<int64_t>());
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

std::string RandomProgram::fresh() { return "v" + std::to_string(names++); }

std::string RandomProgram::attr(const std::string &name, int64_t value) {
  return " attribute { name: \"" + name +
         "\" type: INT i: " + std::to_string(value) + " }";
}
std::string RandomProgram::attr(const std::string &name,
                                const std::vector<int64_t> &values) {
  std::string text = " attribute { name: \"" + name + "\" type: INTS";
  for (int64_t value : values)
    text += " ints: " + std::to_string(value);
  return text + " }";
}
std::string RandomProgram::attrF(const std::string &name, double value) {
  return " attribute { name: \"" + name +
         "\" type: FLOAT f: " + std::to_string(value) + " }";
}
std::string RandomProgram::attrS(const std::string &name,
                                 const std::string &value) {
  return " attribute { name: \"" + name + "\" type: STRING s: \"" + value +
         "\" }";
}

void RandomProgram::raw(const std::string &op,
                        const std::vector<std::string> &inputs,
                        const std::vector<std::string> &outputs,
                        const std::string &attributes) {
  nodes += "node { op_type: \"" + op + "\" name: \"n" +
           std::to_string(names++) + "\"";
  for (const std::string &input : inputs)
    nodes += " input: \"" + input + "\"";
  for (const std::string &output : outputs)
    nodes += " output: \"" + output + "\"";
  nodes += attributes + " }\n";
  operators += (operators.empty() ? "" : " ") + op;
}

std::string RandomProgram::result(Shape shape) {
  std::string name = fresh();
  values.push_back({name, std::move(shape), false});
  return name;
}

std::string RandomProgram::node(const std::string &op,
                                std::vector<std::string> inputs, Shape shape,
                                const std::string &attributes) {
  for (Value &value : values)
    if (std::find(inputs.begin(), inputs.end(), value.name) != inputs.end())
      value.used = true;
  std::string name = result(std::move(shape));
  raw(op, inputs, {name}, attributes);
  return name;
}

std::string RandomProgram::weight(Shape shape, double low, double high) {
  std::string name = "w" + std::to_string(names++);
  std::string text = "initializer { name: \"" + name + "\" data_type: 1";
  for (int64_t size : shape)
    text += " dims: " + std::to_string(size);
  for (int64_t i = 0; i < count(shape); ++i)
    text += " float_data: " +
            std::to_string(low + (high - low) * double(draw(10007)) / 10007);
  initializers += text + " }\n";
  return name;
}

std::string RandomProgram::intTensor(Shape shape, std::vector<int64_t> given) {
  std::string name = fresh();
  std::string text = "initializer { name: \"" + name + "\" data_type: 7";
  for (int64_t size : shape)
    text += " dims: " + std::to_string(size);
  for (int64_t value : given)
    text += " int64_data: " + std::to_string(value);
  initializers += text + " }\n";
  return name;
}
std::string RandomProgram::ints(std::vector<int64_t> given) {
  return intTensor({int64_t(given.size())}, given);
}

std::string RandomProgram::scalar(double value) {
  std::string name = fresh();
  raw("Constant", {}, {name}, attrF("value_float", value));
  return name;
}

Value *RandomProgram::pick(int64_t rank) {
  // Later values first, so that programs grow deep rather than wide.
  for (int attempt = 0; attempt < 12; ++attempt) {
    size_t back = std::min<size_t>(draw(4) * draw(3), values.size() - 1);
    Value &value = values[values.size() - 1 - back];
    if (rank < 0 || int64_t(value.shape.size()) == rank)
      return &value;
  }
  for (Value &value : values)
    if (rank < 0 || int64_t(value.shape.size()) == rank)
      return &value;
  return nullptr;
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {

using Program = RandomProgram;
/// Adds nodes and a result; false where no value fits.
using Entry = bool (*)(Program &);

bool unary(Program &p) {
  static const char *const ops[] = {
      "Tanh", "Sigmoid",     "Relu",      "Abs",   "Sin",   "Cos",
      "Erf",  "Softplus",    "Softsign",  "Elu",   "Selu",  "LeakyRelu",
      "Neg",  "Identity",    "HardSwish", "Floor", "Atan",  "Mish",
      "Exp",  "HardSigmoid", "Celu",      "Ceil",  "Round", "Sign"};
  Value x = *p.pick();
  std::string input = x.name;
  const char *op = ops[p.draw(std::size(ops))];
  if (std::string(op) == "Exp") // keeps numbers small
    input = p.node("Tanh", {input}, x.shape);
  p.node(op, {input}, x.shape);
  return true;
}

bool ofPositive(Program &p) {
  static const char *const ops[] = {"Log", "Sqrt", "Reciprocal"};
  Value x = *p.pick();
  std::string squared = p.node("Mul", {x.name, x.name}, x.shape);
  std::string shifted = p.node("Add", {squared, p.scalar(0.5)}, x.shape);
  p.node(ops[p.draw(std::size(ops))], {shifted}, x.shape);
  return true;
}

bool binary(Program &p) {
  static const char *const ops[] = {"Add", "Sub", "Mul", "Max", "Min"};
  Value x = *p.pick();
  Shape shape = x.shape;
  // The other operand broadcasts: a weight with some dimensions of 1, or
  // without the leading ones.
  for (int64_t &size : shape)
    if (p.draw(2))
      size = 1;
  shape.erase(shape.begin(), shape.begin() + int64_t(p.draw(shape.size() + 1)));
  std::string other = p.weight(shape);
  if (p.draw(3) == 0)
    if (Value *y = p.pick(int64_t(x.shape.size())); y && y->shape == x.shape)
      other = y->name;
  p.node(ops[p.draw(std::size(ops))], {x.name, other}, x.shape);
  return true;
}

bool divide(Program &p) {
  Value x = *p.pick();
  p.node("Div", {x.name, p.weight(x.shape, 0.5, 2)}, x.shape);
  return true;
}

bool where(Program &p) {
  Value x = *p.pick();
  std::string flag = p.fresh(), other = p.weight(x.shape);
  static const char *const ops[] = {"Less", "Greater", "LessOrEqual",
                                    "GreaterOrEqual"};
  p.raw(ops[p.draw(std::size(ops))], {x.name, other}, {flag});
  p.node("Where", {flag, x.name, other}, x.shape);
  return true;
}

bool clip(Program &p) {
  Value x = *p.pick();
  p.node("Clip", {x.name, p.scalar(-0.4), p.scalar(0.7)}, x.shape);
  return true;
}

bool reduce(Program &p) {
  static const char *const ops[] = {
      "ReduceMax",       "ReduceMin",       "ReduceMean", "ReduceL2",
      "ReduceLogSumExp", "ReduceSumSquare", "ReduceL1",   "ReduceProd"};
  Value x = *p.pick();
  if (x.shape.size() < 2)
    return false;
  std::vector<int64_t> axes;
  Shape shape;
  bool keep = p.draw(2);
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d > 0 && (p.draw(2) || (axes.empty() && d + 1 == x.shape.size()))) {
      axes.push_back(int64_t(d));
      if (keep)
        shape.push_back(1);
    } else {
      shape.push_back(x.shape[d]);
    }
  p.node(ops[p.draw(std::size(ops))], {x.name, p.ints(axes)}, shape,
         Program::attr("keepdims", keep));
  return true;
}

bool matmul(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2)
    return false;
  int64_t n = 1 + int64_t(p.draw(9));
  Shape shape = x.shape;
  shape.back() = n;
  p.node("MatMul", {x.name, p.weight({x.shape.back(), n}, -0.5, 0.5)}, shape);
  return true;
}

bool gram(Program &p) { // as attention scores
  Value *x = p.pick(3);
  if (!x)
    return false;
  Value a = *x;
  std::string t =
      p.node("Transpose", {a.name}, {a.shape[0], a.shape[2], a.shape[1]},
             Program::attr("perm", {0, 2, 1}));
  std::string s =
      p.node("MatMul", {a.name, t}, {a.shape[0], a.shape[1], a.shape[1]});
  p.node("Softmax", {s}, {a.shape[0], a.shape[1], a.shape[1]},
         Program::attr("axis", int64_t(p.draw(2)) ? -1 : 1));
  return true;
}

bool gemm(Program &p) {
  Value *x = p.pick(2);
  if (!x)
    return false;
  Value a = *x;
  int64_t n = 1 + int64_t(p.draw(7));
  p.node("Gemm", {a.name, p.weight({n, a.shape[1]}, -0.5, 0.5), p.weight({n})},
         {a.shape[0], n}, Program::attr("transB", 1));
  return true;
}

/// 1-D or 2-D, with bias, padding, groups of one.
bool conv(Program &p) {
  Value *x = p.pick(3 + int64_t(p.draw(2)));
  if (!x)
    return false;
  Value a = *x;
  size_t spatial = a.shape.size() - 2;
  int64_t outputs = 1 + int64_t(p.draw(8)), stride = 1 + int64_t(p.draw(2));
  Shape weight{outputs, a.shape[1]}, shape{a.shape[0], outputs};
  std::vector<int64_t> kernel, pads(2 * spatial), strides;
  for (size_t d = 0; d < spatial; ++d) {
    int64_t k = 1 + 2 * int64_t(p.draw(2));
    kernel.push_back(k);
    strides.push_back(stride);
    weight.push_back(k);
    pads[d] = pads[d + spatial] = k / 2;
    shape.push_back((a.shape[d + 2] + 2 * (k / 2) - k) / stride + 1);
  }
  std::vector<std::string> inputs{a.name, p.weight(weight, -0.4, 0.4)};
  if (p.draw(3))
    inputs.push_back(p.weight({outputs}));
  p.node("Conv", inputs, shape,
         Program::attr("pads", pads) + Program::attr("strides", strides));
  return true;
}

/// Half of the channels gates the other.
bool gate(Program &p) {
  Value *x = p.pick(3 + int64_t(p.draw(2)));
  if (!x || x->shape[1] % 2)
    return false;
  Value a = *x;
  Shape half = a.shape;
  half[1] /= 2;
  std::string u = p.result(half), v = p.result(half);
  p.raw("Split", {a.name}, {u, v},
        Program::attr("axis", 1) + Program::attr("num_outputs", 2));
  p.node("Mul", {u, p.node(p.draw(2) ? "Sigmoid" : "Tanh", {v}, half)}, half);
  return true;
}

bool pool(Program &p) {
  Value *x = p.pick(4);
  if (!x || x->shape[2] < 2 || x->shape[3] < 2)
    return false;
  Value a = *x;
  Shape shape{a.shape[0], a.shape[1], a.shape[2] / 2, a.shape[3] / 2};
  p.node(p.draw(2) ? "MaxPool" : "AveragePool", {a.name}, shape,
         Program::attr("kernel_shape", {2, 2}) +
             Program::attr("strides", {2, 2}));
  return true;
}

bool batchNorm(Program &p) {
  Value *x = p.pick(3 + int64_t(p.draw(2)));
  if (!x || x->shape[0] * x->shape[2] < 4)
    return false;
  Value a = *x;
  int64_t c = a.shape[1];
  std::string mean = p.weight({c}, 0, 0), variance = p.weight({c}, 1, 1);
  p.node("BatchNormalization",
         {a.name, p.weight({c}, 0.5, 1.5), p.weight({c}), mean, variance},
         a.shape);
  return true;
}

bool rowNorm(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2 || x.shape.back() < 3)
    return false;
  switch (p.draw(3)) {
  case 0:
    p.node("LayerNormalization",
           {x.name, p.weight({x.shape.back()}, 0.5, 1.5),
            p.weight({x.shape.back()})},
           x.shape, Program::attr("axis", -1));
    break;
  case 1:
    p.node("Softmax", {x.name}, x.shape, Program::attr("axis", -1));
    break;
  default:
    p.node("LogSoftmax", {x.name}, x.shape,
           Program::attr("axis", 1 - int64_t(x.shape.size())));
  }
  return true;
}

bool transpose(Program &p) {
  Value x = *p.pick();
  std::vector<int64_t> order(x.shape.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t d = order.size(); d > 2; --d) // the batch stays in front
    std::swap(order[d - 1], order[1 + p.draw(d - 1)]);
  Shape shape;
  for (int64_t d : order)
    shape.push_back(x.shape[size_t(d)]);
  p.node("Transpose", {x.name}, shape, Program::attr("perm", order));
  return true;
}

bool flatten(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 3)
    return false;
  Shape shape{x.shape[0], x.shape[1]};
  for (size_t d = 2; d < x.shape.size(); ++d)
    shape[1 + p.draw(1)] *= x.shape[d];
  p.node("Reshape", {x.name, p.ints({0, -1})}, shape);
  return true;
}

bool unflatten(Program &p) {
  Value *x = p.pick(2);
  if (!x || x->shape[1] < 4)
    return false;
  Value a = *x;
  for (int64_t c : {4, 3, 2})
    if (a.shape[1] % c == 0) {
      p.node("Reshape", {a.name, p.ints({0, c, -1})},
             {a.shape[0], c, a.shape[1] / c});
      return true;
    }
  return false;
}

bool slice(Program &p) {
  Value x = *p.pick();
  size_t d =
      x.shape.size() - 1 - p.draw(std::max<size_t>(x.shape.size() - 1, 1));
  int64_t size = x.shape[d];
  if (size < 3)
    return false;
  Shape shape = x.shape;
  if (p.draw(3) == 0) { // backwards
    p.node("Slice",
           {x.name, p.ints({-1}), p.ints({INT64_MIN}), p.ints({int64_t(d)}),
            p.ints({-1})},
           shape);
    return true;
  }
  int64_t start = int64_t(p.draw(2)), step = 1 + int64_t(p.draw(2));
  shape[d] = (size - start + step - 1) / step;
  p.node("Slice",
         {x.name, p.ints({start}), p.ints({INT64_MAX}), p.ints({int64_t(d)}),
          p.ints({step})},
         shape);
  return true;
}

bool concat(Program &p) {
  Value x = *p.pick();
  Value *y = p.pick(int64_t(x.shape.size()));
  if (!y || x.shape.size() < 2)
    return false;
  Value other = *y;
  for (size_t d = 0; d < x.shape.size(); ++d)
    if (d != 1 && x.shape[d] != other.shape[d])
      other = x;
  Shape shape = x.shape;
  shape[1] += other.shape[1];
  if (shape[1] > 40)
    return false;
  p.node("Concat", {x.name, other.name}, shape, Program::attr("axis", 1));
  return true;
}

bool pad(Program &p) {
  Value x = *p.pick();
  std::vector<int64_t> pads(2 * x.shape.size());
  Shape shape = x.shape;
  for (size_t d = 1; d < shape.size(); ++d) {
    pads[d] = int64_t(p.draw(2));
    pads[d + shape.size()] = int64_t(p.draw(2));
    shape[d] += pads[d] + pads[d + shape.size()];
  }
  p.node("Pad", {x.name, p.ints(pads), p.scalar(0.3)}, shape);
  return true;
}

bool gather(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2)
    return false;
  size_t axis = 1 + p.draw(x.shape.size() - 1);
  std::vector<int64_t> indices(1 + p.draw(5));
  for (int64_t &i : indices)
    i = int64_t(p.draw(uint64_t(2 * x.shape[axis]))) - x.shape[axis];
  Shape shape = x.shape;
  shape[axis] = int64_t(indices.size());
  p.node("Gather", {x.name, p.ints(indices)}, shape,
         Program::attr("axis", int64_t(axis)));
  return true;
}

bool gatherElements(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2 || count(x.shape) > 400)
    return false;
  size_t axis = 1 + p.draw(x.shape.size() - 1);
  std::vector<int64_t> indices(size_t(count(x.shape)));
  for (int64_t &i : indices)
    i = int64_t(p.draw(uint64_t(x.shape[axis])));
  p.node("GatherElements", {x.name, p.intTensor(x.shape, indices)}, x.shape,
         Program::attr("axis", int64_t(axis)));
  return true;
}

bool scatterElements(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2 || count(x.shape) > 400)
    return false;
  size_t axis = x.shape.size() - 1;
  std::vector<int64_t> indices(size_t(count(x.shape)));
  bool adds = p.draw(2);
  int64_t extent = x.shape[axis];
  int64_t shift = int64_t(p.draw(uint64_t(extent)));
  // For replacing scatters, ONNX leaves the result of repeated indices open, so
  // each index occurs once.
  for (size_t i = 0; i < indices.size(); ++i)
    indices[i] = adds ? int64_t(p.draw(uint64_t(extent)))
                      : (int64_t(i) + shift) % extent;
  p.node("ScatterElements",
         {x.name, p.intTensor(x.shape, indices), p.weight(x.shape)}, x.shape,
         Program::attr("axis", int64_t(axis)) +
             Program::attrS("reduction", adds ? "add" : "none"));
  return true;
}

bool cumSum(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2)
    return false;
  std::string axis = p.fresh();
  p.raw("Constant", {}, {axis}, Program::attr("value_int", 1));
  p.node("CumSum", {x.name, axis}, x.shape,
         Program::attr("exclusive", int64_t(p.draw(2))) +
             Program::attr("reverse", int64_t(p.draw(2))));
  return true;
}

bool topK(Program &p) {
  Value x = *p.pick();
  if (x.shape.size() < 2 || x.shape.back() < 2)
    return false;
  Shape shape = x.shape;
  shape.back() = 1 + int64_t(p.draw(uint64_t(shape.back() - 1)));
  std::string values = p.result(shape), indices = p.fresh();
  p.raw("TopK", {x.name, p.ints({shape.back()})}, {values, indices},
        Program::attr("axis", -1) +
            Program::attr("largest", int64_t(p.draw(2))));
  return true;
}

bool resize(Program &p) {
  Value *x = p.pick(4);
  if (!x || count(x->shape) > 600)
    return false;
  Value a = *x;
  Shape shape = a.shape;
  shape[2] *= 2;
  shape[3] = shape[3] * 3 / 2;
  p.node("Resize", {a.name, "", "", p.ints(shape)}, shape,
         Program::attrS("mode", p.draw(2) ? "linear" : "nearest"));
  return true;
}

bool expand(Program &p) {
  Value x = *p.pick();
  for (size_t d = 1; d < x.shape.size(); ++d)
    if (x.shape[d] == 1) {
      Shape shape = x.shape;
      shape[d] = 3;
      p.node("Expand", {x.name, p.ints(shape)}, shape);
      return true;
    }
  return false;
}

constexpr Entry table[] = {unary,     unary,          unary,
                           binary,    binary,         binary,
                           divide,    ofPositive,     where,
                           clip,      reduce,         reduce,
                           matmul,    gram,           gemm,
                           conv,      conv,           conv,
                           gate,      gate,           pool,
                           batchNorm, rowNorm,        rowNorm,
                           transpose, flatten,        unflatten,
                           slice,     concat,         pad,
                           gather,    gatherElements, scatterElements,
                           cumSum,    topK,           resize,
                           expand};

} // namespace

//===----------------------------------------------------------------------===//
// A program
//===----------------------------------------------------------------------===//

RandomProgram::RandomProgram(uint64_t seed) : random(seed * 7919 + 17) {
  int64_t batch = 1 + int64_t(draw(4));
  switch (draw(3)) {
  case 0:
    input = {batch, 2 + int64_t(draw(12))};
    break;
  case 1:
    input = {batch, 1 + int64_t(draw(8)), 2 + int64_t(draw(15))};
    break;
  default:
    input = {batch, 1 + int64_t(draw(6)), 2 + int64_t(draw(7)),
             2 + int64_t(draw(7))};
  }
  values.push_back({"x", input, false});
  uint64_t wanted = 4 + draw(12);
  for (uint64_t made = 0, tries = 0; made < wanted && tries < 200; ++tries) {
    bool fits = table[draw(std::size(table))](*this);
    made += fits;
    // Large values would only make the checks slow.
    if (count(values.back().shape) > 4000)
      node("ReduceMean", {values.back().name}, {}, attr("keepdims", 0));
  }
  finish();
}

/// Each end is squashed, so that none drowns the others.
void RandomProgram::finish() {
  std::vector<std::string> ends;
  std::vector<Value> last = values;
  for (const Value &value : last) {
    if (value.used && &value != &last.back())
      continue;
    std::string small = node("Tanh", {value.name}, value.shape);
    std::string scaled = node("Mul", {small, weight(value.shape)}, value.shape);
    ends.push_back(node("ReduceMean", {scaled}, {}, attr("keepdims", 0)));
  }
  raw("Sum", ends, {"loss"});
}

std::string RandomProgram::text() const {
  std::string text = "name: \"random\"\n" + nodes + initializers +
                     "input { name: \"x\" type { tensor_type { elem_type: 1 "
                     "shape {";
  for (int64_t size : input)
    text += " dim { dim_value: " + std::to_string(size) + " }";
  return text + " } } } }\noutput { name: \"loss\" type { tensor_type { "
                "elem_type: 1 shape { } } } }\n";
}

std::string RandomProgram::summary() const { return operators; }
