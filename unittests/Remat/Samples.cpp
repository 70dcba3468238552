//===- Samples.cpp - small functions on tensors ---------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Samples.h"

#include <random>

using namespace ckopt::test;

static const std::string kT = "tensor<256xf32>";

namespace {

/// Writes ops one after the other; values are numbers.
class Writer {
public:
  using V = std::string;
  V fresh() { return "%v" + std::to_string(next++); }
  V line(const std::string &text) {
    V v = fresh();
    body += "  " + v + " = " + text + "\n";
    return v;
  }
  void plain(const std::string &text) { body += "  " + text + "\n"; }
  V empty() { return line("tensor.empty() : " + kT); }
  V constant(int n) {
    return line("arith.constant " + std::to_string(n) + " : index");
  }
  V linalg1(int kind, V in, V out) {
    static const char *ops[] = {"exp", "tanh", "negf", "abs"};
    return line(std::string("linalg.") + ops[kind % 4] + " ins(" + in + " : " +
                kT + ") outs(" + out + " : " + kT + ") -> " + kT);
  }
  V linalg2(int kind, V a, V b, V out) {
    static const char *ops[] = {"add", "mul", "sub", "max"};
    return line(std::string("linalg.") + ops[kind % 4] + " ins(" + a + ", " +
                b + " : " + kT + ", " + kT + ") outs(" + out + " : " + kT +
                ") -> " + kT);
  }
  V math(int kind, V in) {
    static const char *ops[] = {"exp", "tanh", "sin", "cos"};
    return line(std::string("math.") + ops[kind % 4] + " " + in + " : " + kT);
  }
  V arith(int kind, V a, V b) {
    static const char *ops[] = {"addf", "mulf", "subf", "maximumf"};
    return line(std::string("arith.") + ops[kind % 4] + " " + a + ", " + b +
                " : " + kT);
  }
  /// Reads the elements from the last to the first, so not in place.
  V reversed(V in) {
    return line(
        "linalg.generic {indexing_maps = [affine_map<(d) -> (255 - d)>, "
        "affine_map<(d) -> (d)>], iterator_types = [\"parallel\"]} ins(" +
        in + " : " + kT + ") outs(" + empty() + " : " + kT +
        ") { ^bb0(%p: f32, %q: f32): %z = math.sin %p : f32 "
        "linalg.yield %z : f32 } -> " +
        kT);
  }
  V call(const std::string &callee, V in) {
    return line("func.call @" + callee + "(" + in + ") : (" + kT + ") -> " +
                kT);
  }
  /// A loop that carries one tensor; `inside` returns what is yielded.
  template <typename Inside> V loop(V count, V init, Inside &&inside) {
    V zero = constant(0), one = constant(1), result = fresh(),
      carried = fresh(), index = fresh();
    body += "  " + result + " = scf.for " + index + " = " + zero + " to " +
            count + " step " + one + " iter_args(" + carried + " = " + init +
            ") -> (" + kT + ") {\n";
    V last = inside(carried);
    body += "  scf.yield " + last + " : " + kT + "\n  }\n";
    return result;
  }
  template <typename Then, typename Else>
  V branch(V condition, Then &&then, Else &&other) {
    V result = fresh();
    body += "  " + result + " = scf.if " + condition + " -> (" + kT + ") {\n";
    V first = then();
    body += "  scf.yield " + first + " : " + kT + "\n  } else {\n";
    V second = other();
    body += "  scf.yield " + second + " : " + kT + "\n  }\n";
    return result;
  }
  std::string function(const std::string &result,
                       const std::string &others = "") const {
    return others + "func.func @main(%x: " + kT + ", %y: " + kT +
           ", %c: i1, %n: index) -> " + kT + " {\n" + body + "  return " +
           result + " : " + kT + "\n}\n";
  }

private:
  std::string body;
  int next = 0;
};

using V = Writer::V;

/// How an op's destination is found.
enum class Out { Shared, Own, None };

class Maker {
public:
  std::vector<Sample> all;
  void add(const std::string &name, const Writer &w, V result,
           const std::string &others = "") {
    all.push_back({name, w.function(result, others)});
  }
  void chains();
  void residuals();
  void loops();
  void loopsOfSeveral();
  void branches();
  void calls();
  void shapes();
  void mixed(unsigned seed);
};

} // namespace

