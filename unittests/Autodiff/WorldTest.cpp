//===- WorldTest.cpp - N ranks compute what one process does --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A batch is cut into shares, whose steps run in lockstep (evaluateWorld). Loss
// and gradients must be those of one process on the whole batch, for every way
// in which losses count, where labels that count are spread unevenly.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Distribute/Distribute.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using namespace ckopt::autodiff;
using reference::Tensor;

static constexpr int64_t kBatch = 8;

/// Two layers; BATCH and TYPE are replaced.
static constexpr const char *kNetwork = R"(
func.func @forward(
    %x: tensor<BATCHx6xTYPE> {ckopt.name = "x", ckopt.role = "input"},
    %w1: tensor<5x6xTYPE> {ckopt.name = "w1", ckopt.role = "parameter"},
    %b1: tensor<5xTYPE> {ckopt.name = "b1", ckopt.role = "parameter"},
    %w2: tensor<4x5xTYPE> {ckopt.name = "w2", ckopt.role = "parameter"})
    -> (tensor<BATCHx4xTYPE> {ckopt.name = "y"}) {
  %h = ckopt.matmul %x, %w1 {transpose_rhs} : (tensor<BATCHx6xTYPE>, tensor<5x6xTYPE>) -> tensor<BATCHx5xTYPE>
  %hb = ckopt.add %h, %b1 : (tensor<BATCHx5xTYPE>, tensor<5xTYPE>) -> tensor<BATCHx5xTYPE>
  %r = ckopt.tanh %hb : (tensor<BATCHx5xTYPE>) -> tensor<BATCHx5xTYPE>
  %y = ckopt.matmul %r, %w2 {transpose_rhs} : (tensor<BATCHx5xTYPE>, tensor<4x5xTYPE>) -> tensor<BATCHx4xTYPE>
  return %y : tensor<BATCHx4xTYPE>
})";

