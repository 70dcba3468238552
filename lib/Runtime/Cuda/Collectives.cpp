//===- Collectives.cpp - collectives on a device --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Both ends of a message compute its size only from the descriptor, run by run
// of the tensors that a block covers. Neither end has a message without bytes.
//
//===----------------------------------------------------------------------===//
#include "Collectives.h"

#include "Comm/Collective.h"
#include "Engine.h"

#include <cstring>

using namespace ckopt;
using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

int64_t ckopt::runtime::cuda::ranksOf(const Manifest &manifest) {
  int64_t ranks = 1;
  for (const PrimitiveDesc &desc : manifest.primitives)
    if (isOfRanks(desc.kind))
      ranks = std::max(ranks, desc.allReduce.ranks * desc.allReduce.groups);
  return ranks;
}

//===----------------------------------------------------------------------===//
// Traffic of a launch
//===----------------------------------------------------------------------===//

/// Messages, copies and zeros of one launch, which touch different bytes.
struct Collectives::Parts {
  struct Copy {
    DevicePointer to, from;
    int64_t bytes;
  };
  struct Fill {
    DevicePointer at;
    int64_t bytes;
    unsigned char value;
  };
  std::vector<DeviceTransfer> messages;
  std::vector<Copy> copies;
  std::vector<Fill> fills;

  // Addresses of the op's arguments and workspace, bytes of an element, and the
  // ranks.
  std::vector<DevicePointer> args;
  DevicePointer scratch = 0;
  int64_t size = 4, rank = 0, own = 0;
  RankGroup group;

  DevicePointer at(DevicePointer base, int64_t element) const {
    return base + static_cast<DevicePointer>(element * size);
  }
  void message(bool sends, DevicePointer at, int64_t elements, int64_t place) {
    if (elements > 0)
      messages.push_back({sends, at, elements * size,
                          static_cast<int32_t>(group.member(rank, place))});
  }
  void copy(DevicePointer to, DevicePointer from, int64_t elements) {
    if (elements > 0 && to != from)
      copies.push_back({to, from, elements * size});
  }
  void zero(DevicePointer at, int64_t elements) {
    if (elements > 0)
      fills.push_back({at, elements * size, 0});
  }
};

/// Rounds the elements of a slot that a block uses up to 64 bytes, since the
/// kernel adds whole vectors.
static int64_t roundedWidth(int64_t width, int64_t size) {
  int64_t unit = 64 / size;
  return (width + unit - 1) / unit * unit;
}

void Collectives::whole(const PrimitiveDesc &desc, Parts &p) const {
  const AllReduceDesc &a = desc.allReduce;
  const size_t tensors = a.elements.size();
  if (desc.kind == PrimitiveKind::Rank) {
    // In a graph, host values would be read at each replay.
    p.fills = {{p.args[0], 8, 0},
               {p.args[0], 1, static_cast<unsigned char>(p.rank & 255)},
               {p.args[0] + 1, 1, static_cast<unsigned char>(p.rank >> 8)}};
    return;
  }
  for (size_t i = 0; i < tensors; ++i) {
    DevicePointer in = p.args[i], out = p.args[tensors + i];
    Shards shards = {a.elements[i], a.ranks,
                     a.shares.empty() ? a.elements[i] : a.shares[i]};
    int64_t count = shards.count(p.own);
    switch (desc.kind) {
    case PrimitiveKind::AllGather:
      p.copy(p.at(out, shards.begin(p.own)), in, count);
      for (int64_t place = 0; place < p.group.size; ++place)
        if (place != p.own) {
          p.message(true, in, count, place);
          p.message(false, p.at(out, shards.begin(place)), shards.count(place),
                    place);
        }
      break;
    case PrimitiveKind::Broadcast:
      if (p.own == a.root)
        p.copy(out, in, a.elements[i]);
      for (int64_t place = 0; place < p.group.size; ++place)
        if (place != p.own && (p.own == a.root || place == a.root))
          p.message(p.own == a.root, p.own == a.root ? in : out, a.elements[i],
                    place);
      break;
    case PrimitiveKind::OwnRows:
    case PrimitiveKind::ReduceScatter: // the copy of a single rank
      p.copy(out, p.at(in, shards.begin(p.own)), count);
      p.zero(p.at(out, count), shards.chunk - count);
      break;
    default: // the sum of a single rank
      p.copy(out, in, a.elements[i]);
    }
  }
}

