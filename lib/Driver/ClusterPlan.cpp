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

/// Describes an op in which the ranks of a group meet, by its whole tensors.
static Collective describe(cluster::CollectiveKind kind, RankGroup group,
                           ValueRange whole) {
  Collective collective;
  collective.kind = kind;
  if (group.groups > 1)
    collective.group = group.stride > 1 ? cluster::Group::Replicas
                                        : cluster::Group::Shards;
  for (Value tensor : whole) {
    auto type = cast<RankedTensorType>(tensor.getType());
    collective.bytes += getByteSize(type);
    collective.elementBytes = type.getElementTypeBitWidth() / 8;
  }
  return collective;
}

/// Returns what a kernel asks of other ranks, if anything.
static std::optional<Collective> collectiveOf(func::FuncOp kernel) {
  using cluster::CollectiveKind;
  for (Operation &op : kernel.front()) {
    if (auto sum = dyn_cast<AllReduceOp>(op))
      return describe(CollectiveKind::AllReduce, sum.getGroup(),
                      sum.getInputs());
    if (auto gather = dyn_cast<AllGatherOp>(op))
      return describe(CollectiveKind::AllGather, gather.getGroup(),
                      gather.getOutputs());
    if (auto sum = dyn_cast<ReduceScatterOp>(op))
      return describe(CollectiveKind::ReduceScatter, sum.getGroup(),
                      sum.getInputs());
    if (auto broadcast = dyn_cast<BroadcastOp>(op))
      return describe(CollectiveKind::Broadcast, broadcast.getGroup(),
                      broadcast.getInputs());
  }
  return std::nullopt;
}

static void addEvents(func::FuncOp function, CostModel &costs,
                      std::vector<RankEvent> &events) {
  SymbolTable symbols(function->getParentOfType<ModuleOp>());
  for (KernelCallOp call : function.getOps<KernelCallOp>()) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    std::optional<Collective> collective;
    if (callee && !callee.isDeclaration())
      collective = collectiveOf(callee);
    events.push_back(collective ? RankEvent::blocking(*collective)
                                : RankEvent::kernel(costs.seconds(call)));
  }
}

std::vector<RankEvent> ckopt::rankEvents(const Compilation &compilation) {
  const StepOptions &options = compilation.options().step;
  CostModel costs(options.remat.costs, compilation.target()->traits.rates);
  std::vector<RankEvent> events;
  // Micro-batches before the last one only add to the gradients' sums.
  if (auto more = compilation.module().lookupSymbol<func::FuncOp>("accumulate"))
    for (int64_t i = 1; i < options.optimizer.accumulate; ++i)
      addEvents(more, costs, events);
  if (auto step = compilation.module().lookupSymbol<func::FuncOp>("step"))
    addEvents(step, costs, events);
  return events;
}

llvm::Expected<ClusterPlan> ckopt::readClusterPlan(llvm::StringRef path,
                                                   const StepOptions &step) {
  ClusterPlan plan;
  if (llvm::Error error = cluster::readCluster(path).moveInto(plan.cluster))
    return std::move(error);
  plan.mesh.replicas = step.ranks / step.shards;
  plan.mesh.shards = step.shards;
  if (llvm::Error error = checkFits(plan.mesh, plan.cluster))
    return withContext(std::move(error), path);
  return std::move(plan);
}

llvm::Error ckopt::predictOnCluster(const Compilation &compilation,
                                    ClusterPlan &plan) {
  const CompileOptions &options = compilation.options();
  plan.peak = compilation.summary().figures.arena;
  if (options.import.batch)
    plan.samples = *options.import.batch * plan.mesh.ranks() *
                   options.step.optimizer.accumulate;
  return cluster::simulate(plan.cluster, plan.mesh, rankEvents(compilation))
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
      "predicted on " + std::to_string(plan.mesh.ranks()) + " ranks" +
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
    json.attribute("replicas", plan.mesh.replicas);
    json.attribute("shards", plan.mesh.shards);
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
          json.attribute("bytes", result.collective.bytes);
          json.attribute("begin", jsonNumber(result.begin));
          json.attribute("end", jsonNumber(result.end));
          json.attribute("seconds", jsonNumber(result.seconds));
        });
    });
  });
}
