//===- MisuseTest.cpp - calls that a program should not make --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every call of the library is made too early, twice, with an index or a name
// that does not exist, or on an empty object: each is an error with a text.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/StepRun.h"

#include <thread>

using namespace ckopt;
using namespace ckopt::test;

namespace {

CompileOptions digitsOptions() {
  CompileOptions options =
      trainingOptions(dataPath("models/digits_cnn.onnx"), "cross_entropy");
  options.import.batch = 8;
  options.target.optLevel = 0;
  return options;
}

/// Expects an error with this code whose text contains `text`.
void expectError(llvm::Error error, const std::string &text,
                 ExitCode code = ExitUsage) {
  ASSERT_TRUE(bool(error)) << text;
  ErrorText found = takeErrorText(std::move(error));
  EXPECT_EQ(found.code, code) << found.text;
  EXPECT_NE(found.text.find(text), std::string::npos) << found.text;
}

TEST(Misuse, StagesOfACompilationHaveAnOrder) {
  Compilation compilation(digitsOptions());
  EXPECT_FALSE(compilation.module());
  EXPECT_TRUE(compilation.weights().empty());
  EXPECT_TRUE(compilation.timeline("nothing").steps.empty());
  expectError(compilation.plan(), "plan() follows import()");
  expectError(compilation.emit(), "emit() follows plan()");
  expectError(load(compilation).takeError(), "Compilation::emit()");
  check(compilation.import());
  expectError(compilation.import(), "imports its model once");
  expectError(compilation.emit(), "emit() follows plan()");
  check(compilation.plan());
  expectError(compilation.plan(), "plan() follows import()");
  expectError(open(compilation, {}).takeError(), "Compilation::emit()");
  check(compilation.emit());
  expectError(compilation.emit(), "emit() follows plan()");
  EXPECT_TRUE(get(load(compilation)));
  EXPECT_TRUE(get(load(compilation))); // another session begins with the same
  compilation.releaseWeights();
  EXPECT_TRUE(compilation.weights().empty());
  expectError(load(compilation).takeError(), "keeps no first weights");
}

TEST(Misuse, AFailedStageEndsACompilation) {
  CompileOptions options = digitsOptions();
  options.model = "absent.onnx";
  Compilation compilation(options);
  expectError(compilation.import(), "absent.onnx", ExitInputError);
  expectError(compilation.import(), "imports its model once");
  expectError(compilation.plan(), "needs its success");
  expectError(compilation.emit(), "needs its success");
}

TEST(Misuse, PhasesThatStopEarlyLeaveNoCode) {
  CompileOptions options = digitsOptions();
  options.phases.to = "fuse";
  Compilation compilation(options);
  check(compilation.import());
  check(compilation.plan());
  expectError(compilation.emit(), "phases that stop behind 'fuse'");
  options.phases.from = "plan-memory";
  expectError(Compilation(options).import(),
              "phase 'fuse' ends before 'plan-memory' begins");
}

TEST(Misuse, StepsWithoutCodeSaySo) {
  CompiledStep step = get(compile(digitsOptions()));
  auto session = get(step.load());
  ASSERT_TRUE(session);
  CallbackSource source({}, nullptr);
  CompiledStep none;
  EXPECT_EQ(none.compilation().code(), nullptr);
  EXPECT_TRUE(none.compilation().manifest().tensors.empty());
  EXPECT_FALSE(none.compilation().wasPlanned());
  expectError(none.load().takeError(), "the step has no code");
  expectError(none.train(*session, source, {}).takeError(),
              "the step has no code");
  expectError(none.write("step.so"), "the step has no code");
  expectError(none.writeWeights(*session, "w.onnx"), "the step has no code");
  expectError(StepRun::create(none, {}, {}).takeError(),
              "the step has no code");
  CompiledStep owner = std::move(step); // shares it
  EXPECT_TRUE(step.compilation().code() == owner.compilation().code());
}

TEST(Misuse, TensorsHaveNoOtherIndices) {
  CompiledStep step = get(compile(digitsOptions()));
  auto session = get(step.load());
  ASSERT_TRUE(session);
  int64_t size = int64_t(session->manifest().tensors.size());
  HostTensor one(DType::F32, {1});
  for (int64_t index : {int64_t(-1), size, INT64_MIN, INT64_MAX}) {
    expectError(session->write(index, one), "no tensor has the index");
    expectError(session->read(index).takeError(), "no tensor has the index");
  }
  EXPECT_EQ(session->infoOf(-1).name, "");
  EXPECT_EQ(session->infoOf(size).name, "");
}

TEST(Misuse, SessionsCheckWhatTheStepWasMadeFor) {
  CompileOptions options = digitsOptions();
  CompiledStep step = get(compile(options));
  LoadOptions how;
  how.session.checkFinite = true;
  expectError(step.load(how).takeError(), "checkFinite needs a step");
  how.session.checkFinite = false;
  how.session.verifyRemat = true;
  expectError(step.load(how).takeError(), "verifyRemat needs a step");

  int cores = int(std::max(1u, std::thread::hardware_concurrency()));
  options.step.threads = 4 * cores + 1;
  step = get(compile(options));
  expectError(step.load().takeError(), "more than four for each");
}

TEST(Misuse, WeightsOfAnotherNetworkAreRefused) {
  std::vector<std::string> heard;
  CompileOptions options = digitsOptions();
  options.messages = [&](const Message &message) {
    heard.push_back(message.str().inShell());
  };
  CompiledStep step = get(compile(options));
  auto session = get(step.load());
  ASSERT_TRUE(session);
  TensorMap own = get(session->weights(/*optimizerState=*/true));
  std::string name = own.begin()->first;
  heard.clear();

  LoadOptions how;
  how.weightsFile = "'other.safetensors'";
  how.weights.set("lstm.weight", HostTensor(DType::F32, {2}));
  expectError(step.load(how).takeError(),
              "'other.safetensors' holds no weight of", ExitInputError);

  // A checkpoint's state of the optimizer belongs to its weights.
  how.weights = own;
  EXPECT_TRUE(get(step.load(how)));
  EXPECT_TRUE(heard.empty());

  how.weights = {};
  how.weights.set("lstm.weight", HostTensor(DType::F32, {2}));
  how.weights.set(name, *own.find(name));
  EXPECT_TRUE(get(step.load(how)));
  ASSERT_EQ(heard.size(), 1u);
  EXPECT_NE(heard[0].find("1 of its 2 tensors are no weights of"),
            std::string::npos)
      << heard[0];
  EXPECT_NE(heard[0].find("'lstm.weight'"), std::string::npos) << heard[0];
}

} // namespace
