//===- CudaPtxTest.cpp - the PTX of whole steps, run ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The golden networks, trained on the stand-in driver twice: by the CPU code of
// their block form, and by their PTX, which the interpreter of
// test/lib/CudaStandin/Ptx runs by NVIDIA's manual, independently of the code
// that wrote it. The lowering to PTX (addresses, vectors, shuffles, barriers,
// predicates, 32-bit arithmetic) must keep every bit; accesses out of bounds or
// not aligned, races, undefined values and barriers that not all threads reach
// end the step with an error.
//
//===----------------------------------------------------------------------===//
#include "Checks.h"
#include "CudaHarness.h"

using namespace ckopt;
using namespace ckopt::test;

namespace {

CpuKernels &kernels() {
  static CpuKernels shared;
  return shared;
}

CompileOptions stepOptions(const std::string &path, const std::string &loss) {
  CompileOptions options = trainingOptions(path, loss);
  options.step.remat.search.effort = 0; // any plan will do
  return options;
}

/// Trains by the block form and by the PTX: the same bits. The PTX's outcome.
Outcome trainBoth(CompileOptions options, int64_t steps) {
  Outcome emulated, interpreted;
  CudaStep step = get(compileForCuda(std::move(options)));
  if (!step.compilation)
    return Outcome();
  {
    auto session = get(openOnStandin(step, kernels(), /*descending=*/false));
    if (!session)
      return Outcome();
    train(*session, steps, emulated);
  }
  auto session = get(openInterpreted(step));
  if (!session)
    return Outcome();
  train(*session, steps, interpreted);
  expectSame(emulated, interpreted);
  EXPECT_EQ(interpreted.measured, step.arena());
  return interpreted;
}

void expectLossesOfCpu(CompileOptions options, const Outcome &device,
                       int64_t steps, double tolerance = 1e-4) {
  Loaded loaded = get(load(std::move(options)));
  ASSERT_TRUE(loaded.session);
  Outcome cpu;
  train(*loaded.session, steps, cpu);
  ASSERT_EQ(device.losses.size(), cpu.losses.size());
  for (size_t i = 0; i < cpu.losses.size(); ++i)
    EXPECT_NEAR(device.losses[i], cpu.losses[i], tolerance * cpu.losses[i]);
}

class CudaPtx : public testing::TestWithParam<GoldenModel> {};

TEST_P(CudaPtx, GivesTheBitsOfTheBlockForm) {
  const GoldenModel &model = GetParam();
  if (!isRepresentative(model.name))
    CKOPT_SKIP_UNLESS_LONG();
  CompileOptions options =
      stepOptions(goldenPath(model.name, "model.onnx"), model.loss);
  Outcome device = trainBoth(options, /*steps=*/2);
  expectLossesOfCpu(options, device, /*steps=*/2);
}

INSTANTIATE_TEST_SUITE_P(All, CudaPtx, testing::ValuesIn(goldenModels()),
                         [](const auto &info) { return info.param.name; });

/// Tensors stored in bf16: fragments of pairs as they lie in memory, accesses
/// of eight elements at once.
TEST(CudaPtxStored, GivesTheBitsOfTheBlockForm) {
  for (const GoldenModel &model : goldenModels()) {
    if (model.name != "gpt" &&
        !(runsLongTests() && (model.name == "mlp" || model.name == "lenet")))
      continue;
    SCOPED_TRACE(model.name);
    CompileOptions options =
        stepOptions(goldenPath(model.name, "model.onnx"), model.loss);
    options.step.precision = Precision::BF16;
    Outcome device = trainBoth(options, /*steps=*/2);
    expectLossesOfCpu(options, device, /*steps=*/2, 1e-2);
  }
}

// Masks are made of 64-bit products and shifts, which PTX has other
// instructions for: CudaDropoutMask has them alone.
TEST(CudaPtxDropout, DropsWhatTheCpuDrops) {
  CKOPT_SKIP_UNLESS_LONG();
  CompileOptions options =
      stepOptions(dataPath("models/byte_gpt.onnx"), "cross_entropy");
  options.import.batch = 1;
  Outcome device = trainBoth(options, /*steps=*/1);
  expectLossesOfCpu(options, device, /*steps=*/1);
}

} // namespace
