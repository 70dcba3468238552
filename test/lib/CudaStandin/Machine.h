//===- Machine.h - the device that the stand-in driver plays ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Simulates a CUDA driver for tests without a GPU. Device memory is host
// memory. Work is put into streams and runs as late as the rules allow: when
// the host waits for it, or for an event that was recorded after it; branches
// of a graph are such streams, too. A copy or launch that events do not order
// thus gives a wrong result in every run, instead of a right one by luck: here
// what reads results too early, with CKOPT_STANDIN_ORDER=early what begins
// before its operands are made. Misuse of the driver is logged as VIOLATION and
// refused.
//
// Environment:
//   CKOPT_STANDIN_LOG      a file that gets one line a call; "%r" in its name
//                          stands for the process's rank
//   CKOPT_STANDIN_DEVICES  how many devices (1); of them, those are there that
//                          CUDA_VISIBLE_DEVICES lists by number, in its order
//   CKOPT_STANDIN_SM       compute capability (90)
//   CKOPT_STANDIN_NAME     of the devices, before their number (Stand-in)
//   CKOPT_STANDIN_DRIVER   cuDriverGetVersion (12040)
//   CKOPT_STANDIN_MEMORY   bytes of a device (8 GiB)
//   CKOPT_STANDIN_PAGE     bytes of the ranges that device memory is mapped by,
//                          as virtual memory is (0: one each, of cuMemAlloc)
//   CKOPT_STANDIN_KERNELS  a shared library with SYMBOL__emul(void *const *)
//                          for each kernel; without it kernels do nothing.
//                          Read whenever a module is loaded; "ptx": the PTX
//                          itself is interpreted (Ptx/), with all its checks
//   CKOPT_STANDIN_DESCENDING  "1": of that library SYMBOL__emul_descending,
//                          with threads and blocks from the last to the first
//   CKOPT_STANDIN_FAIL     CALL:N[+][:CODE]: the N-th CALL (with +: and every
//                          later one) returns CODE (999); CALL without _v2;
//                          kernel=SYMBOL:N[+][:CODE]: its N-th execution fails
//   CKOPT_STANDIN_ORDER    early: work that the host waits for runs as late as
//                          events allow, all other streams' before it, as
//                          early as they allow
//   CKOPT_STANDIN_SLOW     microseconds that each execution of a kernel takes,
//                          beside its work, and by the clock of events (0: 1)
//   CKOPT_STANDIN_REFUSE   cublaslt, cudnn (comma between them): which library
//                          has no algorithm for anything; cublaslt:N for the
//                          N-th product or convolution that it is asked about
//   CKOPT_STANDIN_LIBRARY  version of its cuBLASLt and cuDNN (120400)
//   CKOPT_STANDIN_STICKY   "process": such a failure spoils later contexts, too
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_MACHINE_H
#define CKOPT_TEST_LIB_CUDASTANDIN_MACHINE_H

#include "../../../lib/Runtime/Cuda/Driver.h"
#include "Ptx.h"
#include "Ptx/Memory.h"

#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <set>