static V unary(Writer &w, Out out, V shared, int kind, V in) {
  if (out == Out::None)
    return w.math(kind, in);
  return w.linalg1(kind, in, out == Out::Shared ? shared : w.empty());
}

static V binary(Writer &w, Out out, V shared, int kind, V a, V b) {
  if (out == Out::None)
    return w.arith(kind, a, b);
  return w.linalg2(kind, a, b, out == Out::Shared ? shared : w.empty());
}

static const char *nameOf(Out out) {
  return out == Out::Shared ? "shared" : out == Out::Own ? "own" : "none";
}

static constexpr Out outs[] = {Out::Shared, Out::Own, Out::None};

static V chain(Writer &w, Out out, V shared, int n, V from) {
  for (int i = 0; i < n; ++i)
    from = unary(w, out, shared, i, from);
  return from;
}

void Maker::chains() {
  for (Out out : outs)
    for (int n : {1, 3, 8}) {
      Writer w;
      V shared = w.empty();
      add("chain_" + std::string(nameOf(out)) + std::to_string(n), w,
          chain(w, out, shared, n, "%x"));
    }
}

/// Values that are read again in the opposite order, as gradients do.
void Maker::residuals() {
  for (Out out : outs)
    for (int n : {3, 6}) {
      Writer w;
      V shared = w.empty();
      std::vector<V> kept{"%x"};
      for (int i = 0; i < n; ++i)
        kept.push_back(unary(w, out, shared, i, kept.back()));
      V g = kept.back();
      for (int i = n; i-- > 0;)
        g = binary(w, out, shared, i, g, kept[size_t(i)]);
      add("residual_" + std::string(nameOf(out)) + std::to_string(n), w, g);
    }
}

void Maker::loops() {
  for (Out out : outs)
    for (int n : {2, 8, 32}) {
      Writer w;
      V shared = w.empty(), count = n == 8 ? V("%n") : w.constant(4);
      V r = w.loop(count, "%x", [&](V carried) {
        return chain(w, out, shared, n, carried);
      });
      add("loop_" + std::string(nameOf(out)) + std::to_string(n), w, r);
    }
  for (Out out : outs) { // what is captured is read later, too
    Writer w;
    V shared = w.empty(), a = unary(w, out, shared, 0, "%x"),
      b = unary(w, out, shared, 1, a);
    V r = w.loop(w.constant(3), b, [&](V carried) {
      return binary(w, out, shared, 1, binary(w, out, shared, 0, carried, a),
                    b);
    });
    add("loop_captures_" + std::string(nameOf(out)), w,
        binary(w, out, shared, 1, r, binary(w, out, shared, 2, a, b)));
  }
  Writer w;
  V shared = w.empty();
  V r = w.loop(w.constant(3), "%x", [&](V outer) {
    V inner = w.loop(w.constant(2), outer, [&](V carried) {
      return chain(w, Out::Shared, shared, 3, carried);
    });
    return binary(w, Out::Shared, shared, 0, inner, outer);
  });
  add("loop_nested", w, r);
}

void Maker::loopsOfSeveral() {
  for (bool swaps : {false, true}) {
    Writer w;
    V a = w.math(0, "%x"), b = w.math(1, a), c = w.math(2, b), d = w.math(3, c);
    V zero = w.constant(0), one = w.constant(1), five = w.constant(5);
    w.plain("%r:2 = scf.for %i = " + zero + " to " + five + " step " + one +
            " iter_args(%p = " + d + ", %q = " + c + ") -> (" + kT + ", " + kT +
            ") {");
    V u = w.arith(1, "%p", b), v = w.arith(0, "%q", u);
    w.plain("scf.yield " + (swaps ? v + ", " + u : u + ", " + v) + " : " + kT +
            ", " + kT + "\n  }");
    V g = w.arith(1, w.arith(0, "%r#0", "%r#1"), c);
    add(swaps ? "loop_two_swapped" : "loop_two", w,
        w.arith(1, w.arith(1, g, b), a));
  }
  for (Out out : outs) {
    Writer w;
    V shared = w.empty(), zero = w.constant(0), one = w.constant(1);
    w.plain("%r:2 = scf.while (%p = %x, %k = " + zero + ") : (" + kT +
            ", index) -> (" + kT + ", index) {");
    V more = w.line("arith.cmpi slt, %k, %n : index");
    w.plain("scf.condition(" + more + ") %p, %k : " + kT + ", index\n  } do {");
    w.plain("^bb0(%q: " + kT + ", %l: index):");
    V next = chain(w, out, shared, 3, "%q"),
      count = w.line("arith.addi %l, " + one + " : index");
    w.plain("scf.yield " + next + ", " + count + " : " + kT + ", index\n  }");
    add("while_" + std::string(nameOf(out)), w,
        unary(w, out, shared, 1, "%r#0"));
  }
}

