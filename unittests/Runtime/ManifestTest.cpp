//===- ManifestTest.cpp - the blob, whole and damaged ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Manifest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

using namespace ckopt::runtime;

namespace {

Manifest sample() {
  Manifest m;
  m.cpuFeatures = {"sse2", "avx2"};
  m.threads = 2;
  m.arenaBytes = 4096;
  m.producer = "ckopt test";
  TensorInfo w;
  w.name = "conv.weight";
  w.role = TensorRole::Parameter;
  w.shape = {4, 3, 2};
  w.strides = {6, 2, 1};
  w.offset = 64, w.bytes = 96;
  w.init = "kaiming";
  w.fanIn = 6, w.fanOut = 8;
  m.tensors.push_back(w);
  TensorInfo loss;
  loss.name = "loss";
  loss.role = TensorRole::Loss;
  loss.offset = 256, loss.bytes = 4;
  m.tensors.push_back(loss);
  m.functions.push_back({"step", "ckopt_fn_step", {0}, {1}});
  PrimitiveDesc conv;
  conv.kind = PrimitiveKind::ConvForward;
  conv.conv.batch = 1, conv.conv.inChannels = 3, conv.conv.outChannels = 4;
  conv.conv.in[0] = conv.conv.in[1] = 5;
  conv.conv.kernel[0] = conv.conv.kernel[1] = 3;
  conv.conv.out[0] = conv.conv.out[1] = 3;
  conv.conv.channelsLast = conv.conv.weightsLast = true;
  conv.form = LibraryForm::Convolution;
  m.primitives.push_back(conv);
  m.libraryTable = "0123456789abcdef";
  CallInfo call;
  call.kernel = "k0", call.source = "/conv/Conv", call.primitive = 0;
  call.workspaceOffset = 1024, call.workspaceBytes = 512;
  call.results.push_back({DType::F32, 512, 144});
  m.calls.push_back(call);
  call.originalCall = 0;
  m.calls.push_back(call);
  return m;
}

/// Of two numbers of f32.
PrimitiveDesc product() {
  PrimitiveDesc desc;
  desc.matmul.m = desc.matmul.n = desc.matmul.k = 1;
  return desc;
}

/// A device's: one call of two launches, of one kernel.
Manifest deviceSample() {
  Manifest m;
  m.target = Target::Cuda;
  m.device.sm = 80, m.device.ptxIsa = 70, m.device.minDriver = 11000;
  m.device.dataHash = ~uint64_t(0);
  m.alignment = kDeviceAlignment;
  m.arenaBytes = 4096;
  m.functions.push_back({"step", "ckopt_fn_step", {}, {}});
  KernelInfo kernel;
  kernel.symbol = "k0_s0";
  kernel.grid = 1 << 20, kernel.block = 256, kernel.sharedBytes = 1024;
  kernel.pointers = 2, kernel.scalars = 1;
  kernel.sources = {"/a/Relu", "/b/Relu"};
  m.kernels.push_back(kernel);
  CallInfo call;
  call.kernel = "k0", call.source = "/a/Relu";
  LaunchInfo launch;
  launch.kernel = 0;
  launch.pointers = {{64, 128}, {4032, 64}};
  launch.scalars = {-7};
  launch.scratchOffset = 4096;
  call.launches = {launch, launch};
  m.calls.push_back(call);
  return m;
}

// The blob's header: magic 8, version 4, reserved 4, size 8, checksum 8.
constexpr size_t kHeader = 32;

/// Lets the call be a library's, with the kernel of ours beside it.
void leaveToLibrary(Manifest &m) {
  m.primitives = {product()};
  CallInfo &call = m.calls[0];
  call.ownLaunches = {call.launches[0]};
  LaunchInfo library;
  library.primitive = 0;
  library.pointers = {{64, 4}, {128, 4}, {192, 4}};
  call.launches = {library};
}

/// Makes the checksum fit again, so that damage reaches the field checks.
void restamp(std::vector<uint8_t> &blob) {
  if (blob.size() < kHeader)
    return;
  uint64_t hash = 14695981039346656037ull, size = blob.size() - kHeader;
  for (size_t i = kHeader; i < blob.size(); ++i)
    hash = (hash ^ blob[i]) * 1099511628211ull;
  std::memcpy(&blob[16], &size, 8);
  std::memcpy(&blob[24], &hash, 8);
}

} // namespace

