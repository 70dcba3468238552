//===- StepTest.cpp - compiled steps in C ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

static double runBatch(const Step &step, const Digits &digits,
                       int64_t first = 0) {
  auto batch = digits.batch(first);
  double loss = -1;
  EXPECT_EQ(ckopt_step_run(step.get(), batch.tensors, 2, &loss, nullptr),
            CKOPT_OK)
      << ckopt_last_error();
  return loss;
}

TEST(CApiStep, TellsWhatItTakes) {
  Step step = compileDigits();
  ckopt_step_info info = {};
  info.size = sizeof(info);
  CKOPT_OK_OR_FAIL(ckopt_step_get_info(step.get(), &info));
  EXPECT_EQ(info.batch, 32);
  EXPECT_EQ(info.accumulate, 1);
  EXPECT_EQ(info.updates, 0);
  EXPECT_EQ(info.fields, 2u);
  EXPECT_EQ(info.learning_rate, 1e-3);
  ckopt_field x, y;
  CKOPT_OK_OR_FAIL(ckopt_step_get_field(step.get(), 0, &x));
  EXPECT_STREQ(x.name, "x");
  EXPECT_EQ(x.dtype, CKOPT_F32);
  EXPECT_EQ(std::vector<int64_t>(x.shape, x.shape + x.rank),
            (std::vector<int64_t>{1, 8, 8}));
  CKOPT_OK_OR_FAIL(ckopt_step_get_field(step.get(), 1, &y));
  EXPECT_STREQ(y.name, "y");
  EXPECT_EQ(y.rank, 0);
  EXPECT_EQ(y.batched, 1);
  EXPECT_EQ(ckopt_step_get_field(step.get(), 2, &y), CKOPT_NOT_FOUND);
}

TEST(CApiStep, TellsOfUpdatesThatOverflow) {
  Digits digits;
  Step step =
      compileDigits({{"precision", "f16"}, {"loss-scale-init", "1073741824"}});
  runBatch(step, digits);
  ckopt_step_info info = {};
  info.size = sizeof(info);
  CKOPT_OK_OR_FAIL(ckopt_step_get_info(step.get(), &info));
  EXPECT_EQ(info.updates, 1);
  EXPECT_EQ(info.skipped, 1);
  EXPECT_EQ(info.loss_scale, 536870912);
}

TEST(CApiStep, WrongBatchesAreRefusedAndChangeNothing) {
  Digits digits;
  Step step = compileDigits(), fresh = compileDigits();
  auto right = digits.batch();
  auto refused = [&](ckopt_status status, const char *text, auto change,
                     size_t count = 2) {
    auto batch = digits.batch();
    ckopt_tensor tensors[3] = {batch.tensors[0], batch.tensors[1],
                               batch.tensors[1]};
    change(tensors);
    double loss = -1;
    EXPECT_FAILS(status, text,
                 ckopt_step_run(step.get(), tensors, count, &loss, nullptr));
    EXPECT_EQ(loss, -1);
  };
  constexpr ckopt_status misuse = CKOPT_INVALID_ARGUMENT;
  refused(misuse, "bytes", [](ckopt_tensor *t) { --t[0].bytes; });
  refused(misuse, "element type", [](ckopt_tensor *t) { t[0].dtype = 77; });
  refused(misuse, "element type", [](ckopt_tensor *t) { t[0].dtype = -1; });
  refused(misuse, "rank", [](ckopt_tensor *t) { t[0].rank = -1; });
  refused(misuse, "rank", [](ckopt_tensor *t) { t[0].rank = 1 << 30; });
  refused(misuse, "shape", [](ckopt_tensor *t) { t[0].shape = nullptr; });
  refused(misuse, "data", [](ckopt_tensor *t) { t[0].data = nullptr; });
  refused(misuse, "name", [](ckopt_tensor *t) { t[0].name = nullptr; });
  refused(misuse, "twice", [](ckopt_tensor *) {}, 3);
  static const int64_t huge[] = {INT64_MAX, INT64_MAX, 8, 8};
  static const int64_t negative[] = {-32, 1, 8, 8};
  refused(misuse, "x", [](ckopt_tensor *t) { t[0].shape = huge; });
  refused(misuse, "x", [](ckopt_tensor *t) { t[0].shape = negative; });
  refused(CKOPT_INPUT_ERROR, "'y'", [](ckopt_tensor *) {}, 1);
  refused(CKOPT_INPUT_ERROR, "no array 'z'",
          [](ckopt_tensor *t) { t[0].name = "z"; });
  refused(CKOPT_INPUT_ERROR, "compiled for 32", [&](ckopt_tensor *t) {
    static auto few = digits.batch(0, 31);
    std::copy(few.tensors, few.tensors + 2, t);
  });
  static const std::vector<int64_t> labels(32, 99);
  refused(CKOPT_INPUT_ERROR, "99",
          [](ckopt_tensor *t) { t[1].data = labels.data(); });
  static const std::vector<float> nans(32 * 64,
                                       std::numeric_limits<float>::quiet_NaN());
  refused(CKOPT_INPUT_ERROR, "NaN", [](ckopt_tensor *t) {
    t[0].dtype = CKOPT_F32;
    t[0].data = nans.data();
    t[0].bytes = nans.size() * 4;
  });
  EXPECT_FAILS(misuse, "NULL",
               ckopt_step_run(step.get(), nullptr, 2, nullptr, nullptr));
  EXPECT_EQ(ckopt_step_run(step.get(), nullptr, 0, nullptr, nullptr),
            CKOPT_INPUT_ERROR);
  EXPECT_EQ(runBatch(step, digits), runBatch(fresh, digits));
  EXPECT_EQ(weightsOf(step), weightsOf(fresh));
}

