//===- RecoveredParameters.cpp - parameters out of their forms ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Folding stores a parameter transposed, packed with others, or not at all if
// another one had the same value. Each of these forms can be undone exactly:
// the parameter's value is extracted from the file's, and nodes at the start of
// the graph compute the old form from it, so that gradients reach the parameter
// and its new value goes back to the file. A value that contradicts a known one
// is refused, because then the file does not match its metadata. O(bytes of
// parameters that change their form).
//
//===----------------------------------------------------------------------===//
#include "RecoveredParameters.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <cstring>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

void onnx_frontend::applyEdits(const GraphEdits &edits, Graph &graph) {
  for (const auto &[node, operand, to] : edits.rewired) {
    auto &inputs = graph.nodes[node].inputs;
    inputs.resize(std::max(inputs.size(), operand + 1));
    inputs[operand] = to;
  }
  for (const auto &[node, operand] : edits.stopped)
    graph.nodes[node].stopped.push_back(operand);
  llvm::erase_if(graph.initializers, [&](const Tensor &tensor) {
    return edits.removed.count(tensor.name);
  });
  llvm::erase_if(graph.inputs, [&](const ValueInfo &input) {
    return edits.removed.count(input.name);
  });
  llvm::append_range(graph.initializers, edits.added);
  size_t number = 0;
  llvm::erase_if(graph.nodes, [&](const Node &) {
    return edits.dropped.count(number++) > 0;
  });
  graph.nodes.insert(graph.nodes.begin(), edits.nodes.begin(),
                     edits.nodes.end());
}

RecoveredParameters::RecoveredParameters(const Model &model)
    : graph(model.graph), opset(1) {
  auto version = model.opsets.find("");
  if (version != model.opsets.end())
    opset = version->second;
  for (const Tensor &tensor : graph.initializers) {
    initializers[tensor.name] = &tensor.value;
    taken.insert(tensor.name);
  }
  for (const ValueInfo &input : graph.inputs)
    taken.insert(input.name);
  forEachNode(graph.nodes, [&](const Node &node) {
    for (const std::string &output : node.outputs)
      taken.insert(output);
  });
}

const HostTensor *RecoveredParameters::initializer(StringRef name) const {
  auto found = initializers.find(name);
  return found == initializers.end() ? nullptr : found->second;
}

const std::string &RecoveredParameters::nameOf(OperandUse use) const {
  return graph.nodes[use.node].inputs[use.operand];
}

const HostTensor &RecoveredParameters::valueOf(OperandUse use) const {
  return *initializer(nameOf(use));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Copies `count` blocks of `bytes` each: block i of the result is block
/// `from(i)`.
template <typename From>
static HostTensor gathered(const HostTensor &value, std::vector<int64_t> shape,
                           int64_t count, int64_t bytes, From from) {
  HostTensor result(value.dtype(), std::move(shape));
  auto *out = static_cast<char *>(result.mutableRawData());
  auto *in = static_cast<const char *>(value.rawData());
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out + i * bytes, in + from(i) * bytes, size_t(bytes));
  return result;
}

HostTensor onnx_frontend::transposed(const HostTensor &value) {
  int64_t rows = value.dim(0), columns = value.dim(1);
  return gathered(value, {columns, rows}, rows * columns,
                  dtypeSize(value.dtype()),
                  [&](int64_t i) { return i % rows * columns + i / rows; });
}

/// Collects the distinct rows of a table in order of appearance, and returns
/// the row that each position holds.
static std::vector<int64_t> distinctRows(const HostTensor &value,
                                         std::vector<int64_t> &places) {
  int64_t size = value.dim(value.rank() - 1) * dtypeSize(value.dtype());
  int64_t count = size ? value.sizeInBytes() / size : 0;
  auto *bytes = static_cast<const char *>(value.rawData());
  std::map<StringRef, int64_t> seen;
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < count; ++i) {
    auto [at, isNew] = seen.try_emplace(
        StringRef(bytes + i * size, size_t(size)), int64_t(rows.size()));
    if (isNew)
      rows.push_back(i);
    places.push_back(at->second);
  }
  return rows;
}