TEST(Manifest, RoundTrip) {
  Manifest m = sample(), back;
  std::vector<uint8_t> blob = serialize(m);
  std::string error;
  ASSERT_TRUE(parse(blob.data(), blob.size(), back, error)) << error;
  EXPECT_EQ(serialize(back), blob);
  EXPECT_EQ(back.cpuFeatures, m.cpuFeatures);
  EXPECT_EQ(back.tensors[0].strides, m.tensors[0].strides);
  EXPECT_EQ(back.tensors[0].init, "kaiming");
  EXPECT_EQ(back.functions[0].symbol, "ckopt_fn_step");
  EXPECT_EQ(back.primitives[0], m.primitives[0]);
  EXPECT_EQ(back.libraryTable, m.libraryTable);
  EXPECT_EQ(back.calls[1].originalCall, 0);
  EXPECT_EQ(back.calls[0].results[0].bytes, 144);
}

TEST(Manifest, DeviceTableRoundTrip) {
  Manifest m = deviceSample(), back;
  std::vector<uint8_t> blob = serialize(m);
  std::string error;
  ASSERT_TRUE(parse(blob.data(), blob.size(), back, error)) << error;
  EXPECT_EQ(serialize(back), blob);
  EXPECT_EQ(back.target, Target::Cuda);
  EXPECT_EQ(back.device.minDriver, 11000);
  EXPECT_EQ(back.device.dataHash, ~uint64_t(0));
  EXPECT_EQ(back.kernels[0].sources, m.kernels[0].sources);
  EXPECT_EQ(back.kernels[0].grid, 1 << 20);
  ASSERT_EQ(back.calls[0].launches.size(), 2u);
  const LaunchInfo &launch = back.calls[0].launches[1];
  EXPECT_EQ(launch.pointers[1].offset, 4032);
  EXPECT_EQ(launch.scalars[0], -7);
  EXPECT_EQ(launch.scratchOffset, 4096);
  leaveToLibrary(m);
  m.calls[0].workspaceBytes = 64, m.calls[0].ownScratchBytes = 32;
  blob = serialize(m);
  ASSERT_TRUE(parse(blob.data(), blob.size(), back, error)) << error;
  EXPECT_EQ(back.libraryPrimitive(back.calls[0]), 0);
  ASSERT_EQ(back.calls[0].ownLaunches.size(), 1u);
  EXPECT_EQ(back.calls[0].ownLaunches[0].kernel, 0);
  EXPECT_EQ(back.calls[0].ownScratchBytes, 32);
}

TEST(Manifest, SaysWhatIsWrongWithADeviceTable) {
  struct Case {
    std::function<void(Manifest &)> damage;
    const char *text;
  };
  const Case cases[] = {
      {[](Manifest &m) { m.target = static_cast<Target>(2); }, "target"},
      {[](Manifest &m) { m.target = Target::Cpu, m.alignment = 64; },
       "with device code"},
      {[](Manifest &m) { m.device.sm = 0; }, "architecture"},
      {[](Manifest &m) {
         m.device.precision = ProductPrecision(kNumProductPrecisions);
       },
       "unknown precision"},
      {[](Manifest &m) {
         m.primitives = {product()};
         m.device.precision = ProductPrecision::BF16;
       },
       "another precision than the step's"},
      {[](Manifest &m) {
         m.primitives = {product()};
         m.primitives[0].precision = ProductPrecision::TF32;
       },
       "another precision than the step's"},
      {[](Manifest &m) {
         m.primitives = {product()};
         m.primitives[0].form = LibraryForm::Packed;
       },
       "forms of primitives"},
      {[](Manifest &m) { m.threads = 2; }, "threads"},
      {[](Manifest &m) { m.alignment = 512; }, "up to 256"},
      {[](Manifest &m) { m.kernels.push_back(m.kernels[0]); }, "there twice"},
      {[](Manifest &m) { m.kernels[0].symbol = "k 0"; }, "no identifier"},
      {[](Manifest &m) { m.kernels[0].grid = int64_t(1) << 31; },
       "2147483648 blocks"},
      {[](Manifest &m) { m.kernels[0].block = 1025; }, "1025 threads"},
      {[](Manifest &m) { m.kernels[0].sharedBytes = 99 * 1024 + 1; },
       "shared memory"},
      {[](Manifest &m) { m.kernels[0].pointers = 600; }, "more parameters"},
      {[](Manifest &m) { m.calls[0].launches[0].kernel = 1; }, "out of range"},
      {[](Manifest &m) { m.calls[0].launches[0].primitive = 0; }, "needs a"},
      {[](Manifest &m) { m.calls[0].launches[1].scalars.clear(); },
       "not its kernel's"},
      {[](Manifest &m) { m.calls[0].launches[1].pointers[1].bytes = 65; },
       "outside the arena"},
      {[](Manifest &m) { m.calls[0].launches[1].pointers[0].offset = 32; },
       "not aligned"},
      {[](Manifest &m) { m.calls[0].launches[0].scratchOffset = 4160; },
       "scratch outside"},
      {[](Manifest &m) { m.calls[0].ownLaunches = {m.calls[0].launches[0]}; },
       "no launch of one"},
      {[](Manifest &m) {
         leaveToLibrary(m);
         m.calls[0].ownLaunches = m.calls[0].launches;
       },
       "in its own place"},
      {[](Manifest &m) {
         leaveToLibrary(m);
         m.calls[0].ownLaunches[0].kernel = 1;
       },
       "out of range"},
      {[](Manifest &m) {
         leaveToLibrary(m);
         m.calls[0].ownScratchBytes = 1;
       },
       "beyond the workspace"},
  };
  for (const Case &c : cases) {
    Manifest m = deviceSample(), back;
    c.damage(m);
    std::vector<uint8_t> blob = serialize(m);
    std::string error;
    EXPECT_FALSE(parse(blob.data(), blob.size(), back, error)) << c.text;
    EXPECT_NE(error.find(c.text), std::string::npos) << error;
  }
}

