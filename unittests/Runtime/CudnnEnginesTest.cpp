//===- CudnnEnginesTest.cpp - cuDNN itself on the graphs of attention -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Asks an installed cuDNN (9.8 or newer, named by CKOPT_REAL_CUDNN) for engines
// for the graphs of attention. No device is needed: the library plans for one
// whose properties it is told. It wants a libcuda.so.1 to load, though no more
// than its symbols.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/AttentionParts.h"
#include "../../lib/Runtime/Cuda/DnnAttention.h"
#include "AttentionFixture.h"

#include "gtest/gtest.h"

#include <dlfcn.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

// Descriptors and attributes of cuDNN that only this test uses.
constexpr int kProperties = 38, kPropertiesText = 2702, kIsChar = 24;
constexpr int kHeuristicFor = 204, kEngineFor = 1307, kPlanFor = 407;

cuda::DnnEntries real;
void *properties;
std::map<void *, int> kinds;

int make(int kind, void **made) {
  int status = real.make(kind, made);
  kinds[*made] = kind;
  return status;
}
/// There is no handle without a device.
int set(void *descriptor, int attribute, int type, int64_t count,
        const void *values) {
  return type == cuda::kDnnIsHandle
             ? 0
             : real.set(descriptor, attribute, type, count, values);
}
/// What looks at a device is told of it.
int finalize(void *descriptor) {
  for (auto [kind, attribute] :
       {std::pair(int(cuda::kDnnHeuristic), kHeuristicFor),
        {int(cuda::kDnnEngine), kEngineFor},
        {int(cuda::kDnnPlan), kPlanFor}})
    if (kinds[descriptor] == kind)
      (void)real.set(descriptor, attribute, cuda::kDnnIsDescriptor, 1,
                     &properties);
  return real.finalize(descriptor);
}

std::string propertiesOf(int capability, int sharedBytes) {
  return R"({"deviceVer":)" + std::to_string(capability * 10) +
         R"(,"maxSharedMemoryPerBlockOptin":)" + std::to_string(sharedBytes) +
         R"(,"driverVer":13000,"cudaDeviceId":0,
"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],
"regsPerBlock":65536,"multiProcessorCount":132,"smCountOrigin":0,"warpSize":32,
"maxSharedMemoryPerBlock":49152,"oversizedSharedMemoryPerBlock":0,
"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,
"maxCtasPerSM":32,"maxThreadsPerBlock":1024,"maxThreadsPerSM":2048,
"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"smClockRateKHz":1980000,
"memClockRateKHz":3201000,"memoryBusWidth":6144,"l2CacheSize":62914560,
"totalGlobalMem":150754820096,"deviceName":"Test"})";
}

bool open() {
  const char *path = std::getenv("CKOPT_REAL_CUDNN");
  void *library = path ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (!library)
    return false;
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  real.member =                                                                \
      reinterpret_cast<decltype(real.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/CudnnEntries.def"
#undef CKOPT_ENTRY
  return true;
}

/// Expects an engine within the planned workspace, and the same by its name.
void expectEngine(AttentionDesc a, bool gradient) {
  PrimitiveDesc desc;
  desc.kind =
      gradient ? PrimitiveKind::AttentionGrad : PrimitiveKind::Attention;
  a.planes = true;
  desc.attention = a;
  SCOPED_TRACE(describe(desc));
  cuda::DnnEntries told = real;
  told.make = make, told.set = set, told.finalize = finalize;
  const std::vector<int> notes = {int(cuda::kDnnNotDeterministic),
                                  int(cuda::kDnnNarrowsInputs),
                                  int(cuda::kDnnNarrowsSums)};
  int64_t workspace = cuda::attentionWorkspace(desc);
  for (int type : {cuda::kDnnBFloat16, cuda::kDnnHalf}) {
    std::string engine;
    cuda::DnnGraph graph(told, nullptr, 256), again(told, nullptr, 256);
    cuda::addAttention(graph, desc, type);
    ASSERT_EQ(graph.choose(workspace, notes, engine), 0);
    cuda::addAttention(again, desc, type);
    EXPECT_EQ(again.restore(workspace, notes, engine), 0) << engine;
    EXPECT_EQ(graph.workspaceBytes(), again.workspaceBytes());
  }
}

} // namespace

TEST(CudnnEngines, ThereIsOneForEachAttention) {
  if (!open())
    GTEST_SKIP() << "CKOPT_REAL_CUDNN NAMES NO cuDNN: its engines are NOT "
                    "asked for";
  for (auto [capability, shared] : {std::pair(80, 166912),
                                    {89, 101376},
                                    {90, 232448},
                                    {100, 232448},
                                    {120, 101376}}) {
    std::string text = propertiesOf(capability, shared);
    ASSERT_EQ(real.make(kProperties, &properties), 0);
    ASSERT_EQ(real.set(properties, kPropertiesText, kIsChar,
                       int64_t(text.size()), text.data()),
              0);
    ASSERT_EQ(real.finalize(properties), 0);
    for (bool gradient : {false, true}) {
      expectEngine(causal(sized(8, 12, 12, 256, 256, 64, 64, true), 0),
                   gradient);
      expectEngine(sized(32, 12, 12, 197, 197, 64, 64, true), gradient);
      auto llama = causal(sized(2, 32, 8, 4096, 4096, 64, 64, true), 0);
      expectEngine(llama, gradient);
      expectEngine(windowed(llama, 1024), gradient);
      expectEngine(sized(2, 8, 4, 17, 33, 40, 40), gradient);
      if (!gradient || capability == 90)
        expectEngine(causal(sized(2, 8, 4, 1024, 1024, 256, 256), 0), gradient);
    }
    (void)real.drop(properties);
  }
}
