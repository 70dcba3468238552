//===- TrainTest.cpp - training from a callback, in C ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Handles.h"

#include <cstring>
#include <filesystem>
#include <functional>

namespace {

/// Samples of the digits in the order of ckopt's files.
struct DigitSource {
  explicit DigitSource(int64_t samples = 200) : samples(samples) {}

  static int64_t next(void *user, ckopt_batch_request *request) {
    auto &self = *static_cast<DigitSource *>(user);
    self.asked.push_back({request->epoch, request->position});
    if (self.before)
      self.before(request);
    if (self.answer != -2)
      return self.answer;
    std::vector<int64_t> order(size_t(self.samples));
    EXPECT_EQ(ckopt_epoch_order(self.samples, request->seed, request->epoch,
                                order.data()),
              CKOPT_OK);
    int64_t given = 0;
    for (; given < request->count && request->position + given < self.samples;
         ++given) {
      int64_t sample = order[size_t(request->position + given)];
      std::memcpy(
          static_cast<char *>(request->buffers[0]) + 64 * given,
          static_cast<const char *>(self.digits.images.data) + 64 * sample, 64);
      static_cast<int64_t *>(request->buffers[1])[given] =
          static_cast<const int64_t *>(self.digits.labels.data)[sample];
    }
    return given;
  }

  ckopt_source source(bool counted = true) {
    static const int64_t pixels[] = {1, 8, 8};
    fields[0] = {"x", CKOPT_U8, 3, pixels, 1};
    fields[1] = {"y", CKOPT_I64, 0, nullptr, 1};
    ckopt_source result = {};
    result.size = sizeof(result);
    result.name = "digits";
    result.fields = fields;
    result.num_fields = 2;
    result.num_samples = counted ? samples : -1;
    result.can_seek = counted;
    result.next = next;
    result.user = this;
    return result;
  }

  Digits digits;
  int64_t samples;
  ckopt_field fields[2];
  std::vector<std::pair<int64_t, int64_t>> asked; ///< epochs, positions
  std::function<void(ckopt_batch_request *)> before;
  int64_t answer = -2; ///< other than -2: what `next` returns at once
};

ckopt_train_options upTo(int64_t updates, int64_t epochs = 100) {
  ckopt_train_options options = {};
  options.size = sizeof(options);
  options.epochs = epochs;
  options.max_updates = updates;
  return options;
}

} // namespace

TEST(CApiTrain, GoesOnWhereTheStepStands) {
  std::string path = testing::TempDir() + "/ckopt-capi-train.ckpt";
  DigitSource digits, later;
  ckopt_source source = digits.source(), rest = later.source();
  Step whole = compileDigits(), half = compileDigits(),
       resumed = compileDigits();
  ckopt_train_options all = upTo(10), some = upTo(4);
  ckopt_train_result result = {};
  result.size = sizeof(result);
  CKOPT_OK_OR_FAIL(ckopt_step_train(whole.get(), &source, &all, &result));
  EXPECT_EQ(result.updates, 10);
  // 200 samples are six batches of 32, and 8 that are left out.
  EXPECT_EQ(result.epoch, 1);
  EXPECT_EQ(result.position, 4 * 32);
  EXPECT_EQ(result.stopped, 0);
  EXPECT_LT(result.final_loss, result.first_loss);
  CKOPT_OK_OR_FAIL(ckopt_step_train(half.get(), &source, &some, nullptr));
  CKOPT_OK_OR_FAIL(ckopt_step_checkpoint(half.get(), path.c_str()));
  CKOPT_OK_OR_FAIL(ckopt_step_resume(resumed.get(), path.c_str(), nullptr));
  CKOPT_OK_OR_FAIL(ckopt_step_train(resumed.get(), &rest, &all, &result));
  EXPECT_EQ(result.updates, 6);
  EXPECT_EQ(later.asked.front(), (std::pair<int64_t, int64_t>(0, 4 * 32)));
  EXPECT_EQ(weightsOf(resumed), weightsOf(whole));
  // The end was reached.
  CKOPT_OK_OR_FAIL(ckopt_step_train(resumed.get(), &rest, &all, &result));
  EXPECT_EQ(result.updates, 0);
  // A source that cannot go back cannot go on.
  rest.can_seek = 0;
  all.max_updates = 20;
  EXPECT_FAILS(CKOPT_USAGE, "seek",
               ckopt_step_train(resumed.get(), &rest, &all, &result));
  std::filesystem::remove(path);
}

