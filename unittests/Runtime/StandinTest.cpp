//===- StandinTest.cpp - the stand-in driver sees what is wrong -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tests the checks of the stand-in driver, on which all other tests of CUDA
// rely: each kind of mistake is made here once, and must be logged.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Runtime/Cuda/DnnGraph.h"
#include "CudaFixture.h"

#include <dlfcn.h>
#include <functional>

using namespace ckopt::runtime;
using namespace ckopt::runtime::test;

namespace {

/// The stand-in with a context, two streams, an event and 256 bytes.
struct Play {
  Play() {
    void *library = dlopen(CKOPT_STANDIN, RTLD_NOW | RTLD_LOCAL);
#define CKOPT_ENTRY(member, symbol, parameters)                                \
  cu.member = reinterpret_cast<decltype(cu.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/DriverEntries.def"
#undef CKOPT_ENTRY
    EXPECT_EQ(cu.init(0), 0);
    EXPECT_EQ(cu.ctxCreate(&context, 0, 0), 0);
    EXPECT_EQ(cu.streamCreate(&first, 0), 0);
    EXPECT_EQ(cu.streamCreate(&second, 0), 0);
    EXPECT_EQ(cu.eventCreate(&event, 0), 0);
    EXPECT_EQ(cu.memAlloc(&memory, 256), 0);
    EXPECT_EQ(cu.memHostAlloc(&pinned, 256, 0), 0);
    EXPECT_EQ(cu.moduleLoadDataEx(&module, kPtx, 0, nullptr, nullptr), 0);
    EXPECT_EQ(cu.moduleGetFunction(&spill, module, "k_spill"), 0);
  }
  cuda::Result launch(cuda::DevicePointer at, unsigned threads,
                      cuda::Stream stream) {
    void *parameters[] = {&at};
    return cu.launchKernel(spill, 1, 1, 1, threads, 1, 1, 0, stream, parameters,
                           nullptr);
  }
  /// The same, with leave to begin before what is before it has ended.
  cuda::Result launchEarly(cuda::Stream stream) {
    void *parameters[] = {&memory};
    const cuda::LaunchAttribute early = {
        cuda::kProgrammaticSerialization, 0, 1, {}};
    const cuda::LaunchConfig config = {{1, 1, 1}, {1, 1, 1}, 0,
                                       stream,    &early,    1};
    return cu.launchKernelEx(&config, spill, parameters, nullptr);
  }
  /// A call of a library, by the stand-in's cuDNN: copies one number to itself.
  int copy(cuda::Stream stream) {
    void *library = dlopen(CKOPT_STANDIN, RTLD_NOW | RTLD_LOCAL);
    cuda::DnnEntries dnn{};
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  dnn.member = reinterpret_cast<decltype(dnn.member)>(dlsym(library, #symbol));
#include "../../lib/Runtime/Cuda/CudnnEntries.def"
#undef CKOPT_ENTRY
    cuda::DnnGraph graph(dnn, nullptr, 16);
    const cuda::Extents ones(4, 1);
    constexpr auto none = cuda::DnnGraph::kNone;
    auto from = graph.argument(0, cuda::kDnnFloat, ones, ones);
    graph.pointwise(cuda::kDnnIdentity, from, none, none,
                    graph.argument(0, cuda::kDnnFloat, ones, ones));
    std::string engine;
    EXPECT_EQ(graph.choose(1024, {cuda::kDnnNotDeterministic}, engine), 0);
    cuda::DevicePointer workspace = 0;
    EXPECT_EQ(cu.memAlloc(&workspace, 1024), 0);
    return graph.enqueue(&memory, workspace, stream);
  }
  cuda::Driver cu{};
  cuda::Context context = nullptr;
  cuda::Stream first = nullptr, second = nullptr;
  cuda::Event event = nullptr;
  cuda::DevicePointer memory = 0;
  void *pinned = nullptr;
  cuda::Module module = nullptr;
  cuda::Function spill = nullptr;
};

class Standin : public Cuda {};

} // namespace

TEST_F(Standin, LogsEachKindOfMistake) {
  struct Case {
    const char *text;
    std::function<cuda::Result(Play &)> make;
  };
  const Case cases[] = {
      {"copies to what is not allocated",
       [](Play &p) {
         return p.cu.memcpyHtoDAsync(p.memory + 8, p.pinned, 256, p.first);
       }},
      {"copies from what is not allocated",
       [](Play &p) {
         EXPECT_EQ(p.cu.memFree(p.memory), 0);
         return p.cu.memcpyDtoHAsync(p.pinned, p.memory, 4, p.first);
       }},
      {"free of what is not allocated",
       [](Play &p) { return p.cu.memFree(p.memory + 64); }},
      {"points outside of live memory, or is not aligned",
       [](Play &p) { return p.launch(p.memory + 4, 1, p.first); }},
      {"points outside of live memory, or is not aligned",
       [](Play &p) { return p.launch(p.memory + 512, 1, p.first); }},
      {"k_spill: 1 blocks of 64 threads",
       [](Play &p) { return p.launch(p.memory, 64, p.first); }},
      {"replays what is not instantiated",
       [](Play &p) {
         cuda::GraphExec graph = nullptr;
         return p.cu.graphLaunch(graph, p.first);
       }},
      {"waits for a stream that captures",
       [](Play &p) {
         EXPECT_EQ(p.cu.streamBeginCapture(p.first, cuda::kCaptureModeRelaxed),
                   0);
         return p.cu.streamSynchronize(p.first);
       }},
      {"captures the first call of cudnnBackendExecute",
       [](Play &p) {
         EXPECT_EQ(p.cu.streamBeginCapture(p.first, cuda::kCaptureModeRelaxed),
                   0);
         return p.copy(p.first);
       }},
      {"uses a stream of another context",
       [](Play &p) {
         cuda::Context other = nullptr;
         EXPECT_EQ(p.cu.ctxCreate(&other, 0, 0), 0); // it is current now
         return p.launch(p.memory, 1, p.first);
       }},
      {"uses an event of another context",
       [](Play &p) {
         cuda::Context other = nullptr;
         cuda::Stream own = nullptr;
         EXPECT_EQ(p.cu.ctxCreate(&other, 0, 0), 0);
         EXPECT_EQ(p.cu.streamCreate(&own, 0), 0);
         return p.cu.eventRecord(p.event, own);
       }},
      {"k_spill is to begin early behind what is no kernel",
       [](Play &p) { return p.launchEarly(p.first); }},
      {"k_spill is to begin early behind what is no kernel",
       [](Play &p) {
         EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
         EXPECT_EQ(p.cu.memcpyHtoDAsync(p.memory, p.pinned, 4, p.first), 0);
         return p.launchEarly(p.first);
       }},
      {"k_spill is to begin early behind what is no kernel",
       [](Play &p) {
         EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
         EXPECT_EQ(p.cu.eventRecord(p.event, p.second), 0);
         EXPECT_EQ(p.cu.streamWaitEvent(p.first, p.event, 0), 0);
         return p.launchEarly(p.first);
       }},
      {"k_spill is to begin early behind what is no kernel",
       [](Play &p) {
         EXPECT_EQ(p.copy(p.first), 0);
         return p.launchEarly(p.first);
       }},
      {"k_spill is to begin early behind what is no kernel",
       [](Play &p) {
         EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
         EXPECT_EQ(p.cu.streamBeginCapture(p.first, cuda::kCaptureModeRelaxed),
                   0);
         return p.launchEarly(p.first);
       }},
      {"a stream goes while it has work",
       [](Play &p) {
         EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
         (void)p.cu.streamDestroy(p.first);
         return 1;
       }},
      {"a context goes while D1 lives",
       [](Play &p) {
         (void)p.cu.ctxDestroy(p.context);
         return 1;
       }},
  };
  for (const Case &c : cases) {
    inChild({}, [&] {
      Play play;
      EXPECT_NE(c.make(play), 0) << c.text;
    });
    EXPECT_NE(log().find(c.text), std::string::npos) << c.text << "\n" << log();
    EXPECT_EQ(count("VIOLATION"), 1) << c.text;
    EXPECT_GT(count("LEAK"), 0) << "nothing was given back";
  }
}

// A library's call that has run once may be captured.
TEST_F(Standin, LibrariesAreCapturedOnceTheyHaveRun) {
  inChild({}, [&] {
    Play p;
    EXPECT_EQ(p.copy(p.second), 0);
    EXPECT_EQ(p.cu.streamSynchronize(p.second), 0);
    EXPECT_EQ(p.cu.streamBeginCapture(p.first, cuda::kCaptureModeRelaxed), 0);
    EXPECT_EQ(p.copy(p.first), 0);
  });
  EXPECT_EQ(count("VIOLATION"), 0) << log();
}

// Behind a kernel one may begin early, whether or not it is captured.
TEST_F(Standin, KernelsBeginEarlyBehindKernels) {
  inChild({}, [&] {
    Play p;
    EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
    EXPECT_EQ(p.launchEarly(p.first), 0);
    EXPECT_EQ(p.launchEarly(p.first), 0);
    EXPECT_EQ(p.cu.streamSynchronize(p.first), 0);
    EXPECT_EQ(p.cu.streamBeginCapture(p.first, cuda::kCaptureModeRelaxed), 0);
    EXPECT_EQ(p.launch(p.memory, 1, p.first), 0);
    EXPECT_EQ(p.launchEarly(p.first), 0);
  });
  EXPECT_EQ(count("VIOLATION"), 0) << log();
  EXPECT_EQ(count("cuLaunchKernelEx k_spill 1 1 S1 early"), 3) << log();
}

// Work that no event orders is done in the order that hurts.
TEST_F(Standin, AMissingEventShows) {
  for (bool ordered : {false, true})
    inChild({}, [&] {
      Play p;
      auto *host = static_cast<char *>(p.pinned);
      host[0] = 42;
      // One stream writes, the other reads back.
      EXPECT_EQ(p.cu.memcpyHtoDAsync(p.memory, host, 1, p.first), 0);
      if (ordered) {
        EXPECT_EQ(p.cu.eventRecord(p.event, p.first), 0);
        EXPECT_EQ(p.cu.streamWaitEvent(p.second, p.event, 0), 0);
      }
      EXPECT_EQ(p.cu.memcpyDtoHAsync(host + 64, p.memory, 1, p.second), 0);
      EXPECT_EQ(p.cu.streamSynchronize(p.second), 0);
      EXPECT_EQ(host[64] == 42, ordered);
      // A copy from pinned memory reads the contents at the time it runs.
      EXPECT_EQ(p.cu.memcpyHtoDAsync(p.memory, host, 1, p.first), 0);
      host[0] = 7;
      EXPECT_EQ(p.cu.streamSynchronize(p.first), 0);
      EXPECT_EQ(p.cu.memcpyDtoHAsync(host + 64, p.memory, 1, p.first), 0);
      EXPECT_EQ(p.cu.streamSynchronize(p.first), 0);
      EXPECT_EQ(host[64], 7);
    });
}
