//===- RecurrentHandlers.cpp - LSTM, GRU and RNN, unrolled ----------------===//
//
// The product with the input is one contraction over all time steps; each step
// adds the product with the hidden state and goes on elementwise. Unrolling
// keeps autodiff and rematerialization free of loops: steps are ordinary ops,
// and may be recomputed one by one.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {

/// What the three cells share. Time-major: x is [T, B, I].
struct Recurrence {
  Value x, weights, recurrent, bias, hidden0, cell0;
  int64_t steps, batch, hidden, directions, gates;
  bool reverseFirst = false; ///< direction = reverse
  bool batchMajor = false;   ///< layout = 1
  std::vector<std::string> activations;
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

/// The state [D, B, H] given, or null.
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

/// sequence_lens may be there if it names all of the sequence.
static bool checkLengths(NodeImporter &n, const Recurrence &r) {
  if (!n.has(4))
    return true;
  Value lengths = n.in(4);
  if (lengths && n.isConstant(lengths)) {
    auto given = n.intsOf(lengths, "sequence_lens");
    if (given && llvm::all_of(*given, [&](int64_t t) { return t == r.steps; }))
      return true;
  }
  n.unsupported() << "sequences of different lengths (operand sequence_lens)";
  return false;
}

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
  r.activations = n.attrStrings("activations");
  if (r.directions == 1 && direction != "forward" && direction != "reverse") {
    n.error() << "unknown direction '" << direction << "'";
    return false;
  }
  if (n.hasAttr("clip")) {
    n.unsupported() << "attribute 'clip'";
    return false;
  }
  for (size_t i = 0; i < r.activations.size(); ++i)
    if (StringRef(r.activations[i]).lower() !=
        defaults[i % defaults.size()].lower()) {
      n.unsupported() << "activation '" << r.activations[i]
                      << "'; ckopt has the default ones";
      return false;
    }
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
  return checkLengths(n, r) && checkState(n, r.hidden0, r) &&
         checkState(n, r.cell0, r);
}

/// Cuts direction `d` out of the parameters and multiplies the whole input.
/// `addBoth`: the recurrent bias adds to the input's (all but GRU's).
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

/// Null: zeros, so that the first step leaves out what they multiply.
static Value initialState(NodeImporter &n, const Recurrence &r, Value state,
                          int64_t d) {
  if (!state || NodeImporter::scalarOf(state) == 0.0)
    return {};
  return n.reshape(n.sliceAxis(state, 0, d, 1), {r.batch, r.hidden});
}

/// Joins what each step and direction gave: Y [T, D, B, H] and the last
/// states [D, B, H], batch-major where asked.
static void setResults(NodeImporter &n, const Recurrence &r,
                       ArrayRef<SmallVector<Value>> outputs,
                       ArrayRef<SmallVector<Value>> finals) {
  if (n.wants(0)) {
    SmallVector<Value> sequences;
    for (const auto &steps : outputs) {
      SmallVector<Value> rows;
      for (Value h : steps)
        rows.push_back(n.reshape(h, {1, 1, r.batch, r.hidden}));
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
  if (n.has(7)) {
    n.unsupported() << "peepholes (operand P)";
    return failure();
  }
  if (n.attrInt("input_forget", 0)) {
    n.unsupported() << "input_forget = 1";
    return failure();
  }
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
      Value i = n.make<SigmoidOp>({gate(0)}), o = n.make<SigmoidOp>({gate(1)});
      Value f = n.make<SigmoidOp>({gate(2)}), g = n.make<TanhOp>({gate(3)});
      c = c ? n.add(n.mul(f, c), n.mul(i, g)) : n.mul(i, g);
      h = n.mul(o, n.make<TanhOp>({c}));
      steps[size_t(t)] = h;
    }
    outputs.push_back(std::move(steps));
    finals[0].push_back(h);
    finals[1].push_back(c);
  }
  setResults(n, r, outputs, finals);
  return success();
}

/// z, r, h gates; `linear_before_reset` multiplies the reset gate after the
/// product (as PyTorch does) or before it.
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
    // The product of a state with gates [from, from + count), with bias.
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
      Value zr = n.make<SigmoidOp>(
          {n.add(n.sliceAxis(x, 1, 0, 2 * H), product(h, 0, 2))});
      Value z = n.sliceAxis(zr, 1, 0, H), reset = n.sliceAxis(zr, 1, H, H);
      Value inner = after ? n.mul(reset, product(h, 2, 1))
                          : product(n.mul(reset, h), 2, 1);
      Value candidate =
          n.make<TanhOp>({n.add(n.sliceAxis(x, 1, 2 * H, H), inner)});
      h = n.add(n.mul(n.sub(n.scalar(1, z), z), candidate), n.mul(z, h));
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
      h = n.make<TanhOp>({gates});
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
