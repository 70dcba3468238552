//===- Execution.h - blocks and warps that run ------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks run one after the other; the warps of a block each up to the next
// barrier. Lanes of a warp that diverge at a branch are groups on a stack: one
// group after the other runs up to the branch's immediate post-dominator, where
// they reconverge (Fung et al., "Dynamic Warp Formation and Scheduling for
// Efficient GPU Control Flow", MICRO 2007, section 3.1). The manual promises no
// earlier reconvergence, and barriers and warp-wide instructions need this one.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_EXECUTION_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_EXECUTION_H

#include "Memory.h"

namespace standin::ptx {

class Execution;

struct Group {
  uint32_t place, mask;
  uint32_t until; ///< the place where the group runs until it reconverges
};

/// The undefined bits of a register, for lanes that do not count as written;
/// see Holes.cpp.
struct Holes {
  uint32_t lanes = 0;
  uint32_t bits[2 * kLanes] = {}; ///< in the layout of the register file
};

/// A copy to shared memory that is under way.
struct Copy {
  uint64_t to, from;
  uint32_t bytes, read; ///< read: 0, zeros are copied
  uint32_t instruction;
};

struct Warp {
  Execution *execution = nullptr;
  uint32_t number = 0;
  std::vector<uint32_t> file, written;
  std::map<Slot, Holes> holes;
  uint32_t all = 0;    ///< lanes that exist
  uint32_t exited = 0; ///< lanes that have ended
  uint32_t sees = 0;   ///< lanes that may access what launches before accessed
  uint32_t time = 0;   ///< clock at the last barrier of the warp or the block
  Group current{};
  std::vector<Group> waiting; ///< a stack of groups
  enum State { Running, AtBarrier, Done } state = Done;
  uint64_t executed = 0; ///< instructions since the last barrier
  /// Copies that a lane's thread has not waited for: the open group, and closed
  /// ones in order.
  struct Copies {
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> closed;
  };
  Copies copies[kLanes];

  /// Continues with the next group when the current one has ended.
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
  /// Runs the launch; returns "", or what went wrong.
  std::string run();

  const Program &program;
  const Kernel &kernel;
  const LaunchSize size;
  const std::vector<char> &parameters;
  GlobalMemory &memory;
  const uint64_t sharedBytes; ///< declared, and what the launch gives
  std::vector<char> shared;
  std::vector<Granule> sharedGranules;
  /// Of each granule of shared memory, the copy under way to it: instruction
  /// number plus one, else 0.
  std::vector<uint32_t> underWay;
  std::string reason; ///< why an instruction faulted

private:
  void runBlock();
  void startWarp(Warp &warp);
  void runWarp(Warp &warp);
  /// Computes the lanes for which the instruction's guard holds.
  bool guard(Warp &warp, const Instruction &in, uint32_t &active);
  bool execute(Warp &warp, const Instruction &in, uint32_t active);
  bool checkSources(Warp &warp, const Instruction &in, uint32_t active);
  bool checkSelection(Warp &warp, const Instruction &in, uint32_t active);
  bool control(Warp &warp, const Instruction &in, uint32_t active);
  bool branch(Warp &warp, const Instruction &in, uint32_t active);
  /// Splits the lanes into groups, one for each place that they branch to.
  void part(Warp &warp, uint32_t meeting, const std::vector<Group> &ways);
  bool branchIndexed(Warp &warp, const Instruction &in, uint32_t active);
  bool barrier(Warp &warp, const Instruction &in, uint32_t active);
  bool exit(Warp &warp, const Instruction &in, uint32_t active);
  void releaseBarrier();
  /// Records a fault; always returns false.
  bool fault(const Warp &warp, const Instruction &in, uint32_t lanes,
             const std::string &why);
  /// Returns whether `lanes` lack only bits that the instruction may move
  /// undefined.
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

/// Prints the block's numbers for messages: "3", or "3,0,1".
std::string coordinates(const uint32_t *of, const uint32_t *size);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_EXECUTION_H