void Maker::branches() {
  for (Out out : outs) {
    for (bool passes : {false, true}) {
      Writer w;
      V shared = w.empty(), a = unary(w, out, shared, 0, "%x"),
        b = unary(w, out, shared, 1, a);
      V r = w.branch(
          "%c", [&] { return chain(w, out, shared, 3, b); },
          [&] { return passes ? b : binary(w, out, shared, 0, a, b); });
      add(std::string(passes ? "branch_passes_" : "branch_") + nameOf(out), w,
          binary(w, out, shared, 1, r, a));
    }
  }
  Writer either; // of two tensors that are there: a choice of buffers
  V first = either.linalg1(1, "%x", either.empty()),
    second = either.linalg1(0, first, either.empty());
  V chosen = either.branch("%c", [&] { return first; }, [&] { return second; });
  add("branch_chooses", either, either.reversed(either.reversed(chosen)));
  Writer w;
  V a = w.math(0, "%x");
  V r = w.branch(
      "%c",
      [&] {
        return w.loop(w.constant(2), a,
                      [&](V carried) { return w.arith(0, carried, "%y"); });
      },
      [&] { return V("%y"); });
  add("branch_of_loop", w, w.arith(0, r, a));
}

static const std::string kTick =
    R"(memref.global @g : memref<1xf32> = dense<0.5>
func.func private @tick(%t: tensor<256xf32>) -> tensor<256xf32> {
  %m = memref.get_global @g : memref<1xf32>
  %c0 = arith.constant 0 : index
  %l = memref.load %m[%c0] : memref<1xf32>
  %k = arith.addf %l, %l : f32
  memref.store %l, %m[%c0] : memref<1xf32>
  %s = tensor.splat %k : tensor<256xf32>
  %r = arith.mulf %t, %s : tensor<256xf32>
  return %r : tensor<256xf32>
}
)";
static const std::string kHelper =
    R"(func.func private @helper(%t: tensor<256xf32>) -> tensor<256xf32> {
  %e = tensor.empty() : tensor<256xf32>
  %a = linalg.exp ins(%t : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %b = linalg.tanh ins(%a : tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %c = linalg.mul ins(%a, %b : tensor<256xf32>, tensor<256xf32>) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  return %c : tensor<256xf32>
}
)";

void Maker::calls() {
  for (bool ticks : {false, true})
    for (int n : {1, 3}) {
      Writer w;
      std::string callee = ticks ? "tick" : "helper";
      std::vector<V> kept{"%x"};
      for (int i = 0; i < n; ++i)
        kept.push_back(w.math(i, w.call(callee, kept.back())));
      V g = w.call(callee, kept.back());
      for (int i = n; i > 0; --i)
        g = w.arith(1, g, kept[size_t(i)]);
      add("calls_" + callee + std::to_string(n), w, g, ticks ? kTick : kHelper);
    }
  Writer w;
  V r = w.loop(w.constant(3), "%x",
               [&](V carried) { return w.call("helper", carried); });
  add("calls_in_loop", w, w.arith(0, r, "%x"), kHelper);
}

