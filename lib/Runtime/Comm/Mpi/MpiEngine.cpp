//===- MpiEngine.cpp - messages by MPI ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: move bytes between processes on any cluster, without memory that
// grows with them. Method: only point-to-point messages are used, since MPI's
// own reductions allocate buffers and promise no order. A receive checks the
// size of an arrived message (MPI_Improbe) before it gives MPI the buffer,
// since implementations write past a buffer that is too short (OpenMPI does for
// messages that it copies from the sender's memory). The process may use MPI
// for itself (mpi4py), so messages go through a separate communicator, and
// whichever initialized MPI finalizes it. Guarantee: buffers are the caller's;
// memory that MPI itself keeps (its eager and shared buffers) is outside of the
// arena; a message of an unexpected size is an error. Complexity: O(1) a call.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"

#include <mpi.h>
#include <string>
#include <vector>

using namespace ckopt::runtime;

namespace {

enum class Stage {
  Free,
  Expected, ///< a receive whose message has not arrived yet
  Moving,   ///< MPI has the buffer
};

/// A message that is under way.
struct Message {
  Stage stage = Stage::Free;
  MPI_Request request = MPI_REQUEST_NULL;
  int64_t expected = -1;       ///< bytes to receive; -1: it is sent
  int64_t order = 0;           ///< messages of a peer are received in order
  void *data = nullptr;        ///< the buffer of a receive
  int32_t peer = 0;            ///< the peer
  std::vector<char> otherSize; ///< an unexpected message of another size
};

std::vector<Message> messages; ///< requests by number
int64_t received = 0;          ///< receives that were started
std::string reason;
MPI_Comm world = MPI_COMM_NULL;
bool ownsMpi = false; ///< this library initialized it

const char *explain(int code, const char *what) {
  if (code == MPI_SUCCESS)
    return nullptr;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  reason = std::string(what) + ": " + text;
  return reason.c_str();
}

const char *start(int32_t &rank, int32_t &size) {
  int provided = 0, initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized)
    return "MPI is finalized in this process already";
  if (const char *why =
          initialized
              ? explain(MPI_Query_thread(&provided), "MPI_Query_thread")
              : explain(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED,
                                        &provided),
                        "MPI_Init_thread"))
    return why;
  ownsMpi = !initialized;
  if (provided < MPI_THREAD_SERIALIZED)
    return initialized
               ? "this process initialized MPI for one thread alone; ask "
                 "MPI_Init_thread for MPI_THREAD_SERIALIZED or more"
               : "this MPI cannot be called from a process of several threads "
                 "(MPI_THREAD_SERIALIZED)";
  if (const char *why =
          explain(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup"))
    return why;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  int ownRank = 0, ranks = 1;
  MPI_Comm_rank(world, &ownRank);
  MPI_Comm_size(world, &ranks);
  rank = ownRank;
  size = ranks;
  return nullptr;
}

int32_t newMessage(Message message) {
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].stage == Stage::Free) {
      messages[i] = std::move(message);
      return int32_t(i);
    }
  messages.push_back(std::move(message));
  return int32_t(messages.size()) - 1;
}

constexpr int kTag = 0, kBeatTag = 1;

const char *send(const void *data, int64_t bytes, int32_t to,
                 int32_t &request) {
  Message message;
  message.stage = Stage::Moving;
  if (const char *why = explain(MPI_Isend(data, int(bytes), MPI_BYTE, to, kTag,
                                          world, &message.request),
                                "MPI_Isend"))
    return why;
  request = newMessage(std::move(message));
  return nullptr;
}

const char *receive(void *data, int64_t bytes, int32_t from, int32_t &request) {
  Message message;
  message.stage = Stage::Expected;
  message.expected = bytes;
  message.order = received++;
  message.data = data;
  message.peer = from;
  request = newMessage(std::move(message));
  return nullptr;
}

/// Describes the defect of a message from another rank.
const char *checkSize(int64_t expected, int64_t given) {
  if (given == expected)
    return nullptr;
  if (given == kLeavingBytes)
    return kHasLeft;
  reason = kOtherSize + std::to_string(given) + " bytes instead of the " +
           std::to_string(expected) +
           " that were expected: the ranks do not make the same calls";
  return reason.c_str();
}

