//===- OptimizersTest.cpp - hyperparameters and groups --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Optimizers.h"
#include "TestFiles.h"

using namespace ckopt;

static const OptimizerKind &kindOf(const char *name) {
  return *findOptimizer(name);
}

TEST(Optimizers, DefaultsAndOverrides) {
  const OptimizerKind &adamw = kindOf("adamw");
  EXPECT_EQ(hyperValue(adamw, {}, "weight_decay"), 0.01);
  EXPECT_EQ(hyperValue(adamw, {{"weight_decay", 0}}, "weight_decay"), 0);
  EXPECT_EQ(hyperValue(adamw, {}, "momentum"), 0);
  EXPECT_EQ(kindOf("adadelta").learningRate, 1);
  EXPECT_EQ(findOptimizer("adamn"), nullptr);
}

TEST(Optimizers, GroupsAreRead) {
  auto group = valueOf(parseParameterGroup(
      "[[:alpha:]]+\\.(norm|bias):weight_decay=0, lr=1e-4,betas=(0.8,0.95)"
      ",eps=1e-6,amsgrad=true",
      kindOf("adam")));
  EXPECT_EQ(group.pattern, "[[:alpha:]]+\\.(norm|bias)");
  EXPECT_EQ(group.learningRate, 1e-4);
  EXPECT_EQ(group.values, (HyperValues{{"weight_decay", 0},
                                       {"beta1", 0.8},
                                       {"beta2", 0.95},
                                       {"epsilon", 1e-6},
                                       {"amsgrad", 1}}));
}

TEST(Optimizers, GroupsThatCannotBeRead) {
  auto error = [](const char *text) {
    return textOf(parseParameterGroup(text, kindOf("sgd")));
  };
  expectContains(error("bias"), "give REGEX:NAME=VALUE");
  expectContains(error("bias:"), "give REGEX:NAME=VALUE");
  expectContains(error(":lr=1"), "give REGEX:NAME=VALUE");
  expectContains(error("(:lr=1"), "malformed regular expression '('");
  expectContains(error("bias:lr"), "'lr' is no NAME=VALUE");
  expectContains(error("bias:lr=x"), "'x' is no number for lr");
  expectContains(error("bias:lr=-1"), "lr must not be negative");
  expectContains(error("bias:momentum=true"), "is no number for momentum");
  expectContains(error("bias:rho=1"), "sgd has no 'rho'; it has: lr, momentum");
  expectContains(textOf(parseParameterGroup("a:betas=1", kindOf("adam"))),
                 "betas=(0.9,0.999)");
}

TEST(Optimizers, ValuesOutsideOfTheirRange) {
  auto error = [](const char *kind, HyperValues values) {
    return textOf(checkHyperValues(kindOf(kind), values));
  };
  EXPECT_EQ(error("sgd", {{"momentum", 0.9}, {"nesterov", 1}}), "");
  expectContains(error("sgd", {{"nesterov", 1}}), "needs a momentum");
  expectContains(error("sgd", {{"momentum", -1}}), "must not be negative");
  expectContains(error("adam", {{"beta1", 1}}), "must lie in [0, 1)");
  expectContains(error("adadelta", {{"rho", 1.5}}), "must lie in [0, 1]");
  expectContains(error("adam", {{"amsgrad", 2}}), "is a switch");
  expectContains(error("adam", {{"momentum", 0}}), "adam has no 'momentum'");
}
