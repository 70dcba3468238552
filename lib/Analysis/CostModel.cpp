//===- CostModel.cpp - seconds of a kernel --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: give each op a cost in seconds before the program has run. Method: a
// cost that the user or a profile states; else a roofline: max(arithmetic,
// bytes / bandwidth) + start. Rates by kind:
//
//   kind                               rate of two AVX-512 cores
//   matmul, 512 to 2048 square         270 to 310 GFLOP/s
//   conv 3x3 and 1x1, channels-last    170 to 340 GFLOP/s
//   depthwise conv                     memory bound, about 40 GFLOP/s
//   vector code, one operation         60 GFLOP/s; memory 14 GB/s
//
// Bytes are those that are touched: of a table that is only gathered from, the
// rows taken.
// Guarantee: positive and finite, a function of the op's text, the options and
// the callee alone. Complexity: O(ops inside), once a kernel symbol.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/CostModel.h"
#include "Loops.h"
#include "ckopt/Analysis/OpFacts.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/StructureInterface.h"
#include "ckopt/Support/Error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace ckopt;

/// Seconds of an op that touches no tensor.
static constexpr double scalarSeconds = 1e-9;

double CostModel::bytesOf(ValueRange values) const {
  double bytes = 0;
  for (Value value : values)
    bytes += double(sizes.bytes(value.getType()));
  return bytes;
}

void CostModel::setHooks(const PlanningHooks &hooks, Operation *scope) {
  hook = hooks.seconds;
  sizes = TypeSizes(scope, hooks);
}

static std::optional<double> inRange(std::optional<double> seconds) {
  if (seconds && !(*seconds >= 0 && *seconds <= kMaxSeconds))
    return std::nullopt;
  return seconds;
}

std::optional<double> CostModel::ofClient(Operation *op) const {
  return hook ? inRange(hook(op)) : std::nullopt;
}

std::optional<double> CostModel::ofInterface(Operation *op) const {
  auto planning = dyn_cast<PlanningOpInterface>(op);
  return planning ? inRange(planning.getPlanningSeconds()) : std::nullopt;
}

/// Tells whether an op reads no more of its first operand than it gives.
static bool takesPart(Operation *op, Value read) {
  return op->hasTrait<traits::ReadsPart>() &&
         llvm::count(op->getOperands(), read) == 1 && op->getOperand(0) == read;
}

double CostModel::bytesRead(Operation *op, Value read) const {
  double whole = double(sizes.bytes(read.getType()));
  return takesPart(op, read) ? std::min(whole, bytesOf(op->getResults()))
                             : whole;
}

/// Rows of a table count, not the table, where a kernel only looks some up.
double CostModel::bytesRead(BlockArgument argument) const {
  double whole = double(sizes.bytes(argument.getType())), bytes = 0;
  for (Operation *user : argument.getUsers())
    bytes += bytesRead(user, argument);
  return argument.use_empty() ? whole : std::min(whole, bytes);
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
  double bytes = bytesOf(block.getTerminator()->getOperands());
  for (BlockArgument argument : block.getArguments())
    bytes += bytesRead(argument);
  auto launches = callee->getAttrOfType<IntegerAttr>(attrs::kLaunches);
  // Updates that wait to be joined (no launch of their own) pass over all
  // parameters: nothing of these is in a cache.
  bool isCached =
      bytes < rates.cacheBytes && !(launches && launches.getInt() == 0);
  double bandwidth = isCached ? rates.cacheBandwidth : rates.bandwidth;
  auto kind = callee->getAttrOfType<StringAttr>(attrs::kKernel);
  bool reduces = kind && kind.getValue() == "reduction";
  // What annotate-kernels knows of the code.
  auto inFlight = callee->getAttrOfType<IntegerAttr>(attrs::kBytesInFlight);
  if (inFlight && rates.memoryLatency > 0)
    bandwidth =
        std::min(bandwidth, double(inFlight.getInt()) /
                                (rates.memoryLatency * (isCached ? 0.5 : 1)));
  if (auto time = callee->getAttrOfType<FloatAttr>(attrs::kProductTime))
    arithmetic *= time.getValueAsDouble();
  double starts = reduces ? rates.reductionStarts : 1;
  if (launches)
    starts = double(launches.getInt());
  double wait = kind && kind.getValue() == "row" ? rates.rowWait : 0;
  return entry->second = std::max(arithmetic, bytes / bandwidth) +
                         rates.overhead * starts + wait;
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
      bytes += bytesRead(op, read);
  bytes = facts::work(op, "bytes").value_or(bytes);
  // Stated costs come before estimates for ops inside of regions as well.
  double arithmetic = arithmeticSeconds(
      op, rates, [&](Operation *inner) -> std::optional<double> {
        if (inner == op)
          return std::nullopt;
        if (std::optional<double> cost = getCostAttribute(inner))
          return cost;
        std::optional<double> cost = ofClient(inner);
        return cost ? cost : ofInterface(inner);
      });
  // Scalar arithmetic between tensor ops is not a kernel of its own.
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
  if (std::optional<double> cost = ofClient(op)) {
    from = CostSource::Callback;
    return *cost;
  }
  if (options.profile)
    if (std::optional<double> cost = options.profile->lookup(op)) {
      from = CostSource::Profile;
      return *cost;
    }
  if (std::optional<double> cost = ofInterface(op)) {
    from = CostSource::Interface;
    return *cost;
  }
  bool guess = runsUnknownTimes(op, [&](Operation *inner) {
    return getCostAttribute(inner) || ofClient(inner) || ofInterface(inner);
  });
  from = guess ? CostSource::Guess : CostSource::Analytic;
  return estimate(op);
}