bool RecoveredParameters::hasDistinctRows(const HostTensor &value) {
  std::vector<int64_t> places;
  return value.rank() >= 2 &&
         distinctRows(value, places).size() == places.size() &&
         places.size() > 1;
}

bool RecoveredParameters::hasUnclearRows(const HostTensor &value) {
  std::vector<int64_t> places;
  if (value.rank() < 2)
    return true;
  std::vector<int64_t> rows = distinctRows(value, places);
  if (rows.size() == places.size())
    return false;
  int64_t width = value.dim(value.rank() - 1);
  for (auto [i, place] : llvm::enumerate(places))
    if (place != int64_t(i % rows.size()))
      return true;
  return llvm::any_of(rows, [&](int64_t row) {
    for (int64_t i = 1; i < width; ++i)
      if (value.getDouble(row * width + i) != value.getDouble(row * width))
        return false;
    return true;
  });
}

//===----------------------------------------------------------------------===//
// Edits
//===----------------------------------------------------------------------===//

std::string RecoveredParameters::freshName(const llvm::Twine &stem) {
  std::string name = stem.str();
  for (int i = 1; !taken.insert(name).second; ++i)
    name = (stem + "." + llvm::Twine(i)).str();
  return name;
}

std::string
RecoveredParameters::addNode(const char *op, std::vector<std::string> inputs,
                             StringRef stem,
                             std::vector<NodeAttribute> attributes) {
  Node node;
  node.op = op;
  node.opset = opset;
  node.inputs = std::move(inputs);
  node.name = freshName(stem + "." + StringRef(op).lower());
  node.outputs = {node.name};
  node.attributes = std::move(attributes);
  edits.nodes.push_back(node);
  return node.name;
}

std::string RecoveredParameters::integers(ArrayRef<int64_t> values) {
  std::string key = "integers" + shapeString(values);
  std::string &name = formed[key];
  if (name.empty()) {
    name = freshName("ckopt." + key);
    edits.added.push_back(
        {name, HostTensor::of<int64_t>({int64_t(values.size())}, values)});
  }
  return name;
}

static NodeAttribute intAttribute(const char *name, int64_t value) {
  NodeAttribute attribute;
  attribute.name = name;
  attribute.kind = NodeAttribute::Int;
  attribute.i = value;
  return attribute;
}

static NodeAttribute intsAttribute(const char *name,
                                   std::vector<int64_t> values) {
  NodeAttribute attribute;
  attribute.name = name;
  attribute.kind = NodeAttribute::Ints;
  attribute.ints = std::move(values);
  return attribute;
}

const HostTensor *RecoveredParameters::parameter(StringRef target) const {
  auto found = added.find(target);
  return found != added.end() ? &found->second : initializer(target);
}

bool RecoveredParameters::know(StringRef target, const HostTensor &value) {
  if (const HostTensor *known = parameter(target))
    return known->bitEqual(value);
  if (!taken.insert(target).second)
    return false; // another value has that name
  added[target] = value;
  edits.added.push_back({target.str(), value});
  return true;
}

void RecoveredParameters::rewire(OperandUse use, const std::string &to) {
  if (nameOf(use) != to)
    edits.rewired.push_back({use.node, use.operand, to});
}

void RecoveredParameters::separate(OperandUse use) {
  std::string &name = formed["constant " + nameOf(use)];
  if (name.empty()) {
    name = freshName(nameOf(use) + ".constant");
    edits.added.push_back({name, valueOf(use)});
  }
  rewire(use, name);
}

bool RecoveredParameters::append(OperandUse use, StringRef target,
                                 HostTensor value) {
  if (!know(target, value))
    return false;
  bound.insert(target);
  edits.rewired.push_back({use.node, use.operand, target.str()});
  return true;
}

void RecoveredParameters::replaceNode(size_t node) {
  const Node &copy = graph.nodes[node];
  const HostTensor *value = initializer(copy.inputs[0]);
  edits.dropped.insert(node);
  edits.added.push_back({copy.outputs[0], *value});
  initializers[copy.outputs[0]] = value;
}

