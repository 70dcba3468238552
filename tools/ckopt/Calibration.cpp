//===- Calibration.cpp - rates of this machine, from a step ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibration.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Target/TargetRegistry.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using mlir::func::FuncOp;

Calibration ckopt::calibrate(const Compilation &compilation,
                             llvm::ArrayRef<double> seconds) {
  Calibration result;
  const CostOptions &costs = compilation.options().step.remat.costs;
  result.builtIn = ratesOf(compilation.module());
  if (costs.profile)
    result.builtIn = costs.profile->ratesOver(result.builtIn);
  const StepOptions &options = compilation.options().step;
  result.device = compilation.target()->ratedDevice(options);
  auto precision =
      compilation.target()->productPrecision(options.matmulPrecision);
  if (!precision)
    llvm::consumeError(precision.takeError());
  else if (!result.device.empty())
    result.precision = runtime::productPrecisionName(*precision);
  mlir::ModuleOp module = compilation.module();
  auto step = module.lookupSymbol<FuncOp>("step");
  llvm::MapVector<mlir::Operation *, TimedKernel> kernels;
  size_t at = 0;
  for (KernelCallOp call : step.getOps<KernelCallOp>()) {
    auto callee = module.lookupSymbol<FuncOp>(call.getCalleeAttr().getAttr());
    if (at == seconds.size())
      break;
    double time = seconds[at++];
    if (!callee || callee.isDeclaration())
      continue;
    auto [entry, isNew] = kernels.insert({callee, {}});
    if (isNew)
      entry->second = {kernelWork(callee, result.builtIn), 0, 0};
    ++entry->second.calls;
    entry->second.seconds += time;
    result.measured += time;
  }
  std::vector<TimedKernel> timed;
  for (auto &[callee, kernel] : kernels)
    timed.push_back(kernel);
  result.rates = fitRates(timed, result.builtIn);
  CostModel model(withFitted(result.builtIn, result.rates));
  for (auto &[callee, kernel] : kernels)
    result.predicted += model.kernelSeconds(callee) * double(kernel.calls);
  return result;
}

/// "14 GB/s", "280 GFLOP/s", "2 us".
static std::string rateText(const NamedRate &rate, double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!rate.work)
    return formatSeconds(value);
  os << llvm::format("%.3g G", value / 1e9)
     << (rate.work == &KernelWork::bytes ? "B/s" : "FLOP/s");
  return text;
}

void Calibration::print(llvm::raw_ostream &os) const {
  TextTable table;
  table.addColumn("rate");
  for (const char *header : {"before", "fitted", "kernels", "their time"})
    table.addColumn(header, TextTable::Right);
  for (const FittedRate &entry : rates)
    table.addRow(
        {entry.rate.name, rateText(entry.rate, builtIn.*entry.rate.rate),
         entry.value > 0 ? rateText(entry.rate, entry.value) : "as before",
         std::to_string(entry.kernels), formatSeconds(entry.seconds)});
  os << "\n";
  table.print(os);
  os << "kernels of a step: " << formatSeconds(measured)
     << ", predicted at the fitted rates " << formatSeconds(predicted) << "\n";
}

llvm::Error Calibration::write(llvm::StringRef path) const {
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-profile/1");
      if (!device.empty()) {
        json.attribute("device", device);
        json.attribute("precision", precision);
      }
      json.attributeObject("rates", [&] {
        for (const FittedRate &entry : rates)
          if (entry.value > 0)
            json.attribute(entry.rate.name, jsonNumber(entry.value));
      });
    });
  });
}