void Collectives::sumAll(const PrimitiveDesc &desc, RankPhase phase,
                         SumPiece piece, Parts &p) const {
  const AllReduceDesc &a = desc.allReduce;
  const size_t tensors = a.elements.size();
  const int64_t slot = slotElements(desc);
  auto first = [&](int64_t place) {
    return std::min(place * piece.width, piece.count);
  };
  auto count = [&](int64_t place) { return first(place + 1) - first(place); };
  auto runs = [&](int64_t place, auto visit) {
    forEachRun(a.elements, piece.from + first(place), count(place), visit);
  };
  for (int64_t place = 0; place < p.group.size; ++place) {
    DevicePointer into = p.at(p.scratch, place * slot);
    bool isOwn = place == p.own;
    if (phase == RankPhase::Exchange) {
      runs(place, [&](size_t i, int64_t low, int64_t at, int64_t n) {
        if (isOwn)
          p.copy(p.at(into, at), p.at(p.args[i], low), n);
        else
          p.message(true, p.at(p.args[i], low), n, place);
      });
      if (!isOwn)
        runs(p.own, [&](size_t, int64_t, int64_t at, int64_t n) {
          p.message(false, p.at(into, at), n, place);
        });
      p.zero(p.at(into, count(p.own)),
             roundedWidth(piece.width, p.size) - count(p.own));
      continue;
    }
    runs(place, [&](size_t i, int64_t low, int64_t at, int64_t n) {
      DevicePointer result = p.at(p.args[tensors + i], low);
      if (isOwn)
        p.copy(result, p.at(p.scratch, at), n);
      else
        p.message(false, result, n, place);
    });
    if (!isOwn)
      runs(p.own, [&](size_t, int64_t, int64_t at, int64_t n) {
        p.message(true, p.at(p.scratch, at), n, place);
      });
  }
}

void Collectives::sumRows(const PrimitiveDesc &desc, RankPhase phase,
                          SumPiece piece, Parts &p) const {
  const AllReduceDesc &a = desc.allReduce;
  const size_t tensors = a.elements.size();
  const int64_t slot = slotElements(desc);
  forEachRun(
      a.shares, piece.from, piece.count,
      [&](size_t i, int64_t low, int64_t at, int64_t n) {
        if (phase == RankPhase::Spread)
          return p.copy(p.at(p.args[tensors + i], low), p.at(p.scratch, at), n);
        Shards shards = {a.elements[i], a.ranks, a.shares[i]};
        auto filled = [&](int64_t place) {
          return std::clamp<int64_t>(shards.count(place) - low, 0, n);
        };
        for (int64_t place = 0; place < p.group.size; ++place) {
          DevicePointer into = p.at(p.scratch, place * slot + at);
          DevicePointer from = p.at(p.args[i], shards.begin(place) + low);
          if (place == p.own) {
            p.copy(into, from, filled(place));
          } else {
            p.message(true, from, filled(place), place);
            p.message(false, into, filled(p.own), place);
          }
          p.zero(p.at(into, filled(p.own)), n - filled(p.own));
        }
      });
  if (phase == RankPhase::Exchange)
    for (int64_t place = 0; place < p.group.size; ++place)
      p.zero(p.at(p.scratch, place * slot + piece.width),
             roundedWidth(piece.width, p.size) - piece.width);
}

Collectives::Parts Collectives::partsOf(const LaunchInfo &launch,
                                        DevicePointer arena) const {
  const PrimitiveDesc &desc =
      manifest.primitives[static_cast<size_t>(launch.primitive)];
  Parts p;
  for (const LaunchPointer &pointer : launch.pointers)
    p.args.push_back(arena + static_cast<DevicePointer>(pointer.offset));
  p.scratch = arena + static_cast<DevicePointer>(launch.scratchOffset);
  p.size = dtypeSize(desc.dtype);
  p.group = groupOf(desc.allReduce);
  p.rank = comm->rank();
  p.own = p.group.place(p.rank);
  auto phase = static_cast<RankPhase>(launch.scalars[0]);
  if (phase == RankPhase::Whole) {
    whole(desc, p);
    return p;
  }
  for (const SumPiece &piece : sumPieces(desc))
    if (piece.from == launch.scalars[1])
      desc.kind == PrimitiveKind::AllReduce ? sumAll(desc, phase, piece, p)
                                            : sumRows(desc, phase, piece, p);
  return p;
}

Result Collectives::enqueue(const LaunchInfo &launch, DevicePointer arena,
                            Stream stream, std::string &error) {
  Parts parts = partsOf(launch, arena);
  Result result = kSuccess;
  for (const Parts::Fill &fill : parts.fills)
    if (result == kSuccess)
      result = cuda.memsetD8Async(fill.at, fill.value,
                                  static_cast<size_t>(fill.bytes), stream);
  for (const Parts::Copy &copy : parts.copies)
    if (result == kSuccess)
      result = cuda.memcpyDtoDAsync(copy.to, copy.from,
                                    static_cast<size_t>(copy.bytes), stream);
  if (result != kSuccess || parts.messages.empty())
    return result;
  return comm->enqueue(parts.messages, stream, error) ? kSuccess : kRankFailed;
}

//===----------------------------------------------------------------------===//
// Traffic
//===----------------------------------------------------------------------===//

void Collectives::countTraffic() {
  traffic.resize(manifest.functions.size());
  for (const CallInfo &call : manifest.calls) {
    CollectiveRecord record;
    for (const LaunchInfo &launch : call.launches) {
      if (launch.primitive < 0)
        continue;
      const PrimitiveDesc &desc =
          manifest.primitives[static_cast<size_t>(launch.primitive)];
      if (!isOfRanks(desc.kind) || desc.kind == PrimitiveKind::Rank ||
          desc.kind == PrimitiveKind::OwnRows)
        continue;
      record.kind = rankKindName(desc.kind);
      record.bytes = 0;
      for (int64_t count : desc.allReduce.elements)
        record.bytes += count * dtypeSize(desc.dtype);
      for (const DeviceTransfer &t : partsOf(launch, 0).messages)
        if (t.sends) {
          ++record.messages;
          record.sentBytes += t.bytes;
        }
    }
    if (*record.kind)
      traffic[static_cast<size_t>(call.function)].push_back(record);
  }
}