TEST(CApiStep, BytesOfAModelAreTheModel) {
  Digits digits;
  std::ifstream file(digitsPath(), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ckopt_model *model = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_model_from_memory(bytes.data(), bytes.size(), &model));
  bytes.assign(bytes.size(), 'x'); // they were copied
  ckopt_step *made = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_compile(model,
                                 makeOptions({{"loss", "cross_entropy"},
                                              {"optimizer", "adamw"},
                                              {"batch", "32"},
                                              {"threads", "1"},
                                              {"O", "0"}})
                                     .get(),
                                 &made));
  ckopt_model_destroy(model);
  Step fromBytes(made), fromFile = compileDigits();
  EXPECT_EQ(runBatch(fromBytes, digits), runBatch(fromFile, digits));
  std::string path = testing::TempDir() + "/ckopt-capi-saved.onnx";
  CKOPT_OK_OR_FAIL(ckopt_step_save(made, path.c_str(), 0));
  CKOPT_OK_OR_FAIL(ckopt_model_from_file(path.c_str(), &model));
  Model saved(model);
  CKOPT_OK_OR_FAIL(ckopt_compile(
      model, makeOptions({{"loss", "cross_entropy"}, {"batch", "32"}}).get(),
      &made));
  EXPECT_EQ(weightsOf(Step(made)), weightsOf(fromFile));
  std::filesystem::remove(path);
}

TEST(CApiStep, EvaluatesAndPredictsAnyNumberOfSamples) {
  Digits digits;
  Step step = compileDigits();
  auto all = digits.batch(0, 77);
  ckopt_metrics metrics = {};
  metrics.size = sizeof(metrics);
  CKOPT_OK_OR_FAIL(ckopt_step_evaluate(step.get(), all.tensors, 2, &metrics));
  EXPECT_EQ(metrics.count, 77);
  EXPECT_EQ(metrics.classified, 1);
  EXPECT_GT(metrics.loss, 0);
  ckopt_tensors *outputs = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_step_predict(step.get(), all.tensors, 1, &outputs));
  Tensors owned(outputs);
  ASSERT_EQ(ckopt_tensors_count(outputs), 1u);
  ckopt_tensor scores;
  CKOPT_OK_OR_FAIL(ckopt_tensors_get(outputs, 0, &scores));
  ASSERT_EQ(scores.rank, 2);
  EXPECT_EQ(scores.shape[0], 77);
  EXPECT_EQ(scores.shape[1], 10);
  int64_t right = 0;
  for (int64_t i = 0; i < 77; ++i) {
    const float *row = static_cast<const float *>(scores.data) + 10 * i;
    right += std::max_element(row, row + 10) - row ==
             static_cast<const int64_t *>(digits.labels.data)[i];
  }
  EXPECT_EQ(metrics.correct, right);
  ckopt_tensor none;
  EXPECT_EQ(ckopt_tensors_get(outputs, 1, &none), CKOPT_NOT_FOUND);
  EXPECT_FAILS(CKOPT_NOT_FOUND, scores.name,
               ckopt_tensors_find(outputs, "no such", &none));
}

