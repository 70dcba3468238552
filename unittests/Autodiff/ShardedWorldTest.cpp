//===- ShardedWorldTest.cpp - ranks that share parameters -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The same network is distributed over N ranks that each have all parameters,
// and over N that share them (evaluateWorld). Sums have one order, so losses
// are the same to the bit, and each rank's gradients are its parts of the
// others' to the bit: for rows, flat and whole tensors, a parameter that is
// used twice, one that is not, and frozen weights.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
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

/// BATCH is a rank's.
static constexpr const char *kSharedNetwork = R"(
func.func @forward(
    %x: tensor<BATCHx16xf32> {ckopt.name = "x", ckopt.role = "input"},
    %tied: tensor<200x16xf32> {ckopt.name = "tied", ckopt.role = "parameter"},
    %bias: tensor<200xf32> {ckopt.name = "bias", ckopt.role = "parameter"},
    %flat: tensor<5x200xf32> {ckopt.name = "flat", ckopt.role = "parameter"},
    %frozen: tensor<200x5xf32> {ckopt.name = "frozen", ckopt.role = "frozen"},
    %small: tensor<16x5xf32> {ckopt.name = "small", ckopt.role = "parameter"},
    %unused: tensor<100x3xf32> {ckopt.name = "unused", ckopt.role = "parameter"})
    -> (tensor<BATCHx5xf32> {ckopt.name = "y"}) {
  %a = ckopt.matmul %x, %tied {transpose_rhs} : (tensor<BATCHx16xf32>, tensor<200x16xf32>) -> tensor<BATCHx200xf32>
  %b = ckopt.add %a, %bias : (tensor<BATCHx200xf32>, tensor<200xf32>) -> tensor<BATCHx200xf32>
  %h = ckopt.tanh %b : (tensor<BATCHx200xf32>) -> tensor<BATCHx200xf32>
  %y1 = ckopt.matmul %h, %flat {transpose_rhs} : (tensor<BATCHx200xf32>, tensor<5x200xf32>) -> tensor<BATCHx5xf32>
  %y2 = ckopt.matmul %h, %frozen : (tensor<BATCHx200xf32>, tensor<200x5xf32>) -> tensor<BATCHx5xf32>
  %z = ckopt.matmul %h, %tied : (tensor<BATCHx200xf32>, tensor<200x16xf32>) -> tensor<BATCHx16xf32>
  %y3 = ckopt.matmul %z, %small : (tensor<BATCHx16xf32>, tensor<16x5xf32>) -> tensor<BATCHx5xf32>
  %y12 = ckopt.add %y1, %y2 : (tensor<BATCHx5xf32>, tensor<BATCHx5xf32>) -> tensor<BATCHx5xf32>
  %y = ckopt.add %y12, %y3 : (tensor<BATCHx5xf32>, tensor<BATCHx5xf32>) -> tensor<BATCHx5xf32>
  return %y : tensor<BATCHx5xf32>
})";

static constexpr int64_t kRows = 2; ///< of a rank

static OwningOpRef<ModuleOp> makeRankStep(int64_t ranks, int64_t shards) {
  std::string text = kSharedNetwork;
  for (size_t at; (at = text.find("BATCH")) != std::string::npos;)
    text.replace(at, 5, std::to_string(kRows));
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  LossOptions loss;
  loss.terms.front().kind = "cross_entropy";
  loss.ranks = ranks;
  DistributeOptions distributed;
  distributed.ranks = ranks;
  distributed.shards = shards;
  if (failed(attachLoss(function, loss)) ||
      failed(differentiate(function, AutodiffOptions())) ||
      failed(distribute(function, distributed)) || failed(verify(module.get())))
    return {};
  return module;
}

/// What a rank has of a tensor.
static Tensor partOf(const Tensor &whole, RankedTensorType type, int64_t rank,
                     int64_t ranks) {
  if (whole.getType() == type)
    return whole;
  Tensor part(type);
  Shards shards{whole.size(), ranks, part.size()};
  int64_t own = shards.shardOf(rank);
  for (int64_t i = 0; i < shards.count(own); ++i)
    part.copy(i, whole, shards.begin(own) + i);
  return part;
}

using RankValues = SmallVector<SmallVector<Tensor>>;

/// Runs a step whose ranks have parts of one set of values.
static void runRanks(func::FuncOp step, func::FuncOp whole, int64_t ranks,
                     int64_t shards, RankValues &results) {
  RankValues args{size_t(ranks), SmallVector<Tensor>()};
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (unsigned i = 0; i < step.getNumArguments(); ++i) {
      auto type = cast<RankedTensorType>(step.getArgumentTypes()[i]);
      auto full = cast<RankedTensorType>(whole.getArgumentTypes()[i]);
      StringRef role = argumentRole(step, i);
      bool ofSamples = role == roles::kInput || role == roles::kTarget;
      Tensor value = Tensor::random(full, ofSamples ? 100 + rank : i + 1);
      for (int64_t e = 0; !value.isFloat() && e < value.size(); ++e)
        value.integer(e) = (rank + e) % 5;
      args[size_t(rank)].push_back(partOf(value, type, rank, shards));
    }
  reference::Options options;
  options.roundToType = true;
  ASSERT_TRUE(
      succeeded(reference::evaluateWorld(step, args, results, options)));
}