void Maker::shapes() {
  const std::string half = "tensor<128xf32>";
  {
    Writer w;
    V a = w.math(0, "%x");
    V low = w.line("tensor.extract_slice " + a + "[0] [128] [1] : " + kT +
                   " to " + half);
    V high = w.line("tensor.extract_slice " + a + "[128] [128] [1] : " + kT +
                    " to " + half);
    V sum = w.line("arith.addf " + low + ", " + high + " : " + half);
    V back = w.line("tensor.insert_slice " + sum + " into " + a +
                    "[64] [128] [1] : " + half + " into " + kT);
    add("slices", w, w.arith(1, back, "%y"));
  }
  {
    Writer w;
    V a = w.math(0, "%x");
    V r = w.loop(w.constant(2), a, [&](V carried) {
      V part = w.line("tensor.extract_slice " + carried +
                      "[0] [128] [1] : " + kT + " to " + half);
      V changed = w.line("math.tanh " + part + " : " + half);
      return w.line("tensor.insert_slice " + changed + " into " + carried +
                    "[0] [128] [1] : " + half + " into " + kT);
    });
    add("slices_in_loop", w, r);
  }
  for (Out out : outs) {
    Writer w;
    V shared = w.empty();
    const std::string square = "tensor<16x16xf32>";
    V m =
        w.line("tensor.expand_shape %x [[0, 1]] output_shape [16, 16] : " + kT +
               " into " + square);
    V zero = w.line("arith.constant 0.0 : f32");
    V e = w.line("tensor.empty() : " + square);
    for (int i = 0; i < 3; ++i) {
      V to = out == Out::Shared ? e : w.line("tensor.empty() : " + square);
      V filled = w.line("linalg.fill ins(" + zero + " : f32) outs(" + to +
                        " : " + square + ") -> " + square);
      m = w.line("linalg.matmul ins(" + m + ", " + m + " : " + square + ", " +
                 square + ") outs(" + filled + " : " + square + ") -> " +
                 square);
    }
    V flat = w.line("tensor.collapse_shape " + m + " [[0, 1]] : " + square +
                    " into " + kT);
    add("products_" + std::string(nameOf(out)), w,
        unary(w, out, shared, 1, flat));
  }
  {
    Writer w; // one operand is read in another order: no reuse
    V a = w.math(0, "%x"), e = w.empty();
    V r = w.line("linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, "
                 "affine_map<(d0) -> (255 - d0)>, affine_map<(d0) -> (d0)>], "
                 "iterator_types = [\"parallel\"]} ins(" +
                 a + ", " + a + " : " + kT + ", " + kT + ") outs(" + e + " : " +
                 kT +
                 ") {\n  ^bb0(%p: f32, %q: f32, %o: f32):\n    %s = "
                 "arith.subf %p, %q : f32\n    linalg.yield %s : f32\n  } "
                 "-> " +
                 kT);
    add("reversed", w, w.linalg1(1, r, e));
  }
}

void Maker::mixed(unsigned seed) {
  std::mt19937 random(seed);
  auto pick = [&](size_t n) { return size_t(random() % n); };
  Writer w;
  V shared = w.empty();
  std::vector<V> values{"%x", "%y"};
  auto any = [&] {
    return values[values.size() < 5 ? pick(values.size())
                                    : values.size() - 1 - pick(4)];
  };
  auto step = [&](V a, V b) {
    Out out = outs[pick(3)];
    int kind = int(pick(4));
    return pick(2) ? unary(w, out, shared, kind, a)
                   : binary(w, out, shared, kind, a, b);
  };
  for (int i = 0; i < 12; ++i) {
    size_t kind = pick(10);
    V a = any(), b = any();
    if (kind == 0)
      values.push_back(w.loop(pick(2) ? V("%n") : w.constant(int(pick(4))), a,
                              [&](V carried) { return step(carried, b); }));
    else if (kind == 1)
      values.push_back(w.branch(
          "%c", [&] { return step(a, b); },
          [&] { return pick(2) ? b : step(b, a); }));
    else if (kind == 2)
      values.push_back(w.call("helper", a));
    else
      values.push_back(step(a, b));
  }
  V sum = values.back();
  for (size_t i = values.size() - 1; i-- > 2;)
    if (pick(2))
      sum = binary(w, outs[pick(3)], shared, int(i), sum, values[i]);
  add("mixed" + std::to_string(seed), w, sum, kHelper);
}

std::vector<Sample> ckopt::test::samples() {
  Maker maker;
  maker.chains();
  maker.residuals();
  maker.loops();
  maker.loopsOfSeveral();
  maker.branches();
  maker.calls();
  maker.shapes();
  for (unsigned seed = 1; seed <= 24; ++seed)
    maker.mixed(seed);
  return maker.all;
}
