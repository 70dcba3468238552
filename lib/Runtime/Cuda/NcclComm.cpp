//===- NcclComm.cpp - the ranks' devices, connected by NCCL ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// ncclCommInitRank returns when all ranks have called it, and nothing ends it
// earlier. So it runs on a separate thread, which is abandoned if a rank does
// not come.
//
//===----------------------------------------------------------------------===//
#include "NcclComm.h"

#include "Comm/Peers.h"
#include "Engine.h"
#include "ckopt/Base/Thread.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>
#include <unistd.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

//===----------------------------------------------------------------------===//
// Processes
//===----------------------------------------------------------------------===//

static std::string linkOf(const char *path) {
  char text[256];
  ssize_t length = readlink(path, text, sizeof(text));
  return length > 0 ? std::string(text, static_cast<size_t>(length)) : "";
}

/// Returns when a process was started, in the kernel's ticks; -1: it is gone.
static int64_t ticksAtStartOf(int64_t pid) {
  std::string path = "/proc/" + std::to_string(pid) + "/stat";
  std::FILE *file = std::fopen(path.c_str(), "r");
  if (!file)
    return -1;
  char text[1024] = "";
  size_t length = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  text[length] = '\0';
  // Fields behind the name, which may hold anything: state is the third field,
  // the start the 22nd.
  const char *at = std::strrchr(text, ')');
  long long start = -1;
  if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X' ||
      std::sscanf(at + 4,
                  "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                  "%*s %*s %*s %*s %lld",
                  &start) != 1)
    return -1;
  return start;
}

RankProcess RankProcess::own() {
  RankProcess own;
  char name[256] = "";
  gethostname(name, sizeof(name) - 1);
  own.host = name;
  own.machine = linkOf("/proc/self/ns/pid");
  if (std::FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    char text[64] = "";
    if (std::fscanf(file, "%63s", text) == 1)
      own.machine += text;
    std::fclose(file);
  }
  own.pid = getpid();
  own.started = ticksAtStartOf(own.pid);
  return own;
}

bool RankProcess::hasEnded() const {
  static const RankProcess self = own();
  return !machine.empty() && machine == self.machine &&
         ticksAtStartOf(pid) != started;
}

//===----------------------------------------------------------------------===//
// The communicator
//===----------------------------------------------------------------------===//

static std::weak_ptr<NcclComm> theComm;

std::shared_ptr<NcclComm> NcclComm::current() { return theComm.lock(); }

std::string NcclComm::text(const char *call, int code) const {
  const char *what = nccl.words(code);
  return std::string(call) + " gives " + std::to_string(code) +
         (what ? std::string(": ") + what : "");
}

namespace {
/// The result of the thread that connects to the other ranks.
struct Joining {
  std::mutex mutex;
  bool done = false;
  int code = 0;
  void *comm = nullptr;
};
} // namespace

bool NcclComm::init(const NcclId &id, std::string &error) {
  auto joining = std::make_shared<Joining>();
  const Driver *driver = &cuda;
  const NcclEntries *entries = &nccl;
  ckopt::Thread joiner;
  const int refused = joiner.start(
      [=, context = ownContext, rank = place.rank, ranks = place.ranks] {
        Current current(*driver, context);
        void *made = nullptr;
        int code = entries->commInitRank(&made, ranks, id, rank);
        std::lock_guard<std::mutex> lock(joining->mutex);
        joining->done = true;
        joining->code = code;
        joining->comm = made;
      });
  joiner.detach();
  if (refused) {
    error = "no thread can be made for NCCL: ";
    error += std::strerror(refused);
    return false;
  }
  Result ignored = kSuccess;
  auto ask = [&]() -> Result {
    std::lock_guard<std::mutex> lock(joining->mutex);
    return joining->done ? kSuccess : kNotReady;
  };
  if (!wait(ask, ignored, error))
    return false;
  comm = joining->comm;
  if (joining->code == kNcclSuccess)
    return true;
  comm = nullptr;
  error = text("ncclCommInitRank", joining->code);
  if (joining->code == kNcclInvalidUsage)
    error += deviceText();
  return false;
}

/// Reports this rank's device, since NCCL refuses one that two ranks share.
std::string NcclComm::deviceText() const {
  const std::string host = RankProcess::own().host;
  std::string others;
  for (size_t rank = 0; rank < place.processes.size(); ++rank)
    if (static_cast<int32_t>(rank) != place.rank &&
        place.processes[rank].host == host)
      others += (others.empty() ? "; rank " : ", rank ") + std::to_string(rank);
  int count = 0;
  (void)cuda.deviceGetCount(&count);
  return ": rank " + std::to_string(place.rank) +
         " has cuda:" + std::to_string(place.ordinal) + " of " +
         std::to_string(count) + " on " + host + others +
         (others.empty() ? "" : " is there, too") +
         "; each rank needs a device of its own: start no more than there are, "
         "and see that LOCAL_RANK or CUDA_VISIBLE_DEVICES differ";
}

