//===- Nccl.cpp - the stand-in's NCCL -------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for NCCL between processes of one machine: every two ranks of a
// communicator are connected by a socket, and groups of sends and receives
// really exchange the bytes, when the stream that holds them runs. It is
// stricter than NCCL: a send ends when the other rank has taken the bytes, a
// message must have the count and the type of its receive, groups of one
// communicator run in the order of their calls whatever their streams, and two
// ranks cannot have one device. What a correct program never does is logged as
// VIOLATION; what waits for a rank that has gone never ends, as on a device,
// until ncclCommAbort: ncclCommGetAsyncError says so.
//
//===----------------------------------------------------------------------===//
#include "Machine.h"
#include "NcclWire.h"

#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace standin;

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

enum : int {
  kInvalidArgument = 4,
  kInvalidUsage = 5,
};

struct Comm {
  int rank = 0, ranks = 1;
  Context context = nullptr;
  std::vector<Peer> peers;
  bool aborted = false;
  int failure = 0;
  /// Groups so far, by the order of their calls, and how many have ended; the
  /// streams that hold those which have not.
  uint64_t begun = 0, ended = 0;
  std::map<uint64_t, Stream> holders;
};

struct Op {
  bool sends;
  uint64_t at;
  uint64_t count;
  uint32_t type;
  int peer;
};

std::list<std::unique_ptr<Comm>> comms; ///< under the machine's mutex
thread_local int depth = 0;
thread_local std::map<std::pair<Comm *, Stream>, std::vector<Op>> opened;

/// One execution of a group.
struct Group {
  Comm *comm;
  Stream stream;
  std::vector<Op> ops;
  uint64_t ticket;
  bool started = false;
  std::vector<bool> received;

  Result poll();
  void start();
  bool receive(size_t i);
};

void Group::start() {
  started = true;
  std::string line = "execute ncclGroup";
  for (const Op &op : ops)
    line += (op.sends ? " send" : " recv") + std::to_string(op.peer) + ":" +
            std::to_string(op.count) + "@" + Machine::get().place(op.at);
  Machine::get().log(line);
  received.assign(ops.size(), false);
  for (const Op &op : ops)
    if (op.sends)
      comm->peers[static_cast<size_t>(op.peer)].post(
          op.type, op.count, reinterpret_cast<const void *>(op.at));
}

/// Takes the message of a receive; false: it has not come.
bool Group::receive(size_t i) {
  const Op &op = ops[i];
  Peer &peer = comm->peers[static_cast<size_t>(op.peer)];
  if (peer.messages.empty())
    return false;
  auto [header, bytes] = std::move(peer.messages.front());
  peer.messages.pop_front();
  if (header.type != op.type || header.count != op.count) {
    (void)Machine::get().violation(
        "rank " + std::to_string(op.peer) + " sends " +
        std::to_string(header.count) + " elements of type " +
        std::to_string(header.type) + " to a receive of " +
        std::to_string(op.count) + " of type " + std::to_string(op.type));
    comm->failure = kInvalidUsage;
  } else {
    std::memcpy(reinterpret_cast<void *>(op.at), bytes.data(), bytes.size());
  }
  peer.post(kTaken, 0, nullptr);
  peer.progress();
  return true;
}

Result Group::poll() {
  if (comm->aborted)
    return kSuccess;
  if (comm->failure)
    return kNotReady; // the device waits for ever
  if (comm->ended != ticket) {
    // Groups of one communicator run in order, on whatever streams they are.
    Stream before = comm->holders.begin()->second;
    if (before == stream)
      return kNotReady;
    Result result = Machine::get().drain(before, before->queued);
    if (comm->ended != ticket)
      return result == kSuccess ? kNotReady : result;
  }
  if (!started)
    start();
  bool done = true;
  for (Peer &peer : comm->peers)
    if (peer.fd >= 0)
      peer.progress();
  std::vector<bool> blocked(comm->peers.size());
  std::vector<int64_t> sent(comm->peers.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    auto peer = static_cast<size_t>(ops[i].peer);
    if (ops[i].sends) {
      ++sent[peer];
      continue;
    }
    if (!received[i] && !blocked[peer])
      received[i] = receive(i);
    blocked[peer] = blocked[peer] || !received[i];
    done = done && received[i];
  }
  for (size_t peer = 0; peer < comm->peers.size(); ++peer) {
    done = done && comm->peers[peer].taken >= sent[peer];
    if (comm->peers[peer].gone && !done)
      comm->failure = kNcclRemoteError;
  }
  if (!done || comm->failure)
    return kNotReady;
  for (size_t peer = 0; peer < comm->peers.size(); ++peer)
    comm->peers[peer].taken -= sent[peer];
  ++comm->ended;
  comm->holders.erase(ticket);
  return kSuccess;
}

int checkComm(Machine &machine, Comm *comm, const char *call) {
  if (Machine::live(comms, comm) && !comm->aborted)
    return 0;
  (void)machine.violation(std::string(call) +
                          " of a communicator that is none");
  return kInvalidArgument;
}

