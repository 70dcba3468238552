//===- Collective.cpp - messages and time of a collective -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: say what a collective of up to thousands of ranks costs, without
// walking through its messages, of which there are millions. Method: a
// collective is a number of rounds, in each of which ranks send shares of a
// piece to each other directly; the runtime's kernels say how tensors are cut
// (AllReduce.cpp, RowExchange.cpp). A round's load on a rank and on its node
// follows from sums over the shares of the node's ranks. A round takes what the
// busiest rank needs: the processor for its messages, one latency, and the
// slowest of its own links and those that it shares with its node. Guarantee:
// messages and bytes are those that the runtime sends, exactly. O(ranks) a
// round and tensor.
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

std::optional<CollectiveKind>
ckopt::cluster::findCollective(std::string_view name) {
  for (CollectiveKind kind :
       {CollectiveKind::AllReduce, CollectiveKind::AllGather,
        CollectiveKind::ReduceScatter, CollectiveKind::Broadcast})
    if (name == nameOf(kind))
      return kind;
  return std::nullopt;
}

static int64_t elementsOf(const Collective &collective) {
  int64_t elements = 0;
  for (const Part &part : collective.parts)
    elements += part.elements;
  return elements;
}

int64_t Collective::bytes() const { return elementsOf(*this) * elementBytes; }

namespace {

/// Who sends what: each rank its numbers for others' shares, each rank its own
/// share to all, or one rank everything to all.
enum class Pattern { Scatter, Gather, Send };

/// Elements of which the member at a place of the group has those from
/// place * chunk + low on, at most `most`.
struct Slice {
  int64_t elements = 0, chunk = 0, low = 0, most = 0;

  int64_t of(int64_t place) const {
    return std::clamp<int64_t>(elements - place * chunk - low, 0, most);
  }
};

/// Messages that are under way at the same time.
struct Round {
  Pattern pattern = Pattern::Scatter;
  std::vector<Slice> slices;
  int64_t repeats = 1;
};

/// All tensors one behind the other, in pieces, of each of which the members
/// add equal shares.
void addSums(const Collective &c, std::vector<Round> &rounds) {
  int64_t total = elementsOf(c);
  int64_t piece = std::min(total, kPieceBytes / c.elementBytes);
  auto add = [&](int64_t count, int64_t repeats) {
    int64_t share = shareOf(count, c.group.size);
    for (Pattern pattern : {Pattern::Scatter, Pattern::Gather})
      rounds.push_back({pattern, {{count, share, 0, share}}, repeats});
  };
  if (total == 0)
    return;
  add(piece, total / piece);
  if (total % piece)
    add(total % piece, 1);
}

/// Members' own chunks of the tensors, one behind the other, in pieces.
void addScatters(const Collective &c, std::vector<Round> &rounds) {
  int64_t piece =
      std::max<int64_t>(1, kPieceBytes / c.group.size / c.elementBytes);
  int64_t room = 0;
  for (const Part &part : c.parts)
    for (int64_t low = 0; low < part.chunk;) {
      if (room == 0) {
        rounds.push_back({Pattern::Scatter, {}, 1});
        room = piece;
      }
      int64_t count = std::min(room, part.chunk - low);
      rounds.back().slices.push_back({part.elements, part.chunk, low, count});
      low += count;
      room -= count;
    }
}

std::vector<Round> roundsOf(const Collective &c) {
  std::vector<Round> rounds;
  if (c.group.size < 2)
    return rounds;
  switch (c.kind) {
  case CollectiveKind::AllReduce:
    addSums(c, rounds);
    break;
  case CollectiveKind::ReduceScatter:
    addScatters(c, rounds);
    break;
  case CollectiveKind::AllGather:
    rounds.push_back({Pattern::Gather, {}, 1});
    for (const Part &part : c.parts)
      rounds.back().slices.push_back(
          {part.elements, part.chunk, 0, part.chunk});
    break;
  case CollectiveKind::Broadcast:
    rounds.push_back({Pattern::Send, {}, 1});
    for (const Part &part : c.parts)
      rounds.back().slices.push_back(
          {part.elements, part.elements, 0, part.elements});
    break;
  }
  return rounds;
}

/// What some members of a group have of a slice.
struct Shares {
  int64_t members = 0;
  int64_t filled = 0; ///< of them with a share that is not empty
  int64_t elements = 0;
  bool root = false; ///< among them