TEST(CApiTrain, AccumulatesOverEpochs) {
  DigitSource digits;
  ckopt_source source = digits.source();
  Step step = compileDigits({{"accumulate", "4"}});
  ckopt_train_options options = upTo(0, 2);
  ckopt_train_result result = {};
  result.size = sizeof(result);
  CKOPT_OK_OR_FAIL(ckopt_step_train(step.get(), &source, &options, &result));
  EXPECT_EQ(result.updates, 3); // of twelve batches
  EXPECT_EQ(digits.asked.size(), 12u);
  auto batch = digits.digits.batch();
  int32_t updated = 1;
  CKOPT_OK_OR_FAIL(
      ckopt_step_run(step.get(), batch.tensors, 2, nullptr, &updated));
  EXPECT_EQ(updated, 0);
  EXPECT_FAILS(CKOPT_USAGE, "whole updates",
               ckopt_step_train(step.get(), &source, &options, &result));
  ckopt_source uncounted = digits.source(/*counted=*/false);
  Step fresh = compileDigits({{"accumulate", "4"}});
  EXPECT_FAILS(CKOPT_USAGE, "accumulation",
               ckopt_step_train(fresh.get(), &uncounted, &options, nullptr));
}

/// Without a number of samples the end of each epoch tells.
TEST(CApiTrain, UncountedSourcesGiveTheSameBits) {
  DigitSource counted, uncounted;
  Step one = compileDigits(), other = compileDigits();
  ckopt_train_options options = upTo(0, 2);
  ckopt_source source = counted.source(), open = uncounted.source(false);
  CKOPT_OK_OR_FAIL(ckopt_step_train(one.get(), &source, &options, nullptr));
  CKOPT_OK_OR_FAIL(ckopt_step_train(other.get(), &open, &options, nullptr));
  EXPECT_EQ(counted.asked.size(), 12u);
  EXPECT_EQ(uncounted.asked.size(), 14u);
  EXPECT_EQ(weightsOf(one), weightsOf(other));
}

TEST(CApiTrain, SourcesThatAreWrong) {
  Step step = compileDigits();
  auto before = weightsOf(step);
  auto refused = [&](ckopt_status status, const char *text, auto change,
                     bool counted = true) {
    DigitSource digits;
    ckopt_source source = digits.source(counted);
    change(digits, source);
    EXPECT_FAILS(status, text,
                 ckopt_step_train(step.get(), &source, nullptr, nullptr));
  };
  using D = DigitSource;
  using S = ckopt_source;
  constexpr ckopt_status misuse = CKOPT_INVALID_ARGUMENT;
  refused(CKOPT_STOPPED, "stop", [](D &d, S &) { d.answer = -1; });
  refused(CKOPT_STOPPED, "digits: the disk burns", [](D &d, S &) {
    d.answer = -1;
    d.before = [](ckopt_batch_request *r) { r->error = "the disk burns"; };
  });
  refused(CKOPT_INPUT_ERROR, "33", [](D &d, S &) { d.answer = 33; });
  refused(CKOPT_INPUT_ERROR, "ended", [](D &d, S &) { d.answer = 31; });
  refused(CKOPT_INPUT_ERROR, "ended", [](D &d, S &) { d.answer = 0; }, false);
  refused(CKOPT_INPUT_ERROR, "do not fill",
          [](D &, S &s) { s.num_samples = 31; });
  refused(misuse, "next", [](D &, S &s) { s.next = nullptr; });
  refused(misuse, "size", [](D &, S &s) { s.size = 0; });
  refused(misuse, "NULL", [](D &, S &s) { s.fields = nullptr; });
  refused(misuse, "type", [](D &d, S &) { d.fields[0].dtype = 99; });
  refused(misuse, "name", [](D &d, S &) { d.fields[0].name = nullptr; });
  refused(misuse, "twice", [](D &d, S &) { d.fields[1].name = "x"; });
  refused(CKOPT_INPUT_ERROR, "no 'z'",
          [](D &d, S &) { d.fields[1].name = "z"; });
  refused(CKOPT_INPUT_ERROR, "'y'", [](D &, S &s) { s.num_fields = 1; });
  static const int64_t huge[] = {INT64_MAX, 8, 8};
  static const int64_t wrong[] = {1, 8, 9};
  refused(CKOPT_INPUT_ERROR, "x", [](D &d, S &) { d.fields[0].shape = huge; });
  refused(CKOPT_INPUT_ERROR,
          "digits: samples 0 to 31 of epoch 0: ", [](D &d, S &) {
            d.fields[0].shape = wrong;
            d.answer = 32;
          });
  // A source of an older program's, which ends before `next`.
  refused(misuse, "next",
          [](D &, S &s) { s.size = offsetof(ckopt_source, next); });
  EXPECT_EQ(weightsOf(step), before);
}

