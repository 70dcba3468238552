//===- NcclEngine.cpp - messages between processes by NCCL ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: NCCL has no requests, no messages of unknown size and none that are
// not waited for. Method: started messages are collected until one of them is
// waited for. Then all of them move in rounds of one group each. The first
// round carries each message's size and first bytes, so that a receiver can
// recognize an unexpected message. Guarantee: messages between two ranks arrive
// in the order of sending; both ends cut them alike. A message of B bytes takes
// 1 + B / 64 KiB rounds.
//
//===----------------------------------------------------------------------===//
#include "NcclEngine.h"

#include "Collectives.h"
#include "Engine.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

constexpr int64_t kFirstBytes = 4096;     ///< bytes of a message's first round
constexpr int64_t kRoundBytes = 64 << 10; ///< bytes of later rounds
constexpr int64_t kHeaderBytes = sizeof(int64_t);

struct Message {
  bool used = false, done = false, sends = false;
  char *data = nullptr;
  int64_t bytes = 0;
  int32_t peer = 0;
  std::string wrong;

  /// The bytes of the message that a round moves: [begin, end).
  static int64_t beginOf(int64_t round) {
    return round == 0 ? 0
                      : kFirstBytes - kHeaderBytes + (round - 1) * kRoundBytes;
  }
  int64_t begin(int64_t round) const { return std::min(beginOf(round), bytes); }
  int64_t end(int64_t round) const { return begin(round + 1); }
};

/// The messages of this process.
class Messenger {
public:
  std::shared_ptr<NcclComm> comm;

  const char *begin(bool sends, void *data, int64_t bytes, int32_t peer,
                    int32_t &request);
  const char *test(int32_t request, bool &done);
  void finish();

private:
  const Driver &cuda() const { return comm->driver(); }
  /// Starts a round of all messages that are not done, or continues it.
  bool startRound();
  bool endRound();
  bool progress();
  bool reserve(size_t slots);
  bool check(Result result);

  std::vector<Message> messages; ///< by request
  std::vector<size_t> batch;     ///< the messages that move
  int64_t round = -1;            ///< round under way; -1: none
  Stream stream = nullptr;
  DevicePointer device = 0; ///< a slot for each message of the batch
  void *host = nullptr;
  size_t capacity = 0; ///< slots
  std::string reason;
  std::chrono::steady_clock::time_point lookAgain;
};

/// It is never destroyed: at the end of a program that did not close the World,
/// NCCL and the driver may have ended before this library.
Messenger &messenger = *new Messenger;

const char *Messenger::begin(bool sends, void *data, int64_t bytes,
                             int32_t peer, int32_t &request) {
  size_t at = 0;
  while (at < messages.size() && messages[at].used)
    ++at;
  if (at == messages.size())
    messages.emplace_back();
  messages[at] = {true,  false, sends, static_cast<char *>(data),
                  bytes, peer,  ""};
  request = static_cast<int32_t>(at);
  return nullptr;
}

bool Messenger::check(Result result) {
  if (result != kSuccess)
    reason = "messages over cuda:" + std::to_string(comm->ordinal()) + ": " +
             cuda().text(result);
  return result == kSuccess;
}

bool Messenger::reserve(size_t slots) {
  if (!stream && !check(cuda().streamCreate(&stream, kStreamNonBlocking)))
    return false;
  if (slots <= capacity)
    return true;
  if (device)
    (void)cuda().memFree(device);
  if (host)
    (void)cuda().memFreeHost(host);
  device = 0;
  host = nullptr;
  capacity = 0;
  size_t bytes = slots * static_cast<size_t>(kRoundBytes);
  if (!check(cuda().memAlloc(&device, bytes)) ||
      !check(cuda().memHostAlloc(&host, bytes, 0)))
    return false;
  capacity = slots;
  return true;
}

bool Messenger::startRound() {
  std::vector<DeviceTransfer> list;
  for (size_t slot = 0; slot < batch.size(); ++slot) {
    const Message &m = messages[batch[slot]];
    int64_t from = m.begin(round), count = m.end(round) - from;
    int64_t head = round == 0 ? kHeaderBytes : 0;
    if (m.done || (round > 0 && count == 0))
      continue;
    int64_t moved = round == 0 ? kFirstBytes : count;
    int64_t offset = static_cast<int64_t>(slot) * kRoundBytes;
    char *at = static_cast<char *>(host) + offset;
    DevicePointer there = device + static_cast<DevicePointer>(offset);
    if (m.sends) {
      std::memset(at, 0, static_cast<size_t>(moved));
      if (head)
        std::memcpy(at, &m.bytes, kHeaderBytes);
      std::memcpy(at + head, m.data + from, static_cast<size_t>(count));
      if (!check(cuda().memcpyHtoDAsync(there, at, static_cast<size_t>(moved),
                                        stream)))
        return false;
    }
    list.push_back({m.sends, there, moved, m.peer});
  }
  if (list.empty()) {
    round = -1;
    return true;
  }
  if (!comm->enqueue(list, stream, reason))
    return false;
  for (size_t slot = 0; slot < batch.size(); ++slot) {
    const Message &m = messages[batch[slot]];
    int64_t count = round == 0 ? kFirstBytes : m.end(round) - m.begin(round);
    if (m.sends || m.done || count == 0)
      continue;
    int64_t offset = static_cast<int64_t>(slot) * kRoundBytes;
    if (!check(
            cuda().memcpyDtoHAsync(static_cast<char *>(host) + offset,
                                   device + static_cast<DevicePointer>(offset),
                                   static_cast<size_t>(count), stream)))
      return false;
  }
  return true;
}

