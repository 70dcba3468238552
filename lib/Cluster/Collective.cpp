//===- Collective.cpp - messages and time of a collective -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: say what a collective of up to thousands of ranks costs, without
// walking through its messages, of which there are millions. Method: the
// runtime cuts tensors into pieces, and each piece goes through one or two
// rounds, in which ranks send shares of it to each other directly. All pieces
// but the last are alike, and a round's load on a rank and on its node follows
// from sums over the shares of the node's ranks. A round takes what the busiest
// rank needs: the processor for its messages, one latency, and the slowest of
// its own links and those that it shares with its node. Guarantee: messages and
// bytes are those that the runtime sends, exactly. O(ranks).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Collective.h"

#include "ckopt/Base/Collectives.h"

#include <algorithm>
#include <cassert>

using namespace ckopt;
using namespace ckopt::cluster;

const char *ckopt::cluster::nameOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return "all_reduce";
  case CollectiveKind::AllGather:
    return "all_gather";
  case CollectiveKind::ReduceScatter:
    return "reduce_scatter";
  case CollectiveKind::Broadcast:
    return "broadcast";
  }
  return "";
}

namespace {

/// Who sends what: each rank its numbers for others' shares, each rank its own
/// share to all, or one rank everything to all.
enum class Round { Scatter, Gather, Send };

std::vector<Round> roundsOf(CollectiveKind kind) {
  switch (kind) {
  case CollectiveKind::AllReduce:
    return {Round::Scatter, Round::Gather};
  case CollectiveKind::AllGather:
    return {Round::Gather};
  case CollectiveKind::ReduceScatter:
    return {Round::Scatter};
  case CollectiveKind::Broadcast:
    return {Round::Send};
  }
  return {};
}

/// The groups of a mesh, all of which do the same at the same time.
struct Groups {
  Groups(Group group, const Mesh &mesh) : group(group), mesh(mesh) {}

  int64_t size() const {
    return group == Group::All        ? mesh.ranks()
           : group == Group::Replicas ? mesh.replicas
                                      : mesh.shards;
  }
  int64_t count() const { return mesh.ranks() / size(); }
  int64_t of(int64_t rank) const {
    return group == Group::All        ? 0
           : group == Group::Replicas ? rank % mesh.shards
                                      : rank / mesh.shards;
  }
  int64_t memberOf(int64_t rank) const {
    return group == Group::All        ? rank
           : group == Group::Replicas ? rank / mesh.shards
                                      : rank % mesh.shards;
  }

  Group group;
  Mesh mesh;
};

/// Equal pieces of a collective.
struct Pieces {
  int64_t elements = 0; ///< of one
  int64_t count = 0;
};

std::vector<Pieces> piecesOf(const Collective &collective) {
  int64_t total = collective.bytes / collective.elementBytes;
  int64_t piece = std::min(total, kPieceBytes / collective.elementBytes);
  std::vector<Pieces> pieces;
  if (total == 0)
    return pieces;
  pieces.push_back({piece, total / piece});
  if (total % piece)
    pieces.push_back({total % piece, 1});
  return pieces;
}

/// What some members of a group have of a piece.
struct Part {
  int64_t members = 0;
  int64_t sharing = 0; ///< of them with a share that is not empty
  int64_t elements = 0;
};

/// Messages and elements of them, to or from some ranks.
struct Load {
  int64_t messages = 0, elements = 0;
};
struct BothWays {
  Load sent, received;
};

/// One round of one piece.
class PieceRound {
public:
  PieceRound(Round round, const Groups &groups, int64_t elements)
      : round(round), groups(groups), elements(elements),
        share(shareOf(elements, groups.size())) {}

  Part ofMember(int64_t member) const {
    int64_t begin = std::min(member * share, elements);
    int64_t own = std::min(begin + share, elements) - begin;
    return {1, own > 0, own};
  }
  Part ofAll() const {
    return {groups.size(), shareOf(elements, share), elements};
  }
  /// What a member exchanges with others of its group.
  BothWays exchange(int64_t member, const Part &others, bool rootAmong) const {
    int64_t own = ofMember(member).elements;
    Load shares{others.sharing, others.elements};
    Load copies{own ? others.members : 0, own * others.members};
    switch (round) {
    case Round::Scatter:
      return {shares, copies};
    case Round::Gather:
      return {copies, shares};
    case Round::Send:
      if (member == 0)
        return {{others.members, elements * others.members}, {}};
      return {{}, {rootAmong, rootAmong ? elements : 0}};
    }
    return {};
  }

private:
  Round round;
  Groups groups;
  int64_t elements, share;
};

Part minus(const Part &a, const Part &b) {
  return {a.members - b.members, a.sharing - b.sharing,
          a.elements - b.elements};
}

double slower(const BothWays &load) {
  return double(std::max(load.sent.elements, load.received.elements));
}

/// The load of a rank in a round: on links of its node, and on those that leave
/// it.
struct RankLoad {
  BothWays inside, between;
};

/// Gives each rank's load, node by node.
class NodeLoads {
public:
  NodeLoads(const PieceRound &round, const Groups &groups, int64_t perNode)
      : round(round), groups(groups), perNode(perNode),
        parts(size_t(groups.count())), roots(size_t(groups.count())) {}

