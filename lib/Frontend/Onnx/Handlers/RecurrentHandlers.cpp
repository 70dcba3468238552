//===- RecurrentHandlers.cpp - LSTM, GRU and RNN, unrolled ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The product with the input is one contraction over all time steps; each step
// adds the product with the hidden state and goes on elementwise. Unrolling
// keeps autodiff and rematerialization free of loops: steps are ordinary ops,
// and may be recomputed one by one.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "llvm/ADT/StringSwitch.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {

/// The activation of a gate, with its constants.
struct Activation {
  std::string name; ///< in lower case
  double alpha, beta;
};

/// Settings that the three cells share. Time comes first: x is [T, B, I].
struct Recurrence {
  Value x, weights, recurrent, bias, hidden0, cell0;
  int64_t steps, batch, hidden, directions, gates;
  bool reverseFirst = false; ///< direction = reverse
  bool batchMajor = false;   ///< layout = 1
  /// Of all directions, one after the other.
  std::vector<Activation> activations;
  size_t functions = 0;   ///< activations of one direction
  double clip = INFINITY; ///< limit of the activations' operands
  /// [B, 1] i64; null if all are full length
  Value lengths;

  Value activate(NodeImporter &n, int64_t direction, size_t function,
                 Value x) const;
  Value hold(NodeImporter &n, int64_t t, Value next, Value before) const;
};

/// One direction's parameters.
struct Direction {
  int64_t index;
  bool backward;
  Value inputGates; ///< [T, B, gates * H], with both biases where they add
  Value recurrent;  ///< [gates * H, H]
  Value recurrentBias;
};

} // namespace

/// Checks that the state, if given, is [D, B, H].
static bool checkState(NodeImporter &n, Value &state, const Recurrence &r) {
  if (!state)
    return true;
  if (r.batchMajor)
    state = n.transpose(state, {1, 0, 2});
  BatchScaling *scaling = n.graph.getScaling();
  if (state && scaling && n.rank(state) == 3 && n.shape(state)[1] != r.batch)
    state = scaling->resize(n, state, 1, r.batch);
  if (!state)
    return false;
  Shape want{r.directions, r.batch, r.hidden};
  if (n.shape(state) == ArrayRef<int64_t>(want))
    return true;
  n.error() << "an initial state must have shape " << shapeString(want)
            << ", got " << state.getType();
  return false;
}

/// Reads the lengths of sequences; none are kept if all are full length.
static bool readLengths(NodeImporter &n, Recurrence &r) {
  if (!n.has(4))
    return true;
  Value lengths = n.in(4);
  if (!lengths)
    return false;
  if (n.isConstant(lengths)) {
    auto given = n.intsOf(lengths, "sequence_lens");
    if (given && llvm::all_of(*given, [&](int64_t t) { return t == r.steps; }))
      return true;
  }
  if (n.type(lengths).getNumElements() != r.batch) {
    n.error() << "sequence_lens must have " << r.batch << " entries, got "
              << lengths.getType();
    return false;
  }
  r.lengths = n.cast(n.reshape(lengths, {r.batch, 1}), n.b.getI64Type());
  return bool(r.lengths);
}

