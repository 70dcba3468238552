//===- RanksTest.cpp - networks whose samples depend on the batch ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Losses that models compute themselves, batch norms of all ranks, random
// numbers of samples and states: N ranks, in lockstep, must have the loss, the
// gradients and the states of one process on the whole batch.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Autodiff/Autodiff.h"
#include "ckopt/Distribute/Distribute.h"
#include "ckopt/Reference/Interpreter.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;
using namespace ckopt::autodiff;
using reference::Tensor;

namespace {

constexpr int64_t kSamples = 8;

/// A network: BATCH and TWICE, which is twice as many, are replaced. `body`
/// makes %e, tensor<BATCHx3>, of the samples %x and the parameters %w and %v,
/// and may use %seed, %step, the state %s and the data %m; `loss` makes %l.
struct Network {
  std::string name, body, loss;
  std::string state = ""; ///< the new value of %s
  int64_t mostRanks = 8;
  bool refused = false;
};

constexpr const char *kHead = R"(
func.func @forward(
    %x: tensor<BATCHx3xf64> {ckopt.name = "x", ckopt.role = "input"},
    %m: tensor<BATCHxf64> {ckopt.name = "m", ckopt.role = "input"},
    %w: tensor<3x3xf64> {ckopt.name = "w", ckopt.role = "parameter"},
    %v: tensor<3xf64> {ckopt.name = "v", ckopt.role = "parameter"},
    %s: tensor<3xf64> {ckopt.name = "s", ckopt.role = "state"},
    %seed: tensor<i64> {ckopt.name = "seed", ckopt.role = "seed"},
    %step: tensor<i64> {ckopt.name = "step", ckopt.role = "step"})
    -> (tensor<f64> {ckopt.name = "loss", ckopt.role = "loss"},
        tensor<3xf64> {ckopt.name = "s", ckopt.updates = 4 : i64}) {
  %h = ckopt.matmul %x, %w : (tensor<BATCHx3xf64>, tensor<3x3xf64>) -> tensor<BATCHx3xf64>
)";

constexpr const char *kPlainBody =
    "%e = ckopt.tanh %h : (tensor<BATCHx3xf64>) -> tensor<BATCHx3xf64>\n";
constexpr const char *kSquares =
    "%q = ckopt.mul %e, %e : (tensor<BATCHx3xf64>, tensor<BATCHx3xf64>) -> "
    "tensor<BATCHx3xf64>\n"
    "%p = ckopt.mul %q, %v : (tensor<BATCHx3xf64>, tensor<3xf64>) -> "
    "tensor<BATCHx3xf64>\n";
const std::string kMeanLoss =
    std::string(kSquares) +
    "%l = ckopt.reduce mean %p {axes = array<i64: 0, 1>, keepdims = false} : "
    "(tensor<BATCHx3xf64>) -> tensor<f64>\n";

OwningOpRef<ModuleOp> makeRanks(const Network &network, int64_t ranks) {
  std::string state = network.state.empty() ? "" : network.state;
  std::string text = kHead + network.body + network.loss + state +
                     "return %l, " + (state.empty() ? "%s" : "%new") +
                     " : tensor<f64>, tensor<3xf64>\n}";
  for (auto [name, number] : {std::pair("BATCH", kSamples / ranks),
                              std::pair("TWICE", 2 * kSamples / ranks)})
    for (size_t at = 0; (at = text.find(name)) != std::string::npos;)
      text.replace(at, 5, std::to_string(number));
  auto module = parseSourceString<ModuleOp>(text, &testContext());
  if (!module)
    return {};
  auto function = module->lookupSymbol<func::FuncOp>("forward");
  DistributeOptions distributed;
  distributed.ranks = ranks;
  distributed.syncNorms = true;
  if ((ranks > 1 && failed(shareLoss(function, ranks))) ||
      failed(differentiate(function, AutodiffOptions())) ||
      (ranks > 1 && failed(distribute(function, distributed))) ||
      failed(verify(module.get())))
    return {};
  return module;
}

class NetworkOfRanks : public testing::TestWithParam<Network> {
protected:
  void compare(int64_t ranks);
};

void NetworkOfRanks::compare(int64_t ranks) {
  if (ranks > GetParam().mostRanks)
    return;
  auto whole = makeRanks(GetParam(), 1);
  ASSERT_TRUE(whole);
  if (GetParam().refused) {
    std::string said;
    ScopedDiagnosticHandler keep(&testContext(), [&](Diagnostic &diagnostic) {
      said += diagnostic.str();
      return success();
    });
    EXPECT_FALSE(makeRanks(GetParam(), ranks));
    EXPECT_FALSE(said.empty());
    return;
  }
  auto shared = makeRanks(GetParam(), ranks);
  ASSERT_TRUE(shared);
  auto one = whole->lookupSymbol<func::FuncOp>("step");
  auto many = shared->lookupSymbol<func::FuncOp>("step");
  SmallVector<Tensor> args, expected;
  SmallVector<SmallVector<Tensor>> shares(size_t(ranks), {}), results;
  for (auto [i, argument] : llvm::enumerate(one.getArgumentTypes())) {
    auto type = cast<RankedTensorType>(argument);
    args.push_back(type.getElementType().isF64()
                       ? Tensor::random(type, i + 1, 0.25, 1)
                       : Tensor::random(type, i + 1, 3, 7));
    const Tensor &all = args.back();
    for (int64_t rank = 0; rank < ranks; ++rank) {
      Tensor part(cast<RankedTensorType>(many.getArgumentTypes()[i]));
      bool whole = part.size() == all.size();
      for (int64_t e = 0; e < part.size(); ++e)
        part.copy(e, all, whole ? e : rank * part.size() + e);
      shares[size_t(rank)].push_back(part);
    }
  }
  ASSERT_TRUE(succeeded(reference::evaluate(one, args, expected)));
  ASSERT_TRUE(succeeded(reference::evaluateWorld(many, shares, results)));
  for (const SmallVector<Tensor> &own : results)
    for (size_t i = 0; i < own.size(); ++i) {
      EXPECT_TRUE(reference::compare(own[i], results[0][i]).sameValues) << i;
      EXPECT_LE(reference::compare(own[i], expected[i]).normRel, 1e-12)
          << i << ": " << own[i].str() << "\n"
          << expected[i].str();
    }
}

TEST_P(NetworkOfRanks, Two) { compare(2); }
TEST_P(NetworkOfRanks, Four) { compare(4); }
TEST_P(NetworkOfRanks, Eight) { compare(8); }

const Network kNetworks[] = {
    {"Mean", kPlainBody, kMeanLoss},
    {"Sum", kPlainBody, std::string(kSquares) + R"(
%o = ckopt.reduce mean %p {axes = array<i64: 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<BATCHxf64>
%l = ckopt.reduce sum %o {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHxf64>) -> tensor<f64>
)"},
    {"MeanThenSum", kPlainBody, std::string(kSquares) + R"(
%o = ckopt.reduce mean %p {axes = array<i64: 0>, keepdims = true} : (tensor<BATCHx3xf64>) -> tensor<1x3xf64>
%l = ckopt.reduce sum %o {axes = array<i64: 0, 1>, keepdims = false} : (tensor<1x3xf64>) -> tensor<f64>
)"},
    // A mean of the samples that count.
    {"Counted", kPlainBody, std::string(kSquares) + R"(
%half = ckopt.constant dense<0.5> : tensor<f64>
%counts = ckopt.compare gt %m, %half : (tensor<BATCHxf64>, tensor<f64>) -> tensor<BATCHxi1>
%zero = ckopt.constant dense<0.0> : tensor<f64>
%each = ckopt.reduce sum %p {axes = array<i64: 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<BATCHxf64>
%chosen = ckopt.select %counts, %each, %zero : (tensor<BATCHxi1>, tensor<BATCHxf64>, tensor<f64>) -> tensor<BATCHxf64>
%top = ckopt.reduce sum %chosen {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHxf64>) -> tensor<f64>
%ones = ckopt.cast %counts : (tensor<BATCHxi1>) -> tensor<BATCHxf64>
%count = ckopt.reduce sum %ones {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHxf64>) -> tensor<f64>
%l = ckopt.div %top, %count : (tensor<f64>, tensor<f64>) -> tensor<f64>
)"},
    // A root of a mean, and a norm of weights beside it.
    {"Root", kPlainBody, std::string(kSquares) + R"(
%o = ckopt.reduce mean %p {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<f64>
%root = ckopt.sqrt %o : (tensor<f64>) -> tensor<f64>
%ww = ckopt.mul %w, %w : (tensor<3x3xf64>, tensor<3x3xf64>) -> tensor<3x3xf64>
%norm = ckopt.reduce sum %ww {axes = array<i64: 0, 1>, keepdims = false} : (tensor<3x3xf64>) -> tensor<f64>
%l = ckopt.add %root, %norm : (tensor<f64>, tensor<f64>) -> tensor<f64>
)"},
    {"ProductOfMeans", kPlainBody, std::string(kSquares) + R"(
%a = ckopt.reduce mean %p {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<f64>
%b = ckopt.reduce mean %e {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<f64>
%l = ckopt.mul %a, %b : (tensor<f64>, tensor<f64>) -> tensor<f64>
)"},
    {"SquareOfAMean", kPlainBody, std::string(kSquares) + R"(
%a = ckopt.reduce mean %p {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<f64>
%l = ckopt.mul %a, %a : (tensor<f64>, tensor<f64>) -> tensor<f64>
)"},
    // Squares of what is normalized hardly depend on what it was.
    {"BatchNorm", R"(
%a, %mean, %variance = ckopt.batch_norm %h, %v, %s {epsilon = 1.0e-5} : (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>)
%e = ckopt.exp %a : (tensor<BATCHx3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss,
     "%new = ckopt.moving_average %s, %variance {momentum = 0.75} : "
     "(tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>\n"},
    {"TwoBatchNorms", R"(
%a, %mean, %variance = ckopt.batch_norm %h, %v, %s {epsilon = 1.0e-5} : (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>)
%t = ckopt.tanh %a : (tensor<BATCHx3xf64>) -> tensor<BATCHx3xf64>
%u = ckopt.matmul %t, %w {transpose_rhs} : (tensor<BATCHx3xf64>, tensor<3x3xf64>) -> tensor<BATCHx3xf64>
%e, %mean2, %variance2 = ckopt.batch_norm %u, %s, %v {epsilon = 1.0e-3} : (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>)
)",
     kMeanLoss,
     "%new = ckopt.moving_average %s, %mean2 {momentum = 0.5} : "
     "(tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>\n"},
    // Six, then three numbers a rank.
    {"DropoutOfThree", R"(
%e = ckopt.dropout %h, %seed, %step {ratio = 0.5 : f64, site = 1 : i64} : (tensor<BATCHx3xf64>, tensor<i64>, tensor<i64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss},
    {"DropoutBetween", R"(
%t = ckopt.transpose %h {permutation = array<i64: 1, 0>} : (tensor<BATCHx3xf64>) -> tensor<3xBATCHxf64>
%d = ckopt.dropout %t, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<3xBATCHxf64>, tensor<i64>, tensor<i64>) -> tensor<3xBATCHxf64>
%e = ckopt.transpose %d {permutation = array<i64: 1, 0>} : (tensor<3xBATCHxf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss},
    {"DropoutOfWeights", R"(
%d = ckopt.dropout %w, %seed, %step {ratio = 0.25 : f64, site = 1 : i64} : (tensor<3x3xf64>, tensor<i64>, tensor<i64>) -> tensor<3x3xf64>
%e = ckopt.matmul %x, %d : (tensor<BATCHx3xf64>, tensor<3x3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss},
    // Noise of each sample, scaled by what no sample enters.
    {"Noise", R"(
%n = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<BATCHx3xf64>
%n2 = ckopt.mul %n, %v : (tensor<BATCHx3xf64>, tensor<3xf64>) -> tensor<BATCHx3xf64>
%e = ckopt.add %h, %n2 : (tensor<BATCHx3xf64>, tensor<BATCHx3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss, "", /*mostRanks=*/4},
    {"NoiseInFours", R"(
%n = ckopt.random uniform %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<BATCHx3x4xf64>
%wide = ckopt.reshape %h : (tensor<BATCHx3xf64>) -> tensor<BATCHx3x1xf64>
%sum = ckopt.mul %wide, %n : (tensor<BATCHx3x1xf64>, tensor<BATCHx3x4xf64>) -> tensor<BATCHx3x4xf64>
%e = ckopt.reduce sum %sum {axes = array<i64: 2>, keepdims = false} : (tensor<BATCHx3x4xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss, "", /*mostRanks=*/4},
    {"NoiseOfAll", R"(
%n = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<1x3xf64>
%e = ckopt.add %h, %n : (tensor<BATCHx3xf64>, tensor<1x3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss, "", /*mostRanks=*/4},
    // States that are no running statistics of batch norms.
    {"StateOfAMean", kPlainBody, kMeanLoss, R"(
%learnt = ckopt.reduce mean %h {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<3xf64>
%both = ckopt.add %learnt, %s : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
%new = ckopt.assign %s, %both : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
)"},
    {"StateTwice", kPlainBody, kMeanLoss, R"(
%one = ckopt.reduce mean %h {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<3xf64>
%two = ckopt.reduce mean %q {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<3xf64>
%first = ckopt.moving_average %s, %one {momentum = 0.75} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
%new = ckopt.moving_average %first, %two {momentum = 0.75} : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
)"},
    {"StateOfNoSample", kPlainBody, kMeanLoss, R"(
%two = ckopt.add %s, %v : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
%new = ckopt.assign %s, %two : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
)"},
    // What shares do not tell.
    {"PairsOfSamples", R"(
%g = ckopt.matmul %h, %h {transpose_rhs} : (tensor<BATCHx3xf64>, tensor<BATCHx3xf64>) -> tensor<BATCHxBATCHxf64>
)",
     R"(
%l = ckopt.reduce mean %g {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHxBATCHxf64>) -> tensor<f64>
)",
     "", 8, /*refused=*/true},
    {"LargestSample", kPlainBody, R"(
%l = ckopt.reduce max %e {axes = array<i64: 0, 1>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<f64>
)",
     "", 8, /*refused=*/true},
    {"StateOfTheLargest", kPlainBody, kMeanLoss, R"(
%most = ckopt.reduce max %h {axes = array<i64: 0>, keepdims = false} : (tensor<BATCHx3xf64>) -> tensor<3xf64>
%new = ckopt.assign %s, %most : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
)",
     8, /*refused=*/true},
    {"NoiseOfNobody", R"(
%n = ckopt.random normal %seed, %step {site = 1 : i64} : (tensor<i64>, tensor<i64>) -> tensor<BATCHx3xf64>
%k = ckopt.matmul %n, %w : (tensor<BATCHx3xf64>, tensor<3x3xf64>) -> tensor<BATCHx3xf64>
%e = ckopt.add %h, %k : (tensor<BATCHx3xf64>, tensor<BATCHx3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss, "", 8, /*refused=*/true},
    {"StatisticsInTheLoss", R"(
%a, %mean, %variance = ckopt.batch_norm %h, %v, %s {epsilon = 1.0e-5} : (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>) -> (tensor<BATCHx3xf64>, tensor<3xf64>, tensor<3xf64>)
%e = ckopt.mul %a, %variance : (tensor<BATCHx3xf64>, tensor<3xf64>) -> tensor<BATCHx3xf64>
)",
     kMeanLoss, "", 8, /*refused=*/true},
};

INSTANTIATE_TEST_SUITE_P(Networks, NetworkOfRanks, testing::ValuesIn(kNetworks),
                         [](const testing::TestParamInfo<Network> &info) {
                           return info.param.name;
                         });

} // namespace
