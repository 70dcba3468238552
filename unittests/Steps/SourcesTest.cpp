//===- SourcesTest.cpp - training from a source of the caller's -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A source that is not a file gives the bits of the file with the same samples,
// whether or not it knows how many it has; invalid sources are refused before a
// step reads them.
//
//===----------------------------------------------------------------------===//
#include "Harness.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Train/Data/Permutation.h"
#include "llvm/Support/FileSystem.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::test;

namespace {

constexpr int64_t kSamples = 150, kBatch = 64;

StepData plainLoss() {
  StepData options;
  options.loss = HostLoss::CrossEntropy;
  return options;
}

/// The first digits, from memory, in the order that a file of them would have.
struct Digits {
  HostTensor images, labels;
  CallbackSource::Options options;
  int64_t readable = INT64_MAX; ///< epochs
  int64_t asked = 0;            ///< batches

  Digits() {
    TensorMap file = get(readNpz(dataPath("digits.npz")));
    images = get(file.find("images")->convertTo(DType::F32));
    labels = *file.find("labels");
    options.name = "my digits";
    options.fields = {{"x", DType::F32, {1, 8, 8}}, {"target", DType::I64, {}}};
    options.numSamples = kSamples;
    options.canSeek = true;
  }
  CallbackSource source() {
    return CallbackSource(
        options, [this](const BatchRequest &request) { return give(request); });
  }
  llvm::Expected<int64_t> give(const BatchRequest &request) {
    ++asked;
    if (request.at.epoch >= readable)
      return 0;
    std::vector<int64_t> order =
        epochPermutation(kSamples, request.seed, request.at.epoch);
    int64_t count = std::min(request.count, kSamples - request.at.position);
    for (int64_t i = 0; i < count; ++i) {
      int64_t sample = order[size_t(request.at.position + i)];
      std::memcpy(static_cast<float *>(request.to[0]) + i * 64,
                  images.data<float>().data() + sample * 64, 64 * 4);
      static_cast<int64_t *>(request.to[1])[i] =
          labels.data<int64_t>()[size_t(sample)];
    }
    return count;
  }
  /// The same samples as a dataset.
  DatasetSource dataset() const {
    TensorMap map;
    map.insert("x", HostTensor::of<float>(
                        {kSamples, 1, 8, 8},
                        images.data<float>().take_front(kSamples * 64)));
    map.insert("target",
               HostTensor::of<int64_t>(
                   {kSamples}, labels.data<int64_t>().take_front(kSamples)));
    std::vector<FieldSpec> fields(2);
    fields[0].name = fields[0].array = "x";
    fields[1].name = fields[1].array = "target";
    fields[1].dtype = DType::I64;
    return DatasetSource(get(Dataset::fromTensors(map, fields, "digits")));
  }
};

class Sources : public testing::Test {
protected:
  static void SetUpTestSuite() {
    CompileOptions options =
        trainingOptions(dataPath("models/digits_cnn.onnx"), "cross_entropy");
    options.import.batch = kBatch;
    loaded = new Loaded(get(load(options)));
  }
  static void TearDownTestSuite() { delete loaded; }
  void SetUp() override {
    ASSERT_TRUE(loaded->session);
    ASSERT_FALSE(
        llvm::sys::fs::createTemporaryFile("ckopt", "ckpt", checkpoint));
    options.epochs = 3;
    options.seed = 3;
    options.schedule.base = 1e-3;
    options.progress = false;
  }
  void TearDown() override { llvm::sys::fs::remove(checkpoint); }

  /// Trains from the initial weights.
  llvm::Expected<TrainResult> run(BatchSource &source) {
    check(loaded->session->initialize(loaded->compilation->weights(), 1));
    return train(*loaded->session, source, plainLoss(), options);
  }
  /// Returns the error of training from this source.
  std::string refusal(BatchSource &source) {
    auto result = run(source);
    EXPECT_FALSE(bool(result));
    return result ? "" : takeErrorText(result.takeError()).text;
  }
  TensorMap weights() { return get(loaded->session->weights(true)); }