/// Returns `next` where the sequences continue at time `t`, `before` (null for
/// zeros) where they have ended. Backwards, they have not begun, which is
/// handled in the same way.
Value Recurrence::hold(NodeImporter &n, int64_t t, Value next,
                       Value before) const {
  if (!lengths || !next)
    return next;
  Value runs =
      n.compare(ComparePredicate::GT, lengths, n.scalar(double(t), lengths));
  return n.select(runs, next, before ? before : n.scalar(0, next));
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

/// Returns the default constants of an activation; nothing for an unknown one.
static std::optional<std::pair<double, double>> defaultsOf(StringRef name) {
  return llvm::StringSwitch<std::optional<std::pair<double, double>>>(name)
      .Cases({"relu", "tanh", "sigmoid", "softsign", "softplus"},
             std::pair(0.0, 0.0))
      .Case("leakyrelu", std::pair(0.01, 0.0))
      .Cases({"thresholdedrelu", "elu"}, std::pair(1.0, 0.0))
      .Case("hardsigmoid", std::pair(0.2, 0.5))
      .Case("affine", std::pair(1.0, 0.0))
      .Case("scaledtanh", std::pair(1.0, 1.0))
      .Default(std::nullopt);
}

/// The lists of constants only contain those of activations that need them, in
/// order.
static bool readActivations(NodeImporter &n, ArrayRef<StringRef> defaults,
                            Recurrence &r) {
  std::vector<std::string> names = n.attrStrings("activations");
  std::vector<double> alphas = n.attrFloats("activation_alpha"),
                      betas = n.attrFloats("activation_beta");
  r.functions = defaults.size();
  while (names.size() < size_t(r.directions) * r.functions)
    for (StringRef name : defaults)
      names.push_back(name.str());
  size_t nextAlpha = 0, nextBeta = 0;
  for (const std::string &name : names) {
    std::string lower = StringRef(name).lower();
    auto known = defaultsOf(lower);
    if (!known) {
      n.error() << "unknown activation '" << name << "'";
      return false;
    }
    auto [alpha, beta] = *known;
    bool takesBeta =
        lower == "hardsigmoid" || lower == "affine" || lower == "scaledtanh";
    bool takesAlpha = takesBeta || alpha != 0;
    if (takesAlpha && nextAlpha < alphas.size())
      alpha = alphas[nextAlpha++];
    if (takesBeta && nextBeta < betas.size())
      beta = betas[nextBeta++];
    r.activations.push_back({lower, alpha, beta});
  }
  return true;
}

static Value softsignOf(NodeImporter &n, Value x) {
  return n.div(x, n.add(n.scalar(1, x), n.make<AbsOp>({x})));
}

Value Recurrence::activate(NodeImporter &n, int64_t direction, size_t function,
                           Value x) const {
  if (!x)
    return {};
  if (std::isfinite(clip))
    x = n.clip(x, -clip, clip);
  const Activation &a = activations[size_t(direction) * functions + function];
  auto affine = [&](Value v) {
    return n.add(n.mul(v, n.scalar(a.alpha, x)), n.scalar(a.beta, x));
  };
  if (a.name == "tanh")
    return n.make<TanhOp>({x});
  if (a.name == "sigmoid")
    return n.make<SigmoidOp>({x});
  if (a.name == "relu")
    return n.make<ReluOp>({x});
  if (a.name == "softplus")
    return n.make<SoftplusOp>({x});
  if (a.name == "softsign")
    return softsignOf(n, x);
  if (a.name == "affine")
    return affine(x);
  if (a.name == "hardsigmoid")
    return n.clip(affine(x), 0, 1);
  if (a.name == "scaledtanh")
    return n.mul(n.make<TanhOp>({n.mul(x, n.scalar(a.beta, x))}),
                 n.scalar(a.alpha, x));
  Value zero = n.scalar(0, x);
  if (a.name == "thresholdedrelu")
    return n.select(n.compare(ComparePredicate::GT, x, n.scalar(a.alpha, x)), x,
                    zero);
  Value below = n.mul(x, n.scalar(a.alpha, x)); // leaky relu
  if (a.name == "elu") {
    Value bounded = n.broadcast<MinimumOp>({x, zero});
    below = n.mul(n.sub(n.make<ExpOp>({bounded}), n.scalar(1, x)),
                  n.scalar(a.alpha, x));
  }
  return n.select(n.compare(ComparePredicate::GE, x, zero), x, below);
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

static bool readRecurrence(NodeImporter &n, int64_t gates, bool hasCell,
                           ArrayRef<StringRef> defaults, Recurrence &r) {
  r.gates = gates;
  r.x = n.in(0);
  r.weights = n.in(1);
  r.recurrent = n.in(2);
  r.bias = n.optional(3);
  r.hidden0 = n.optional(5);
  r.cell0 = hasCell ? n.optional(6) : Value();
  if (!r.x || !r.weights || !r.recurrent)
    return false;
  std::string direction = n.attrString("direction", "forward");
  r.directions = direction == "bidirectional" ? 2 : 1;
  r.reverseFirst = direction == "reverse";
  r.batchMajor = n.attrInt("layout", 0) != 0;
  if (r.directions == 1 && direction != "forward" && direction != "reverse") {
    n.error() << "unknown direction '" << direction << "'";
    return false;
  }
  if (n.hasAttr("clip"))
    r.clip = n.attrFloat("clip", INFINITY);
  if (!readActivations(n, defaults, r))
    return false;
  if (n.rank(r.x) == 3 && r.batchMajor)
    r.x = n.transpose(r.x, {1, 0, 2});
  if (!r.x || n.rank(r.x) != 3 || n.rank(r.weights) != 3 ||
      n.rank(r.recurrent) != 3) {
    n.error() << "X, W and R must have rank 3";
    return false;
  }
  r.steps = n.shape(r.x)[0];
  r.batch = n.shape(r.x)[1];
  r.hidden = n.attrInt("hidden_size", n.shape(r.recurrent)[2]);
  if (r.hidden < 1 || r.hidden > int64_t(1) << 32 || r.steps < 1) {
    n.error() << "needs a positive hidden_size and a sequence that is not "
                 "empty";
    return false;
  }
  // A step of a cell is 9 to 20 ops.
  constexpr int64_t kMost = int64_t(1) << 40, kOpsPerStep = 12;
  if (failed(n.graph.chargeUnrolled(n, std::min(r.steps, kMost) * r.directions *
                                           kOpsPerStep)))
    return false;
  Shape wantW{r.directions, gates * r.hidden, n.shape(r.x)[2]};
  Shape wantR{r.directions, gates * r.hidden, r.hidden};
  Shape wantB{r.directions, 2 * gates * r.hidden};
  if (n.shape(r.weights) != ArrayRef<int64_t>(wantW) ||
      n.shape(r.recurrent) != ArrayRef<int64_t>(wantR) ||
      (r.bias && n.shape(r.bias) != ArrayRef<int64_t>(wantB))) {
    n.error() << "W, R and B must have shapes " << shapeString(wantW) << ", "
              << shapeString(wantR) << " and " << shapeString(wantB);
    return false;
  }
  return readLengths(n, r) && checkState(n, r.hidden0, r) &&
         checkState(n, r.cell0, r);
}

/// Slices direction `d` out of the parameters and multiplies the whole input.
/// `addBoth` says that the recurrent bias is added to the input's (in all cells
/// but GRU).
static Direction prepareDirection(NodeImporter &n, const Recurrence &r,
                                  int64_t d, bool addBoth) {
  int64_t width = r.gates * r.hidden, features = n.shape(r.x)[2];
  Direction direction;
  direction.index = d;
  direction.backward = r.reverseFirst || d == 1;
  auto part = [&](Value v, ArrayRef<int64_t> shape) {
    return n.reshape(n.sliceAxis(v, 0, d, 1), shape);
  };
  Value w = part(r.weights, {width, features});
  direction.recurrent = part(r.recurrent, {width, r.hidden});
  Value flat = n.reshape(r.x, {r.steps * r.batch, features});
  Value gates = n.matmul(flat, w, false, /*transposeY=*/true);
  if (r.bias) {
    Value both = part(r.bias, {2 * width});
    Value inputBias = n.sliceAxis(both, 0, 0, width);
    direction.recurrentBias = n.sliceAxis(both, 0, width, width);
    if (addBoth) {
      inputBias = n.add(inputBias, direction.recurrentBias);
      direction.recurrentBias = {};
    }
    gates = n.add(gates, inputBias);
  }
  direction.inputGates = n.reshape(gates, {r.steps, r.batch, width});
  return direction;
}

static Value stepGates(NodeImporter &n, const Recurrence &r,
                       const Direction &direction, int64_t t) {
  return n.reshape(n.sliceAxis(direction.inputGates, 0, t, 1),
                   {r.batch, r.gates * r.hidden});
}

/// Returns the initial state; null stands for zeros, so that the first step
/// omits products with it.
static Value initialState(NodeImporter &n, const Recurrence &r, Value state,
                          int64_t d) {
  if (!state || NodeImporter::scalarOf(state) == 0.0)
    return {};
  return n.reshape(n.sliceAxis(state, 0, d, 1), {r.batch, r.hidden});
}

/// Joins the results of all steps and directions: Y [T, D, B, H] and the last
/// states [D, B, H], batch-major if the node asks for it.
static void setResults(NodeImporter &n, const Recurrence &r,
                       ArrayRef<SmallVector<Value>> outputs,
                       ArrayRef<SmallVector<Value>> finals) {
  if (n.wants(0)) {
    SmallVector<Value> sequences;
    for (const auto &steps : outputs) {
      SmallVector<Value> rows;
      for (auto [t, h] : llvm::enumerate(steps))
        rows.push_back(
            n.reshape(r.hold(n, int64_t(t), h, {}), {1, 1, r.batch, r.hidden}));
      sequences.push_back(n.concat(rows, 0));
    }
    Value y = n.concat(sequences, 1);
    n.set(0, r.batchMajor ? n.transpose(y, {2, 0, 1, 3}) : y);
  }
  for (auto [i, states] : llvm::enumerate(finals)) {
    if (!n.wants(i + 1))
      continue;
    SmallVector<Value> rows;
    for (Value state : states)
      rows.push_back(n.reshape(state, {1, r.batch, r.hidden}));
    Value last = n.concat(rows, 0);
    n.set(i + 1, r.batchMajor ? n.transpose(last, {1, 0, 2}) : last);
  }
}

static LogicalResult lstm(NodeImporter &n) {
  Recurrence r;
  if (!readRecurrence(n, 4, /*hasCell=*/true, {"Sigmoid", "Tanh", "Tanh"}, r))
    return failure();
  Value peepholes = n.optional(7);
  if (n.has(7) && (!peepholes ||
                   n.shape(peepholes) !=
                       ArrayRef<int64_t>(Shape{r.directions, 3 * r.hidden}))) {
    n.error() << "P must have shape "
              << shapeString(Shape{r.directions, 3 * r.hidden});
    return failure();
  }
  bool coupled = n.attrInt("input_forget", 0) != 0;
  SmallVector<SmallVector<Value>> outputs, finals(2);
  for (int64_t d = 0; d < r.directions; ++d) {
    Direction direction = prepareDirection(n, r, d, /*addBoth=*/true);
    Value h = initialState(n, r, r.hidden0, d);
    Value c = initialState(n, r, r.cell0, d);
    SmallVector<Value> steps(static_cast<size_t>(r.steps));
    for (int64_t k = 0; k < r.steps && !n.hasFailed(); ++k) {
      int64_t t = direction.backward ? r.steps - 1 - k : k;
      Value gates = stepGates(n, r, direction, t);
      if (h)
        gates = n.add(gates, n.matmul(h, direction.recurrent, false, true));
      auto gate = [&](int64_t g) {
        return n.sliceAxis(gates, 1, g * r.hidden, r.hidden);
      };
      // Adds a peephole: the gate's input plus part `p` of the peepholes times
      // the state.
      auto peep = [&](Value x, int64_t p, Value state) {
        if (!peepholes || !state)
          return x;
        Value weights = n.sliceAxis(
            n.reshape(n.sliceAxis(peepholes, 0, d, 1), {3 * r.hidden}), 0,
            p * r.hidden, r.hidden);
        return n.add(x, n.mul(state, weights));
      };
      Value i = r.activate(n, d, 0, peep(gate(0), 0, c));
      Value f = coupled ? n.sub(n.scalar(1, gates), i)
                        : r.activate(n, d, 0, peep(gate(2), 2, c));
      Value g = r.activate(n, d, 1, gate(3));
      Value next = c ? n.add(n.mul(f, c), n.mul(i, g)) : n.mul(i, g);
      Value o = r.activate(n, d, 0, peep(gate(1), 1, next));
      h = r.hold(n, t, n.mul(o, r.activate(n, d, 2, next)), h);
      c = r.hold(n, t, next, c);
      steps[size_t(t)] = h;
    }
    outputs.push_back(std::move(steps));
    finals[0].push_back(h);
    finals[1].push_back(c);
  }
  setResults(n, r, outputs, finals);
  return success();
}

/// Gates are z, r, h; with `linear_before_reset` the reset gate multiplies
/// after the product (as in PyTorch), else before it.
static LogicalResult gru(NodeImporter &n) {
  Recurrence r;
  if (!readRecurrence(n, 3, /*hasCell=*/false, {"Sigmoid", "Tanh"}, r))
    return failure();
  bool after = n.attrInt("linear_before_reset", 0) != 0;
  SmallVector<SmallVector<Value>> outputs, finals(1);
  int64_t H = r.hidden;
  for (int64_t d = 0; d < r.directions; ++d) {
    Direction direction = prepareDirection(n, r, d, /*addBoth=*/false);
    Value h = initialState(n, r, r.hidden0, d);
    if (!h)
      h = n.splat(0, n.tensor({r.batch, r.hidden}, n.element(r.x)));
    SmallVector<Value> steps(static_cast<size_t>(r.steps));
    // Returns the product of a state with gates [from, from + count), with
    // bias.
    auto product = [&](Value state, int64_t from, int64_t count) -> Value {
      Value y = n.matmul(
          state, n.sliceAxis(direction.recurrent, 0, from * H, count * H),
          false, true);
      if (direction.recurrentBias)
        y = n.add(y,
                  n.sliceAxis(direction.recurrentBias, 0, from * H, count * H));
      return y;
    };
    for (int64_t k = 0; k < r.steps && !n.hasFailed(); ++k) {
      int64_t t = direction.backward ? r.steps - 1 - k : k;
      Value x = stepGates(n, r, direction, t);
      Value zr = r.activate(
          n, d, 0, n.add(n.sliceAxis(x, 1, 0, 2 * H), product(h, 0, 2)));
      Value z = n.sliceAxis(zr, 1, 0, H), reset = n.sliceAxis(zr, 1, H, H);
      Value inner = after ? n.mul(reset, product(h, 2, 1))
                          : product(n.mul(reset, h), 2, 1);
      Value candidate =
          r.activate(n, d, 1, n.add(n.sliceAxis(x, 1, 2 * H, H), inner));
      Value next =
          n.add(n.mul(n.sub(n.scalar(1, z), z), candidate), n.mul(z, h));
      h = r.hold(n, t, next, h);
      steps[size_t(t)] = h;
    }
    outputs.push_back(std::move(steps));
    finals[0].push_back(h);
  }
  setResults(n, r, outputs, finals);
  return success();
}

static LogicalResult rnn(NodeImporter &n) {
  Recurrence r;
  if (!readRecurrence(n, 1, /*hasCell=*/false, {"Tanh"}, r))
    return failure();
  SmallVector<SmallVector<Value>> outputs, finals(1);
  for (int64_t d = 0; d < r.directions; ++d) {
    Direction direction = prepareDirection(n, r, d, /*addBoth=*/true);
    Value h = initialState(n, r, r.hidden0, d);
    SmallVector<Value> steps(static_cast<size_t>(r.steps));
    for (int64_t k = 0; k < r.steps && !n.hasFailed(); ++k) {
      int64_t t = direction.backward ? r.steps - 1 - k : k;
      Value gates = stepGates(n, r, direction, t);
      if (h)
        gates = n.add(gates, n.matmul(h, direction.recurrent, false, true));
      h = r.hold(n, t, r.activate(n, d, 0, gates), h);
      steps[size_t(t)] = h;
    }
    outputs.push_back(std::move(steps));
    finals[0].push_back(h);
  }
  setResults(n, r, outputs, finals);
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::recurrentHandlers() {
  static const HandlerEntry entries[] = {
      {"GRU", 7, gru},
      {"LSTM", 7, lstm},
      {"RNN", 7, rnn},
  };
  return entries;
}