  void add(const Shares &more) {
    members += more.members;
    filled += more.filled;
    elements += more.elements;
    root |= more.root;
  }
};

Shares without(const Shares &all, const Shares &some) {
  return {all.members - some.members, all.filled - some.filled,
          all.elements - some.elements, all.root && !some.root};
}

/// Messages and elements of them.
struct Load {
  int64_t messages = 0, elements = 0;

  void add(const Load &more) {
    messages += more.messages;
    elements += more.elements;
  }
};
struct BothWays {
  Load sent, received;

  void add(const BothWays &more) {
    sent.add(more.sent);
    received.add(more.received);
  }
  int64_t messages() const { return sent.messages + received.messages; }
  /// The slower direction of links that carry both at once.
  int64_t elements() const {
    return std::max(sent.elements, received.elements);
  }
};

/// One slice of a round among the members of a group.
class Exchange {
public:
  Exchange(const Collective &c, Pattern pattern, const Slice &slice)
      : root(c.root), pattern(pattern), slice(slice) {
    for (int64_t place = 0; place < c.group.size; ++place)
      all.add(of(place));
  }

  Shares of(int64_t place) const {
    int64_t own = slice.of(place);
    return {1, own > 0, own, place == root};
  }
  const Shares &ofAll() const { return all; }
  /// What a member exchanges with these others.
  BothWays with(const Shares &others, int64_t place) const {
    int64_t own = slice.of(place), whole = slice.elements;
    Load shares{others.filled, others.elements};
    Load copies{own ? others.members : 0, own * others.members};
    switch (pattern) {
    case Pattern::Scatter:
      return {shares, copies};
    case Pattern::Gather:
      return {copies, shares};
    case Pattern::Send:
      if (place == root)
        return {{whole ? others.members : 0, whole * others.members}, {}};
      return {{}, {others.root && whole, others.root ? whole : 0}};
    }
    return {};
  }

private:
  int64_t root;
  Pattern pattern;
  Slice slice;
  Shares all;
};

/// The load of a rank in a round: on links of its node, and on those that leave
/// it.
struct RankLoad {
  BothWays inside, between;
};

/// Returns the number of a rank's group.
int64_t groupOf(const RankGroup &group, int64_t rank) {
  return rank / (group.stride * group.size) * group.stride +
         rank % group.stride;
}

/// Adds what the ranks [begin, begin + loads.size()), those of one node, have
/// to do. `parts` has an entry for each group, empty before and after.
void addLoads(const Exchange &exchange, const RankGroup &group, int64_t begin,
              std::vector<Shares> &parts, std::vector<RankLoad> &loads) {
  auto partOf = [&](int64_t rank) -> Shares & {
    return parts[size_t(groupOf(group, rank))];
  };
  int64_t end = begin + int64_t(loads.size());
  for (int64_t rank = begin; rank < end; ++rank)
    partOf(rank).add(exchange.of(group.place(rank)));
  for (int64_t rank = begin; rank < end; ++rank) {
    int64_t place = group.place(rank);
    const Shares &here = partOf(rank);
    RankLoad &load = loads[size_t(rank - begin)];
    load.inside.add(exchange.with(without(here, exchange.of(place)), place));
    load.between.add(exchange.with(without(exchange.ofAll(), here), place));
  }
  for (int64_t rank = begin; rank < end; ++rank)
    partOf(rank) = {};
}

/// The seconds that a node's ranks need for a round.
double nodeSeconds(const std::vector<RankLoad> &loads, const Cluster &cluster,
                   double elementBytes) {
  auto seconds = [&](const BothWays &load, const Link &link, int64_t links) {
    int64_t elements = load.elements();
    return elements ? double(elements) * elementBytes /
                          (link.bandwidth * double(links))
                    : 0.0;
  };
  RankLoad all;
  for (const RankLoad &load : loads) {
    all.inside.add(load.inside);
    all.between.add(load.between);
  }
  const Link &inside = cluster.inside, &between = cluster.between;
  double shared = std::max(seconds(all.inside, inside, inside.count),
                           seconds(all.between, between, between.count));
  double most = 0;
  for (const RankLoad &load : loads) {
    double own = std::max(seconds(load.inside, inside, 1),
                          seconds(load.between, between, 1));
    double latency = std::max(load.inside.messages() ? inside.latency : 0,
                              load.between.messages() ? between.latency : 0);
    double processor = double(load.inside.messages()) * inside.messageSeconds +
                       double(load.between.messages()) * between.messageSeconds;
    most = std::max(most, std::max(own, shared) + latency + processor);
  }
  return most;
}

double roundSeconds(const Collective &c, const Round &round,
                    const Cluster &cluster) {
  std::vector<Exchange> exchanges;
  for (const Slice &slice : round.slices)
    exchanges.emplace_back(c, round.pattern, slice);
  std::vector<Shares> parts(size_t(c.group.groups));
  double most = 0;
  int64_t world = c.group.world();
  for (int64_t begin = 0; begin < world; begin += cluster.ranksPerNode) {
    std::vector<RankLoad> loads(
        size_t(std::min(cluster.ranksPerNode, world - begin)));
    for (const Exchange &exchange : exchanges)
      addLoads(exchange, c.group, begin, parts, loads);
    most = std::max(most, nodeSeconds(loads, cluster, double(c.elementBytes)));
  }
  return most;
}

/// Bytes that a rank reads and writes in its own memory.
struct LocalBytes {
  double before = 0, after = 0; ///< its messages
};

LocalBytes localBytes(const Collective &c) {
  double ranks = double(c.group.size), all = double(c.bytes());
  double own = all / ranks;
  // A sum reads a share of each rank and writes one.
  double sums = own * (ranks + 1);
  switch (c.kind) {
  case CollectiveKind::AllReduce: // packed and unpacked
    return {2 * all, sums + 2 * all};
  case CollectiveKind::AllGather:
    return {2 * own, 0};
  case CollectiveKind::ReduceScatter:
    return {0, sums};
  case CollectiveKind::Broadcast:
    break;
  }
  return {};
}

} // namespace

