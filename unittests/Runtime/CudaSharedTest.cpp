//===- CudaSharedTest.cpp - arrays and streams of others ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/Driver.h"
#include "CudaFixture.h"

#include <cmath>
#include <cstring>
#include <dlfcn.h>

using namespace ckopt;
using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

class CudaShared : public Cuda {};

std::string lastError() { return ckrt_last_error(); }

bool contains(const std::string &text, const std::string &part) {
  return text.find(part) != std::string::npos;
}

/// Another user of the device: his streams, and memory of 256 bytes.
struct Other {
  explicit Other(int ordinal = 0) {
    void *library = dlopen(CKOPT_STANDIN, RTLD_NOW | RTLD_LOCAL);
#define CKOPT_ENTRY(member, symbol, parameters)                                \
  cu.member = reinterpret_cast<decltype(cu.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/DriverEntries.def"
#undef CKOPT_ENTRY
    EXPECT_EQ(cu.init(0), 0);
    EXPECT_EQ(cu.deviceGet(&device, ordinal), 0);
    EXPECT_EQ(cu.primaryRetain(&context, device), 0);
    EXPECT_EQ(cu.ctxPushCurrent(context), 0);
    EXPECT_EQ(cu.streamCreate(&stream, cuda::kStreamNonBlocking), 0);
    EXPECT_EQ(cu.memAlloc(&memory, 256), 0);
    EXPECT_EQ(cu.memHostAlloc(&pinned, 256, 0), 0);
  }
  ~Other() {
    EXPECT_EQ(cu.streamSynchronize(stream), 0);
    EXPECT_EQ(cu.streamSynchronize(nullptr), 0);
    EXPECT_EQ(cu.memFreeHost(pinned), 0);
    EXPECT_EQ(cu.memFree(memory), 0);
    EXPECT_EQ(cu.streamDestroy(stream), 0);
    EXPECT_EQ(cu.ctxPopCurrent(&context), 0);
    EXPECT_EQ(cu.primaryRelease(device), 0);
  }
  /// Puts into his stream: the memory has these values. They wait in pinned
  /// memory from byte `at` on.
  void put(std::vector<float> values, size_t at, cuda::Stream in) {
    auto *bytes = static_cast<char *>(pinned) + at;
    std::memcpy(bytes, values.data(), values.size() * sizeof(float));
    EXPECT_EQ(
        cu.memcpyHtoDAsync(memory, bytes, values.size() * sizeof(float), in),
        0);
  }
  /// Four floats of it.
  ckrt_device_array array() {
    static const int64_t four = 4;
    return {sizeof(ckrt_device_array),
            reinterpret_cast<void *>(memory),
            CKRT_F32,
            1,
            &four,
            nullptr,
            stream};
  }

  cuda::Driver cu{};
  cuda::Device device = 0;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::DevicePointer memory = 0;
  void *pinned = nullptr;
};

const char *const kOrders[] = {"late", "early"};

} // namespace

// The stand-in runs each stream as late, or as early, as events allow: only
// these put a copy behind who fills an array, and before who fills it again.
TEST_F(CudaShared, ABatchIsCopiedInTheCallersOrder) {
  for (const char *order : kOrders) {
    inChild({{"CKOPT_STANDIN_ORDER", order}}, [] {
      OnDevice on(deviceManifest());
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
      ASSERT_EQ(ckrt_tensor_fill(on.session, 5, 1), CKRT_OK);
      Other other;
      for (cuda::Stream stream : {other.stream, cuda::Stream()}) {
        ckrt_device_array x = other.array();
        x.stream = stream;
        other.put({1, 2, 3, 4}, 0, stream);
        ASSERT_EQ(ckrt_tensor_write_array(on.session, 1, &x), CKRT_OK)
            << lastError();
        other.put({100, 100, 100, 100}, 16, stream);
        ASSERT_EQ(ckrt_run(on.session, "step"), CKRT_OK);
        // A second batch while the first step may still read its own.
        ASSERT_EQ(ckrt_tensor_write_array(on.session, 1, &x), CKRT_OK);
        ASSERT_EQ(ckrt_run(on.session, "eval"), CKRT_OK);
        float y[4];
        ASSERT_EQ(ckrt_tensor_read(on.session, 3, y, CKRT_F32, 4), CKRT_OK);
        float w = stream ? 0.0f : -1.0f; // less 1 a step
        EXPECT_EQ(y[0], w * 100 + 10);
        EXPECT_EQ(y[1], (2 * w - 1) * 100 + 20);
      }
    });
    expectClean();
    // Each batch is a copy within the device, and none comes from the host.
    EXPECT_EQ(count("cuMemcpyDtoDAsync D1+128 "), 4) << log();
    EXPECT_FALSE(contains(log(), "cuMemcpyHtoDAsync D1+128")) << log();
  }
}

