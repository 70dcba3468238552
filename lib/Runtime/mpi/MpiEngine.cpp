//===- MpiEngine.cpp - messages by MPI ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: move bytes between processes on whatever a cluster has, without
// memory that grows with them. Method: point-to-point messages alone, of MPI's
// first version: MPI's own reductions allocate buffers and promise no order.
// Guarantee: buffers are the caller's; what MPI itself keeps (its eager and
// shared buffers) is outside of the arena. Complexity: O(1) a call.
//
//===----------------------------------------------------------------------===//
#include "Engine.h"

#include <mpi.h>
#include <string>
#include <vector>

using namespace ckopt::runtime;

namespace {

/// Requests that are under way, by number; those that are done are null.
std::vector<MPI_Request> requests;
std::string reason;

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
  int provided = 0;
  if (const char *why = explain(
          MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided),
          "MPI_Init_thread"))
    return why;
  if (provided < MPI_THREAD_SERIALIZED)
    return "this MPI cannot be called from a process of several threads "
           "(MPI_THREAD_SERIALIZED)";
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  int ownRank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &ownRank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  rank = ownRank;
  size = ranks;
  return nullptr;
}

int32_t newRequest() {
  for (size_t i = 0; i < requests.size(); ++i)
    if (requests[i] == MPI_REQUEST_NULL)
      return int32_t(i);
  requests.push_back(MPI_REQUEST_NULL);
  return int32_t(requests.size()) - 1;
}

constexpr int kTag = 0;

const char *send(const void *data, int64_t bytes, int32_t to,
                 int32_t &request) {
  request = newRequest();
  return explain(MPI_Isend(data, int(bytes), MPI_BYTE, to, kTag, MPI_COMM_WORLD,
                           &requests[size_t(request)]),
                 "MPI_Isend");
}

const char *receive(void *data, int64_t bytes, int32_t from, int32_t &request) {
  request = newRequest();
  return explain(MPI_Irecv(data, int(bytes), MPI_BYTE, from, kTag,
                           MPI_COMM_WORLD, &requests[size_t(request)]),
                 "MPI_Irecv");
}

const char *test(int32_t request, bool &done) {
  int flag = 0;
  const char *why =
      explain(MPI_Test(&requests[size_t(request)], &flag, MPI_STATUS_IGNORE),
              "MPI_Test");
  done = flag != 0;
  return why;
}

void abortAll(int code) { MPI_Abort(MPI_COMM_WORLD, code); }

void finish() { MPI_Finalize(); }

} // namespace

const Engine ckopt_engine = {kEngineVersion, start,    send,  receive,
                             test,           abortAll, finish};
