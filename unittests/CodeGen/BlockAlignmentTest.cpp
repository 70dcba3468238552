//===- BlockAlignmentTest.cpp - no alignment is claimed wrongly -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An access that claims 16 bytes but is not aligned faults on a GPU. So random
// index arithmetic is lowered, and the alignment claimed for its loads is
// compared with the addresses that the arithmetic gives.
//
//===----------------------------------------------------------------------===//
#include "BlockJit.h"
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {

/// The value of an index where block, thread and loop are at these numbers.
using Meaning = std::function<uint64_t(uint64_t, uint64_t, uint64_t)>;

/// Random index expressions, as text and as their values.
class Expressions {
public:
  explicit Expressions(unsigned seed) : random(seed) {}

  /// Returns the name of the value; its operations are in `text`.
  std::string make(int depth, Meaning &meaning) {
    if (depth == 0 || pick(8) == 0)
      return leaf(meaning);
    Meaning x, y;
    std::string left = make(depth - 1, x);
    uint64_t number = uint64_t(1) << pick(5);
    if (pick(3) == 0)
      number += unsigned(pick(5));
    std::string constant = define("arith.constant " + std::to_string(number));
    switch (pick(8)) {
    case 0:
      meaning = [x, number](auto... at) { return x(at...) / number; };
      return define("arith.divui " + left + ", " + constant);
    case 1:
      meaning = [x, number](auto... at) { return x(at...) % number; };
      return define("arith.remui " + left + ", " + constant);
    case 2:
      meaning = [x, number](auto... at) { return x(at...) & number; };
      return define("arith.andi " + left + ", " + constant);
    case 3:
    case 4:
      meaning = [x, number](auto... at) { return x(at...) * number; };
      return define("arith.muli " + left + ", " + constant);
    case 5: {
      uint64_t bits = number % 8;
      std::string amount = define("arith.constant " + std::to_string(bits));
      meaning = [x, bits](auto... at) { return x(at...) << bits; };
      return define("arith.shli " + left + ", " + amount);
    }
    case 6: {
      std::string right = make(depth - 1, y);
      meaning = [x, y](auto... at) { return x(at...) - y(at...); };
      return define("arith.subi " + left + ", " + right);
    }
    default: {
      std::string right = make(depth - 1, y);
      meaning = [x, y](auto... at) { return x(at...) + y(at...); };
      return define("arith.addi " + left + ", " + right);
    }
    }
  }
  std::string text;

private:
  int pick(int count) { return int(random() % unsigned(count)); }
  std::string define(const std::string &operation) {
    std::string name = "%e" + std::to_string(next++);
    text += name + " = " + operation + " : index\n";
    return name;
  }
  std::string leaf(Meaning &meaning) {
    switch (pick(4)) {
    case 0:
      meaning = [](uint64_t b, uint64_t, uint64_t) { return b; };
      return "%b";
    case 1:
      meaning = [](uint64_t, uint64_t t, uint64_t) { return t; };
      return "%t";
    case 2:
      meaning = [](uint64_t, uint64_t, uint64_t k) { return k; };
      return "%k";
    default: {
      uint64_t number = uint64_t(pick(100));
      meaning = [number](uint64_t, uint64_t, uint64_t) { return number; };
      return define("arith.constant " + std::to_string(number));
    }
    }
  }

  std::mt19937 random;
  int next = 0;
};

/// A kernel that loads 4 floats from global memory at `index`, k going from 8
/// by 12.
std::string loadAt(const std::string &text, const std::string &index) {
  return "func.func @k(%x: !llvm.ptr {llvm.align = 64 : i64}, %s: !llvm.ptr) "
         "attributes {ckopt.gpu.grid = 7 : i64, ckopt.gpu.block = 64 : i64} {\n"
         "%c8 = arith.constant 8 : index\n%c12 = arith.constant 12 : index\n"
         "%c80 = arith.constant 80 : index\nscf.forall (%b) in (7) {\n"
         "scf.forall (%t) in (64) {\nscf.for %k = %c8 to %c80 step %c12 {\n" +
         text + "%i = arith.index_cast " + index +
         " : index to i64\n"
         "%p = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32\n"
         "%v = llvm.load %p {alignment = 4 : i64} : !llvm.ptr -> "
         "vector<4xf32>\n}\n} {mapping = [#gpu.thread<x>]}\n"
         "} {mapping = [#gpu.block<x>]}\nreturn\n}\n";
}

TEST(BlockAlignment, HoldsWhereverItIsClaimed) {
  std::unique_ptr<MLIRContext> context = blockContext();
  int64_t wide = 0, best = 0;
  const int kernels = 600;
  for (int seed = 0; seed < kernels; ++seed) {
    Expressions expressions((unsigned(seed)));
    Meaning meaning;
    std::string index = expressions.make(1 + seed % 5, meaning);
    std::string text = loadAt(expressions.text, index);
    auto module = parseSourceString<ModuleOp>(text, context.get());
    ASSERT_TRUE(module) << text;
    PassManager manager(context.get());
    manager.addPass(createBlockToGPUPass());
    ASSERT_TRUE(succeeded(manager.run(*module))) << text;
    uint64_t claimed = 0, actual = 64;
    module->walk([&](LLVM::LoadOp load) { claimed = *load.getAlignment(); });
    for (uint64_t b = 0; b < 7; ++b)
      for (uint64_t t = 0; t < 64; ++t)
        for (uint64_t k = 8; k < 80; k += 12)
          while ((meaning(b, t, k) * 4) % actual)
            actual /= 2;
    EXPECT_LE(claimed, actual) << text;
    wide += claimed >= 16;
    best += actual >= 16;
  }
  // Most aligned accesses are recognized.
  EXPECT_GT(wide, best * 2 / 3);
  EXPECT_LT(best, kernels);
}

} // namespace
