//===- Products.cpp - times of products of f32 by class -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Benchmarks.h"
#include "ckopt/Runtime/Primitive.h"
#include "llvm/Support/MemAlloc.h"
#include <benchmark/benchmark.h>
#include <cstring>
#include <iostream>
#include <memory>

using namespace ckopt::runtime;

namespace {

struct Shape {
  int64_t m, n, k;
};

/// Bytes that all hold 0x3f: numbers near 0.75, in f32 and in bf16.
std::unique_ptr<char[]> ones(int64_t bytes) {
  auto result = std::make_unique<char[]>(size_t(bytes) + 64);
  memset(result.get(), 0x3f, size_t(bytes) + 64);
  return result;
}

PrimitiveDesc describe(Shape shape, ProductPrecision way) {
  PrimitiveDesc desc;
  MatMulDesc &m = desc.matmul;
  m.m = shape.m, m.n = shape.n, m.k = shape.k;
  m.aRow = m.k, m.bRow = m.cRow = m.n;
  m.aCol = m.bCol = m.cCol = 1;
  if (way != ProductPrecision::F32) {
    desc.dtype = ckopt::DType::BF16;
    desc.wideResult = true;
  }
  return desc;
}

/// Times a product of operands that are rounded already.
void timeProduct(benchmark::State &state, Shape shape, ProductPrecision way) {
  PrimitiveDesc desc = describe(shape, way);
  const MatMulDesc &m = desc.matmul;
  std::string error;
  auto primitive = Primitive::create(desc, /*threads=*/1, error);
  if (!primitive)
    return state.SkipWithError(error.c_str());
  std::vector<std::unique_ptr<char[]>> buffers;
  std::vector<void *> args;
  auto add = [&](int64_t bytes) {
    auto address =
        reinterpret_cast<uintptr_t>(buffers.emplace_back(ones(bytes)).get());
    args.push_back(reinterpret_cast<void *>((address + 63) / 64 * 64));
  };
  int64_t size = way == ProductPrecision::F32 ? 4 : 2;
  for (int64_t elements : {m.m * m.k, m.k * m.n})
    add(elements * size);
  add(m.m * m.n * 4);
  add(primitive->workspaceBytes());
  for (auto _ : state)
    if (!primitive->execute(args.data(), args.back(), error))
      return state.SkipWithError(error.c_str());
  state.SetItemsProcessed(state.iterations() * 2 * m.m * m.n * m.k);
}

} // namespace

void ckopt::benchmarks::registerProducts() {
  for (Shape s : {Shape{512, 3072, 768}, {512, 768, 3072}, {512, 50257, 768}})
    for (ProductPrecision way :
         {ProductPrecision::F32, ProductPrecision::BF16}) {
      // oneDNN multiplies bf16 on CPUs with AVX-512 alone.
      std::string error;
      if (way != ProductPrecision::F32 &&
          !Primitive::create(describe(s, way), /*threads=*/1, error)) {
        std::cerr << "NOT timed: " << error << "\n";
        continue;
      }
      benchmark::RegisterBenchmark(
          ("product/" + std::to_string(s.m) + "x" + std::to_string(s.n) + "x" +
           std::to_string(s.k) + "/" + std::string(productPrecisionName(way)))
              .c_str(),
          timeProduct, s, way)
          ->Unit(benchmark::kMillisecond)
          ->MeasureProcessCPUTime();
    }
}
