//===- Harness.h - models of the test data, loaded ------------ -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_STEPS_HARNESS_H
#define CKOPT_UNITTESTS_STEPS_HARNESS_H

#include "../LongTests.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Train/Step.h"

#include "gtest/gtest.h"

#include <memory>
#include <string>

namespace ckopt::test {

/// A compiled step in a session. Keeps everything that it needs alive.
struct Loaded {
  std::unique_ptr<Compilation> compilation;
  std::unique_ptr<Session> session;
};

/// test/data/golden/NAME, with the options to train it.
struct GoldenModel {
  std::string name;
  std::string loss;
};
const std::vector<GoldenModel> &goldenModels();
/// Returns whether a golden network is one of two that have most kinds of
/// kernels between them. Where a network takes seconds, and each kernel has
/// tests of its own (test/Kernels), the others run in the long tests.
bool isRepresentative(llvm::StringRef name);
std::string goldenPath(const std::string &name, const std::string &file);
std::string dataPath(const std::string &file);

/// Options for training a model with AdamW at the budget.
CompileOptions trainingOptions(const std::string &model,
                               const std::string &loss,
                               const MemoryBudget &budget = {});

/// Compiles and loads; weights by the file, else seeded.
llvm::Expected<Loaded> load(CompileOptions options,
                            const SessionOptions &session = {});

/// Unwraps, or fails the test with the error's text and returns an empty value.
template <typename T> T get(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}
inline void check(llvm::Error error) {
  if (error)
    ADD_FAILURE() << llvm::toString(std::move(error));
}

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_STEPS_HARNESS_H