/// Returns whether an earlier receive waits for the same peer.
bool isBehindAnother(const Message &message) {
  for (const Message &other : messages)
    if (other.stage == Stage::Expected && other.peer == message.peer &&
        other.order < message.order)
      return true;
  return false;
}

/// Gives MPI the buffer once the message has arrived; a message of an
/// unexpected size gets a separate buffer.
const char *take(Message &message) {
  int flag = 0, count = 0;
  MPI_Message come;
  MPI_Status status;
  if (isBehindAnother(message))
    return nullptr;
  if (const char *why =
          explain(MPI_Improbe(message.peer, kTag, world, &flag, &come, &status),
                  "MPI_Improbe"))
    return why;
  if (!flag)
    return nullptr;
  MPI_Get_count(&status, MPI_BYTE, &count);
  message.stage = Stage::Moving;
  if (count != message.expected) {
    message.otherSize.resize(size_t(count));
    message.data = message.otherSize.data();
  }
  return explain(
      MPI_Imrecv(message.data, count, MPI_BYTE, &come, &message.request),
      "MPI_Imrecv");
}

const char *test(int32_t request, bool &done) {
  Message &message = messages[size_t(request)];
  done = false;
  if (message.stage == Stage::Expected)
    if (const char *why = take(message)) {
      message.stage = Stage::Free;
      return why;
    }
  if (message.stage == Stage::Expected)
    return nullptr;
  int flag = 0, count = 0;
  MPI_Status status;
  int code = MPI_Test(&message.request, &flag, &status);
  if (code != MPI_SUCCESS) {
    message.stage = Stage::Free;
    return explain(code, "MPI_Test");
  }
  done = flag != 0;
  if (!flag)
    return nullptr;
  message.stage = Stage::Free;
  if (message.expected < 0)
    return nullptr;
  MPI_Get_count(&status, MPI_BYTE, &count);
  return checkSize(message.expected, count);
}

const char *cancel(int32_t request) {
  Message &message = messages[size_t(request)];
  if (message.stage == Stage::Expected)
    take(message); // it may be the peer's last one
  bool comes = message.stage == Stage::Moving;
  message.stage = Stage::Free;
  if (!comes)
    return nullptr;
  int count = 0;
  MPI_Status status;
  MPI_Wait(&message.request, &status);
  MPI_Get_count(&status, MPI_BYTE, &count);
  return count == kLeavingBytes ? kHasLeft : nullptr;
}

bool alive() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  return !finalized;
}

void abortAll(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

void finish() {
  MPI_Comm_free(&world);
  if (ownsMpi)
    MPI_Finalize();
}

void beat(int32_t waitsFor) {
  int ownRank = 0, ranks = 1;
  MPI_Comm_rank(world, &ownRank);
  MPI_Comm_size(world, &ranks);
  // The message stays in its buffer, since its arrival is not waited for.
  static std::vector<int32_t> words;
  for (int32_t word = int32_t(words.size()) - 1; word < ranks; ++word)
    words.push_back(word);
  const int32_t *told = &words[size_t(waitsFor + 1)];
  for (int peer = 0; peer < ranks; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (peer != ownRank && MPI_Isend(told, 1, MPI_INT32_T, peer, kBeatTag,
                                     world, &request) == MPI_SUCCESS)
      MPI_Request_free(&request);
  }
}

bool heard(int32_t &from, int32_t &waitsFor) {
  MPI_Status status;
  int flag = 0;
  if (MPI_Iprobe(MPI_ANY_SOURCE, kBeatTag, world, &flag, &status) !=
          MPI_SUCCESS ||
      !flag)
    return false;
  from = status.MPI_SOURCE;
  return MPI_Recv(&waitsFor, 1, MPI_INT32_T, from, kBeatTag, world,
                  MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

} // namespace

const MessageEngine ckopt_engine = {
    kEngineVersion, start, send,     receive, test,
    cancel,         alive, abortAll, finish,  /*saysFarewell=*/true,
    beat,           heard};