TEST(CApiStep, WeightsByName) {
  Digits digits;
  Step step = compileDigits(), other = compileDigits();
  runBatch(step, digits);
  auto trained = weightsOf(step);
  ckopt_tensors *weights = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_step_get_weights(step.get(), nullptr, 0, &weights));
  Tensors owned(weights);
  std::vector<ckopt_tensor> all(ckopt_tensors_count(weights));
  for (size_t i = 0; i < all.size(); ++i)
    CKOPT_OK_OR_FAIL(ckopt_tensors_get(weights, i, &all[i]));
  const char *names[] = {all[1].name, all[0].name};
  ckopt_tensors *two = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_step_get_weights(step.get(), names, 2, &two));
  ckopt_tensor first;
  EXPECT_EQ(ckopt_tensors_count(two), 2u);
  CKOPT_OK_OR_FAIL(ckopt_tensors_get(two, 0, &first));
  EXPECT_STREQ(first.name, all[1].name);
  EXPECT_EQ(std::string(static_cast<const char *>(first.data), first.bytes),
            trained[first.name]);
  ckopt_tensors_destroy(two);
  const char *input = "x";
  EXPECT_FAILS(CKOPT_NOT_FOUND, "'x'",
               ckopt_step_get_weights(step.get(), &input, 1, &two));
  EXPECT_EQ(two, nullptr);
  // One that is wrong keeps the others from being set.
  auto before = weightsOf(other);
  ckopt_tensor wrong = all.back();
  all.back().name = "nothing";
  EXPECT_EQ(ckopt_step_set_weights(other.get(), all.data(), all.size()),
            CKOPT_INPUT_ERROR);
  EXPECT_EQ(weightsOf(other), before);
  all.back() = wrong;
  CKOPT_OK_OR_FAIL(ckopt_step_set_weights(other.get(), all.data(), all.size()));
  EXPECT_EQ(weightsOf(other), trained);
  EXPECT_FAILS(CKOPT_USAGE, "ema", ckopt_step_get_averages(other.get(), &two));
}

TEST(CApiStep, GradientsAndTimesWhereTheyWereAskedFor) {
  Digits digits;
  auto batch = digits.batch();
  Step updates = compileDigits();
  ckopt_tensors *gradients = nullptr;
  EXPECT_EQ(ckopt_step_gradients(updates.get(), batch.tensors, 2, nullptr,
                                 &gradients),
            CKOPT_USAGE);
  Step step = compileDigits({{"optimizer", "none"}});
  double loss = 0;
  CKOPT_OK_OR_FAIL(
      ckopt_step_gradients(step.get(), batch.tensors, 2, &loss, &gradients));
  EXPECT_GT(ckopt_tensors_count(gradients), 0u);
  EXPECT_EQ(loss, runBatch(updates, digits));
  ckopt_tensors_destroy(gradients);
  EXPECT_EQ(ckopt_step_run(step.get(), batch.tensors, 2, nullptr, nullptr),
            CKOPT_USAGE);

  int calls = 0;
  auto count = [](void *user, const ckopt_call_time *time) {
    EXPECT_GE(time->seconds, 0);
    EXPECT_STRNE(time->kernel, "");
    ++*static_cast<int *>(user);
  };
  EXPECT_EQ(
      ckopt_step_profile(updates.get(), batch.tensors, 2, 1, count, &calls),
      CKOPT_USAGE);
  Step timed = compileDigits({{"profile", ""}});
  auto before = weightsOf(timed);
  CKOPT_OK_OR_FAIL(
      ckopt_step_profile(timed.get(), batch.tensors, 2, 1, count, &calls));
  EXPECT_GT(calls, 5);
  EXPECT_EQ(weightsOf(timed), before);
}

TEST(CApiStep, MessagesReachTheHandlerAndTheErrorText) {
  struct Heard {
    int remarks = 0, errors = 0;
    std::string text;
  } heard;
  Options options = makeOptions({{"loss", "cross_entropy"},
                                 {"batch", "32"},
                                 {"effort", "0"},
                                 {"memory-budget", "1KiB"}});
  CKOPT_OK_OR_FAIL(ckopt_options_set_message_handler(
      options.get(),
      [](void *user, int32_t severity, const char *place, const char *text) {
        auto &heard = *static_cast<Heard *>(user);
        heard.remarks += severity == CKOPT_SEVERITY_REMARK;
        if (severity == CKOPT_SEVERITY_ERROR) {
          ++heard.errors;
          heard.text = text;
        }
        EXPECT_NE(place, nullptr);
      },
      &heard));
  ckopt_step *step = nullptr;
  EXPECT_EQ(ckopt_compile(digitsModel().get(), options.get(), &step),
            CKOPT_INFEASIBLE);
  EXPECT_GT(heard.remarks, 0);
  EXPECT_EQ(heard.errors, 1);
  // Only what the diagnostic says, and not where it stopped.
  std::string error = ckopt_last_error();
  EXPECT_NE(error.find(heard.text), std::string::npos);
  for (const char *word : {"error:", "said above", "--"})
    EXPECT_EQ(error.find(word), std::string::npos) << error;
}

