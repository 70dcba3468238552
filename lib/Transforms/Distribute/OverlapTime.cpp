//===- OverlapTime.cpp - what a step with collectives takes ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Puts the calls of a step, and the starts and waits of its collectives, into
// the order in which they will stand, and follows a rank through them: it has
// two clocks, of its kernels and of its messages, which go on one collective
// after the other. Linear in the number of calls.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Distribute/Overlap.h"

using namespace mlir;
using namespace ckopt;

std::vector<FlightEvent> ckopt::orderEvents(func::FuncOp function,
                                            const FlightPlan &plan) {
  SmallVector<KernelCallOp> calls(function.getOps<KernelCallOp>());
  size_t gaps = calls.size() + 1;
  std::vector<SmallVector<FlightEvent, 1>> waits(gaps), updates(gaps),
      starts(gaps);
  llvm::SmallDenseSet<Operation *> moved;
  for (const Flight &flight : plan.flights) {
    starts[size_t(flight.start)].push_back(
        {FlightEvent::Start, flight.call, &flight});
    waits[size_t(flight.wait)].push_back(
        {FlightEvent::Wait, flight.call, &flight});
    moved.insert(flight.call);
  }
  for (auto [call, gap] : plan.delayed) {
    updates[size_t(gap)].push_back({FlightEvent::Call, call, nullptr});
    moved.insert(call);
  }
  std::vector<FlightEvent> events;
  for (size_t gap = 0; gap < gaps; ++gap) {
    for (auto *list : {&waits, &updates, &starts})
      events.insert(events.end(), (*list)[gap].begin(), (*list)[gap].end());
    if (gap < calls.size() && !moved.contains(calls[gap]))
      events.push_back({FlightEvent::Call, calls[gap], nullptr});
  }
  return events;
}

planner::StepTime
ckopt::followEvents(ArrayRef<FlightEvent> events, CostModel &costs,
                    DenseMap<const Flight *, double> *exposed) {
  planner::StepTime step;
  double threads = 0, links = 0;
  DenseMap<const Flight *, double> ends;
  auto send = [&](KernelCallOp call) {
    double time = costs.seconds(call);
    links = std::max(threads, links) + time;
    step.messages += time;
  };
  auto await = [&](double end) {
    double time = std::max(0.0, end - threads);
    step.exposed += time;
    threads += time;
    return time;
  };
  for (const FlightEvent &event : events) {
    if (event.kind == FlightEvent::Start) {
      send(event.call);
      ends[event.flight] = links;
    } else if (event.kind == FlightEvent::Wait) {
      double time = await(ends.lookup(event.flight));
      if (exposed)
        (*exposed)[event.flight] = time;
    } else if (getCollective(event.call)) {
      send(event.call);
      await(links);
    } else {
      double time = costs.seconds(event.call);
      threads += time;
      step.kernels += time;
    }
  }
  return step;
}