static void replaceAll(std::string &text, StringRef from, StringRef to) {
  for (size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// The step of one rank of `ranks`, or null.
static OwningOpRef<ModuleOp> makeStep(LossOptions options, int64_t ranks,
                                      StringRef type) {
  std::string text = kNetwork;
  replaceAll(text, "BATCH", std::to_string(kBatch / ranks));
  replaceAll(text, "TYPE", type);
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  options.ranks = ranks;
  DistributeOptions distributed;
  distributed.ranks = ranks;
  distributed.bucketBytes = 100; // several buckets
  if (failed(attachLoss(function, options)) ||
      failed(differentiate(function, AutodiffOptions())) ||
      (ranks > 1 && failed(distribute(function, distributed))) ||
      failed(verify(module.get())))
    return {};
  return module;
}

/// The rows of a batch that belong to one rank.
static Tensor shareOf(const Tensor &whole, int64_t rank, int64_t ranks) {
  SmallVector<int64_t> shape(whole.getShape());
  shape[0] /= ranks;
  Tensor share(RankedTensorType::get(shape, whole.getElementType()));
  for (int64_t i = 0; i < share.size(); ++i)
    share.copy(i, whole, rank * share.size() + i);
  return share;
}

namespace {
struct LossCase {
  std::string name;
  LossOptions options;
};

LossCase lossCase(std::string name, StringRef kind,
                  function_ref<void(LossOptions &)> change = nullptr) {
  LossCase result{std::move(name), {}};
  result.options.terms.front().kind = kind.str();
  if (change)
    change(result.options);
  return result;
}

class RanksTest : public testing::TestWithParam<LossCase> {
protected:
  void compare(int64_t ranks, StringRef type, double tolerance);
};
} // namespace

void RanksTest::compare(int64_t ranks, StringRef type, double tolerance) {
  const LossOptions &options = GetParam().options;
  auto whole = makeStep(options, 1, type);
  auto shared = makeStep(options, ranks, type);
  ASSERT_TRUE(whole && shared);
  auto one = whole->lookupSymbol<func::FuncOp>("step");
  auto many = shared->lookupSymbol<func::FuncOp>("step");
  SmallVector<Tensor> args, expected;
  for (auto [i, argument] : llvm::enumerate(one.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(argument);
    bool isTarget = i + 1 == one.getNumArguments();
    args.push_back(
        Tensor::random(tensor, i + 1, isTarget ? 0 : -1, isTarget ? 1 : 1));
    // The first ranks have more labels that are ignored.
    for (int64_t e = 0; isTarget && !args.back().isFloat() && e < kBatch; ++e)
      args.back().integer(e) = e < 3 ? options.ignoreIndex : e % 4;
  }
  ASSERT_TRUE(succeeded(reference::evaluate(one, args, expected)));
  SmallVector<SmallVector<Tensor>> shares(size_t(ranks), {}), results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (const Tensor &arg : args) {
      size_t i = shares[size_t(rank)].size();
      bool batched = i == 0 || i + 1 == args.size();
      shares[size_t(rank)].push_back(batched ? shareOf(arg, rank, ranks) : arg);
    }
  ASSERT_TRUE(succeeded(reference::evaluateWorld(many, shares, results)));
  ASSERT_EQ(results.size(), size_t(ranks));
  for (const SmallVector<Tensor> &own : results) {
    ASSERT_EQ(own.size(), expected.size());
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(reference::compare(own[i], results[0][i]).sameValues) << i;
      EXPECT_LE(reference::compare(own[i], expected[i]).normRel, tolerance)
          << i << ": " << own[i].str() << "\n"
          << expected[i].str();
    }
  }
}

TEST_P(RanksTest, TwoRanksInDouble) { compare(2, "f64", 1e-12); }
TEST_P(RanksTest, FourRanksInDouble) { compare(4, "f64", 1e-12); }
TEST_P(RanksTest, EightRanksInFloat) { compare(8, "f32", 1e-6); }

INSTANTIATE_TEST_SUITE_P(
    Losses, RanksTest,
    testing::Values(
        lossCase("CrossEntropy", "cross_entropy"),
        lossCase("CrossEntropySum", "cross_entropy",
                 [](LossOptions &o) { o.reduction = Reduction::Sum; }),
        lossCase("ClassWeights", "cross_entropy",
                 [](LossOptions &o) { o.classWeights = {1, 2, 0.5, 3}; }),
        lossCase("LabelSmoothing", "cross_entropy",
                 [](LossOptions &o) { o.labelSmoothing = 0.1; }),
        lossCase("SoftTargets", "cross_entropy",
                 [](LossOptions &o) { o.softTargets = true; }),
        lossCase("Nll", "nll"), lossCase("Mse", "mse"),
        lossCase("L1Sum", "l1",
                 [](LossOptions &o) { o.reduction = Reduction::Sum; }),
        lossCase("KlBatchMean", "kl",
                 [](LossOptions &o) { o.reduction = Reduction::BatchMean; }),
        lossCase("Cosine", "cosine")),
    [](const testing::TestParamInfo<LossCase> &info) {
      return info.param.name;
    });

/// A rank's tensor is part of the sums of all ranks: its gradient is the sum of
/// what they make of it.
TEST(WorldTest, GradientOfASumIsASum) {
  auto module = parseSourceString<ModuleOp>(R"(
func.func @forward(
    %x: tensor<3xf64> {ckopt.name = "x", ckopt.role = "parameter"},
    %w: tensor<3xf64> {ckopt.name = "w", ckopt.role = "input"})
    -> (tensor<f64> {ckopt.name = "loss"}) {
  %s = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<3xf64>) -> tensor<3xf64>
  %p = ckopt.mul %s, %w : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %l = ckopt.reduce sum %p {axes = array<i64: 0>, keepdims = false} : (tensor<3xf64>) -> tensor<f64>
  return %l : tensor<f64>
})",
                                            &testContext());
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  ASSERT_TRUE(succeeded(differentiate(function, AutodiffOptions())));
  auto type = cast<RankedTensorType>(function.getArgumentTypes()[0]);
  SmallVector<SmallVector<Tensor>> args(2), results;
  for (uint64_t rank : {0, 1})
    args[rank] = {Tensor::random(type, 10 + rank),
                  Tensor::random(type, 20 + rank)};
  ASSERT_TRUE(succeeded(reference::evaluateWorld(function, args, results)));
  for (size_t rank : {0, 1})
    for (int64_t i = 0; i < 3; ++i)
      EXPECT_DOUBLE_EQ(results[rank][1].real(i),
                       args[0][1].real(i) + args[1][1].real(i));
  // Another number of ranks is refused.
  ScopedDiagnosticHandler quiet(&testContext(),
                                [](Diagnostic &) { return success(); });
  args.pop_back();
  EXPECT_TRUE(failed(reference::evaluateWorld(function, args, results)));
}
