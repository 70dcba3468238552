//===- CudaWeightCopiesTest.cpp - when copies of weights are made again ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaFixture.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class CudaWeightCopies : public Cuda {
protected:
  /// The fixture's step with a function that makes a copy of w.
  static Manifest manifest() {
    Manifest m = deviceManifest();
    m.tensors.push_back(
        tensor("w/copy", TensorRole::Copy, DType::F32, {4}, 640));
    m.functions.push_back({"refresh", "ckopt_fn_refresh", {0, 6}, {}});
    auto refresh =
        callOf(0, "k_axpy", {{0, 16}, {128, 16}, {256, 16}, {640, 16}}, {4},
               {DType::F32, 640, 16});
    refresh.workspaceBytes = 4;
    refresh.function = 2;
    m.calls.push_back(refresh);
    return m;
  }
};

} // namespace

// Copies are made before the first run, and again where a weight may have been
// written since: not by what steps are fed, nor by reading.
TEST_F(CudaWeightCopies, AreMadeAgainBehindWrites) {
  const std::string copied = "execute k_axpy D1+0 D1+128 D1+256 D1+640 ";
  struct Case {
    const char *what;
    std::function<ckrt_status(OnDevice &)> make;
    int refreshes; ///< of two steps behind it
  };
  const float values[4] = {1, 2, 3, 4};
  auto place = [](OnDevice &on, int64_t tensor) {
    ckrt_tensor_place at = {};
    at.size = sizeof(at);
    EXPECT_EQ(ckrt_tensor_locate(on.session, tensor, &at), CKRT_OK);
    return at;
  };
  const Case cases[] = {
      {"nothing", [](OnDevice &) { return CKRT_OK; }, 0},
      {"a write of an input",
       [&](OnDevice &on) {
         return ckrt_tensor_write(on.session, 1, values, CKRT_F32, 4);
       },
       0},
      {"a read",
       [&](OnDevice &on) {
         float read[4];
         return ckrt_tensor_read(on.session, 0, read, CKRT_F32, 4);
       },
       0},
      {"the place of an output",
       [&](OnDevice &on) {
         (void)place(on, 3);
         return CKRT_OK;
       },
       0},
      {"a write",
       [&](OnDevice &on) {
         return ckrt_tensor_write(on.session, 0, values, CKRT_F32, 4);
       },
       1},
      {"a write of the copy",
       [&](OnDevice &on) {
         return ckrt_tensor_write(on.session, 6, values, CKRT_F32, 4);
       },
       1},
      {"a number for all",
       [](OnDevice &on) { return ckrt_tensor_fill(on.session, 0, 3); }, 1},
      {"initialization",
       [](OnDevice &on) { return ckrt_init_parameters(on.session, 7); }, 1},
      {"an array of the device",
       [&](OnDevice &on) {
         const int64_t four = 4, one = 1;
         ckrt_device_array array = {};
         array.size = sizeof(array);
         array.data = place(on, 3).data;
         array.dtype = CKRT_F32;
         array.rank = 1, array.shape = &four, array.strides = &one;
         return ckrt_tensor_write_array(on.session, 0, &array);
       },
       1},
      {"the place of the weight, for ever",
       [&](OnDevice &on) {
         (void)place(on, 0);
         return CKRT_OK;
       },
       2},
  };
  for (const Case &c : cases) {
    inChild({}, [&] {
      OnDevice on(manifest());
      ASSERT_EQ(on.status, CKRT_OK) << ckrt_last_error();
      EXPECT_EQ(on.step(1, 0.5f), CKRT_OK);
      EXPECT_EQ(c.make(on), CKRT_OK) << c.what << ": " << ckrt_last_error();
      EXPECT_EQ(on.step(1, 0.5f), CKRT_OK);
      EXPECT_EQ(ckrt_run(on.session, "eval"), CKRT_OK);
      (void)on.loss();
    });
    EXPECT_EQ(count(copied), 1 + c.refreshes) << c.what << "\n" << log();
    expectClean();
  }
}
