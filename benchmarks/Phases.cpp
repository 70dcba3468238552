//===- Phases.cpp - time of the phases of a compilation -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Phases.h"
#include "Benchmarks.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Target/Targets.h"
#include "mlir/IR/MLIRContext.h"
#include <benchmark/benchmark.h>

using namespace mlir;
using namespace ckopt;

namespace {

struct Network {
  std::string name, path;
  std::optional<int64_t> batch;
};

std::vector<Network> networks() {
  auto golden = [](const char *name) {
    return Network{
        name, CKOPT_TEST_DATA "/golden/" + std::string(name) + "/model.onnx",
        std::nullopt};
  };
  return {golden("resnet"),
          golden("gpt"),
          {"byte_gpt", CKOPT_TEST_DATA "/models/byte_gpt.onnx", 4}};
}

StepOptions trainingStep() {
  StepOptions options;
  options.loss = *parseLoss("cross_entropy");
  options.optimizer.kind = "adamw";
  options.remat.budget.kind = MemoryBudget::Kind::Minimum;
  options.remat.search.workLimit = 20000000; // about a second
  return options;
}

struct Imported {
  explicit Imported(const Network &network) {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    onnx_frontend::ImportOptions options;
    options.batch = network.batch;
    if (!network.batch)
      options.inputs = {"x"};
    auto read = onnx_frontend::importModel(network.path, options, context);
    if (read)
      model = std::move(*read);
    else
      error = llvm::toString(read.takeError());
  }
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::optional<onnx_frontend::ImportedModel> model;
  std::string error;
};

void importNetwork(benchmark::State &state, const Network &network) {
  for (auto _ : state) {
    Imported imported(network);
    if (!imported.model)
      return state.SkipWithError(imported.error.c_str());
  }
}

/// Times one phase on what the ones before it leave.
void runPhase(benchmark::State &state, const Network &network, size_t number) {
  Imported imported(network);
  if (!imported.model)
    return state.SkipWithError(imported.error.c_str());
  std::vector<Phase> phases =
      llvm::cantFail(buildPhases(trainingStep(), cpuTarget()));
  ModuleOp before = imported.model->module.get();
  auto run = [&](ModuleOp module, size_t phase) {
    llvm::Error error = runPhases(module, {phases[phase]}, PhaseControl());
    if (!error)
      return true;
    state.SkipWithError(llvm::toString(std::move(error)).c_str());
    return false;
  };
  for (size_t i = 0; i < number; ++i)
    if (!run(before, i))
      return;
  for (auto _ : state) {
    state.PauseTiming();
    OwningOpRef<ModuleOp> module(before.clone());
    state.ResumeTiming();
    if (!run(*module, number))
      return;
  }
}

} // namespace

void ckopt::benchmarks::registerPhases() {
  std::vector<Phase> phases =
      llvm::cantFail(buildPhases(trainingStep(), cpuTarget()));
  for (const Network &network : networks()) {
    benchmark::RegisterBenchmark(("import/" + network.name).c_str(),
                                 importNetwork, network)
        ->Unit(benchmark::kMillisecond);
    for (size_t i = 0; i < phases.size(); ++i)
      benchmark::RegisterBenchmark(
          ("phase/" + network.name + "/" + phases[i].name).c_str(), runPhase,
          network, i)
          ->Unit(benchmark::kMillisecond);
  }
}