/// The blocks along a dimension: their number in each of `outer` groups, and
/// their bytes.
namespace {
struct Blocks {
  Blocks(const HostTensor &value, size_t dim)
      : count(value.dim(int64_t(dim))),
        bytes(int64_t(dtypeSize(value.dtype()))) {
    for (size_t i = 0; i < size_t(value.rank()); ++i)
      (i < dim ? outer : bytes) *= i == dim ? 1 : value.dim(int64_t(i));
  }
  int64_t outer = 1, count, bytes;
};
} // namespace

/// Returns whether all slices along the dimension are equal.
static bool repeatsAlong(const HostTensor &value, size_t dim) {
  Blocks blocks(value, dim);
  auto *data = static_cast<const char *>(value.rawData());
  for (int64_t o = 0; o < blocks.outer; ++o)
    for (int64_t i = 1; i < blocks.count; ++i) {
      const char *first = data + o * blocks.count * blocks.bytes;
      if (std::memcmp(first, first + i * blocks.bytes, size_t(blocks.bytes)))
        return false;
    }
  return true;
}

/// Returns the first slice along the dimension, which stays with size 1.
static HostTensor firstAlong(const HostTensor &value, size_t dim) {
  Blocks blocks(value, dim);
  std::vector<int64_t> shape = value.shape().vec();
  shape[dim] = 1;
  return gathered(value, shape, blocks.outer, blocks.bytes,
                  [&](int64_t i) { return i * blocks.count; });
}

bool RecoveredParameters::hasNewFirst(const HostTensor &value) {
  if (value.rank() < 2 || value.numElements() == 0)
    return false;
  for (size_t i = 0; i < size_t(value.rank()); ++i)
    if (repeatsAlong(value, i) != (i == 0)) // so does a dimension of size 1
      return false;
  return true;
}

/// Returns the dimensions along which a parameter was expanded, where its
/// slices are equal. If all numbers are equal, every dimension looks expanded:
/// then it is the dimension that the caller knows, or else it is unclear.
static std::vector<size_t> expandedDims(const HostTensor &held,
                                        std::optional<size_t> known) {
  std::vector<size_t> dims;
  size_t varying = 0;
  if (held.numElements() == 0)
    return dims;
  for (size_t i = 0; i < size_t(held.rank()); ++i)
    if (held.dim(int64_t(i)) > 1 && repeatsAlong(held, i))
      dims.push_back(i);
    else
      varying += held.dim(int64_t(i)) > 1;
  if (varying || dims.size() < 2)
    return dims;
  return known && *known < size_t(held.rank()) && held.dim(int64_t(*known)) > 1
             ? std::vector<size_t>{*known}
             : std::vector<size_t>();
}

bool RecoveredParameters::bind(OperandUse use, StringRef target, Form form,
                               std::optional<size_t> dim) {
  const HostTensor &held = valueOf(use);
  HostTensor value = held;
  std::vector<int64_t> shape = held.shape().vec(), places;
  switch (form) {
  case Form::Same:
    break;
  case Form::Transposed:
    if (held.rank() != 2)
      return false;
    value = transposed(held);
    break;
  case Form::Reshaped:
    if (dim && (*dim >= shape.size() || shape[*dim] != 1))
      return false;
    if (dim)
      shape.erase(shape.begin() + ptrdiff_t(*dim));
    value =
        held.reshaped(dim ? shape : std::vector<int64_t>{held.numElements()});
    break;
  case Form::Rows: {
    if (held.rank() < 1)
      return false;
    std::vector<int64_t> rows = distinctRows(held, places);
    int64_t width = shape.back();
    value = gathered(held, {int64_t(rows.size()), width}, int64_t(rows.size()),
                     width * dtypeSize(held.dtype()),
                     [&](int64_t i) { return rows[size_t(i)]; });
    break;
  }
  case Form::Repeated: {
    if (held.rank() < 1 || held.dim(0) < 1 || !repeatsAlong(held, 0))
      return false;
    shape.erase(shape.begin());
    value = firstAlong(held, 0).reshaped(shape);
    break;
  }
  case Form::Expanded: {
    std::vector<size_t> dims = expandedDims(held, dim);
    if (dims.empty())
      return false;
    for (size_t each : dims)
      value = firstAlong(value, each);
    break;
  }
  }
  if (!know(target, value))
    return false;
  bound.insert(target);
  if (form == Form::Same) {
    numSplit += nameOf(use) != target;
    rewire(use, target.str());
    return true;
  }
  std::string &name = formed[target.str() + " " + std::to_string(int(form)) +
                             shapeString(held.shape())];
  if (name.empty()) {
    ++numFormed;
    std::string source = target.str();
    auto held64 = held.shape();
    if (form == Form::Transposed)
      name = addNode("Transpose", {source}, target,
                     {intsAttribute("perm", {1, 0})});
    else if (form == Form::Reshaped)
      name = addNode("Reshape", {source, integers(held64)}, target);
    else if (form == Form::Expanded || form == Form::Repeated)
      name = addNode("Expand", {source, integers(held64)}, target);
    else
      name = addNode("Reshape",
                     {addNode("Gather", {source, integers(places)}, target,
                              {intAttribute("axis", 0)}),
                      integers(held64)},
                     target);
  }
  rewire(use, name);
  return true;
}