TEST(Manifest, EveryTruncationIsAnError) {
  std::vector<uint8_t> blob = serialize(sample());
  for (size_t size = 0; size < blob.size(); ++size) {
    Manifest m;
    std::string error;
    EXPECT_FALSE(parse(blob.data(), size, m, error)) << size;
    EXPECT_FALSE(error.empty());
    std::vector<uint8_t> cut(blob.begin(), blob.begin() + size);
    restamp(cut);
    EXPECT_FALSE(parse(cut.data(), cut.size(), m, error)) << size;
  }
}

TEST(Manifest, EveryFlippedByteIsSeen) {
  std::vector<uint8_t> blob = serialize(sample());
  for (size_t i = 0; i < blob.size(); ++i) {
    if (i >= 12 && i < 16)
      continue; // reserved
    std::vector<uint8_t> bad = blob;
    bad[i] ^= 0x41;
    Manifest m;
    std::string error;
    EXPECT_FALSE(parse(bad.data(), bad.size(), m, error)) << i;
  }
}

TEST(Manifest, GarbageBehindAValidChecksumNeverCrashes) {
  std::vector<uint8_t> blob = serialize(sample());
  std::mt19937 random(7);
  int accepted = 0;
  for (int round = 0; round < 200000; ++round) {
    std::vector<uint8_t> bad = blob;
    int changes = 1 + random() % 4;
    for (int i = 0; i < changes; ++i) {
      size_t at = kHeader + random() % (bad.size() - kHeader);
      bad[at] = random() % 3 ? random() : 0xFF;
    }
    if (random() % 8 == 0)
      bad.resize(kHeader + random() % (bad.size() - kHeader));
    restamp(bad);
    Manifest m;
    std::string error;
    if (parse(bad.data(), bad.size(), m, error)) {
      ++accepted;
      // Whatever is accepted is sound: it survives a second trip.
      std::vector<uint8_t> again = serialize(m);
      Manifest twice;
      EXPECT_TRUE(parse(again.data(), again.size(), twice, error)) << error;
    } else {
      EXPECT_FALSE(error.empty());
    }
  }
  EXPECT_GT(accepted, 0);
}

TEST(Manifest, FollowsAnOpenSize) {
  Manifest manifest = sample();
  std::string error;
  EXPECT_FALSE(resize(manifest, 3, error));
  EXPECT_EQ(error, "the step was compiled for one size alone");
  // The first dimension of the first tensor, and its bytes.
  std::vector<int64_t *> fields = sizeFields(manifest);
  TensorInfo &tensor = manifest.tensors.front();
  auto number = [&](const int64_t *field) {
    return std::find(fields.begin(), fields.end(), field) - fields.begin();
  };
  int64_t size = tensor.shape.front(), inside = tensor.strides.front();
  manifest.open = {"rows", 1, size, size, {}, {}};
  manifest.open.fields = {
      {number(tensor.shape.data()), {0, 1}},
      {number(&tensor.bytes), {0, inside * dtypeSize(tensor.dtype)}}};
  std::vector<uint8_t> blob = serialize(manifest);
  Manifest read;
  ASSERT_TRUE(parse(blob.data(), blob.size(), read, error)) << error;
  EXPECT_EQ(serialize(read), blob);
  ASSERT_TRUE(resize(read, 1, error)) << error;
  EXPECT_EQ(read.open.size, 1);
  EXPECT_EQ(read.tensors.front().shape.front(), 1);
  EXPECT_EQ(read.tensors.front().bytes, inside * dtypeSize(tensor.dtype));
  EXPECT_LE(plannedBytes(read), plannedBytes(manifest));
  ASSERT_TRUE(resize(read, size, error)) << error;
  EXPECT_EQ(serialize(read), blob);
  EXPECT_FALSE(resize(read, size + 1, error));
  EXPECT_NE(error.find("from 1 to"), std::string::npos) << error;
  EXPECT_FALSE(resize(read, 0, error));

  manifest.open.fields.push_back({int64_t(fields.size()), {0, 1}});
  blob = serialize(manifest);
  EXPECT_FALSE(parse(blob.data(), blob.size(), read, error));
}

