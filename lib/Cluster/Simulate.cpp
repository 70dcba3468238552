//===- Simulate.cpp - a step on a cluster ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: predict how long a step takes on ranks that nobody has yet. Method:
// all ranks do the same on equal nodes, so one of them is followed, with two
// clocks: that of its threads, and that of its links, which carry one
// collective at a time, in the order in which they begin. Kernels and copies
// take time of the threads; messages of a collective that was started go on
// meanwhile. Guarantee: a function of its arguments alone. Ranks that are
// slower than others, other users of the network, and messages that only go on
// while a thread looks after them are not part of the model. O(events log
// collectives + different collectives * ranks).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Simulate.h"

#include "ckopt/Support/Error.h"

#include <map>

using namespace ckopt;
using namespace ckopt::cluster;

RankEvent RankEvent::kernel(double seconds) {
  RankEvent event;
  event.seconds = seconds;
  return event;
}
RankEvent RankEvent::blocking(const Collective &collective) {
  RankEvent event;
  event.kind = Kind::Collective;
  event.collective = collective;
  return event;
}
RankEvent RankEvent::start(int64_t number, const Collective &collective) {
  RankEvent event = blocking(collective);
  event.kind = Kind::Start;
  event.number = number;
  return event;
}
RankEvent RankEvent::wait(int64_t number) {
  RankEvent event;
  event.kind = Kind::Wait;
  event.number = number;
  return event;
}

namespace {

class Simulation {
public:
  Simulation(const Cluster &cluster, int64_t ranks)
      : cluster(cluster), ranks(ranks) {
    result.sent.resize(size_t(ranks));
  }

  llvm::Error add(const RankEvent &event);
  llvm::Expected<Prediction> finish();

private:
  struct Costs {
    CollectiveTime time;
    std::vector<Traffic> sent;
  };
  const Costs &costsOf(const Collective &collective);
  /// Returns when its messages have come, and what is left to do then.
  struct Flight {
    double end = 0, unpack = 0;
  };
  Flight start(const Collective &collective);
  void wait(const Flight &flight);

  const Cluster &cluster;
  const int64_t ranks;
  double threads = 0, links = 0; ///< when they are free
  std::map<int64_t, Flight> inFlight;
  std::map<std::vector<int64_t>, Costs> known; ///< by keyOf()
  Prediction result;
};

/// Returns all that a collective consists of.
std::vector<int64_t> keyOf(const Collective &c) {
  std::vector<int64_t> key = {int64_t(c.kind), c.group.size, c.group.stride,
                              c.elementBytes, c.root};
  for (const Part &part : c.parts)
    key.insert(key.end(), {part.elements, part.chunk});
  return key;
}

const Simulation::Costs &Simulation::costsOf(const Collective &c) {
  auto [entry, isNew] = known.try_emplace(keyOf(c));
  if (isNew)
    entry->second = {timeOf(c, cluster), sentTraffic(c)};
  return entry->second;
}

Simulation::Flight Simulation::start(const Collective &collective) {
  const Costs &costs = costsOf(collective);
  threads += costs.time.pack;
  double begin = std::max(threads, links);
  links = begin + costs.time.network;
  result.communication += costs.time.total();
  for (size_t rank = 0; rank < costs.sent.size(); ++rank) {
    result.sent[rank].messages += costs.sent[rank].messages;
    result.sent[rank].bytes += costs.sent[rank].bytes;
  }
  result.collectives.push_back(
      {collective, begin, links, costs.time.total(), costs.sent.front()});
  return {links, costs.time.unpack};
}

void Simulation::wait(const Flight &flight) {
  threads = std::max(threads, flight.end) + flight.unpack;
}

llvm::Error Simulation::add(const RankEvent &event) {
  bool begins = event.kind == RankEvent::Kind::Collective ||
                event.kind == RankEvent::Kind::Start;
  if (int64_t world = event.collective.group.world(); begins && world != ranks)
    return inputError("a collective is one of " + llvm::Twine(world) +
                      " ranks, and the step takes " + llvm::Twine(ranks));
  switch (event.kind) {
  case RankEvent::Kind::Kernel: {
    double seconds = event.seconds / cluster.speed;
    threads += seconds;
    result.kernels += seconds;
    break;
  }
  case RankEvent::Kind::Collective:
    wait(start(event.collective));
    break;
  case RankEvent::Kind::Start:
    if (inFlight.count(event.number))
      return inputError("collective " + llvm::Twine(event.number) +
                        " is started twice");
    inFlight[event.number] = start(event.collective);
    break;
  case RankEvent::Kind::Wait: {
    auto found = inFlight.find(event.number);
    if (found == inFlight.end())
      return inputError("nothing started collective " +
                        llvm::Twine(event.number) + ", which is waited for");
    wait(found->second);
    inFlight.erase(found);
    break;
  }
  }
  return llvm::Error::success();
}

llvm::Expected<Prediction> Simulation::finish() {
  if (!inFlight.empty())
    return inputError("nothing waits for collective " +
                      llvm::Twine(inFlight.begin()->first));
  result.seconds = threads;
  return std::move(result);
}

} // namespace

llvm::Error ckopt::cluster::checkFits(int64_t ranks, const Cluster &cluster) {
  if (ranks <= cluster.ranks())
    return llvm::Error::success();
  return inputError("the cluster has " + llvm::Twine(cluster.ranks()) +
                    " ranks (" + llvm::Twine(cluster.nodes) + " x " +
                    llvm::Twine(cluster.ranksPerNode) +
                    "), and the step takes " + llvm::Twine(ranks));
}

llvm::Expected<Prediction>
ckopt::cluster::simulate(const Cluster &cluster, int64_t ranks,
                         const std::vector<RankEvent> &events) {
  if (llvm::Error error = checkFits(ranks, cluster))
    return std::move(error);
  Simulation simulation(cluster, ranks);
  for (const RankEvent &event : events)
    if (llvm::Error error = simulation.add(event))
      return std::move(error);
  return simulation.finish();
}