std::vector<Traffic> ckopt::cluster::sentTraffic(const Collective &collective) {
  const RankGroup &group = collective.group;
  std::vector<Load> sent(size_t(group.size)); // by place
  for (const Round &round : roundsOf(collective))
    for (const Slice &slice : round.slices) {
      Exchange exchange(collective, round.pattern, slice);
      for (int64_t place = 0; place < group.size; ++place) {
        Shares others = without(exchange.ofAll(), exchange.of(place));
        Load load = exchange.with(others, place).sent;
        sent[size_t(place)].add(
            {load.messages * round.repeats, load.elements * round.repeats});
      }
    }
  std::vector<Traffic> traffic;
  for (int64_t rank = 0; rank < group.world(); ++rank) {
    const Load &load = sent[size_t(group.place(rank))];
    traffic.push_back({load.messages, load.elements * collective.elementBytes});
  }
  return traffic;
}

CollectiveTime ckopt::cluster::timeOf(const Collective &collective,
                                      const Cluster &cluster) {
  assert(collective.group.world() <= cluster.ranks() && "must fit");
  CollectiveTime time;
  if (collective.group.size < 2)
    return time;
  for (const Round &round : roundsOf(collective))
    time.network +=
        double(round.repeats) * roundSeconds(collective, round, cluster);
  LocalBytes local = localBytes(collective);
  time.pack = local.before / cluster.memoryBandwidth;
  time.unpack = local.after / cluster.memoryBandwidth;
  return time;
}
