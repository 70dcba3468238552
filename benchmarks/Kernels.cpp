//===- Kernels.cpp - bytes a second of generated kernels ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Benchmarks.h"
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/MemAlloc.h"
#include <benchmark/benchmark.h>
#include <cstring>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

namespace {

/// Memory of one tensor, aligned as an arena's.
class Buffer {
public:
  explicit Buffer(int64_t bytes)
      : size(size_t(bytes) + 64), data(llvm::allocate_buffer(size, 64)) {}
  ~Buffer() { llvm::deallocate_buffer(data, size, 64); }
  Buffer(const Buffer &) = delete;
  void *get() const { return data; }

  /// Positive numbers below one; zeros where they are indices.
  void fill(Type element) {
    memset(data, 0, size);
    if (element && element.isF32())
      for (size_t i = 0; i < size / 4; ++i)
        static_cast<float *>(data)[i] = float((i * 37) % 101) * 0.0099f + 0.01f;
  }

private:
  size_t size;
  void *data;
};

/// The kernels, parsed once.
struct Kernels {
  Kernels() {
    loadKernelDialects(context);
    module = parseSourceFile<ModuleOp>(CKOPT_BENCHMARK_KERNELS, &context);
  }
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

void timeKernel(benchmark::State &state, func::FuncOp kernel) {
  auto made = KernelJit::compileAll({kernel}, JitOptions());
  const KernelJit &jit = *made.front();
  if (!jit.ok())
    return state.SkipWithError(jit.error().c_str());
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<void *> args;
  int64_t bytes = 0;
  auto add = [&](TypeRange types) {
    for (Type type : types) {
      auto tensor = cast<RankedTensorType>(type);
      bytes += getByteSize(tensor);
      buffers.push_back(std::make_unique<Buffer>(getByteSize(tensor)));
      buffers.back()->fill(tensor.getElementType());
      args.push_back(buffers.back()->get());
    }
  };
  add(kernel.getArgumentTypes());
  add(kernel.getResultTypes());
  Buffer scratch(jit.code().workspaceBytes);
  const int64_t scalars[] = {1}; // a dropout's site
  for (auto _ : state)
    jit.run(args.data(), scalars, scratch.get());
  state.SetBytesProcessed(state.iterations() * bytes);
}

/// As a kernel that reads and writes `bytes` in all.
void copyBytes(benchmark::State &state, int64_t bytes) {
  Buffer from(bytes / 2), to(bytes / 2);
  from.fill(Type());
  to.fill(Type());
  for (auto _ : state) {
    memcpy(to.get(), from.get(), size_t(bytes / 2));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
}

} // namespace

void ckopt::benchmarks::registerKernels() {
  static Kernels kernels;
  for (int64_t megabytes : {3, 6, 13, 26, 50, 200, 400})
    benchmark::RegisterBenchmark(
        ("memcpy/" + std::to_string(megabytes) + "MB").c_str(), copyBytes,
        megabytes * 1000000)
        ->Unit(benchmark::kMicrosecond);
  if (!kernels.module) {
    benchmark::RegisterBenchmark("kernel", [](benchmark::State &state) {
      state.SkipWithError(CKOPT_BENCHMARK_KERNELS " cannot be read");
    });
    return;
  }
  for (auto kernel : kernels.module->getOps<func::FuncOp>())
    benchmark::RegisterBenchmark(
        ("kernel/" + kernel.getSymName()).str().c_str(), timeKernel, kernel)
        ->Unit(benchmark::kMicrosecond);
}
