//===- Machine.h - the device that the stand-in driver plays ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Device memory is host memory. Work is put into streams and done as late as
// the rules allow: when somebody waits for it, or an event that was waited for
// lies behind it. So a copy or a launch that is not ordered by events shows as
// a wrong result, not as luck. What a correct program never does is logged as
// VIOLATION and refused.
//
// Environment:
//   CKOPT_STANDIN_LOG      a file that gets one line a call
//   CKOPT_STANDIN_DEVICES  how many devices (1)
//   CKOPT_STANDIN_SM       compute capability (90)
//   CKOPT_STANDIN_DRIVER   cuDriverGetVersion (12040)
//   CKOPT_STANDIN_MEMORY   bytes of a device (8 GiB)
//   CKOPT_STANDIN_KERNELS  a shared library with SYMBOL__emul(void *const *)
//                          for each kernel; without it kernels do nothing.
//                          Read whenever a module is loaded; "ptx": the PTX
//                          itself is interpreted (Ptx/), with all its checks
//   CKOPT_STANDIN_FAIL     CALL:N[+][:CODE]: the N-th CALL (with +: and every
//                          later one) returns CODE (999); CALL without _v2;
//                          kernel=SYMBOL:N[+][:CODE]: its N-th execution fails
//   CKOPT_STANDIN_LIBRARY  version of its cuBLASLt and cuDNN (120400)
//   CKOPT_STANDIN_STICKY   "process": such a failure spoils later contexts, too
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CUDASTANDIN_MACHINE_H
#define CKOPT_LIB_CUDASTANDIN_MACHINE_H

#include "../Runtime/cuda/Driver.h"
#include "Ptx.h"
#include "Ptx/Memory.h"

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <set>

namespace ckopt::runtime::cuda {

// The driver's opaque types, filled.

struct ContextOpaque {
  int number = 0;
  Result failure = kSuccess; ///< sticks
  int64_t moduleBytes = 0;
  std::set<std::string> ran; ///< calls of libraries that were not captured
};

struct FunctionOpaque {
  Context context;
  std::string symbol;
  const standin::Entry *entry = nullptr;
  void (*code)(void *const *) = nullptr;
  const standin::ptx::Program *program = nullptr; ///< where PTX is run
};

struct ModuleOpaque {
  Context context;
  standin::PtxText text;
  int64_t bytes = 0;
  void *kernels = nullptr;                        ///< code for the CPU
  std::unique_ptr<standin::ptx::Program> program; ///< or PTX to run
  std::list<FunctionOpaque> functions;
};

/// A launch with its parameters' values; or a library's kernel (`body`).
struct Launch {
  Function function = nullptr;
  unsigned grid = 1, block = 1;
  std::vector<uint64_t> values;
  std::string name;
  std::string shape;  ///< of a library's: with `name`, what it loads code for
  bool first = false; ///< none has run before in its context
  std::function<void()> body;
};

struct GraphOpaque {
  std::vector<Launch> launches;
};
struct GraphExecOpaque {
  std::vector<Launch> launches;
};

struct StreamOpaque {
  int number = 0;
  Context context;
  std::deque<std::function<Result()>> work;
  uint64_t queued = 0, done = 0; ///< how many pieces of work
  std::unique_ptr<GraphOpaque> capture;
};

struct EventOpaque {
  int number = 0;
  Context context;
  Stream stream = nullptr; ///< of the last record
  uint64_t position = 0;   ///< done >= position: it has happened
};

} // namespace ckopt::runtime::cuda

namespace standin {

using namespace ckopt::runtime::cuda;

/// An allocation, of the device or pinned.
struct Block {
  std::string name; ///< "D1", "H1"
  char *memory;
  size_t bytes;
  Context context;
};

class Machine {
public:
  /// What a context takes of the device.
  static constexpr int64_t kContextBytes = 256 << 20;

  static Machine &get();
  ~Machine();

  // What environment variables say.
  int devices, capability, version;
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

  /// Logs the call; what it returns if it is to fail, else kSuccess. `needs`:
  /// it takes a current context, which must not have failed.
  Result enter(const std::string &call, const std::string &arguments,
               bool needsContext = true);
  /// Logs what a correct program never does.
  Result violation(const std::string &text);
  void log(const std::string &line);

  Context current() const;
  /// Whether what belongs to `context` may be used now. Logs where not.
  bool usable(Context context, const char *what);
  std::vector<Context> &stack() const;

  /// "D1+64" for an address, "?" for one in no live block.
  std::string place(uint64_t address) const;
  /// The live device block that holds the range, or null.
  const Block *deviceBlock(uint64_t address, size_t bytes) const;
  const Block *hostBlock(const void *address, size_t bytes) const;
  int64_t usedBytes() const;
  Result allocate(std::list<Block> &blocks, const char *letter, size_t bytes,
                  char *&memory);
  Result release(std::list<Block> &blocks, const void *memory);

  /// Does the stream's work up to a position; failures stick to its context.
  Result drain(Stream stream, uint64_t position);
  Result drainAll(Stream stream) { return drain(stream, stream->queued); }
  void push(Stream stream, std::function<Result()> work);
  /// Puts a launch into the stream, or into the graph that it captures. A
  /// library's call must not be captured when it is made for the first time.
  Result enqueue(Stream stream, Launch launch);
  Result check(const Launch &launch);
  Result execute(const Launch &launch);

  /// Finds a live object; null if it is none.
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
  /// What CKOPT_STANDIN_KERNELS names now; null if nothing. Stays open.
  static void *openKernels();
  /// Whether it says that the PTX itself runs.
  static bool runsPtx();

private:
  Machine();
  Result interpret(const Launch &launch);
  /// The code that CKOPT_STANDIN_FAIL gives this occurrence of `what`.
  Result injected(const std::string &what);

  ptx::GlobalMemory memory; ///< as the interpreter sees it
  std::FILE *file = nullptr;
  std::string failing;
  int failAt = 0, failCount = 0;
  bool failAlways = false;
  Result failCode = kUnknown;
  bool stickyProcess = false;
  Result processFailure = kSuccess;
};

} // namespace standin

#endif // CKOPT_LIB_CUDASTANDIN_MACHINE_H
