//===- SharedExpressionTest.cpp - one expression, many kernels, one value -===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Fusion computes an expression again inside each kernel that reads it, so its
// bits must not depend on the kernel: not on the layout, on what else the
// kernel computes, on vectors or scalars, on being the prologue of a reduction
// or of a row. Random expressions over all elementwise ops and the indexed ops
// that fuse are computed in five kernels, and each element is compared to the
// bit; within the CPU's code, the block form and the interpreted PTX, not
// between them.
//
// CKOPT_SHARED_EXPRESSIONS=N sets the number of expressions.
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace ckopt;
using namespace ckopt::test;

namespace {

/// Writes the ops of a random expression over x: [n, 2c, h], y: [n, c, h] and
/// the channel vectors b: [2c], s: [c].
class Expression {
public:
  Expression(uint64_t seed, std::string element)
      : random(seed), element(std::move(element)) {
    n = 1 + random() % 3;
    c = 1 + random() % 20;
    h = 1 + random() % 40;
  }

  /// The body in the layout `encoding` (", #ckopt.layout<...>" or ""); ends in
  /// %value. Equal calls write equal expressions.
  std::string write(const std::string &encoding) {
    layout = encoding;
    text.clear();
    names = 0;
    std::mt19937_64 saved = random;
    std::string last = make(4);
    random = saved;
    return text + "%value = ckopt.add " + last + ", " + last + " : (" + full() +
           ", " + full() + ") -> " + full() + "\n";
  }

  std::string full() const { return type({n, c, h}); }
  std::string arguments() const {
    return "%x: " + type({n, 2 * c, h}) + ", %y: " + full() +
           ", %b: " + flat(2 * c) + ", %s: " + flat(c);
  }
  std::string type(std::vector<int64_t> shape) const {
    std::string result = "tensor<";
    for (int64_t size : shape)
      result += std::to_string(size) + "x";
    return result + element + layout + ">";
  }
  std::string plain(std::vector<int64_t> shape) const {
    Expression copy = *this;
    copy.layout.clear();
    return copy.type(std::move(shape));
  }
  int64_t n, c, h;

private:
  std::string flat(int64_t size) const {
    return "tensor<" + std::to_string(size) + "x" + element + ">";
  }
  size_t pick(size_t count) { return random() % count; }
  std::string add(const std::string &op, const std::string &signature) {
    std::string name = "%v" + std::to_string(names++);
    text += name + " = " + op + " : " + signature + "\n";
    return name;
  }

  /// A channel vector as [1, size, 1].
  std::string channels(const std::string &name, int64_t size) {
    return add("ckopt.reshape " + name,
               "(" + flat(size) + ") -> " + plain({1, size, 1}));
  }

  std::string leaf() {
    switch (pick(4)) {
    case 0:
      return "%y";
    case 1: { // half of a split, as in gated units
      bool upper = pick(2);
      std::string first = std::to_string(upper ? c : 0);
      std::string wide = "%x";
      if (pick(2)) {
        std::string bias = channels("%b", 2 * c);
        wide = add("ckopt.add %x, " + bias, "(" + type({n, 2 * c, h}) + ", " +
                                                plain({1, 2 * c, 1}) + ") -> " +
                                                type({n, 2 * c, h}));
      }
      return add("ckopt.slice " + wide + " {starts = array<i64: 0, " + first +
                     ", 0>, sizes = array<i64: " + std::to_string(n) + ", " +
                     std::to_string(c) + ", " + std::to_string(h) +
                     ">, steps = array<i64: 1, 1, 1>}",
                 "(" + type({n, 2 * c, h}) + ") -> " + full());
    }
    case 2: { // scaled by channels
      std::string scale = channels("%s", c);
      return add("ckopt.mul %y, " + scale,
                 "(" + full() + ", " + plain({1, c, 1}) + ") -> " + full());
    }
    default: { // shifted by one along the last dimension
      std::string pad = add("ckopt.pad %y {low = array<i64: 0, 0, 1>, high = "
                            "array<i64: 0, 0, 0>, interior = array<i64: 0, 0, "
                            "0>, value = 0.25 : f64}",
                            "(" + full() + ") -> " + type({n, c, h + 1}));
      return add("ckopt.slice " + pad +
                     " {starts = array<i64: 0, 0, 0>, sizes = array<i64: " +
                     std::to_string(n) + ", " + std::to_string(c) + ", " +
                     std::to_string(h) + ">, steps = array<i64: 1, 1, 1>}",
                 "(" + type({n, c, h + 1}) + ") -> " + full());
    }
    }
  }

