//===- Execution.h - blocks and warps that run ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks run one after the other; the warps of a block each up to the next
// barrier. Lanes of a warp that part at a branch are groups on a stack: one
// after the other runs up to the branch's immediate post-dominator, where they
// go on together (Fung et al., "Dynamic Warp Formation and Scheduling for
// Efficient GPU Control Flow", MICRO 2007, section 3.1). The manual promises no
// more, and barriers and instructions of whole warps need no less.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CUDASTANDIN_PTX_EXECUTION_H
#define CKOPT_LIB_CUDASTANDIN_PTX_EXECUTION_H

#include "Memory.h"

namespace standin::ptx {

class Execution;

struct Group {
  uint32_t place, mask;
  uint32_t until; ///< the place where the group below goes on
};

/// Bits of a register that have no value, in lanes that do not count as
/// written; see Holes.cpp.
struct Holes {
  uint32_t lanes = 0;
  uint32_t bits[2 * kLanes] = {}; ///< as the register lies in the file
};

struct Warp {
  Execution *execution = nullptr;
  uint32_t number = 0;
  std::vector<uint32_t> file, written;
  std::map<Slot, Holes> holes;
  uint32_t all = 0;    ///< lanes that there are
  uint32_t exited = 0; ///< lanes that are through
  uint32_t time = 0;   ///< of the last barrier of the warp or the block
  Group current{};
  std::vector<Group> waiting; ///< a stack
  enum State { Running, AtBarrier, Done } state = Done;
  uint64_t executed = 0; ///< instructions since the last barrier

  /// The group that goes on when the current one is at its end.
  void next() {
    current = waiting.back();
    waiting.pop_back();
  }
  uint32_t thread(unsigned lane) const { return number * kLanes + lane; }
};

class Execution {
public:
  Execution(const Program &program, const Kernel &kernel,
            const LaunchSize &size, const std::vector<char> &parameters,
            GlobalMemory &memory);
  /// Empty, or what went wrong.
  std::string run();

  const Program &program;
  const Kernel &kernel;
  const LaunchSize size;
  const std::vector<char> &parameters;
  GlobalMemory &memory;
  std::vector<char> shared;
  std::vector<Granule> sharedGranules;
  std::string reason; ///< of an instruction's fault

private:
  void runBlock();
  void startWarp(Warp &warp);
  void runWarp(Warp &warp);
  /// Lanes that run the instruction: the guard's.
  bool guard(Warp &warp, const Instruction &in, uint32_t &active);
  bool execute(Warp &warp, const Instruction &in, uint32_t active);
  bool checkSources(Warp &warp, const Instruction &in, uint32_t active);
  bool checkSelection(Warp &warp, const Instruction &in, uint32_t active);
  bool control(Warp &warp, const Instruction &in, uint32_t active);
  bool branch(Warp &warp, const Instruction &in, uint32_t active);
  /// Lanes go to the places; those of one place together.
  void part(Warp &warp, uint32_t meeting, const std::vector<Group> &ways);
  bool branchIndexed(Warp &warp, const Instruction &in, uint32_t active);
  bool barrier(Warp &warp, const Instruction &in, uint32_t active);
  bool exit(Warp &warp, uint32_t active);
  void releaseBarrier();
  /// Always false.
  bool fault(const Warp &warp, const Instruction &in, uint32_t lanes,
             const std::string &why);
  /// Whether all that `lanes` lack are holes that the instruction may move.
  bool movesHoles(const Warp &warp, const Instruction &in,
                  uint32_t lanes) const;
  void moveHoles(Warp &warp, const Instruction &in, uint32_t active);
  uint64_t holeOf(const Warp &warp, Slot slot, unsigned lane) const;
  std::string holeText(const Warp &warp, Slot slot, unsigned lane) const;
  bool unwritten(Warp &warp, const Instruction &in, Slot slot, uint32_t lanes);

  uint32_t threads, blockNumber[3] = {0, 0, 0};
  std::vector<Warp> warps;
  std::string error;
};

/// The block's numbers as text, for messages: "3", or "3,0,1".
std::string coordinates(const uint32_t *of, const uint32_t *size);

} // namespace standin::ptx

#endif // CKOPT_LIB_CUDASTANDIN_PTX_EXECUTION_H
