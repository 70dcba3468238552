//===- RuleCoverageTest.cpp - which ops have a gradient rule --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A new op gets a rule, or a place in this list: with the reason.
//
//===----------------------------------------------------------------------===//
#include "GradientCheck.h"
#include "ckopt/Interfaces/DifferentiableInterface.h"
#include <set>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

TEST(RuleCoverage, EveryFloatOpHasARule) {
  const std::set<std::string> without{
      // No operands, or none that a gradient could flow through.
      "ckopt.constant", "ckopt.iota", "ckopt.rank", "ckopt.not", "ckopt.and",
      "ckopt.or", "ckopt.xor", "ckopt.collective_start",
      "ckopt.collective_wait", "ckopt.compare", "ckopt.random",
      "ckopt.shift_left", "ckopt.shift_right", "ckopt.top_k",
      // Gradients of gradients: not asked for by any first-order training.
      "ckopt.max_pool_grad", "ckopt.layer_norm_grad", "ckopt.rms_norm_grad",
      "ckopt.batch_norm_grad", "ckopt.cross_entropy_grad",
      "ckopt.linear_cross_entropy_grad", "ckopt.attention_grad",
      // Comes after autodiff.
      "ckopt.round_random", "ckopt.decode_dynamic", "ckopt.assign_codes",
      "ckopt.matmul_add", "ckopt.sgd", "ckopt.adam", "ckopt.kernel_call",
      "ckopt.own_rows"};
  std::set<std::string> found;
  for (RegisteredOperationName op : testContext().getRegisteredOperations())
    if (op.getDialectNamespace() == "ckopt" &&
        !op.hasInterface<DifferentiableOpInterface>())
      found.insert(op.getStringRef().str());
  EXPECT_EQ(found, without);
}