TEST_F(CudaShared, AWeightIsReadInPlaceInTheCallersOrder) {
  for (const char *order : kOrders) {
    inChild({{"CKOPT_STANDIN_ORDER", order}}, [] {
      OnDevice on(deviceManifest());
      ASSERT_EQ(ckrt_init_parameters(on.session, 0), CKRT_OK);
      ckrt_tensor_place place = {};
      place.size = sizeof(place);
      ASSERT_EQ(ckrt_tensor_locate(on.session, 0, &place), CKRT_OK);
      EXPECT_EQ(place.device, 0);
      EXPECT_EQ(place.strides[0], 1);
      Other other;
      ASSERT_EQ(on.step(1, 1), CKRT_OK); // w = 1 - x
      ASSERT_EQ(ckrt_let_stream_wait(on.session, other.stream), CKRT_OK);
      ASSERT_EQ(other.cu.memcpyDtoDAsync(
                    other.memory,
                    reinterpret_cast<cuda::DevicePointer>(place.data), 16,
                    other.stream),
                0);
      ASSERT_EQ(ckrt_wait_for_stream(on.session, other.stream), CKRT_OK);
      ASSERT_EQ(on.step(1, 1), CKRT_OK); // must not change what is still read
      float w[4];
      ckrt_device_array copied = other.array();
      ASSERT_EQ(ckrt_array_read(on.session, &copied, w), CKRT_OK);
      EXPECT_EQ(w[0], 0.0f);
      EXPECT_EQ(w[3], -3.0f);
      // The other way: a copy of the runtime's.
      ASSERT_EQ(ckrt_tensor_read_array(on.session, 0, &copied), CKRT_OK);
      ASSERT_EQ(on.step(1, 1), CKRT_OK);
      ASSERT_EQ(ckrt_array_read(on.session, &copied, w), CKRT_OK);
      EXPECT_EQ(w[3], -7.0f);
    });
    expectClean();
  }
}

TEST_F(CudaShared, ArraysGoToTheHostInRowMajorOrder) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    Other other;
    other.put({0, 1, 2, 3, 4, 5, 6, 7}, 0, other.stream);
    const int64_t shape[] = {2, 3}, strides[] = {1, 2};
    ckrt_device_array array = other.array();
    array.rank = 2, array.shape = shape, array.strides = strides;
    float values[6];
    ASSERT_EQ(ckrt_array_read(on.session, &array, values), CKRT_OK);
    EXPECT_EQ(std::vector<float>(values, values + 6),
              (std::vector<float>{0, 2, 4, 1, 3, 5}));
  });
  expectClean();
}

TEST_F(CudaShared, NumbersOfArraysAreLookedAt) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    Other other;
    const float bad = NAN;
    for (int64_t length : {4, 3})
      for (int at = -1; at < length; ++at) {
        // bf16 is the upper half of f32; 3 of them end within a word.
        for (bool half : {false, true}) {
          std::vector<char> bytes(16);
          int64_t size = half ? 2 : 4;
          if (at >= 0)
            std::memcpy(&bytes[size_t(at * size)],
                        reinterpret_cast<const char *>(&bad) + (4 - size),
                        size_t(size));
          ASSERT_EQ(other.cu.memcpyHtoDAsync(other.memory, bytes.data(), 16,
                                             other.stream),
                    0);
          ckrt_device_array array = other.array();
          array.dtype = half ? CKRT_BF16 : CKRT_F32;
          array.shape = &length;
          int finite = -1;
          ASSERT_EQ(ckrt_array_finite(on.session, &array, &finite), CKRT_OK)
              << lastError();
          EXPECT_EQ(finite, at < 0) << at << " of " << length << half;
        }
      }
  });
  expectClean();
}