  std::vector<RankLoad> ofNode(int64_t node) {
    int64_t begin = node * perNode;
    int64_t end = std::min(begin + perNode, groups.mesh.ranks());
    for (int64_t rank = begin; rank < end; ++rank) {
      Part own = round.ofMember(groups.memberOf(rank));
      Part &part = parts[size_t(groups.of(rank))];
      part.members += own.members;
      part.sharing += own.sharing;
      part.elements += own.elements;
      if (groups.memberOf(rank) == 0)
        roots[size_t(groups.of(rank))] = true;
    }
    std::vector<RankLoad> loads;
    for (int64_t rank = begin; rank < end; ++rank) {
      int64_t member = groups.memberOf(rank);
      const Part &part = parts[size_t(groups.of(rank))];
      bool root = roots[size_t(groups.of(rank))];
      loads.push_back(
          {round.exchange(member, minus(part, round.ofMember(member)), root),
           round.exchange(member, minus(round.ofAll(), part), !root)});
    }
    for (int64_t rank = begin; rank < end; ++rank) {
      parts[size_t(groups.of(rank))] = {};
      roots[size_t(groups.of(rank))] = false;
    }
    return loads;
  }

private:
  const PieceRound &round;
  const Groups &groups;
  int64_t perNode;
  std::vector<Part> parts; ///< of this node, by group
  std::vector<bool> roots; ///< whether this node has the group's member 0
};

void add(BothWays &sum, const BothWays &load) {
  sum.sent.elements += load.sent.elements;
  sum.received.elements += load.received.elements;
}

double processorSeconds(const BothWays &load, const Link &link) {
  return double(load.sent.messages + load.received.messages) *
         link.messageSeconds;
}

/// The seconds that a node's ranks need for a round.
double nodeSeconds(const std::vector<RankLoad> &loads, const Cluster &cluster,
                   double elementBytes) {
  RankLoad all;
  for (const RankLoad &load : loads) {
    add(all.inside, load.inside);
    add(all.between, load.between);
  }
  auto seconds = [&](const BothWays &load, double bandwidth) {
    double bytes = slower(load) * elementBytes;
    return bytes > 0 ? bytes / bandwidth : 0;
  };
  auto together = [](const Link &link) {
    return link.bandwidth * double(link.count);
  };
  double shared = std::max(seconds(all.inside, together(cluster.inside)),
                           seconds(all.between, together(cluster.between)));
  double most = 0;
  for (const RankLoad &load : loads) {
    double own = std::max(seconds(load.inside, cluster.inside.bandwidth),
                          seconds(load.between, cluster.between.bandwidth));
    double latency = 0;
    if (load.inside.sent.messages + load.inside.received.messages)
      latency = cluster.inside.latency;
    if (load.between.sent.messages + load.between.received.messages)
      latency = std::max(latency, cluster.between.latency);
    most = std::max(most, std::max(own, shared) + latency +
                              processorSeconds(load.inside, cluster.inside) +
                              processorSeconds(load.between, cluster.between));
  }
  return most;
}

/// Bytes that a rank reads and writes in its own memory.
struct LocalBytes {
  double pack = 0, unpack = 0;
};

LocalBytes localBytes(const Collective &collective, int64_t ranks) {
  double all = double(collective.bytes), own = all / double(ranks);
  // A sum reads a share of each rank and writes one.
  double sums = own * double(ranks + 1);
  switch (collective.kind) {
  case CollectiveKind::AllReduce:
    return {2 * all, sums + 2 * all};
  case CollectiveKind::AllGather:
    return {2 * own, 2 * all};
  case CollectiveKind::ReduceScatter:
    return {2 * all, sums + 2 * own};
  case CollectiveKind::Broadcast:
    break;
  }
  return {};
}

} // namespace

std::vector<Traffic> ckopt::cluster::sentTraffic(const Collective &collective,
                                                 const Mesh &mesh) {
  Groups groups(collective.group, mesh);
  std::vector<Traffic> traffic(static_cast<size_t>(mesh.ranks()));
  if (groups.size() < 2)
    return traffic;
  for (const Pieces &pieces : piecesOf(collective))
    for (Round kind : roundsOf(collective.kind)) {
      PieceRound round(kind, groups, pieces.elements);
      for (int64_t rank = 0; rank < mesh.ranks(); ++rank) {
        int64_t member = groups.memberOf(rank);
        Load sent =
            round
                .exchange(member, minus(round.ofAll(), round.ofMember(member)),
                          /*rootAmong=*/true)
                .sent;
        traffic[size_t(rank)].messages += pieces.count * sent.messages;
        traffic[size_t(rank)].bytes +=
            pieces.count * sent.elements * collective.elementBytes;
      }
    }
  return traffic;
}

CollectiveTime ckopt::cluster::timeOf(const Collective &collective,
                                      const Mesh &mesh,
                                      const Cluster &cluster) {
  assert(mesh.ranks() <= cluster.ranks() && "the mesh must fit the cluster");
  Groups groups(collective.group, mesh);
  CollectiveTime time;
  if (groups.size() < 2)
    return time;
  int64_t nodes = shareOf(mesh.ranks(), cluster.ranksPerNode);
  for (const Pieces &pieces : piecesOf(collective))
    for (Round kind : roundsOf(collective.kind)) {
      PieceRound round(kind, groups, pieces.elements);
      NodeLoads loads(round, groups, cluster.ranksPerNode);
      double most = 0;
      for (int64_t node = 0; node < nodes; ++node)
        most = std::max(most, nodeSeconds(loads.ofNode(node), cluster,
                                          double(collective.elementBytes)));
      time.network += double(pieces.count) * most;
    }
  LocalBytes local = localBytes(collective, groups.size());
  time.pack = local.pack / cluster.memoryBandwidth;
  time.unpack = local.unpack / cluster.memoryBandwidth;
  return time;
}
