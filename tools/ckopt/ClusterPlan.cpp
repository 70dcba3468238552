//===- ClusterPlan.cpp - a planned step on a cluster ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The planned order of one rank becomes a list of events: a kernel call takes
// what the cost model says, a sum over ranks is one for the simulator, which
// knows the cluster. Bytes of a rank are those of the plan.
//
//===----------------------------------------------------------------------===//
#include "ClusterPlan.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"

using namespace mlir;
using namespace ckopt;
using cluster::Collective;
using cluster::RankEvent;

static int64_t numberOf(Operation &op, StringRef attribute, int64_t otherwise) {
  auto number = op.getAttrOfType<IntegerAttr>(attribute);
  return number ? number.getInt() : otherwise;
}

/// Returns what an op asks of other ranks, if anything. Ops and simulator call
/// collectives by the same names; an op that only starts one has its name as an
/// attribute.
static std::optional<Collective> collectiveOf(Operation &op) {
  auto started = op.getAttrOfType<StringAttr>("collective");
  auto kind = cluster::findCollective(started ? started.getValue()
                                              : op.getName().stripDialect());
  if (!kind)
    return std::nullopt;
  Collective collective;
  collective.kind = *kind;
  collective.group = {numberOf(op, "ranks", 1), numberOf(op, "stride", 1),
                      numberOf(op, "groups", 1)};
  collective.root = numberOf(op, "root", 0);
  // One side is whole, the other, where there are chunks, a rank's own.
  for (auto [input, output] : llvm::zip(op.getOperands(), op.getResults())) {
    auto in = cast<RankedTensorType>(input.getType());
    auto out = cast<RankedTensorType>(output.getType());
    auto [chunk, whole] =
        std::minmax(in.getNumElements(), out.getNumElements());
    collective.parts.push_back({whole, chunk});
    collective.elementBytes = in.getElementTypeBitWidth() / 8;
  }
  return collective;
}

namespace {
/// Turns kernel calls to events, in their order.
class EventList {
public:
  EventList(ModuleOp module, CostModel &costs)
      : symbols(module), costs(costs) {}

  void add(func::FuncOp function) {
    for (KernelCallOp call : function.getOps<KernelCallOp>())
      events.push_back(eventOf(call));
  }
  std::vector<RankEvent> events;

private:
  RankEvent eventOf(KernelCallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (!callee || callee.isDeclaration())
      return RankEvent::kernel(costs.seconds(call));
    for (Operation &op : callee.front()) {
      StringRef name = op.getName().stripDialect();
      if (auto collective = collectiveOf(op)) {
        if (name != "collective_start")
          return RankEvent::blocking(*collective);
        starts[call] = next;
        return RankEvent::start(next++, *collective);
      }
      if (name == "collective_wait")
        if (std::optional<int64_t> number = startOf(call))
          return RankEvent::wait(*number);
    }
    return RankEvent::kernel(costs.seconds(call));
  }
  /// Returns the number of the start whose results a call reads.
  std::optional<int64_t> startOf(KernelCallOp call) const {
    for (Value operand : call->getOperands())
      if (auto found = starts.find(operand.getDefiningOp());
          found != starts.end())
        return found->second;
    return std::nullopt;
  }

  SymbolTable symbols;
  CostModel &costs;
  DenseMap<Operation *, int64_t> starts; ///< looked up only
  int64_t next = 0;
};
} // namespace

std::vector<RankEvent> ckopt::rankEvents(const Compilation &compilation) {
  const StepOptions &options = compilation.options().step;
  CostModel costs(options.remat.costs, compilation.target()->traits.rates);
  EventList list(compilation.module(), costs);
  // Micro-batches before the last one only add to the gradients' sums.
  if (auto more = compilation.module().lookupSymbol<func::FuncOp>("accumulate"))
    for (int64_t i = 1; i < options.optimizer.accumulate; ++i)
      list.add(more);
  if (auto step = compilation.module().lookupSymbol<func::FuncOp>("step"))
    list.add(step);
  return std::move(list.events);
}

