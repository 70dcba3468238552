//===- MpiEngine.cpp - messages by MPI ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: move bytes between processes on whatever a cluster has, without
// memory that grows with them. Method: point-to-point messages alone, of MPI's
// first version: MPI's own reductions allocate buffers and promise no order.
// The process may use MPI for itself (mpi4py): messages then go through a
// communicator of their own, and who initialized MPI finalizes it. Guarantee:
// buffers are the caller's; what MPI itself keeps (its eager and shared
// buffers) is outside of the arena; a message of another size than expected is
// an error. Complexity: O(1) a call.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"

#include <mpi.h>
#include <string>
#include <vector>

using namespace ckopt::runtime;

namespace {

/// A message that is under way; done: null.
struct Message {
  MPI_Request request = MPI_REQUEST_NULL;
  int64_t expected = -1; ///< bytes to receive; -1: it is sent
};

std::vector<Message> messages; ///< by number
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

int32_t newMessage(int64_t expected) {
  for (size_t i = 0; i < messages.size(); ++i)
    if (messages[i].request == MPI_REQUEST_NULL) {
      messages[i].expected = expected;
      return int32_t(i);
    }
  messages.push_back({MPI_REQUEST_NULL, expected});
  return int32_t(messages.size()) - 1;
}

constexpr int kTag = 0;

const char *send(const void *data, int64_t bytes, int32_t to,
                 int32_t &request) {
  request = newMessage(-1);
  return explain(MPI_Isend(data, int(bytes), MPI_BYTE, to, kTag, world,
                           &messages[size_t(request)].request),
                 "MPI_Isend");
}

const char *receive(void *data, int64_t bytes, int32_t from, int32_t &request) {
  request = newMessage(bytes);
  return explain(MPI_Irecv(data, int(bytes), MPI_BYTE, from, kTag, world,
                           &messages[size_t(request)].request),
                 "MPI_Irecv");
}

/// Says what is wrong with a message that another rank sent.
const char *checkSize(int64_t expected, int64_t given, bool longer) {
  if (given == expected && !longer)
    return nullptr;
  if (given == kLeavingBytes && !longer)
    return kHasLeft;
  reason =
      kOtherSize +
      (longer ? "more than" : std::to_string(given) + " bytes instead of") +
      " the " + std::to_string(expected) +
      " that were expected: the ranks do not make the same calls";
  return reason.c_str();
}

const char *test(int32_t request, bool &done) {
  Message &message = messages[size_t(request)];
  int flag = 0, count = 0;
  MPI_Status status;
  int code = MPI_Test(&message.request, &flag, &status);
  done = flag != 0;
  if (code == MPI_ERR_TRUNCATE)
    return checkSize(message.expected, 0, /*longer=*/true);
  if (code != MPI_SUCCESS)
    return explain(code, "MPI_Test");
  if (!flag || message.expected < 0)
    return nullptr;
  MPI_Get_count(&status, MPI_BYTE, &count);
  return checkSize(message.expected, count, /*longer=*/false);
}

const char *cancel(int32_t request) {
  Message &message = messages[size_t(request)];
  int cancelled = 0, count = 0;
  MPI_Status status;
  MPI_Cancel(&message.request);
  MPI_Wait(&message.request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  MPI_Get_count(&status, MPI_BYTE, &count);
  return !cancelled && count == kLeavingBytes ? kHasLeft : nullptr;
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

} // namespace

const MessageEngine ckopt_engine = {
    kEngineVersion, start, send,     receive, test,
    cancel,         alive, abortAll, finish,  /*saysFarewell=*/true};