TEST(Manifest, SaysWhatIsWrong) {
  struct Case {
    std::function<void(Manifest &)> damage;
    const char *text;
  };
  const Case cases[] = {
      {[](Manifest &m) { m.tensors[0].offset = 4096; }, "outside the arena"},
      {[](Manifest &m) { m.tensors[0].offset = -64; }, "outside the arena"},
      {[](Manifest &m) { m.tensors[0].offset = 66; }, "not aligned"},
      {[](Manifest &m) { m.tensors[0].bytes = 92; }, "do not fit"},
      {[](Manifest &m) { m.tensors[0].strides = {60, 2, 1}; }, "do not fit"},
      {[](Manifest &m) { m.tensors[0].strides = {6, 1}; }, "rank"},
      {[](Manifest &m) { m.tensors[0].strides[0] = 0; }, "stride 0"},
      {[](Manifest &m) { m.tensors[0].shape[0] = INT64_MAX; }, "too many"},
      {[](Manifest &m) { m.tensors[0].init = "magic"; }, "magic"},
      {[](Manifest &m) { m.tensors[0].shards = 2; }, "number of shards"},
      {[](Manifest &m) {
         m.tensors[0].shards = 2;
         m.tensors[0].wholeShape = {1000};
       },
       "not the whole tensor"},
      {[](Manifest &m) { m.tensors[0].limits.all.classes = 2; }, "limits"},
      {[](Manifest &m) {
         m.tensors[0].dtype = DType::I32;
         m.tensors[0].limits.all.rows = -2;
       },
       "limits"},
      {[](Manifest &m) {
         m.tensors[0].dtype = DType::I32;
         m.tensors[0].limits.all.hasIgnored = true;
       },
       "limits"},
      {[](Manifest &m) {
         m.tensors[0].dtype = DType::I32;
         m.tensors[0].limits.parts = {{9, 0, 1, {0, false, 0, 2}}};
       },
       "limits"},
      {[](Manifest &m) { // places beyond the last element
         m.tensors[0].dtype = DType::I32;
         m.tensors[0].limits.parts = {{0, 0, 1 << 20, {0, false, 0, 2}}};
       },
       "limits"},
      {[](Manifest &m) { m.tensors[0].values = TargetValues(9); }, "values"},
      {[](Manifest &m) { m.functions[0].inputs = {9}; }, "out of range"},
      {[](Manifest &m) { m.primitives[0].conv.out[0] = 9; }, "output extent"},
      {[](Manifest &m) {
         m.primitives[0].precision = m.device.precision =
             ProductPrecision::TF32;
         m.primitives[0].form = LibraryForm::Default;
       },
       "made for the CPU"},
      {[](Manifest &m) {
         m.primitives[0].precision = ProductPrecision(kNumProductPrecisions);
       },
       "unknown precision"},
      {[](Manifest &m) { m.primitives[0].form = LibraryForm::Packed; },
       "cannot be computed as 'packed'"},
      {[](Manifest &m) {
         m.primitives[0].form = LibraryForm(kNumLibraryForms);
       },
       "cannot be computed as 'unknown'"},
      {[](Manifest &m) { m.calls[0].primitive = 1; }, "primitive index"},
      {[](Manifest &m) { m.calls[1].originalCall = 1; }, "before it"},
      {[](Manifest &m) { m.calls[0].workspaceBytes = 4096; }, "workspace"},
      {[](Manifest &m) { m.calls[1].results[0].bytes = 140; }, "differs"},
      {[](Manifest &m) { m.threads = 0; }, "threads"},
      {[](Manifest &m) { m.abiVersion = 99; }, "version 99"},
  };
  for (const Case &c : cases) {
    Manifest m = sample(), back;
    c.damage(m);
    std::vector<uint8_t> blob = serialize(m);
    std::string error;
    EXPECT_FALSE(parse(blob.data(), blob.size(), back, error)) << c.text;
    EXPECT_NE(error.find(c.text), std::string::npos) << error;
  }
}

TEST(Manifest, RolesHaveTheNamesOfTheIR) {
  for (uint32_t i = 0; i < kNumTensorRoles; ++i) {
    TensorRole role;
    ASSERT_TRUE(parseRole(roleName(static_cast<TensorRole>(i)), role));
    EXPECT_EQ(static_cast<uint32_t>(role), i);
  }
  TensorRole role;
  EXPECT_FALSE(parseRole("weights", role));
  EXPECT_EQ(roleName(TensorRole::OptimizerState), "optimizer_state");
}