CostModel::CostModel(CostOptions chosen, const MachineRates &machine)
    : options(std::move(chosen)), rates(machine) {
  if (options.profile)
    rates = options.profile->ratesOver(machine);
}

llvm::Expected<CostOptions> ckopt::parseCostModel(StringRef text) {
  CostOptions options;
  options.source = text.str();
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

void CostUse::add(CostSource source) {
  int64_t *counts[] = {&attribute, &callback, &profile,
                       &interface, &analytic, &guess};
  ++*counts[size_t(source)];
}

std::string CostUse::describe() const {
  std::string text;
  auto add = [&](StringRef name, int64_t count) {
    if (count)
      text += (text.empty() ? "" : ", ") + name.str() + ": " +
              std::to_string(count) + (count == 1 ? " op" : " ops");
  };
  if (!attribute && !callback && !profile && !interface && !guess &&
      unused.empty())
    return "analytic";
  add("attribute", attribute);
  add("callback", callback);
  add("profile", profile);
  add("interface", interface);
  add("analytic", analytic);
  add("guess", guess);
  constexpr size_t kNamed = 5;
  for (size_t i = 0; i < std::min(unused.size(), kNamed); ++i)
    text += (i ? ", " : "; entries of nothing here: ") + unused[i];
  if (unused.size() > kNamed)
    text += " and " + std::to_string(unused.size() - kNamed) + " more";
  return text;
}

KernelWork ckopt::kernelWork(Operation *callee, const MachineRates &machine) {
  // At one unit a second of one rate, and no limit by the others, seconds are
  // units of work.
  constexpr double none = std::numeric_limits<double>::infinity();
  KernelWork work;
  for (const NamedRate &named : kNamedRates) {
    if (!named.work)
      continue;
    MachineRates rates;
    for (const NamedRate &other : kNamedRates)
      rates.*other.rate = none;
    rates.*named.rate = 1;
    rates.overhead = 0;
    rates.multiprocessors = machine.multiprocessors;
    rates.approximates = machine.approximates;
    rates.halves = machine.halves;
    rates.convHalves = machine.convHalves;
    rates.attention = machine.attention;
    rates.attentionHalves = machine.attentionHalves;
    rates.attentionGradient = machine.attentionGradient;
    work.*named.work = CostModel(rates).kernelSeconds(callee);
  }
  return work;
}

void ckopt::annotateCosts(Operation *function, CostModel &model) {
  function->walk([&](KernelCallOp call) {
    CostSource source;
    double cost = model.seconds(call, &source);
    if (source == CostSource::Attribute || source == CostSource::Callback ||
        source == CostSource::Profile || call.getCost().isZero())
      call.setCost(APFloat(cost));
  });
}
