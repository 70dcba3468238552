//===- Memory.h - what a launch may touch, and who touched it ---*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every granule of global and shared memory (the least bytes that the kernel
// accesses at once, at most 4) knows its last writer and reader. Time is a
// counter that grows at each launch, block and barrier; blocks run one after
// the other, so the time of an access tells launch, block and interval between
// barriers. Two accesses of different threads, at least one of them a write, of
// one launch are a race (PTX ISA, "Memory Consistency Model": no order between
// them) unless a barrier of their block lies between, or of their warp.
//
// Of the readers since the last write, only the last one is kept, and whether
// others of this interval, or of other blocks, read too. That is enough to find
// every race of a reader with a later writer.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_MEMORY_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_MEMORY_H

#include "Program.h"

namespace standin::ptx {

/// The thread of an access, and the index of its instruction.
struct Access {
  uint32_t thread, instruction;
};

struct Granule {
  uint32_t writeTime = 0, readTime = 0;
  uint32_t writer = 0; ///< instruction * 1024 + thread
  uint32_t reader = 0;
  uint16_t others = 0; ///< other readers in the interval; see kOther...
};
inline constexpr uint16_t kOtherThreads = 1, kOtherWarps = 2, kOtherBlocks = 4;

/// The current time, and the times of the last barriers; see above.
struct Clock {
  uint32_t now = 1;
  uint32_t launch = 1, block = 1, interval = 1;
};

/// Conflict of an access with an earlier one.
enum class Conflict : uint8_t {
  None,
  Unwritten,
  WithWrite,
  WithRead,
  ReadOnly
};

/// Checks the access and records it. `warpTime` is the time of the warp's last
/// barrier.
inline Conflict touch(Granule &g, Access by, bool write, bool shared,
                      const Clock &clock, uint32_t warpTime) {
  uint32_t since = shared ? clock.block : clock.launch;
  auto ordered = [&](uint32_t time, uint32_t other) {
    bool sameWarp = other / kLanes == by.thread / kLanes;
    return time >= clock.block && time < (sameWarp ? warpTime : clock.interval);
  };
  if (g.writeTime >= since) {
    uint32_t writer = g.writer % 1024;
    if ((writer != by.thread || g.writeTime < clock.block) &&
        !ordered(g.writeTime, writer))
      return Conflict::WithWrite;
  } else if (shared && !write) {
    return Conflict::Unwritten;
  }
  uint32_t reader = g.reader % 1024;
  if (write) {
    if (g.readTime >= since) {
      if (g.others & kOtherBlocks)
        return Conflict::WithRead;
      bool alone = !(g.others & kOtherThreads) && reader == by.thread &&
                   g.readTime >= clock.block;
      bool far = g.others & kOtherWarps;
      if (!alone &&
          !(g.readTime >= clock.block &&
            (far ? g.readTime < clock.interval : ordered(g.readTime, reader))))
        return Conflict::WithRead;
    }
    g.writeTime = clock.now;
    g.writer = by.instruction * 1024 + by.thread;
    return Conflict::None;
  }
  if (g.readTime < since) {
    g.others = 0;
  } else if (g.readTime < clock.block) {
    g.others = kOtherBlocks;
  } else if (reader != by.thread) {
    // Readers before the last barrier no longer matter, but those of other
    // blocks do.
    uint16_t kept = g.others & kOtherBlocks;
    if (g.readTime >= clock.interval)
      kept = g.others | kOtherThreads |
             (reader / kLanes != by.thread / kLanes ? kOtherWarps : 0);
    g.others = kept;
  } else if (g.readTime < clock.interval) {
    g.others &= kOtherBlocks;
  }
  g.readTime = clock.now;
  g.reader = by.instruction * 1024 + by.thread;
  return Conflict::None;
}

/// How global memory was accessed. A request is one instruction of one warp;
/// its sectors are the distinct pieces of 32 bytes that its lanes touch, of
/// which a device moves each whole.
struct Traffic {
  uint64_t requests = 0, sectors = 0;
  uint64_t bytes = 0; ///< that lanes asked for
  /// Returns how many times the bytes that were asked for are moved.
  double overfetch() const {
    return bytes ? 32.0 * double(sectors) / double(bytes) : 0;
  }
};

/// Live global memory.
struct Region {
  uint64_t begin = 0, bytes = 0;
  std::string name;
};

/// Global memory over many launches: its live regions, and their granules.
class GlobalMemory {
public:
  /// Sets the regions that are live from now on.
  void setRegions(const std::vector<Region> &regions);
  Clock clock;
  Traffic loads, stores; ///< of the last launch

  struct Page {
    std::unique_ptr<Granule[]> granules;
    unsigned granule = 0; ///< bytes
  };
  struct Tracked {
    Region region;
    std::vector<Page> pages; ///< 4 KiB of addresses each
  };
  /// Returns the region that holds the bytes, or null.
  Tracked *find(uint64_t address, uint64_t bytes);
  /// Returns the granules from `address` on.
  static Granule *granules(Tracked &in, uint64_t address, unsigned granule);

private:
  std::vector<std::unique_ptr<Tracked>> tracked;
  Tracked *last = nullptr;
};

/// Runs a kernel of grid x block threads. `parameters` are their values in
/// PTX's layout (Variable::address). Returns "", or what is wrong: kernel,
/// line, block, thread.
struct LaunchSize {
  uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  uint32_t sharedBytes = 0; ///< of the array that code leaves without a size
  bool early = false;       ///< begins before the launch before has ended
};
std::string launch(const Program &program, const Kernel &kernel,
                   const LaunchSize &size, const std::vector<char> &parameters,
                   GlobalMemory &memory);
/// Runs a kernel whose parameters have 8 bytes each.
std::string launch(const Program &program, const std::string &kernel,
                   uint32_t grid, uint32_t block,
                   const std::vector<uint64_t> &parameters,
                   GlobalMemory &memory, uint32_t sharedBytes = 0,
                   bool early = false);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_MEMORY_H