std::shared_ptr<NcclComm> NcclComm::create(const Driver &cuda,
                                           const NcclEntries &nccl,
                                           const Place &place, const NcclId &id,
                                           std::string &error) {
  std::shared_ptr<NcclComm> made(new NcclComm(cuda, nccl, place));
  Result result = cuda.deviceGet(&made->device, place.ordinal);
  if (result == kSuccess)
    result = cuda.primaryRetain(&made->ownContext, made->device);
  if (result != kSuccess) {
    made->ownContext = nullptr;
    error = "cannot open cuda:" + std::to_string(place.ordinal) + ": " +
            cuda.text(result);
    return nullptr;
  }
  Current current(cuda, made->ownContext);
  size_t before = 0, after = 0, total = 0;
  bool known = cuda.memGetInfo(&before, &total) == kSuccess;
  if (!made->init(id, error))
    return nullptr;
  if (known && cuda.memGetInfo(&after, &total) == kSuccess && after <= before)
    made->takenBytes = static_cast<int64_t>(before - after);
  theComm = made;
  return made;
}

NcclComm::~NcclComm() {
  if (!ownContext)
    return;
  {
    Current current(cuda, ownContext);
    if (comm)
      (void)nccl.commDestroy(comm);
  }
  (void)cuda.primaryRelease(device);
}

void NcclComm::abort() {
  if (!comm)
    return;
  Current current(cuda, ownContext);
  (void)nccl.commAbort(comm);
  comm = nullptr;
}

bool NcclComm::enqueue(const std::vector<DeviceTransfer> &list, Stream stream,
                       std::string &error) {
  if (!comm) {
    error = failure.empty() ? "the ranks' connection was closed" : failure;
    return false;
  }
  const char *call = "ncclGroupStart";
  int code = nccl.groupStart();
  for (const DeviceTransfer &t : list) {
    if (code != kNcclSuccess)
      break;
    call = t.sends ? "ncclSend" : "ncclRecv";
    auto *at = reinterpret_cast<void *>(t.at);
    auto bytes = static_cast<size_t>(t.bytes);
    code = t.sends ? nccl.send(at, bytes, kNcclByte, t.peer, comm, stream)
                   : nccl.receive(at, bytes, kNcclByte, t.peer, comm, stream);
  }
  // End the group even if a message was refused.
  int ended = nccl.groupEnd();
  if (code == kNcclSuccess && ended != kNcclSuccess) {
    call = "ncclGroupEnd";
    code = ended;
  }
  if (code == kNcclSuccess)
    return true;
  error = text(call, code);
  return false;
}

std::string NcclComm::trouble() {
  for (size_t rank = 0; rank < place.processes.size(); ++rank)
    if (static_cast<int32_t>(rank) != place.rank &&
        place.processes[rank].hasEnded())
      return "rank " + std::to_string(rank) + " on " +
             place.processes[rank].host + " (process " +
             std::to_string(place.processes[rank].pid) +
             ") has ended; its own message says why, if it had a reason";
  int code = kNcclSuccess;
  if (!comm)
    return "";
  int asked = nccl.commGetAsyncError(comm, &code);
  if (asked == kNcclSuccess && code != kNcclSuccess && code != kNcclInProgress)
    return "another rank cannot be reached: NCCL reports " +
           text("ncclCommGetAsyncError", code);
  return "";
}

bool NcclComm::wait(const std::function<Result()> &ask, Result &result,
                    std::string &error) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  auto lookAgain = start + std::chrono::milliseconds(20);
  bool last = false; // asked once more after a failure: the work may be done
  for (int64_t asked = 0;; ++asked) {
    result = ask();
    if (result != kNotReady)
      return true;
    if (last)
      break;
    if (asked < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    const auto now = Clock::now();
    std::chrono::duration<double> waited = now - start;
    if (place.timeout > 0 && waited.count() > place.timeout) {
      error = "other ranks have " + noAnswerText(place.timeout);
      break;
    }
    if (now < lookAgain)
      continue;
    lookAgain = now + std::chrono::milliseconds(20);
    error = trouble();
    last = !error.empty();
    if (last) // messages sent before the rank ended may still be on their way
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  failure = error;
  abort();
  return false;
}