bool RecoveredParameters::bindPacked(OperandUse use,
                                     ArrayRef<std::string> targets,
                                     ArrayRef<int64_t> order,
                                     size_t directions) {
  const HostTensor &held = valueOf(use);
  int64_t gates = int64_t(order.size());
  int64_t parts = int64_t(targets.size());
  if (held.rank() < 2 || held.dim(0) != int64_t(directions) ||
      parts % held.dim(0) || held.numElements() % (parts * gates))
    return false;
  // The parameter is [gates x hidden, ...]; the file has its gates in `order`.
  std::vector<int64_t> shape(held.shape().begin() + 1, held.shape().end());
  shape[0] = shape[0] * held.dim(0) / parts;
  if (shape[0] % gates)
    return false;
  int64_t block = held.sizeInBytes() / (parts * gates);
  for (int64_t part = 0; part < parts; ++part) {
    HostTensor value = gathered(held, shape, gates, block, [&](int64_t gate) {
      return part * gates + (llvm::find(order, gate) - order.begin());
    });
    if (!know(targets[size_t(part)], value))
      return false;
    bound.insert(targets[size_t(part)]);
  }
  ++numFormed;
  int64_t hidden = shape[0] / gates;
  std::vector<std::string> pieces;
  for (const std::string &target : targets)
    for (int64_t at : order)
      pieces.push_back(addNode("Slice",
                               {target, integers({at * hidden}),
                                integers({(at + 1) * hidden}), integers({0})},
                               target));
  std::string all =
      addNode("Concat", pieces, targets[0], {intAttribute("axis", 0)});
  rewire(use, addNode("Reshape", {all, integers(held.shape())}, targets[0]));
  return true;
}

GraphEdits RecoveredParameters::finish() {
  llvm::StringMap<int64_t> readers;
  auto count = [&](const std::vector<std::string> &inputs, int64_t by) {
    for (const std::string &input : inputs)
      readers[input] += by;
  };
  forEachNode(graph.nodes, [&](const Node &node) { count(node.inputs, 1); });
  for (const Node &node : edits.nodes)
    count(node.inputs, 1);
  for (const ValueInfo &output : graph.outputs)
    ++readers[output.name];
  std::set<std::string> left; // names that lost a reader
  for (const auto &rewired : edits.rewired) {
    ++readers[rewired.to];
    const auto &inputs = graph.nodes[rewired.node].inputs;
    if (rewired.operand >= inputs.size() || inputs[rewired.operand].empty())
      continue;
    --readers[inputs[rewired.operand]];
    left.insert(inputs[rewired.operand]);
  }
  for (size_t node : edits.dropped) {
    count(graph.nodes[node].inputs, -1);
    left.insert(graph.nodes[node].inputs[0]);
  }
  llvm::erase_if(edits.added, [&](const Tensor &tensor) {
    return readers.lookup(tensor.name) == 0;
  });
  for (const std::string &name : left)
    if (readers.lookup(name) == 0 && !bound.contains(name) &&
        llvm::any_of(graph.initializers,
                     [&](const Tensor &tensor) { return tensor.name == name; }))
      edits.removed.insert(name);
  return std::move(edits);
}