namespace ckopt::runtime::cuda {

// Definitions of the driver's opaque types.

struct ContextOpaque {
  int number = 0;
  /// Set by the first failure, then returned by every call.
  Result failure = kSuccess;
  int64_t moduleBytes = 0;
  std::set<std::string> ran; ///< library calls that were not captured
};

struct FunctionOpaque {
  Context context;
  std::string symbol;
  const standin::Entry *entry = nullptr;
  unsigned dynamicBytes = 48 << 10; ///< of shared memory a launch may ask for
  void (*code)(void *const *) = nullptr;
  /// The PTX, if it is interpreted.
  const standin::ptx::Program *program = nullptr;
};

struct ModuleOpaque {
  Context context;
  standin::PtxText text;
  int64_t bytes = 0;
  /// Compiled for the CPU, or null.
  void *kernels = nullptr;
  /// Interpreted instead, or null.
  std::unique_ptr<standin::ptx::Program> program;
  std::list<FunctionOpaque> functions;
};

/// Code that is compiled to be kept; here that is its text behind a mark.
struct LinkOpaque {
  std::string code;
};

/// A kernel launch with its parameters' values, or a library's kernel (`body`).
struct Launch {
  Function function = nullptr;
  unsigned grid = 1, block = 1, sharedBytes = 0;
  std::vector<uint64_t> values;
  std::string name;
  /// Of a library's launch: with `name`, it selects the code to load.
  std::string shape;
  bool first = false; ///< set for the first launch in its context
  std::function<void()> body;
  /// Of what waits for other processes: begins one execution, and returns what
  /// goes on with it until it answers other than kNotReady.
  std::function<std::function<Result()>(Stream)> begin;
  bool isCopy = false; ///< bytes that the driver moves: needs no first call
  bool early = false;  ///< begins before the kernel before has ended
};

/// A piece of a graph: a launch, or a wait until as many pieces of another
/// branch are done. Pieces of one branch run in order.
struct GraphPiece {
  size_t branch = 0;
  Launch launch;
  bool waits = false;
  size_t other = 0;      ///< branch that it waits for
  uint64_t position = 0; ///< pieces of it
};

/// Branch 0 is that of the stream that captured the graph.
struct GraphOpaque {
  std::vector<GraphPiece> pieces;
  size_t branches = 1;
};
struct GraphExecOpaque {
  std::vector<GraphPiece> pieces;
  std::vector<Stream> branches; ///< but the first: streams of the stand-in's
};

/// A capture under way, by one stream and those that events let join it.
struct Capture {
  GraphOpaque graph;
  std::vector<Stream> streams;  ///< by branch
  std::vector<uint64_t> counts; ///< by branch: pieces so far
  /// By branch: how much of each branch is done before what comes next.
  std::vector<std::vector<uint64_t>> known;
};

/// A piece of work of a stream; where it waits for an event, for which stream
/// and how far.
struct Work {
  std::function<Result()> run;
  Stream waitsFor = nullptr;
  uint64_t position = 0;
};

struct StreamOpaque {
  int number = 0; ///< below 1: a default stream, which no caller made
  Context context;
  std::deque<Work> work;
  /// Numbers of queued and of finished pieces of work.
  uint64_t queued = 0, done = 0;
  std::shared_ptr<Capture> capture;
  size_t branch = 0;         ///< of the capture
  bool behindKernel = false; ///< what it was given last is a kernel of PTX
};

struct EventOpaque {
  int number = 0;
  Context context;
  Stream stream = nullptr; ///< the stream of the last record
  uint64_t position = 0;   ///< the event has happened once done >= position
  /// Recorded in a capture: what is done by then, by branch.
  std::weak_ptr<Capture> capture;
  std::vector<uint64_t> known;
  size_t branch = 0;
  bool isCaptured = false;
  bool timed = true; ///< made without CU_EVENT_DISABLE_TIMING
  int64_t when = 0;  ///< Machine::clock when it happened last
};

} // namespace ckopt::runtime::cuda

namespace standin {

using namespace ckopt::runtime::cuda;

/// An allocation in device or pinned memory.
struct Block {
  std::string name; ///< "D1", "H1"
  char *memory;
  size_t bytes;
  Context context;
};

/// The contexts that a thread has pushed. It has no destructor, because
/// programs use the driver in their static destructors, which run after those
/// of a thread's variables.
class ContextStack {
public:
  static constexpr size_t kMost = 64;
  bool empty() const { return depth == 0; }
  bool full() const { return depth == kMost; }
  Context back() const { return contexts[depth - 1]; }
  void push(Context context) { contexts[depth++] = context; }
  void pop() { --depth; }

private:
  Context contexts[kMost];
  size_t depth;
};

class Machine {
public:
  /// Device memory that a context uses.
  static constexpr int64_t kContextBytes = 256 << 20;

  static Machine &get();
  ~Machine();

  // Settings that environment variables make.
  int devices, capability, version;
  int64_t page;
  std::string name = "Stand-in";
  std::vector<int> visible; ///< by ordinal: the device of the machine
  int64_t totalBytes;

  std::recursive_mutex mutex;
  bool initialized = false;
  std::list<std::unique_ptr<ContextOpaque>> contexts;
  std::list<std::unique_ptr<ModuleOpaque>> modules;
  std::list<std::unique_ptr<StreamOpaque>> streams;
  std::list<std::unique_ptr<EventOpaque>> events;
  std::list<std::unique_ptr<GraphOpaque>> graphs;
  std::list<std::unique_ptr<GraphExecOpaque>> executables;
  std::list<Block> deviceBlocks, hostBlocks;