TEST(CApiTrain, CallbacksMayLookAndStop) {
  DigitSource digits;
  ckopt_source source = digits.source();
  Step step = compileDigits();
  struct Looked {
    ckopt_step *step;
    DigitSource *digits;
    ckopt_source *source;
    int64_t updates = 0;
  } looked = {step.get(), &digits, &source};
  ckopt_train_options options = upTo(10);
  options.user = &looked;
  options.progress = [](void *user, const ckopt_progress *progress) {
    auto &self = *static_cast<Looked *>(user);
    EXPECT_EQ(progress->update, ++self.updates);
    EXPECT_EQ(progress->learning_rate, 1e-3);
    auto batch = self.digits->digits.batch(0, 40);
    ckopt_metrics metrics = {};
    metrics.size = sizeof(metrics);
    EXPECT_EQ(ckopt_step_evaluate(self.step, batch.tensors, 2, &metrics),
              CKOPT_OK);
    EXPECT_EQ(metrics.count, 40);
    EXPECT_EQ(ckopt_step_run(self.step, batch.tensors, 2, nullptr, nullptr),
              CKOPT_BUSY);
    EXPECT_EQ(ckopt_step_train(self.step, self.source, nullptr, nullptr),
              CKOPT_BUSY);
    EXPECT_EQ(ckopt_step_resume(self.step, "a.ckpt", nullptr), CKOPT_BUSY);
    ckopt_step_destroy(self.step); // nothing: the loop needs it
    return int32_t(progress->update == 3);
  };
  ckopt_train_result result = {};
  result.size = sizeof(result);
  CKOPT_OK_OR_FAIL(ckopt_step_train(step.get(), &source, &options, &result));
  EXPECT_EQ(result.updates, 3);
  EXPECT_EQ(result.stopped, 1);
  // What was looked at in between changed no bit.
  Step plain = compileDigits();
  options = upTo(3);
  CKOPT_OK_OR_FAIL(ckopt_step_train(plain.get(), &source, &options, nullptr));
  EXPECT_EQ(weightsOf(step), weightsOf(plain));
}

TEST(CApiTrain, NumbersThatDivergeAreAStatus) {
  DigitSource digits;
  ckopt_source source = digits.source();
  Step step = compileDigits({{"lr", "1e38"}});
  ckopt_train_options options = upTo(50);
  EXPECT_FAILS(CKOPT_NON_FINITE, "finite",
               ckopt_step_train(step.get(), &source, &options, nullptr));
  options.epochs = -1;
  EXPECT_EQ(ckopt_step_train(step.get(), &source, &options, nullptr),
            CKOPT_INVALID_ARGUMENT);
}