int addOp(bool sends, uint64_t at, size_t count, int type, int peer, void *of,
          Stream stream) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  auto *comm = static_cast<Comm *>(of);
  const char *call = sends ? "ncclSend" : "ncclRecv";
  if (machine.enter(call, machine.place(at) + " " + std::to_string(count) +
                              " " + std::to_string(type) + " " +
                              std::to_string(peer)))
    return 1;
  if (int wrong = checkComm(machine, comm, call))
    return wrong;
  auto refuse = [&](const std::string &text) {
    (void)machine.violation(std::string(call) + ": " + text);
    return int(kInvalidArgument);
  };
  if (type < 0 || type > 9)
    return refuse("unknown type of elements");
  if (peer < 0 || peer >= comm->ranks || peer == comm->rank)
    return refuse("no other rank " + std::to_string(peer));
  if (count == 0 || !machine.deviceBlock(
                        at, count * static_cast<size_t>(kNcclTypeBytes[type])))
    return refuse("bytes outside of live memory");
  if (!Machine::live(machine.streams, stream) ||
      stream->context != comm->context)
    return refuse("a stream that is none of the communicator's device");
  if (depth == 0)
    return refuse("outside of a group");
  opened[{comm, stream}].push_back(
      {sends, at, count, static_cast<uint32_t>(type), peer});
  return 0;
}

} // namespace

STANDIN int ncclGetVersion(int *version) {
  *version = 22105;
  return 0;
}

STANDIN int ncclGetUniqueId(NcclId *id) {
  Machine::get().log("ncclGetUniqueId");
  unsigned char random[12] = {};
  if (std::FILE *file = std::fopen("/dev/urandom", "rb")) {
    (void)!std::fread(random, 1, sizeof(random), file);
    std::fclose(file);
  }
  *id = {};
  size_t at = size_t(std::snprintf(id->internal, 32, "ckopt-standin-"));
  for (unsigned char byte : random)
    at += size_t(std::snprintf(id->internal + at, 3, "%02x", byte));
  return 0;
}

STANDIN int ncclCommInitRank(void **made, int ranks, NcclId id, int rank) {
  Machine &machine = Machine::get();
  auto comm = std::make_unique<Comm>();
  int device = -1;
  {
    std::lock_guard<std::recursive_mutex> lock(machine.mutex);
    if (machine.enter("ncclCommInitRank",
                      std::to_string(ranks) + " " + std::to_string(rank)))
      return 1;
    for (const auto &[ordinal, primary] : machine.primaries)
      if (primary.first == machine.current())
        device = machine.visible[static_cast<size_t>(ordinal)];
    comm->context = machine.current();
  }
  if (device < 0) {
    (void)machine.violation("ncclCommInitRank without a primary context");
    return kInvalidUsage;
  }
  if (ranks < 1 || rank < 0 || rank >= ranks ||
      std::strncmp(id.internal, "ckopt-standin-", 14) != 0)
    return kInvalidArgument;
  comm->rank = rank;
  comm->ranks = ranks;
  if (Meeting result = connectAll(id, rank, ranks, device, comm->peers);
      result != Meeting::Good)
    return result == Meeting::Gone ? int(kNcclRemoteError) : int(kInvalidUsage);
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  *made = comm.get();
  comms.push_back(std::move(comm));
  return 0;
}

static int endComm(void *of, bool aborts) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  const char *call = aborts ? "ncclCommAbort" : "ncclCommDestroy";
  machine.log(call);
  auto *comm = static_cast<Comm *>(of);
  if (int wrong = checkComm(machine, comm, call))
    return wrong;
  if (!aborts && comm->begun != comm->ended)
    (void)machine.violation("a communicator goes while it has work");
  for (Peer &peer : comm->peers)
    if (peer.fd >= 0) {
      peer.progress();
      ::close(peer.fd);
      peer.fd = -1;
    }
  // Graphs may still hold its groups.
  comm->aborted = true;
  return 0;
}

STANDIN int ncclCommDestroy(void *comm) { return endComm(comm, false); }
STANDIN int ncclCommAbort(void *comm) { return endComm(comm, true); }

STANDIN int ncclCommGetAsyncError(void *of, int *code) {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  auto *comm = static_cast<Comm *>(of);
  if (int wrong = checkComm(machine, comm, "ncclCommGetAsyncError"))
    return wrong;
  *code = comm->failure;
  return 0;
}

STANDIN const char *ncclGetErrorString(int code) {
  switch (code) {
  case 0:
    return "no error";
  case kInvalidArgument:
    return "invalid argument";
  case kInvalidUsage:
    return "invalid usage";
  case kNcclRemoteError:
    return "remote process exited or there was a network error";
  default:
    return "an error of the stand-in";
  }
}

STANDIN int ncclGroupStart() {
  ++depth;
  return 0;
}

STANDIN int ncclGroupEnd() {
  Machine &machine = Machine::get();
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);
  if (depth == 0) {
    (void)machine.violation("ncclGroupEnd without ncclGroupStart");
    return kInvalidUsage;
  }
  if (--depth > 0)
    return 0;
  auto groups = std::move(opened);
  opened.clear();
  if (machine.enter("ncclGroupEnd", ""))
    return 1;
  for (auto &[of, ops] : groups) {
    auto [comm, stream] = of;
    Launch launch;
    launch.name = "ncclGroup";
    std::set<int> peers;
    for (const Op &op : ops)
      peers.insert(op.peer);
    for (int peer : peers)
      launch.shape += " " + std::to_string(peer);
    launch.begin = [comm = comm, ops = std::move(ops)](Stream stream) {
      auto group = std::make_shared<Group>(
          Group{comm, stream, ops, comm->begun++, false, {}});
      comm->holders[group->ticket] = stream;
      return [group] { return group->poll(); };
    };
    if (machine.enqueue(stream, std::move(launch)))
      return 1;
  }
  return 0;
}

STANDIN int ncclSend(const void *from, size_t count, int type, int peer,
                     void *comm, Stream stream) {
  return addOp(true, reinterpret_cast<uint64_t>(from), count, type, peer, comm,
               stream);
}

STANDIN int ncclRecv(void *to, size_t count, int type, int peer, void *comm,
                     Stream stream) {
  return addOp(false, reinterpret_cast<uint64_t>(to), count, type, peer, comm,
               stream);
}
