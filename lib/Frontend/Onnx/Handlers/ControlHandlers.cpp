//===- ControlHandlers.cpp - branches and loops that end while importing --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step is a straight line. A condition that is known once the
// shapes are fixed takes its branch; one that depends on data computes both
// branches and selects, which is right because nodes have no side effects
// (running statistics are selected, too). A loop whose number of rounds is
// known is unrolled: names of round i are the body's after a prefix that is
// unique in the model. All other control flow is refused, with the inputs that
// it depends on.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;
using Names = std::vector<std::string>;

static const Graph *subgraph(NodeImporter &n, StringRef name) {
  const onnx_frontend::NodeAttribute *found = n.find(name);
  if (found && found->graph)
    return found->graph.get();
  n.error() << "attribute '" << name << "' must be a graph";
  return nullptr;
}

/// Returns a prefix for names inside of round (or branch) `round`, made from
/// the node's result, whose name is unique.
static std::string prefixOf(NodeImporter &n, const Twine &round) {
  std::string own = n.node.name;
  for (const std::string &output : llvm::reverse(n.node.outputs))
    if (!output.empty())
      own = output;
  return (own + "#" + round + "/").str();
}

static void setFrom(NodeImporter &n, size_t i, StringRef name) {
  if (const Sequence *list = n.graph.findSequence(name))
    n.setSequence(i, *list);
  else
    n.set(i, n.graph.lookup(name));
}