static void compareWithDataParallel(int64_t ranks, int64_t shards,
                                    double tolerance) {
  auto whole = makeRankStep(ranks, 1), shared = makeRankStep(ranks, shards);
  ASSERT_TRUE(whole && shared);
  auto all = whole->lookupSymbol<func::FuncOp>("step");
  auto own = shared->lookupSymbol<func::FuncOp>("step");
  RankValues expected, results;
  runRanks(all, all, ranks, 1, expected);
  runRanks(own, all, ranks, shards, results);
  ASSERT_EQ(expected.size(), results.size());
  int64_t parts = 0;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    ASSERT_EQ(results[rank].size(), expected[rank].size());
    for (size_t i = 0; i < results[rank].size(); ++i) {
      const Tensor &result = results[rank][i];
      Tensor wanted = partOf(expected[rank][i], result.getType(), rank, shards);
      parts += result.getType() != expected[rank][i].getType();
      if (tolerance == 0) {
        EXPECT_TRUE(reference::compare(result, wanted).sameValues)
            << "rank " << rank << ", result " << i;
      } else {
        EXPECT_LE(reference::compare(result, wanted).normRel, tolerance)
            << "rank " << rank << ", result " << i;
      }
    }
  }
  EXPECT_GE(parts, 2 * ranks); // tied and flat at least
}

TEST(ShardedWorldTest, TwoRanksHaveTheBitsOfDataParallel) {
  compareWithDataParallel(2, 2, 0);
}
TEST(ShardedWorldTest, ThreeRanksHaveTheBitsOfDataParallel) {
  compareWithDataParallel(3, 3, 0);
}
TEST(ShardedWorldTest, FourRanksHaveTheBitsOfDataParallel) {
  compareWithDataParallel(4, 4, 0);
}
/// Sums of two groups are added in another order than those of four ranks.
TEST(ShardedWorldTest, TwoGroupsOfTwoRanks) {
  compareWithDataParallel(4, 2, 1e-6);
}
TEST(ShardedWorldTest, ThreeGroupsOfTwoRanks) {
  compareWithDataParallel(6, 2, 1e-6);
}

/// The derivative of each op, by ranks' own results: a loss that is the sum of
/// all ranks' losses.
static void checkDerivative(StringRef op, StringRef in, StringRef out,
                            int64_t ranks) {
  std::string text =
      ("func.func @forward(%x: tensor<" + in +
       "xf64> {ckopt.name = \"x\", ckopt.role = \"parameter\"},"
       " %w: tensor<" +
       out +
       "xf64> {ckopt.name = \"w\", ckopt.role = \"input\"}) -> "
       "(tensor<f64> {ckopt.name = \"loss\"}) {\n %y = " +
       op + " : (tensor<" + in + "xf64>) -> tensor<" + out +
       "xf64>\n %p = ckopt.mul %y, %w : (tensor<" + out + "xf64>, tensor<" +
       out + "xf64>) -> tensor<" + out +
       "xf64>\n %l = ckopt.reduce sum %p {axes = array<i64: 0>, "
       "keepdims = false} : (tensor<" +
       out + "xf64>) -> tensor<f64>\n return %l : tensor<f64>\n}")
          .str();
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  ASSERT_TRUE(module);
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  ASSERT_TRUE(succeeded(differentiate(function, AutodiffOptions())));
  RankValues args(static_cast<size_t>(ranks), SmallVector<Tensor>()), results;
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (unsigned i : {0, 1})
      args[size_t(rank)].push_back(
          Tensor::random(cast<RankedTensorType>(function.getArgumentTypes()[i]),
                         uint64_t(10 * rank + i + 1)));
  auto loss = [&](RankValues &values) {
    double total = 0;
    EXPECT_TRUE(succeeded(reference::evaluateWorld(function, args, values)));
    for (const auto &own : values)
      total += own[0].real(0);
    return total;
  };
  loss(results);
  for (int64_t rank = 0; rank < ranks; ++rank)
    for (int64_t e = 0; e < args[0][0].size(); ++e) {
      double &x = args[size_t(rank)][0].real(e), was = x;
      RankValues ignored;
      x = was + 0.5;
      double above = loss(ignored);
      ignored.clear();
      x = was - 0.5;
      double below = loss(ignored); // linear: differences are exact
      x = was;
      EXPECT_NEAR(results[size_t(rank)][1].real(e), above - below, 1e-12)
          << op.str() << ", rank " << rank << ", element " << e;
    }
}

TEST(ShardedWorldTest, DerivativesOfCollectives) {
  checkDerivative("ckopt.all_gather %x {ranks = 2 : i64, rows = array<i64: 5>}",
                  "3", "5", 2);
  checkDerivative("ckopt.reduce_scatter %x {ranks = 3 : i64}", "7", "3", 3);
  checkDerivative("ckopt.broadcast %x {ranks = 3 : i64, root = 1 : i64}", "4",
                  "4", 3);
  // Groups of neighbors, and of ranks that are two apart.
  checkDerivative("ckopt.all_gather %x {ranks = 2 : i64, groups = 2 : i64, "
                  "rows = array<i64: 4>}",
                  "2", "4", 4);
  checkDerivative("ckopt.reduce_scatter %x {ranks = 2 : i64, groups = 2 : i64, "
                  "stride = 2 : i64}",
                  "4", "2", 4);
  checkDerivative("ckopt.broadcast %x {ranks = 2 : i64, root = 1 : i64, groups "
                  "= 2 : i64, stride = 2 : i64}",
                  "3", "3", 4);
  checkDerivative("ckopt.all_reduce %x {ranks = 2 : i64, groups = 2 : i64, "
                  "stride = 2 : i64}",
                  "3", "3", 4);
}