// The session goes on after each.
TEST_F(CudaShared, WhatIsWrongIsSaid) {
  inChild({}, [] {
    OnDevice on(deviceManifest());
    Other other;
    auto expect = [&](ckrt_device_array array, ckrt_status status,
                      const char *text) {
      EXPECT_EQ(ckrt_tensor_write_array(on.session, 1, &array), status);
      EXPECT_TRUE(contains(lastError(), text)) << lastError();
    };
    const int64_t pair[] = {2, 2}, negative = -1;
    ckrt_device_array array = other.array();
    array.dtype = CKRT_F64;
    expect(array, CKRT_MISMATCH,
           "tensor 'x' is f32 [4], the device's array f64 [4]");
    array = other.array(), array.rank = 2, array.shape = pair;
    expect(array, CKRT_MISMATCH, "the device's array f32 [2, 2]");
    array = other.array(), array.strides = &negative;
    expect(array, CKRT_INVALID_ARGUMENT, "negative");
    array = other.array(), array.data = nullptr;
    expect(array, CKRT_INVALID_ARGUMENT, "null array");
    EXPECT_EQ(
        other.cu.streamBeginCapture(other.stream, cuda::kCaptureModeRelaxed),
        0);
    for (ckrt_status status : {ckrt_wait_for_stream(on.session, other.stream),
                               ckrt_let_stream_wait(on.session, other.stream)})
      EXPECT_EQ(status, CKRT_INVALID_ARGUMENT);
    expect(other.array(), CKRT_INVALID_ARGUMENT,
           "stream is being captured into a graph");
    cuda::Graph graph = nullptr;
    EXPECT_EQ(other.cu.streamEndCapture(other.stream, &graph), 0);
    EXPECT_EQ(other.cu.graphDestroy(graph), 0);
    EXPECT_EQ(on.step(1, 1), CKRT_OK);
    EXPECT_EQ(ckrt_synchronize(on.session), CKRT_OK);
  });
  expectClean();
  // Memory that is none of the device's, or another one's.
  inChild({{"CKOPT_STANDIN_DEVICES", "2"}}, [] {
    OnDevice on(deviceManifest());
    float values[4] = {};
    Other other(1);
    ckrt_device_array array = other.array();
    int finite = 0;
    for (const char *where : {"memory, but in that of cuda:1", "memory"}) {
      EXPECT_EQ(ckrt_tensor_write_array(on.session, 1, &array), CKRT_MISMATCH);
      std::string text = lastError();
      EXPECT_EQ(text.substr(text.find("not in this device's ")),
                std::string("not in this device's ") + where);
      EXPECT_EQ(ckrt_array_finite(on.session, &array, &finite), CKRT_MISMATCH);
      EXPECT_EQ(ckrt_array_read(on.session, &array, values), CKRT_MISMATCH);
      array.data = values;
    }
    EXPECT_EQ(on.step(1, 1), CKRT_OK);
    EXPECT_EQ(ckrt_synchronize(on.session), CKRT_OK);
  });
  expectClean();
}

