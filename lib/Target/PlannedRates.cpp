//===- PlannedRates.cpp - the rates that a module says --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/PlannedRates.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace ckopt;

/// The rates that are written to IR.
static constexpr std::pair<const char *, double MachineRates::*> kWritten[] = {
    {"bandwidth", &MachineRates::bandwidth},
    {"matmul", &MachineRates::matmul},
    {"conv", &MachineRates::conv},
    {"depthwise_conv", &MachineRates::depthwiseConv},
    {"halves", &MachineRates::halves},
    {"conv_halves", &MachineRates::convHalves},
    {"library_matmul", &MachineRates::libraryMatmul},
    {"library_halves", &MachineRates::libraryHalves},
    {"library_attention", &MachineRates::libraryAttention},
    {"library_attention_gradient", &MachineRates::libraryAttentionGradient},
    {"vector", &MachineRates::vector},
    {"approximates", &MachineRates::approximates},
    {"overhead", &MachineRates::overhead},
    {"cache_bandwidth", &MachineRates::cacheBandwidth},
    {"cache_bytes", &MachineRates::cacheBytes},
    {"tile_bandwidth", &MachineRates::tileBandwidth},
    {"memory_latency", &MachineRates::memoryLatency},
    {"row_wait", &MachineRates::rowWait},
    {"reduction_starts", &MachineRates::reductionStarts},
    {"attention", &MachineRates::attention},
    {"attention_halves", &MachineRates::attentionHalves},
    {"attention_gradient", &MachineRates::attentionGradient},
    {"multiprocessors", &MachineRates::multiprocessors}};

mlir::DictionaryAttr ckopt::ratesAttr(mlir::MLIRContext *context,
                                      const MachineRates &rates) {
  mlir::Builder builder(context);
  llvm::SmallVector<mlir::NamedAttribute> written;
  for (auto [name, rate] : kWritten)
    written.push_back(
        builder.getNamedAttr(name, builder.getF64FloatAttr(rates.*rate)));
  return builder.getDictionaryAttr(written);
}

static llvm::StringMap<MachineRates> &namedRates() {
  static llvm::StringMap<MachineRates> rates;
  return rates;
}

void ckopt::nameRates(llvm::StringRef target, const MachineRates &rates) {
  namedRates()[target] = rates;
}

MachineRates ckopt::ratesOf(mlir::Operation *op) {
  for (; op; op = op->getParentOp()) {
    auto name = op->getAttrOfType<mlir::StringAttr>(kTargetAttr);
    auto named = name ? namedRates().find(name.getValue()) : namedRates().end();
    if (named == namedRates().end())
      continue;
    MachineRates rates = named->second;
    if (auto given = op->getAttrOfType<mlir::DictionaryAttr>(kRatesAttr))
      for (auto [key, rate] : kWritten)
        if (auto value = given.getAs<mlir::FloatAttr>(key))
          rates.*rate = value.getValueAsDouble();
    return rates;
  }
  return {};
}