TEST(CApiStep, CheckpointsGoOnWithTheSameBits) {
  Digits digits;
  std::string path = testing::TempDir() + "/ckopt-capi-run.ckpt";
  Step whole = compileDigits();
  for (int64_t i = 0; i < 4; ++i)
    runBatch(whole, digits, 32 * i);
  Step half = compileDigits();
  runBatch(half, digits, 0);
  runBatch(half, digits, 32);
  CKOPT_OK_OR_FAIL(ckopt_step_checkpoint(half.get(), path.c_str()));
  Step resumed = compileDigits({{"effort", "0"}, {"memory-budget", "2MiB"}});
  int64_t updates = 0;
  CKOPT_OK_OR_FAIL(ckopt_step_resume(resumed.get(), path.c_str(), &updates));
  EXPECT_EQ(updates, 2);
  runBatch(resumed, digits, 64);
  runBatch(resumed, digits, 96);
  EXPECT_EQ(weightsOf(resumed), weightsOf(whole));
  Step other = compileDigits({{"lr", "0.5"}});
  EXPECT_FAILS(CKOPT_INPUT_ERROR, "lr",
               ckopt_step_resume(other.get(), path.c_str(), nullptr));
  EXPECT_EQ(ckopt_step_save(other.get(), "weights.txt", 0), CKOPT_USAGE);
  EXPECT_EQ(ckopt_step_save(other.get(), "/no/such/folder/w.safetensors", 0),
            CKOPT_IO_ERROR);
  std::filesystem::remove(path);
}

/// Steps are compiled and run at the same time, with two threads each.
TEST(CApiStep, TwoSessionsInTwoThreads) {
  Digits digits;
  std::map<std::string, std::string> weights[3];
  auto train = [&](int which) {
    Step step = compileDigits({{"threads", "2"}});
    for (int64_t i = 0; i < 8; ++i)
      runBatch(step, digits, 32 * i);
    weights[which] = weightsOf(step);
  };
  std::thread first(train, 0), second(train, 1);
  first.join();
  second.join();
  train(2);
  EXPECT_EQ(weights[0], weights[2]);
  EXPECT_EQ(weights[1], weights[2]);
}

/// Calls on one step wait for each other; each update happens once.
TEST(CApiStep, TwoThreadsOnOneStep) {
  Digits digits;
  Step step = compileDigits();
  auto work = [&] {
    for (int i = 0; i < 10; ++i) {
      runBatch(step, digits, 0);
      weightsOf(step);
    }
  };
  std::thread first(work), second(work);
  first.join();
  second.join();
  ckopt_step_info info = {};
  info.size = sizeof(info);
  CKOPT_OK_OR_FAIL(ckopt_step_get_info(step.get(), &info));
  EXPECT_EQ(info.updates, 20);
}

TEST(CApiStep, ArtifactsAndMemory) {
  std::string path = testing::TempDir() + "/ckopt-capi-step.so";
  CKOPT_OK_OR_FAIL(ckopt_compile_to_file(
      digitsModel().get(),
      makeOptions({{"loss", "cross_entropy"}, {"batch", "32"}}).get(),
      path.c_str()));
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  std::filesystem::remove(path);
  Step step = compileDigits({{"effort", "0"}, {"memory-budget", "2MiB"}});
  Digits digits;
  runBatch(step, digits);
  ckopt_memory memory = {};
  memory.size = sizeof(memory);
  CKOPT_OK_OR_FAIL(ckopt_step_get_memory(step.get(), &memory));
  EXPECT_EQ(memory.budget, 2 << 20);
  EXPECT_LE(memory.planned_peak, memory.budget);
  EXPECT_LE(memory.measured_peak, memory.planned_peak);
  EXPECT_GT(memory.measured_peak, memory.planned_peak / 2);
  EXPECT_GT(memory.parameters, 0);
  EXPECT_GT(memory.optimizer, memory.parameters);
  ckopt_plan *plan = nullptr;
  CKOPT_OK_OR_FAIL(ckopt_step_get_plan(step.get(), &plan));
  Plan owned(plan);
  step.reset(); // the plan stays
  ckopt_plan_figures figures = {};
  figures.size = sizeof(figures);
  CKOPT_OK_OR_FAIL(ckopt_plan_get_figures(plan, &figures));
  EXPECT_EQ(figures.peak_bytes, memory.planned_peak);
}