  std::string unary(const std::string &op, const std::string &x) {
    return add("ckopt." + op + " " + x, "(" + full() + ") -> " + full());
  }
  std::string binary(const std::string &op, const std::string &x,
                     const std::string &y) {
    return add("ckopt." + op + " " + x + ", " + y,
               "(" + full() + ", " + full() + ") -> " + full());
  }

  std::string make(unsigned depth) {
    if (depth == 0)
      return leaf();
    static const std::vector<std::string> unaries = {
        "neg",
        "abs",
        "sign",
        "exp",
        "tanh",
        "sigmoid",
        "erf",
        "sin",
        "cos",
        "floor",
        "ceil",
        "round",
        "relu",
        "gelu",
        "softplus",
        "reciprocal",
        "atan",
        "gelu {tanh}",
        "clip {min = -0.3, max = 0.6}"};
    static const std::vector<std::string> ofPositive = {"log", "sqrt", "rsqrt"};
    static const std::vector<std::string> binaries = {
        "add", "sub", "mul", "div", "maximum", "minimum"};
    size_t kind = pick(10);
    if (kind < 4) {
      const std::string &op = unaries[pick(unaries.size())];
      std::string x = make(depth - 1);
      size_t attributes = op.find(' ');
      return attributes == std::string::npos
                 ? unary(op, x)
                 : add("ckopt." + op.substr(0, attributes) + " " + x +
                           op.substr(attributes),
                       "(" + full() + ") -> " + full());
    }
    if (kind == 4) {
      const std::string &op = ofPositive[pick(ofPositive.size())];
      return unary(op, unary("exp", make(depth - 1)));
    }
    if (kind == 5) {
      std::string base = unary("sigmoid", make(depth - 1));
      return binary("pow", base, make(depth - 1));
    }
    if (kind == 6) {
      std::string x = make(depth - 1), y = make(depth - 1);
      std::string flags = type({n, c, h});
      flags.replace(flags.find(element), element.size(), "i1");
      std::string less = add("ckopt.compare lt " + x + ", " + y,
                             "(" + full() + ", " + full() + ") -> " + flags);
      return add("ckopt.select " + less + ", " + y + ", " + x,
                 "(" + flags + ", " + full() + ", " + full() + ") -> " +
                     full());
    }
    std::string x = make(depth - 1);
    return binary(binaries[pick(binaries.size())], x, make(depth - 1));
  }