// An array's last byte is asked for, too, where the driver knows where memory
// ends: nothing is copied then. Strides count.
TEST_F(CudaShared, ArraysEndWithinTheirMemory) {
  auto writes = [](int64_t stride, int64_t at, ckrt_status status) {
    OnDevice on(deviceManifest());
    Other other;
    ckrt_device_array array = other.array();
    array.data = static_cast<char *>(array.data) + at;
    array.strides = &stride;
    int finite = 0;
    std::vector<float> values(4);
    EXPECT_EQ(ckrt_tensor_write_array(on.session, 1, &array), status) << at;
    EXPECT_EQ(ckrt_tensor_read_array(on.session, 1, &array), status) << at;
    EXPECT_EQ(ckrt_array_read(on.session, &array, values.data()), status);
    if (status != CKRT_OK)
      EXPECT_TRUE(contains(lastError(), "the caller's array takes " +
                                            std::to_string(12 * stride + 4) +
                                            " bytes, and its memory ends "
                                            "behind " +
                                            std::to_string(256 - at)))
          << lastError();
    if (stride == 1)
      EXPECT_EQ(ckrt_array_finite(on.session, &array, &finite), status);
    EXPECT_EQ(on.step(1, 1), CKRT_OK);
    EXPECT_EQ(ckrt_synchronize(on.session), CKRT_OK);
  };
  // Virtual memory of three ranges that follow each other ends as well.
  for (const char *page : {"0", "100"}) {
    for (int64_t stride : {1, 21}) {
      int64_t fits = 256 - (12 * stride + 4);
      inChild({{"CKOPT_STANDIN_PAGE", page}},
              [&] { writes(stride, fits, CKRT_OK); });
      expectClean();
      inChild({{"CKOPT_STANDIN_PAGE", page}},
              [&] { writes(stride, fits + 4, CKRT_MISMATCH); });
      expectClean();
    }
  }
  // A driver that tells no range refuses nothing.
  inChild({{"CKOPT_STANDIN_FAIL", "cuPointerGetAttribute:2:1"}}, [] {
    OnDevice on(deviceManifest());
    Other other;
    ckrt_device_array array = other.array();
    const int64_t stride = 21;
    array.strides = &stride;
    EXPECT_EQ(ckrt_tensor_write_array(on.session, 1, &array), CKRT_OK)
        << lastError();
  });
  expectClean();
}

// A kernel copies what lies in another order, by elements of any size.
TEST_F(CudaShared, OrdersMayDiffer) {
  inChild({}, [] {
    Manifest m = deviceManifest();
    // Images of two channels, channels last, over the bytes of x.
    m.tensors[1] =
        tensor("x", TensorRole::Input, DType::F32, {1, 2, 2, 3}, 128);
    m.tensors[1].strides = {12, 1, 6, 2};
    for (DType dtype : {DType::F64, DType::F32, DType::F16, DType::I8}) {
      m.tensors[1].dtype = dtype;
      const int64_t size = dtypeSize(dtype);
      m.tensors[1].bytes = 12 * size;
      OnDevice on(m);
      ASSERT_EQ(on.status, CKRT_OK) << lastError();
      Other other;
      std::vector<char> bytes(size_t(12 * size)), found(bytes.size());
      for (size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = char(i);
      ASSERT_EQ(other.cu.memcpyHtoDAsync(other.memory, bytes.data(),
                                         bytes.size(), other.stream),
                0);
      ckrt_device_array x = other.array();
      const int64_t shape[] = {1, 2, 2, 3};
      x.rank = 4, x.shape = shape;
      x.dtype = static_cast<ckrt_dtype>(dtype);
      ASSERT_EQ(ckrt_tensor_write_array(on.session, 1, &x), CKRT_OK)
          << lastError();
      ASSERT_EQ(ckrt_tensor_read(on.session, 1, found.data(), x.dtype, 12),
                CKRT_OK);
      EXPECT_EQ(found, bytes) << dtypeName(dtype);
      ASSERT_EQ(
          other.cu.memsetD8Async(other.memory, 0, bytes.size(), other.stream),
          0);
      ASSERT_EQ(ckrt_tensor_read_array(on.session, 1, &x), CKRT_OK);
      ASSERT_EQ(ckrt_array_read(on.session, &x, found.data()), CKRT_OK);
      EXPECT_EQ(found, bytes) << dtypeName(dtype);
    }
  });
  expectClean();
  EXPECT_EQ(count("execute ckopt_runtime_copy "), 8);
}
