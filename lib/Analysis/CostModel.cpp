//===- CostModel.cpp - seconds of a kernel --------------------------------===//
//
// Problem: give each op a cost in seconds before anything was run.
// Method: what the user or a profile says; else a roofline: max(arithmetic,
// bytes / bandwidth) + start. Rates by kind:
//
//   kind                               rate of two AVX-512 cores
//   matmul, 512 to 2048 square         270 to 310 GFLOP/s
//   conv 3x3 and 1x1, channels-last    170 to 340 GFLOP/s
//   depthwise conv                     memory bound, about 40 GFLOP/s
//   vector code, one operation         60 GFLOP/s; memory 14 GB/s
//
// Guarantee: positive and finite, a function of the op's text, the options and
// the callee alone. Complexity: O(ops inside), once a kernel symbol.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/Error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace ckopt;

/// Seconds of an op that touches no tensor.
static constexpr double scalarSeconds = 1e-9;

static double bytesOf(ValueRange values) {
  double bytes = 0;
  for (Value value : values)
    bytes += double(getStorageBytes(value.getType()));
  return bytes;
}

double CostModel::kernelSeconds(Operation *callee) {
  auto [entry, isNew] = kernels.try_emplace(callee, 0);
  if (!isNew)
    return entry->second;
  double arithmetic = 0;
  auto function = cast<func::FuncOp>(callee);
  Block &block = function.front();
  for (Operation &op : block.without_terminator())
    arithmetic += arithmeticSeconds(&op, rates);
  double bytes = bytesOf(block.getArguments()) +
                 bytesOf(block.getTerminator()->getOperands());
  return entry->second =
             std::max(arithmetic, bytes / rates.bandwidth) + rates.overhead;
}

double CostModel::estimate(Operation *op) {
  if (auto call = dyn_cast<KernelCallOp>(op)) {
    if (double cost = call.getCost().convertToDouble(); cost > 0)
      return cost;
    auto callee =
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    if (callee && !callee.isDeclaration())
      return kernelSeconds(callee);
  }
  double bytes = bytesOf(op->getResults());
  for (Value read : getReads(op))
    if (!isEmptyTensor(read))
      bytes += double(getStorageBytes(read.getType()));
  double arithmetic = arithmeticSeconds(op, rates);
  // Arithmetic on scalars between the ops on tensors: no kernel of its own.
  if (bytes == 0 && op->getNumRegions() == 0)
    return scalarSeconds;
  return std::max(arithmetic, bytes / rates.bandwidth) + rates.overhead;
}

double CostModel::seconds(Operation *op, CostSource *source) {
  CostSource ignored;
  CostSource &from = source ? *source : ignored;
  if (std::optional<double> cost = getCostAttribute(op)) {
    from = CostSource::Attribute;
    return *cost;
  }
  if (options.profile)
    if (std::optional<double> cost = options.profile->lookup(op)) {
      from = CostSource::Profile;
      return *cost;
    }
  from = CostSource::Analytic;
  return estimate(op);
}

CostModel::CostModel(CostOptions chosen) : options(std::move(chosen)) {
  if (options.profile)
    rates = options.profile->getRates();
}

llvm::Expected<CostOptions> ckopt::parseCostModel(StringRef text) {
  CostOptions options;
  if (text == "analytic")
    return options;
  if (text == "attribute") {
    options.attributesOnly = true;
    return options;
  }
  if (!text.consume_front("profile=") || text.empty())
    return usageError("unknown cost model '" + text +
                      "'; known are analytic, attribute and profile=FILE");
  auto profile = CostProfile::read(text);
  if (!profile)
    return profile.takeError();
  options.profile = std::make_shared<const CostProfile>(std::move(*profile));
  return options;
}

std::string CostUse::describe() const {
  std::string text;
  auto add = [&](StringRef name, int64_t count) {
    if (count)
      text += (text.empty() ? "" : ", ") + name.str() + ": " +
              std::to_string(count) + (count == 1 ? " op" : " ops");
  };
  if (!attribute && !profile)
    return "analytic";
  add("attribute", attribute);
  add("profile", profile);
  add("analytic", analytic);
  return text;
}

void ckopt::annotateCosts(Operation *function, CostModel &model) {
  function->walk([&](KernelCallOp call) {
    CostSource source;
    double cost = model.seconds(call, &source);
    if (source != CostSource::Analytic || call.getCost().isZero())
      call.setCost(APFloat(cost));
  });
}