  std::mt19937_64 random;
  std::string element, layout, text;
  unsigned names = 0;
};

/// The expression alone and row-major; with neighbours, channels-last; under a
/// maximum over columns and over rows; under a softmax along the last
/// dimension, of which only where it is largest is compared.
std::vector<std::string> kernelsOf(Expression &e) {
  std::string last = ", #ckopt.layout<[0, 2, 1]>";
  auto finish = [&](const std::string &kind, const std::string &encoding,
                    auto tail) {
    std::string body = e.write(encoding);
    auto [results, end] = tail();
    return kernelText(kind, e.arguments(), results, body + end);
  };
  auto alone = [&] {
    return std::pair(e.full(), "return %value : " + e.full() + "\n");
  };
  auto beside = [&] {
    std::string t = e.full();
    return std::pair(t + ", " + t,
                     "%n = ckopt.mul %value, %y : (" + t + ", " + t + ") -> " +
                         t + "\n%m = ckopt.exp %n : (" + t + ") -> " + t +
                         "\nreturn %value, %m : " + t + ", " + t + "\n");
  };
  auto maximumOver = [&](int axis) {
    return [&, axis] {
      std::string t = axis == 1 ? e.plain({e.n, e.h}) : e.plain({e.n, e.c});
      return std::pair(t, "%r = ckopt.reduce max %value {axes = array<i64: " +
                              std::to_string(axis) +
                              ">, keepdims = false} : (" + e.full() + ") -> " +
                              t + "\nreturn %r : " + t + "\n");
    };
  };
  return {finish("elementwise", "", alone), finish("elementwise", last, beside),
          finish("reduction", "", maximumOver(2)),
          finish("reduction", last, maximumOver(2)),
          finish("reduction", last, maximumOver(1))};
}

bool sameNumber(double a, double b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0 ||
         (std::isnan(a) && std::isnan(b)) || (a == 0 && b == 0);
}

/// The largest elements along `axis` of [n, c, h].
std::vector<double> maxima(const reference::Tensor &t, const Expression &e,
                           int axis) {
  std::vector<double> result(e.n * (axis == 1 ? e.h : e.c),
                             -std::numeric_limits<double>::infinity());
  for (int64_t i = 0; i < e.n; ++i)
    for (int64_t j = 0; j < e.c; ++j)
      for (int64_t k = 0; k < e.h; ++k) {
        double &best = result[axis == 1 ? i * e.h + k : i * e.c + j];
        double value = t.real((i * e.c + j) * e.h + k);
        best = std::isnan(value) || std::isnan(best)
                   ? std::numeric_limits<double>::quiet_NaN()
                   : std::max(best, value);
      }
  return result;
}

using Compiled = std::vector<std::unique_ptr<KernelJit>>;
using Compile = std::function<Compiled(llvm::ArrayRef<mlir::func::FuncOp>)>;

void checkExpression(uint64_t seed, const std::string &element,
                     const Compile &compile) {
  Expression e(seed, element);
  std::string text;
  for (const std::string &kernel : kernelsOf(e)) {
    size_t name = text.size() + kernel.find("@k") + 2;
    text += kernel;
    text.insert(name, std::to_string(name));
  }
  SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + text);
  mlir::MLIRContext context;
  loadKernelDialects(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  if (seed % 2) // launches approximate functions, all in the same way
    (*module)->setAttr(kApproximatesAttr, mlir::UnitAttr::get(&context));
  auto kernels = llvm::to_vector(module->getOps<mlir::func::FuncOp>());
  KernelOptions options;
  options.seed = seed;
  std::vector<std::vector<reference::Tensor>> results;
  for (const auto &jit : compile(kernels)) {
    ASSERT_TRUE(jit->ok()) << jit->error();
    results.push_back(runKernel(*jit, makeInputs(jit->kernel(), options)));
  }
  const reference::Tensor &wanted = results[0][0];
  for (int64_t i = 0; i < wanted.size(); ++i)
    EXPECT_TRUE(sameNumber(wanted.real(i), results[1][0].real(i)))
        << "element " << i << ": " << wanted.real(i) << " alone, "
        << results[1][0].real(i) << " channels-last with neighbours";
  for (auto [number, axis] : {std::pair(2, 2), {3, 2}, {4, 1}}) {
    std::vector<double> largest = maxima(wanted, e, axis);
    for (size_t i = 0; i < largest.size(); ++i)
      EXPECT_TRUE(sameNumber(largest[i], results[number][0].real(i)))
          << "maximum " << i << " along " << axis << " in kernel " << number
          << ": " << largest[i] << " of the stored elements, "
          << results[number][0].real(i) << " reduced";
  }
}

unsigned count() {
  const char *given = std::getenv("CKOPT_SHARED_EXPRESSIONS");
  return given ? unsigned(std::atoi(given)) : 12;
}

} // namespace

TEST(SharedExpression, HasOneValueOnTheCpu) {
  for (unsigned seed = 1; seed <= count(); ++seed)
    for (unsigned bits : {512, 256})
      checkExpression(seed, seed % 3 ? "f32" : "f64", [&](auto kernels) {
        JitOptions options;
        options.vectorBits = bits;
        return KernelJit::compileAll(kernels, options);
      });
}

TEST(SharedExpression, HasOneValueInBlockForm) {
  for (unsigned seed = 1; seed <= count(); ++seed)
    checkExpression(seed + 1000, "f32", [](auto kernels) {
      JitOptions options;
      options.form = KernelForm::Blocks;
      return KernelJit::compileAll(kernels, options);
    });
}

TEST(SharedExpression, HasOneValueAsPtx) {
  for (unsigned seed = 1; seed <= (count() + 2) / 3; ++seed)
    checkExpression(seed + 2000, "f32", [](auto kernels) {
      Compiled made;
      for (mlir::func::FuncOp kernel : kernels)
        made.push_back(KernelJit::launchedBy(interpretPtx, kernel));
      return made;
    });
}