bool Messenger::endRound() {
  for (size_t slot = 0; slot < batch.size(); ++slot) {
    Message &m = messages[batch[slot]];
    if (m.done)
      continue;
    const char *at =
        static_cast<char *>(host) + slot * static_cast<size_t>(kRoundBytes);
    int64_t given = m.bytes;
    if (!m.sends && round == 0) {
      std::memcpy(&given, at, kHeaderBytes);
      at += kHeaderBytes;
    }
    if (given != m.bytes) {
      m.wrong = kOtherSize + std::to_string(given) + " bytes instead of the " +
                std::to_string(m.bytes) +
                " that were expected: the ranks do not make the same calls";
      m.done = true;
      continue;
    }
    int64_t from = m.begin(round), end = m.end(round);
    if (!m.sends)
      std::memcpy(m.data + from, at, static_cast<size_t>(end - from));
    m.done = end == m.bytes;
  }
  ++round;
  return startRound();
}

bool Messenger::progress() {
  Current current(cuda(), comm->context());
  if (round < 0) {
    batch.clear();
    for (size_t i = 0; i < messages.size(); ++i)
      if (messages[i].used && !messages[i].done)
        batch.push_back(i);
    round = 0;
    return reserve(batch.size()) && startRound();
  }
  Result result = cuda().streamQuery(stream);
  if (result == kSuccess)
    return endRound();
  if (result != kNotReady)
    return check(result);
  const auto now = std::chrono::steady_clock::now();
  if (now < lookAgain)
    return true;
  lookAgain = now + std::chrono::milliseconds(20);
  std::string why = comm->trouble();
  if (why.empty())
    return true;
  // A message sent before the rank ended may be here by now.
  result = cuda().streamQuery(stream);
  if (result == kSuccess)
    return endRound();
  reason = why;
  return false;
}

const char *Messenger::test(int32_t request, bool &done) {
  Message &message = messages[static_cast<size_t>(request)];
  if (!message.done && !progress()) {
    comm->abort();
    return reason.c_str();
  }
  done = message.done;
  if (!done)
    return nullptr;
  message.used = false;
  if (message.wrong.empty())
    return nullptr;
  reason = message.wrong;
  return reason.c_str();
}

void Messenger::finish() {
  if (!comm)
    return;
  {
    Current current(cuda(), comm->context());
    if (stream) {
      (void)cuda().streamSynchronize(stream);
      (void)cuda().streamDestroy(stream);
    }
    if (device)
      (void)cuda().memFree(device);
    if (host)
      (void)cuda().memFreeHost(host);
  }
  stream = nullptr;
  device = 0;
  host = nullptr;
  capacity = 0;
  comm.reset();
}

const char *start(int32_t &rank, int32_t &size) {
  rank = messenger.comm->rank();
  size = messenger.comm->size();
  return nullptr;
}
const char *send(const void *data, int64_t bytes, int32_t to,
                 int32_t &request) {
  return messenger.begin(true, const_cast<void *>(data), bytes, to, request);
}
const char *receive(void *data, int64_t bytes, int32_t from, int32_t &request) {
  return messenger.begin(false, data, bytes, from, request);
}
const char *test(int32_t request, bool &done) {
  return messenger.test(request, done);
}
const char *cancel(int32_t) { return nullptr; } // the devices still wait for it
bool alive() { return messenger.comm != nullptr; }
void abortAll(int) { messenger.comm->abort(); }
void finish() { messenger.finish(); }

const MessageEngine engine = {kEngineVersion,
                              start,
                              send,
                              receive,
                              test,
                              cancel,
                              alive,
                              abortAll,
                              finish,
                              /*saysFarewell=*/false,
                              /*beat=*/nullptr,
                              /*heard=*/nullptr};

} // namespace

/// Connects to the others and opens the engine on a device; null: see `error`.
static const MessageEngine *openOn(const Driver &driver, const IdFile &file,
                                   std::string &error) {
  const NcclEntries *nccl = NcclEntries::open(error);
  if (!nccl)
    return nullptr;
  NcclId id = {};
  if (file.rank == 0)
    if (int code = nccl->getUniqueId(&id); code != kNcclSuccess) {
      error = "ncclGetUniqueId gives " + std::to_string(code) + ": " +
              nccl->words(code);
      return nullptr;
    }
  NcclComm::Place place;
  place.rank = file.rank;
  place.ranks = file.ranks;
  place.timeout = file.timeout;
  if (!meet(file, id, place.processes, error))
    return nullptr;
  int64_t before = 0; // number of ranks of this machine
  for (int32_t rank = 0; rank < file.rank; ++rank)
    before += place.processes[static_cast<size_t>(rank)].host ==
              place.processes[static_cast<size_t>(file.rank)].host;
  place.ordinal = rankDevice(driver, before, error);
  if (place.ordinal < 0)
    return nullptr;
  messenger.comm = NcclComm::create(driver, *nccl, place, id, error);
  return messenger.comm ? &engine : nullptr;
}

const MessageEngine *ckopt::runtime::cuda::openNcclEngine(const IdFile &file,
                                                          MessageText &why) {
  bool tooOld = false;
  const Driver *driver = Driver::open(why, tooOld);
  if (!driver)
    return nullptr;
  std::string error;
  const MessageEngine *engine = openOn(*driver, file, error);
  why = error;
  return engine;
}