void Collectives::record(size_t function) const {
  if (World *world = World::current())
    for (const CollectiveRecord &record : traffic[function])
      world->addRecord(record);
}

//===----------------------------------------------------------------------===//
// The ranks' devices
//===----------------------------------------------------------------------===//

/// Returns whether all ranks have no `error`; else sets one.
static bool agree(World &world, std::string &error) {
  std::vector<int64_t> all(static_cast<size_t>(world.size()));
  int64_t own = error.empty() ? 0 : 1;
  std::string why;
  if (!world.gatherAll(&own, sizeof(own), all.data(), why)) {
    error = error.empty() ? why : error;
    return false;
  }
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank] && error.empty())
      error = "rank " + std::to_string(rank) +
              " cannot use its device; its own message says why";
  return error.empty();
}

/// Gives every rank's process to all.
static bool gatherProcesses(World &world, std::vector<RankProcess> &processes,
                            std::string &error) {
  struct Flat {
    char host[128], machine[128];
    int64_t pid, started;
  };
  RankProcess own = RankProcess::own();
  Flat flat = {{}, {}, own.pid, own.started};
  own.host.copy(flat.host, sizeof(flat.host) - 1);
  own.machine.copy(flat.machine, sizeof(flat.machine) - 1);
  std::vector<Flat> all(static_cast<size_t>(world.size()));
  if (!world.gatherAll(&flat, sizeof(flat), all.data(), error))
    return false;
  for (const Flat &one : all)
    processes.push_back({one.host, one.machine, one.pid, one.started});
  return true;
}

/// Makes the communicator with an id that the world distributes.
static std::shared_ptr<NcclComm> connect(World &world, const Driver &cuda,
                                         int ordinal, std::string &error) {
  const NcclEntries *nccl = NcclEntries::open(error);
  NcclId id = {};
  if (nccl && world.isMain())
    if (int code = nccl->getUniqueId(&id); code != kNcclSuccess)
      error = "ncclGetUniqueId gives " + std::to_string(code) + ": " +
              nccl->words(code);
  NcclComm::Place place;
  place.rank = world.rank();
  place.ranks = world.size();
  place.ordinal = ordinal;
  place.timeout = world.waitsAtMost();
  if (!agree(world, error) || !world.broadcast(&id, sizeof(id), error) ||
      !gatherProcesses(world, place.processes, error))
    return nullptr;
  return NcclComm::create(cuda, *nccl, place, id, error);
}

/// Collects the device of each rank, for messages.
static bool gatherDevices(World &world, const ckrt_device_report &device,
                          std::string &text, std::string &error) {
  struct Flat {
    char host[128], name[128];
    int32_t ordinal;
  };
  Flat own = {{}, {}, device.ordinal};
  world.host().copy(own.host, sizeof(own.host) - 1);
  std::memcpy(own.name, device.name, sizeof(own.name) - 1);
  std::vector<Flat> all(static_cast<size_t>(world.size()));
  if (!world.gatherAll(&own, sizeof(own), all.data(), error))
    return false;
  for (size_t rank = 0; rank < all.size(); ++rank)
    text += (rank ? ", rank " : "rank ") + std::to_string(rank) +
            " on cuda:" + std::to_string(all[rank].ordinal) + " (" +
            all[rank].name + ") of " + all[rank].host;
  return true;
}

ckrt_status Collectives::create(const Manifest &manifest, const Driver &cuda,
                                const ckrt_device_report &device,
                                std::unique_ptr<Collectives> &made) {
  int ordinal = device.ordinal;
  int64_t ranks = ranksOf(manifest);
  if (ranks == 1)
    return CKRT_OK;
  std::string error;
  World *world = findWorld(ranks, error);
  if (!world)
    return fail(CKRT_WRONG_MACHINE,
                error + ": mpirun starts that many, or RANK, WORLD_SIZE and " +
                    Setting("nccl-id", "FILE") + " tell them apart");
  made.reset(new Collectives(manifest, cuda));
  made->comm = NcclComm::current();
  if (made->comm && made->comm->ordinal() != ordinal)
    return fail(CKRT_RANK, "this rank's other steps run on cuda:" +
                               std::to_string(made->comm->ordinal()) +
                               ": a rank has one device");
  if (!made->comm)
    made->comm = connect(*world, cuda, ordinal, error);
  if (!made->comm)
    return fail(CKRT_RANK, error);
  made->comm->setTimeout(world->waitsAtMost());
  made->countTraffic();
  return gatherDevices(*world, device, made->devicesText, error)
             ? CKRT_OK
             : fail(CKRT_RANK, error);
}
