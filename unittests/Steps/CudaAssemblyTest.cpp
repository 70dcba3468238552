//===- CudaAssemblyTest.cpp - the PTX of whole steps, assembled -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Where ptxas is installed (else the tests are skipped, and say so), the code
// of golden networks' training steps assembles for its target, without
// spills and without a stack. No toolkit decides what the code is: its bytes
// are the same with CUDA_HOME set, unset and wrong.
//
//===----------------------------------------------------------------------===//
#include "CudaHarness.h"

#include <cstdlib>

using namespace ckopt;
using namespace ckopt::test;

namespace {

CompileOptions stepOptions(const GoldenModel &model,
                           const std::string &precision = "f32") {
  CompileOptions options =
      trainingOptions(goldenPath(model.name, "model.onnx"), model.loss);
  options.step.remat.search.effort = 0; // any plan will do
  options.step.precision = *parseChoice<Precision>(precision);
  return options;
}

class CudaAssembly
    : public testing::TestWithParam<std::tuple<GoldenModel, const char *>> {};

TEST_P(CudaAssembly, NeedsNoSpillsAndNoStack) {
  auto ptxas = findPtxas();
  if (!ptxas)
    GTEST_SKIP() << "ptxas is NOT installed: PTX was not assembled";
  auto [model, precision] = GetParam();
  if (!isRepresentative(model.name))
    CKOPT_SKIP_UNLESS_LONG();
  CudaStep step = get(compileForCuda(stepOptions(model, precision)));
  ASSERT_TRUE(step.compilation);
  const LoweredDeviceStep &device = step.code().step;
  PtxModule least = get(emitPtx(*device.blockForm, {80, false}));
  for (const PtxModule *code : {&std::as_const(least), &device.code}) {
    SCOPED_TRACE("sm_" + std::to_string(code->sm));
    auto known = get(assemble(code->text, code->sm, *ptxas));
    EXPECT_EQ(known.size(), code->kernels.size());
    for (const AssembledKernel &kernel : known) {
      EXPECT_GT(kernel.registers, 0) << kernel.symbol;
      // Of blocks of 256 threads two have room on a multiprocessor.
      EXPECT_LE(kernel.registers, 128) << kernel.symbol;
      EXPECT_EQ(kernel.spillStoreBytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.spillLoadBytes, 0) << kernel.symbol;
      EXPECT_EQ(kernel.stackBytes, 0) << kernel.symbol;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaAssembly,
                         testing::Combine(testing::ValuesIn(goldenModels()),
                                          testing::Values("f32", "bf16")),
                         [](const auto &info) {
                           return std::get<0>(info.param).name + "_" +
                                  std::get<1>(info.param);
                         });

TEST(CudaCode, TheEnvironmentDecidesNothing) {
  const char *given = std::getenv("CUDA_HOME");
  std::string kept = given ? given : "";
  std::string texts[3];
  for (int round = 0; round < 3; ++round) {
    if (round == 0)
      unsetenv("CUDA_HOME");
    else
      setenv("CUDA_HOME", round == 1 ? "/usr/local/cuda" : "/none",
             /*overwrite=*/1);
    CudaStep step = get(compileForCuda(stepOptions(goldenModels().front())));
    ASSERT_TRUE(step.compilation);
    texts[round] = step.ptx();
  }
  if (given)
    setenv("CUDA_HOME", kept.c_str(), /*overwrite=*/1);
  else
    unsetenv("CUDA_HOME");
  EXPECT_FALSE(texts[0].empty());
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_EQ(texts[0], texts[2]);
}

} // namespace