llvm::Expected<ClusterPlan> ckopt::readClusterPlan(llvm::StringRef path,
                                                   const StepOptions &step) {
  ClusterPlan plan;
  if (llvm::Error error = cluster::readCluster(path).moveInto(plan.cluster))
    return std::move(error);
  plan.ranks = step.ranks;
  if (llvm::Error error = checkFits(plan.ranks, plan.cluster))
    return withContext(std::move(error), path);
  return std::move(plan);
}

llvm::Error ckopt::predictOnCluster(const Compilation &compilation,
                                    ClusterPlan &plan) {
  const CompileOptions &options = compilation.options();
  plan.peak = compilation.summary().figures.arena;
  if (options.import.batch)
    plan.samples =
        *options.import.batch * plan.ranks * options.step.optimizer.accumulate;
  return cluster::simulate(plan.cluster, plan.ranks, rankEvents(compilation))
      .moveInto(plan.prediction);
}

/// The rank that sends most messages.
static cluster::Traffic busiest(const cluster::Prediction &prediction) {
  return *llvm::max_element(prediction.sent, [](const auto &a, const auto &b) {
    return std::pair(a.messages, a.bytes) < std::pair(b.messages, b.bytes);
  });
}

void ckopt::printClusterPlan(const ClusterPlan &plan, llvm::raw_ostream &os) {
  const cluster::Prediction &step = plan.prediction;
  TextTable table;
  table.addColumn(
      "predicted on " + std::to_string(plan.ranks) + " ranks" +
      (plan.cluster.name.empty() ? "" : " of " + plan.cluster.name));
  table.addColumn("", TextTable::Right);
  table.addRow({"step", formatSeconds(step.seconds)});
  table.addRow({"kernels", formatSeconds(step.kernels)});
  table.addRow({"communication, all of it", formatSeconds(step.communication)});
  table.addRow({"communication that no kernel hides",
                formatSeconds(step.exposed()) + ", " +
                    formatPercent(step.exposed() / step.seconds)});
  if (plan.samples)
    table.addRow({"samples a second",
                  formatNumber(double(plan.samples) / step.seconds)});
  table.addRule();
  cluster::Traffic most = busiest(step);
  table.addRow({"collectives", std::to_string(step.collectives.size())});
  table.addRow({"messages of a rank", groupDigits(most.messages)});
  table.addRow({"bytes in them", groupDigits(most.bytes)});
  table.addRow({"planned peak of a rank", groupDigits(plan.peak)});
  os << "\n";
  table.print(os);
}

void ckopt::writeClusterPlan(llvm::json::OStream &json,
                             const ClusterPlan &plan) {
  const cluster::Prediction &step = plan.prediction;
  json.attributeObject("cluster", [&] {
    json.attribute("name", jsonString(plan.cluster.name));
    json.attribute("ranks", plan.ranks);
    json.attribute("seconds", jsonNumber(step.seconds));
    json.attribute("kernel_seconds", jsonNumber(step.kernels));
    json.attribute("communication_seconds", jsonNumber(step.communication));
    json.attribute("exposed_seconds", jsonNumber(step.exposed()));
    json.attribute("planned_peak", plan.peak);
    auto numbers = [&](const char *name, int64_t cluster::Traffic::*field) {
      json.attributeArray(name, [&] {
        for (const cluster::Traffic &rank : step.sent)
          json.value(rank.*field);
      });
    };
    numbers("messages", &cluster::Traffic::messages);
    numbers("sent_bytes", &cluster::Traffic::bytes);
    json.attributeArray("collectives", [&] {
      for (const cluster::CollectiveResult &result : step.collectives)
        json.object([&] {
          json.attribute("kind", nameOf(result.collective.kind));
          json.attribute("bytes", result.collective.bytes());
          json.attribute("begin", jsonNumber(result.begin));
          json.attribute("end", jsonNumber(result.end));
          json.attribute("seconds", jsonNumber(result.seconds));
        });
    });
  });
}
