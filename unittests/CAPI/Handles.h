//===- Handles.h - C handles that destroy themselves ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_CAPI_HANDLES_H
#define CKOPT_UNITTESTS_CAPI_HANDLES_H

#include "ckopt-c/ckopt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

template <typename T, void (*Destroy)(T *)> struct Destroyer {
  void operator()(T *handle) const { Destroy(handle); }
};
template <typename T, void (*Destroy)(T *)>
using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;
using Model = Owned<ckopt_model, ckopt_model_destroy>;
using Options = Owned<ckopt_options, ckopt_options_destroy>;
using Plan = Owned<ckopt_plan, ckopt_plan_destroy>;
using Step = Owned<ckopt_step, ckopt_step_destroy>;
using Tensors = Owned<ckopt_tensors, ckopt_tensors_destroy>;

#define CKOPT_OK_OR_FAIL(call) ASSERT_EQ(call, CKOPT_OK) << ckopt_last_error()
#define EXPECT_FAILS(status, text, call)                                       \
  do {                                                                         \
    EXPECT_EQ(call, status);                                                   \
    EXPECT_NE(std::string(ckopt_last_error()).find(text), std::string::npos)   \
        << ckopt_last_error();                                                 \
  } while (0)

using Settings = std::vector<std::pair<const char *, const char *>>;

inline Options makeOptions(const Settings &settings = {}) {
  ckopt_options *options = nullptr;
  EXPECT_EQ(ckopt_options_create(&options), CKOPT_OK);
  for (auto [name, value] : settings)
    EXPECT_EQ(ckopt_options_set(options, name, value), CKOPT_OK)
        << ckopt_last_error();
  return Options(options);
}

inline std::string textOf(const Plan &plan, int32_t kind) {
  const char *text = nullptr;
  EXPECT_EQ(ckopt_plan_get_text(plan.get(), kind, &text), CKOPT_OK);
  return text ? text : "";
}

inline const char *digitsPath() {
  return CKOPT_TEST_DATA "/models/digits_cnn.onnx";
}

inline Model digitsModel() {
  ckopt_model *model = nullptr;
  EXPECT_EQ(ckopt_model_from_file(digitsPath(), &model), CKOPT_OK);
  return Model(model);
}

/// The digits network, with settings beside the usual ones.
inline Step compileDigits(const Settings &more = {}) {
  Settings settings = {{"loss", "cross_entropy"},
                       {"optimizer", "adamw"},
                       {"batch", "32"},
                       {"threads", "1"},
                       {"O", "0"}};
  settings.insert(settings.end(), more.begin(), more.end());
  ckopt_step *step = nullptr;
  EXPECT_EQ(
      ckopt_compile(digitsModel().get(), makeOptions(settings).get(), &step),
      CKOPT_OK)
      << ckopt_last_error();
  return Step(step);
}

/// The digits as the network takes them.
struct Digits {
  Digits() {
    ckopt_tensors *read = nullptr;
    EXPECT_EQ(ckopt_tensors_from_file(CKOPT_TEST_DATA "/digits.npz", &read),
              CKOPT_OK);
    arrays.reset(read);
    EXPECT_EQ(ckopt_tensors_find(read, "images", &images), CKOPT_OK);
    EXPECT_EQ(ckopt_tensors_find(read, "labels", &labels), CKOPT_OK);
  }
  int64_t count() const { return labels.shape[0]; }

  /// The tensors "x" and "y" of `samples` samples from `first`.
  struct Batch {
    std::vector<int64_t> shape, labelShape;
    ckopt_tensor tensors[2];
  };
  Batch batch(int64_t first = 0, int64_t samples = 32) const {
    Batch result;
    result.shape.assign(images.shape, images.shape + images.rank);
    result.shape[0] = samples;
    result.labelShape = {samples};
    size_t each = images.bytes / size_t(count());
    result.tensors[0] = {"x",
                         CKOPT_U8,
                         images.rank,
                         result.shape.data(),
                         static_cast<const char *>(images.data) +
                             size_t(first) * each,
                         size_t(samples) * each};
    result.tensors[1] = {"y",
                         CKOPT_I64,
                         1,
                         result.labelShape.data(),
                         static_cast<const int64_t *>(labels.data) + first,
                         size_t(samples) * 8};
    return result;
  }

  Tensors arrays;
  ckopt_tensor images, labels;
};

/// All weights as bytes by name.
inline std::map<std::string, std::string> weightsOf(const Step &step) {
  ckopt_tensors *weights = nullptr;
  EXPECT_EQ(ckopt_step_get_weights(step.get(), nullptr, 0, &weights), CKOPT_OK)
      << ckopt_last_error();
  Tensors owned(weights);
  std::map<std::string, std::string> result;
  for (size_t i = 0; i < ckopt_tensors_count(weights); ++i) {
    ckopt_tensor tensor;
    EXPECT_EQ(ckopt_tensors_get(weights, i, &tensor), CKOPT_OK);
    result[tensor.name] =
        std::string(static_cast<const char *>(tensor.data), tensor.bytes);
  }
  return result;
}

#endif // CKOPT_UNITTESTS_CAPI_HANDLES_H