  static Loaded *loaded;
  TrainOptions options;
  llvm::SmallString<128> checkpoint;
};
Loaded *Sources::loaded = nullptr;

void expectSameTensors(const TensorMap &a, const TensorMap &b) {
  for (const auto &[name, value] : a)
    EXPECT_TRUE(value.bitEqual(*b.find(name))) << name;
}

void expectIn(const std::string &part, const std::string &text) {
  EXPECT_NE(text.find(part), std::string::npos)
      << "'" << part << "' is not in '" << text << "'";
}

TEST_F(Sources, GiveTheBitsOfTheFile) {
  Digits digits;
  DatasetSource file = digits.dataset();
  TrainResult wanted = get(run(file));
  TensorMap bits = weights();
  EXPECT_EQ(wanted.steps, 3 * (kSamples / kBatch));
  for (bool known : {true, false}) {
    digits.options.numSamples =
        known ? std::optional<int64_t>(kSamples) : std::nullopt;
    CallbackSource source = digits.source();
    TrainResult result = get(run(source));
    EXPECT_EQ(result.losses, wanted.losses);
    EXPECT_EQ(result.droppedPerEpoch, kSamples % kBatch);
    EXPECT_EQ(result.position, (DataPosition{3, 0}));
    expectSameTensors(weights(), bits);
  }
}

TEST_F(Sources, ResumeWithTheBitsOfAnUnbrokenRun) {
  Digits digits;
  for (bool known : {true, false})
    for (int64_t stop : {2, 3}) { // an epoch's end, the middle of one
      digits.options.numSamples =
          known ? std::optional<int64_t>(kSamples) : std::nullopt;
      CallbackSource source = digits.source();
      TrainResult whole = get(run(source));
      TensorMap bits = weights();
      options.maxSteps = stop;
      options.checkpoint = checkpoint.str().str();
      EXPECT_EQ(get(run(source)).steps, stop);
      options.maxSteps = 0;
      options.checkpoint.clear();
      options.resume = checkpoint.str().str();
      EXPECT_EQ(get(run(source)).steps, whole.steps);
      expectSameTensors(weights(), bits);
      options.resume.clear();
    }
}

TEST_F(Sources, CallsAddUpToOneRun) {
  Digits digits;
  for (bool known : {true, false}) {
    digits.options.numSamples =
        known ? std::optional<int64_t>(kSamples) : std::nullopt;
    CallbackSource source = digits.source();
    options.epochs = 3;
    options.stepsBefore = options.epochsBefore = 0;
    TrainResult whole = get(run(source));
    TensorMap bits = weights();
    options.epochs = 1;
    TrainResult first = get(run(source));
    options.stepsBefore = first.steps;
    options.epochsBefore = first.position.epoch;
    options.epochs = 2;
    TrainResult rest =
        get(train(*loaded->session, source, plainLoss(), options));
    EXPECT_EQ(rest.steps, whole.steps);
    EXPECT_EQ(rest.position, whole.position);
    EXPECT_EQ(rest.losses.size(), whole.losses.size() - first.losses.size());
    expectSameTensors(weights(), bits);
  }
}

TEST_F(Sources, UpdatesThatNoEpochHasAreNotResumed) {
  Digits digits;
  CallbackSource source = digits.source();
  options.stepsBefore = 1; // made from a batch of the caller's
  options.checkpoint = checkpoint.str().str();
  EXPECT_EQ(get(run(source)).steps, 1 + 3 * (kSamples / kBatch));
  options.stepsBefore = 0;
  options.resume = options.checkpoint;
  expectIn("updates outside of its epochs", refusal(source));
}

TEST_F(Sources, ThatCannotGoBackAreNotResumed) {
  Digits digits;
  digits.options.canSeek = false;
  CallbackSource source = digits.source();
  options.checkpoint = checkpoint.str().str();
  options.maxSteps = 1;
  get(run(source));
  options.resume = options.checkpoint;
  expectIn("my digits cannot go back", refusal(source));
}

TEST_F(Sources, AreCheckedBatchByBatch) {
  Digits digits;
  int64_t bad = epochPermutation(kSamples, options.seed, 0)[size_t(kBatch + 5)];
  digits.labels.setDouble(bad, 99);
  CallbackSource source = digits.source();
  expectIn("my digits: array 'target': sample 69 of epoch 1 has the label 99, "
           "but the model has 10 classes",
           refusal(source));
  EXPECT_EQ(digits.asked, 2) << "found in the second batch";

  digits = Digits();
  digits.images.setDouble(bad * 64 + 1, NAN);
  CallbackSource second = digits.source();
  expectIn("array 'x': sample 69 of epoch 1, element [0, 0, 1] is not a number",
           refusal(second));
}

TEST_F(Sources, MustHaveTheStepsFields) {
  Digits digits;
  std::vector<SourceField> fields = digits.options.fields;
  auto refused = [&](std::vector<SourceField> given) {
    digits.options.fields = std::move(given);
    CallbackSource source = digits.source();
    return refusal(source);
  };
  expectIn("my digits: no field 'target'; there are 'x'", refused({fields[0]}));
  expectIn("my digits: the step takes no field 'y'",
           refused({fields[0], fields[1], {"y", DType::F32, {}}}));
  expectIn("but 'x' takes [1, 8, 8]",
           refused({{"x", DType::F32, {8, 8}}, fields[1]}));
  expectIn("'x' is data of each sample in the step",
           refused({{"x", DType::F32, {1, 8, 8}, false}, fields[1]}));
}

TEST_F(Sources, MustGiveWhatTheyPromise) {
  Digits digits;
  digits.options.numSamples = kSamples + kBatch;
  CallbackSource ended = digits.source();
  expectIn("my digits ended after sample 150 of 214", refusal(ended));

  digits.options.numSamples = std::nullopt;
  digits.readable = 1;
  CallbackSource once = digits.source();
  expectIn("gave no samples for epoch 2: it can be read but once",
           refusal(once));
  options.epochs = 1;
  EXPECT_EQ(get(run(once)).steps, kSamples / kBatch);

  digits.options.numSamples = kSamples - kBatch;
  CallbackSource more = digits.source();
  expectIn("my digits says that it has 86 samples, and gives at least 128",
           refusal(more));

  digits.options.numSamples = kBatch - 1;
  CallbackSource few = digits.source();
  expectIn("63 training samples do not fill one batch of 64", refusal(few));
}

TEST_F(Sources, OfUnknownLengthHaveNoEndToPlanFor) {
  Digits digits;
  digits.options.numSamples = std::nullopt;
  CallbackSource source = digits.source();
  options.schedule.kind = ScheduleKind::Cosine;
  expectIn("a schedule without a given end needs to know", refusal(source));
  options.schedule.totalSteps = 6;
  EXPECT_EQ(get(run(source)).steps, 6);
  options.schedule.byEpoch = true;
  expectIn("a learning rate by epochs needs to know", refusal(source));
}

TEST_F(Sources, ValidateOnSamplesOfTheirOwn) {
  Digits digits;
  CallbackSource source = digits.source();
  DatasetSource file = digits.dataset();
  auto held = get(file.holdOut(0.1, 1));
  options.validation = held.get();
  TrainResult result = get(run(source));
  EXPECT_EQ(result.evaluated, 15);
  EXPECT_EQ(result.evaluation.count, 15);
  options.earlyStop = 1;
  options.validateEvery = 1;
  options.schedule.base = 0; // running statistics alone change
  options.bestBy = Metric{Metric::Kind::SquaredError};
  expectIn("'mse' needs one output with targets in its shape", refusal(source));
  options.bestBy =
      Metric{Metric::Kind::TopK, 10}; // of ten classes: no evaluation is better
  result = get(run(source));
  EXPECT_TRUE(result.stoppedEarly);
  EXPECT_EQ(result.steps, 2);
  ASSERT_TRUE(result.best);
  EXPECT_EQ(*result.best, (BestEvaluation{"top10", 1, 1, 1}));
  ASSERT_EQ(result.validations.size(), 2u);
  EXPECT_EQ(result.validations[1].sums.inTop, 15);

  options.keepBest = "best.onnx"; // of a session without a model
  expectIn("TrainOptions::writeWeights", refusal(source));
  options.keepBest = "best.npz";
  expectIn("--keep-best must end in .safetensors", refusal(source));
  options.keepBest.clear();
  options.holdout = 0.1;
  expectIn("give one of --validation and --holdout", refusal(source));
  options.validation = nullptr;
  expectIn("no share of its samples can be held out", refusal(source));
  options.holdout = 0;
  expectIn("needs --validation or --holdout", refusal(source));
}

} // namespace