  /// Logs the call, and returns kSuccess, or the failure that it must report.
  /// With `needs`, the call needs a current context that has not failed.
  Result enter(const std::string &call, const std::string &arguments,
               bool needsContext = true);
  /// Logs misuse of the driver.
  Result violation(const std::string &text);
  void log(const std::string &line);

  Context current() const;
  /// Returns whether objects of `context` may be used now, and logs it if not.
  bool usable(Context context, const char *what);
  ContextStack &stack() const;

  /// Returns "D1+64" for an address, "?" for one that is in no live block.
  std::string place(uint64_t address) const;
  /// Returns the live device block that holds the range, or null.
  const Block *deviceBlock(uint64_t address, size_t bytes) const;
  const Block *hostBlock(const void *address, size_t bytes) const;
  int64_t usedBytes() const;
  Result allocate(std::list<Block> &blocks, const char *letter, size_t bytes,
                  char *&memory);
  Result release(std::list<Block> &blocks, const void *memory);

  /// Runs the stream's work up to a position; failures stay with its context.
  /// Work that waits for another process stops it: kNotReady.
  Result drain(Stream stream, uint64_t position);
  /// Runs it to the position whatever it waits for.
  Result finish(Stream stream, uint64_t position);
  Result drainAll(Stream stream) { return finish(stream, stream->queued); }
  /// Makes a stream of the current context.
  Stream makeStream();
  /// Returns the stream that a caller means: null and 1 are the context's
  /// default one, 2 is that of the thread (here of all threads).
  Stream given(Stream stream);
  void push(Stream stream, std::function<Result()> work);
  /// Lets the stream wait until another one has come to a position.
  void pushWait(Stream stream, Stream other, uint64_t position);
  /// Ends waits for a stream that goes, whose work is done.
  void forget(Stream gone);
  /// Puts a launch into the stream, or into the graph that it captures. A
  /// library's first call must not be captured.
  Result enqueue(Stream stream, Launch launch);
  Result check(const Launch &launch);
  Result execute(const Launch &launch);

  /// Finds a live object; null if there is none.
  template <typename T>
  static T *live(std::list<std::unique_ptr<T>> &all, T *object) {
    for (auto &one : all)
      if (one.get() == object)
        return object;
    return nullptr;
  }
  template <typename T>
  static bool destroy(std::list<std::unique_ptr<T>> &all, T *object) {
    for (auto it = all.begin(); it != all.end(); ++it)
      if (it->get() == object) {
        all.erase(it);
        return true;
      }
    return false;
  }
  int nextNumber = 0;
  /// By device: its primary context, and how many hold it.
  std::map<Device, std::pair<Context, int>> primaries;
  /// Returns whether CKOPT_STANDIN_REFUSE lets a library have no algorithm for
  /// what it is asked about now. Without `counts` it is no question of its own.
  bool refuses(const std::string &library, bool counts = true);
  /// Opens the library that CKOPT_STANDIN_KERNELS names now; null if it names
  /// none. It stays open.
  static void *openKernels();
  /// Returns whether CKOPT_STANDIN_KERNELS asks to interpret the PTX.
  static bool runsPtx();

  /// Microseconds of kernels so far, one at least for each. Events read this
  /// clock, so that times do not depend on how busy the machine is.
  int64_t clock = 0;

private:
  Machine();
  Result interpret(const Launch &launch);
  Result runFront(Stream stream);
  void runOthers(Stream stream);
  /// Returns the failure that CKOPT_STANDIN_FAIL injects into this call of
  /// `what`.
  Result injected(const std::string &what);

  std::map<std::string, int> asked; ///< questions to each library so far
  ptx::GlobalMemory memory; ///< allocations as the interpreter sees them
  std::FILE *file = nullptr;
  int64_t slowMicroseconds = 0;
  bool early = false; ///< streams run as early as events allow
  int draining = 0;   ///< calls of drain() under way
  std::string failing;
  int failAt = 0, failCount = 0;
  bool failAlways = false;
  Result failCode = kUnknown;
  bool stickyProcess = false;
  Result processFailure = kSuccess;
};

} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_MACHINE_H
