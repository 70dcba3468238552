//===- Main.cpp - ckopt-benchmarks ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Flags are Google Benchmark's: --benchmark_filter=REGEX,
// --benchmark_list_tests.
//
//===----------------------------------------------------------------------===//
#include "Benchmarks.h"
#include <benchmark/benchmark.h>

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 1;
  ckopt::benchmarks::registerKernels();
  ckopt::benchmarks::registerPhases();
  ckopt::benchmarks::registerPlanner();
  ckopt::benchmarks::registerProducts();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