/// Binds a number to the subgraph's input `info`, with the declared shape [] or
/// [1].
static std::string bindNumber(NodeImporter &n, const ValueInfo &info,
                              double number, Type element, StringRef name) {
  bool isVector = info.shape && info.shape->size() == 1;
  n.graph.bind(
      name, n.splat(number, n.tensor(isVector ? Shape{1} : Shape{}, element)));
  return name.str();
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

/// Returns `yes` where the condition holds, else `no`.
static Value choose(NodeImporter &n, Value condition, Value yes, Value no) {
  if (yes == no || !yes || !no)
    return yes;
  if (yes.getType() == no.getType())
    return n.select(condition, yes, no);
  n.unsupported() << "its condition depends on data, and its branches give "
                  << yes.getType() << " and " << no.getType()
                  << ": the type of a result must not depend on data";
  return {};
}

static void chooseResult(NodeImporter &n, size_t i, Value condition,
                         StringRef yes, StringRef no) {
  const Sequence *first = n.graph.findSequence(yes);
  const Sequence *second = n.graph.findSequence(no);
  if (!first && !second) {
    n.set(i, choose(n, condition, n.graph.lookup(yes), n.graph.lookup(no)));
    return;
  }
  if (!first || !second || first->size() != second->size()) {
    n.unsupported() << "its condition depends on data, and its branches give "
                       "sequences of different lengths";
    return;
  }
  Sequence chosen;
  for (auto [x, y] : llvm::zip(*first, *second))
    chosen.push_back(choose(n, condition, x, y));
  if (!n.hasFailed())
    n.setSequence(i, std::move(chosen));
}

static LogicalResult computeBoth(NodeImporter &n, Value condition,
                                 const Graph &yes, const Graph &no) {
  using Updates = GraphImporter::Updates;
  Updates before = n.graph.stateUpdates();
  auto first = n.graph.importBody(n, yes, {}, prefixOf(n, "then"));
  Updates afterFirst = std::exchange(n.graph.stateUpdates(), before);
  auto second = n.graph.importBody(n, no, {}, prefixOf(n, "else"));
  if (failed(first) || failed(second))
    return failure();
  if (first->size() != second->size() || first->size() != n.numOutputs()) {
    n.error() << "its branches have " << int64_t(first->size()) << " and "
              << int64_t(second->size()) << " outputs, the node "
              << int64_t(n.numOutputs());
    return failure();
  }
  Updates afterSecond = std::exchange(n.graph.stateUpdates(), before);
  auto valueIn = [](Updates &updates, Value state) {
    auto found = updates.find(state);
    return found == updates.end() ? state : found->second;
  };
  Updates all = afterFirst;
  for (auto &entry : afterSecond)
    all.insert(entry);
  for (auto &[state, value] : all)
    n.graph.updateState(state, choose(n, condition, valueIn(afterFirst, state),
                                      valueIn(afterSecond, state)));
  for (size_t i = 0; i < first->size(); ++i)
    chooseResult(n, i, condition, (*first)[i], (*second)[i]);
  return success(!n.hasFailed());
}

static LogicalResult conditional(NodeImporter &n) {
  Value condition = n.in(0);
  const Graph *yes = subgraph(n, "then_branch"),
              *no = subgraph(n, "else_branch");
  if (!condition || !yes || !no)
    return failure();
  if (n.type(condition).getNumElements() != 1) {
    n.error() << "its condition has type " << condition.getType()
              << " instead of one element";
    return failure();
  }
  auto known = n.scalarOf(condition);
  if (!known)
    return computeBoth(n, n.reshape(condition, {}), *yes, *no);
  auto results = n.graph.importBody(n, *known != 0 ? *yes : *no, {},
                                    prefixOf(n, *known != 0 ? "then" : "else"));
  if (failed(results))
    return failure();
  if (results->size() != n.numOutputs()) {
    n.error() << "its branch has " << int64_t(results->size())
              << " outputs, the node " << int64_t(n.numOutputs());
    return failure();
  }
  for (auto [i, name] : llvm::enumerate(*results))
    setFrom(n, i, name);
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

namespace {
/// Results of the rounds of a loop.
struct Rounds {
  explicit Rounds(size_t scans) : scans(scans) {}
  Names carried;
  std::vector<SmallVector<Value>> scans; ///< by result, then by round
};
} // namespace

/// The values of all rounds along a new dimension `axis`.
static Value stack(NodeImporter &n, const ValueInfo &info,
                   ArrayRef<Value> values, int64_t axis) {
  if (values.empty()) { // the type is the one that the file declares
    Shape shape;
    bool known = info.dtype && info.shape;
    for (size_t d = 0; known && d < info.shape->size(); ++d) {
      shape.push_back((*info.shape)[d].size);
      known &= shape.back() >= 0;
    }
    auto normal =
        known ? n.normalAxis(axis, int64_t(shape.size()) + 1) : std::nullopt;
    if (!normal) {
      n.unsupported() << "runs no round, and the file does not say the shape "
                         "of '"
                      << info.name << "'";
      return {};
    }
    shape.insert(shape.begin() + *normal, 0);
    return n.splat(0, n.tensor(shape, n.graph.elementType(*info.dtype)));
  }
  auto normal = n.normalAxis(axis, n.rank(values[0]) + 1);
  if (!normal)
    return {};
  SmallVector<Value> parts;
  for (Value value : values) {
    if (value.getType() != values[0].getType()) {
      n.error() << "collects '" << info.name << "' of types "
                << values[0].getType() << " and " << value.getType();
      return {};
    }
    Shape shape(n.shape(value));
    shape.insert(shape.begin() + *normal, 1);
    parts.push_back(n.reshape(value, shape));
  }
  return n.concat(std::move(parts), *normal);
}

/// Runs one round and reads its results: those before `scansFrom` are inputs of
/// the next one. (The first result of a Loop, the condition, is stored in
/// `condition`.)
static bool runRound(NodeImporter &n, const Graph &body, const Names &arguments,
                     StringRef prefix, Rounds &rounds,
                     std::string *condition = nullptr) {
  auto results = n.graph.importBody(n, body, arguments, prefix);
  if (failed(results))
    return false;
  size_t skip = condition ? 1 : 0;
  size_t carried = rounds.carried.size();
  if (results->size() != skip + carried + rounds.scans.size()) {
    n.error() << "its subgraph has " << int64_t(results->size())
              << " outputs instead of "
              << int64_t(skip + carried + rounds.scans.size());
    return false;
  }
  if (condition)
    *condition = results->front();
  for (size_t i = 0; i < carried; ++i)
    rounds.carried[i] = (*results)[skip + i];
  for (auto [i, scan] : llvm::enumerate(rounds.scans)) {
    StringRef name = (*results)[skip + carried + i];
    if (n.graph.findSequence(name)) {
      n.unsupported() << "collects sequences ('" << name << "')";
      return false;
    }
    scan.push_back(n.graph.lookup(name));
  }
  return true;
}

/// Returns whether a loop continues after a condition; nothing after an error.
static std::optional<bool> goesOn(NodeImporter &n, StringRef condition) {
  Value value = n.graph.lookup(condition);
  if (auto known = n.scalarOf(value))
    return *known != 0;
  if (value)
    n.needConstant(
        value, ("whether it goes on (condition '" + condition + "')").str());
  return std::nullopt;
}

/// Refuses what would be too long, before any round is made.
static LogicalResult checkRounds(NodeImporter &n, const Graph &body,
                                 int64_t rounds) {
  constexpr int64_t most = int64_t(1) << 40;
  const int64_t nodes =
      std::min<int64_t>(int64_t(body.nodes.size()), 1 << 20) + 1;
  return n.graph.checkUnrolled(n, std::min(rounds, most) * nodes);
}

static LogicalResult loop(NodeImporter &n) {
  constexpr int64_t mostRounds = 1 << 18;
  const Graph *body = subgraph(n, "body");
  if (!body)
    return failure();
  size_t carried = n.numInputs() < 2 ? 0 : n.numInputs() - 2;
  if (body->inputs.size() != carried + 2 ||
      body->outputs.size() < carried + 1) {
    n.error() << "its body takes " << int64_t(body->inputs.size())
              << " inputs, the node gives " << int64_t(carried + 2);
    return failure();
  }
  int64_t limit = mostRounds;
  if (n.has(0)) {
    auto given = n.constInts(0);
    if (!given || given->size() != 1)
      return failure();
    limit = given->front();
  }
  std::optional<bool> on = true;
  if (n.has(1))
    on = goesOn(n, n.node.inputs[1]);
  // A condition may end it earlier than its limit.
  bool isCounted = n.has(0) && !n.has(1);
  if (isCounted && failed(checkRounds(n, *body, limit)))
    return failure();
  Rounds rounds(body->outputs.size() - carried - 1);
  for (size_t i = 0; i < carried; ++i)
    rounds.carried.push_back(n.node.inputs[i + 2]);
  for (int64_t round = 0; on && *on && round < limit; ++round) {
    if (round == mostRounds) {
      n.unsupported() << "does not end within " << mostRounds << " rounds";
      return failure();
    }
    std::string prefix = prefixOf(n, Twine(round)), condition;
    Names arguments{bindNumber(n, body->inputs[0], double(round),
                               n.b.getI64Type(), prefix + "(round)"),
                    bindNumber(n, body->inputs[1], 1, n.b.getI1Type(),
                               prefix + "(condition)")};
    llvm::append_range(arguments, rounds.carried);
    if (!runRound(n, *body, arguments, prefix, rounds, &condition))
      return failure();
    if (round + 1 < limit)
      on = goesOn(n, condition);
  }
  if (!on)
    return failure();
  for (auto [i, name] : llvm::enumerate(rounds.carried))
    setFrom(n, i, name);
  for (auto [i, values] : llvm::enumerate(rounds.scans))
    if (n.wants(carried + i))
      n.set(carried + i, stack(n, body->outputs[1 + carried + i], values, 0));
  return success();
}

//===----------------------------------------------------------------------===//
// Scan
//===----------------------------------------------------------------------===//

namespace {
struct ScanForm {
  const Graph *body;
  size_t states, inputs, outputs;
  Shape inputAxes, inputDirections, outputAxes, outputDirections;
};
} // namespace

/// Returns entry `at` of dimension `axis`, without that dimension.
static Value entryOf(NodeImporter &n, Value x, int64_t axis, int64_t at) {
  Value part = n.sliceAxis(x, axis, at, 1);
  if (!part)
    return {};
  Shape shape(n.shape(part));
  shape.erase(shape.begin() + axis);
  return n.reshape(part, shape);
}

/// Computes final states and stacked outputs of one scan over `inputs`.
static bool runScan(NodeImporter &n, const ScanForm &form, Names states,
                    ArrayRef<Value> inputs, StringRef prefix,
                    SmallVectorImpl<Value> &results) {
  Shape axes;
  int64_t length = -1;
  for (auto [i, x] : llvm::enumerate(inputs)) {
    auto axis = n.normalAxis(form.inputAxes[i], n.rank(x));
    if (!axis)
      return false;
    axes.push_back(*axis);
    if (length >= 0 && n.shape(x)[*axis] != length) {
      n.error() << "its scan inputs have " << length << " and "
                << n.shape(x)[*axis] << " entries";
      return false;
    }
    length = n.shape(x)[*axis];
  }
  if (failed(checkRounds(n, *form.body, length)))
    return false;
  Rounds rounds(form.outputs);
  rounds.carried = std::move(states);
  for (int64_t round = 0; round < length; ++round) {
    std::string inner = (prefix + Twine(round) + "/").str();
    Names arguments = rounds.carried;
    for (auto [i, x] : llvm::enumerate(inputs)) {
      int64_t at = form.inputDirections[i] ? length - 1 - round : round;
      arguments.push_back(inner + "(" + std::to_string(i) + ")");
      n.graph.bind(arguments.back(), entryOf(n, x, axes[i], at));
    }
    if (n.hasFailed() || !runRound(n, *form.body, arguments, inner, rounds))
      return false;
  }
  for (const std::string &name : rounds.carried)
    results.push_back(n.graph.lookup(name));
  for (auto [i, values] : llvm::enumerate(rounds.scans)) {
    if (form.outputDirections[i])
      std::reverse(values.begin(), values.end());
    results.push_back(stack(n, form.body->outputs[form.states + i], values,
                            form.outputAxes[i]));
  }
  return !n.hasFailed();
}

/// Reads the numbers of operands and results, and the axes and directions in
/// which they are sliced. `first` is the number of operands before the states.
static std::optional<ScanForm> readScan(NodeImporter &n, size_t first) {
  ScanForm form;
  form.body = subgraph(n, "body");
  int64_t inputs = n.attrInt("num_scan_inputs", 0);
  if (!form.body)
    return std::nullopt;
  int64_t all = int64_t(n.numInputs()) - int64_t(first);
  if (inputs < 1 || inputs > all || form.body->inputs.size() != size_t(all) ||
      form.body->outputs.size() != n.numOutputs() ||
      int64_t(n.numOutputs()) < all - inputs) {
    n.error() << "scans " << inputs << " of " << all << " operands; its body "
              << "has " << int64_t(form.body->inputs.size()) << " inputs and "
              << int64_t(form.body->outputs.size()) << " outputs";
    return std::nullopt;
  }
  form.inputs = size_t(inputs);
  form.states = size_t(all - inputs);
  form.outputs = n.numOutputs() - form.states;
  auto list = [&](StringRef name, size_t size) {
    Shape given = n.attrInts(name, Shape(size, 0));
    if (given.size() != size)
      n.error() << "attribute '" << name << "' must have " << int64_t(size)
                << " entries";
    return given;
  };
  form.inputDirections =
      list(first ? "directions" : "scan_input_directions", form.inputs);
  form.inputAxes = list("scan_input_axes", form.inputs);
  form.outputDirections = list("scan_output_directions", form.outputs);
  form.outputAxes = list("scan_output_axes", form.outputs);
  if (n.hasFailed())
    return std::nullopt;
  return form;
}

static LogicalResult scan(NodeImporter &n) {
  auto form = readScan(n, 0);
  if (!form)
    return failure();
  SmallVector<Value> inputs = n.inputsFrom(form->states), results;
  if (llvm::is_contained(inputs, Value()))
    return failure();
  for (auto [i, x] : llvm::enumerate(inputs)) {
    auto axis = n.normalAxis(form->inputAxes[i], n.rank(x));
    if (!axis || n.cutsBatch(*axis, form->states + i))
      return failure();
  }
  Names states(n.node.inputs.begin(),
               n.node.inputs.begin() + int64_t(form->states));
  if (!runScan(n, *form, states, inputs, prefixOf(n, ""), results))
    return failure();
  for (auto [i, value] : llvm::enumerate(results))
    n.set(i, value);
  return success();
}

/// In opset 8, operand 0 holds lengths, and all others begin with a batch
/// dimension.
static LogicalResult scanBatch(NodeImporter &n) {
  auto form = readScan(n, 1);
  if (!form)
    return failure();
  if (n.has(0)) {
    n.unsupported() << "Scan of opset 8 with lengths of sequences";
    return failure();
  }
  SmallVector<Value> operands = n.inputsFrom(1);
  if (llvm::is_contained(operands, Value()))
    return failure();
  int64_t batch = n.rank(operands[0]) ? n.shape(operands[0])[0] : 0;
  std::vector<SmallVector<Value>> all(n.numOutputs());
  for (int64_t entry = 0; entry < batch; ++entry) {
    std::string prefix = prefixOf(n, Twine(entry));
    Names states;
    SmallVector<Value> inputs, results;
    for (auto [i, x] : llvm::enumerate(operands)) {
      if (n.rank(x) < 1 || n.shape(x)[0] != batch) {
        n.error() << "its operands have different batches";
        return failure();
      }
      Value part = entryOf(n, x, 0, entry);
      if (i >= form->states) {
        inputs.push_back(part);
        continue;
      }
      states.push_back(prefix + "(state " + std::to_string(i) + ")");
      n.graph.bind(states.back(), part);
    }
    if (n.hasFailed() || n.cutsBatch(0, 1) ||
        !runScan(n, *form, states, inputs, prefix, results))
      return failure();
    for (auto [i, value] : llvm::enumerate(results))
      all[i].push_back(value);
  }
  for (auto [i, values] : llvm::enumerate(all))
    n.set(i, stack(n, form->body->outputs[i], values, 0));
  return success();
}

//===----------------------------------------------------------------------===//
// SequenceMap
//===----------------------------------------------------------------------===//

/// Runs the body for each tensor of the first operand. Further sequences are
/// indexed likewise; tensors are the same in each round.
static LogicalResult sequenceMap(NodeImporter &n) {
  const Graph *body = subgraph(n, "body");
  const Sequence *first = n.sequence(0);
  if (!body || !first)
    return failure();
  std::vector<Sequence> results(n.numOutputs());
  for (size_t round = 0; round < first->size(); ++round) {
    std::string prefix = prefixOf(n, Twine(round));
    Names arguments = n.node.inputs;
    for (auto [i, name] : llvm::enumerate(arguments)) {
      const Sequence *list = n.graph.findSequence(name);
      if (!list)
        continue;
      if (list->size() != first->size()) {
        n.error() << "its sequences have different lengths";
        return failure();
      }
      name = prefix + "(" + std::to_string(i) + ")";
      n.graph.bind(name, (*list)[round]);
    }
    auto names = n.graph.importBody(n, *body, arguments, prefix);
    if (failed(names))
      return failure();
    for (auto [result, name] : llvm::zip(results, *names))
      result.push_back(n.graph.lookup(name));
  }
  for (auto [i, result] : llvm::enumerate(results))
    n.setSequence(i, std::move(result));
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::controlHandlers() {
  static const HandlerEntry entries[] = {
      {"If", 1, conditional},           {"Loop", 1, loop},
      {"Scan", 8, scanBatch},           {"Scan", 9, scan},
      {"SequenceMap", 17, sequenceMap},
  };
  return entries;
}
