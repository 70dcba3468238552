//===- Program.h - PTX, parsed and decoded ----------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An interpreter of PTX for tests: no library does it (GPU Ocelot did, and is
// neither maintained nor packaged). It is written from NVIDIA's "PTX ISA",
// whose sections the files cite, not from ckopt's code generator, so that a
// misreading of the manual shows as a difference. An unknown construct is an
// error with its line; nothing is skipped. The checks at run time are described
// in Memory.h and Flow.cpp.
//
// Registers lie as [register][lane]: a slot is one word of 4 bytes for each of
// 32 lanes (two slots for 64 bits), so an instruction is decoded once for a
// warp. Narrower values are kept zero-extended; a predicate is one word of 32
// bits. Constants, addresses of variables and special registers are slots, too,
// which no instruction writes.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_PTX_PROGRAM_H
#define CKOPT_TEST_LIB_CUDASTANDIN_PTX_PROGRAM_H

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace standin::ptx {

inline constexpr unsigned kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xFFFFFFFF;

/// Words of a register file; a slot is kLanes of them.
using Slot = uint32_t;
inline constexpr Slot kNoSlot = ~Slot(0);

/// State spaces (PTX ISA, "State Spaces"). None means generic addresses.
enum class Space : uint8_t { None, Global, Shared, Param, Const };

/// Shared addresses begin here, so that 0 is never a valid address; generic
/// addresses of shared memory use the same numbers.
inline constexpr uint64_t kSharedBase = 1024;
inline constexpr uint64_t kSharedWindow = uint64_t(0x7E) << 56;

struct Warp;
struct Instruction;

/// The state of one warp that an instruction reads and writes.
struct Lanes {
  uint32_t *file;  ///< the warp's registers
  uint32_t active; ///< lanes that run it
  Warp *warp;
  /// Set by an instruction that is not allowed to run.
  const char *fault = nullptr;
  unsigned faultLane = 0;
  uint32_t undefined = 0; ///< lanes whose result is undefined

  uint32_t *slot(Slot slot) const { return file + size_t(slot) * kLanes; }
};

using Execute = void (*)(const Instruction &, Lanes &);

/// Marks the absence of an instruction.
inline constexpr uint32_t kNoPlace = ~uint32_t(0);

enum class Control : uint8_t { None, Branch, BranchIndexed, Barrier, Exit };

struct Instruction {
  Execute run = nullptr;
  Control control = Control::None;
  /// Numbers of slots in `slots`: destinations, then sources.
  uint8_t dsts = 0, srcs = 0;
  bool guardNegated = false;
  bool uniform = false; ///< bra.uni; the instruction is .aligned
  bool lazy = false;    ///< checks its sources itself
  bool packs = false;   ///< sources may be undefined
  /// Sources (bit i for the i-th) whose bits are only moved, so that they may
  /// be undefined. See Holes.cpp.
  uint8_t moves = 0;
  Slot guard = kNoSlot;
  Slot slots[16];
  // Memory accesses:
  Space space = Space::None;
  uint8_t count = 1; ///< elements of a vector
  uint8_t bytes = 0; ///< size of an element
  bool readOnly = false;
  bool relaxed = false; ///< other threads may write the same place
  int64_t offset = 0;
  /// Details of the instruction: a mode, a branch's target, flags.
  uint32_t detail = 0;
  std::vector<uint32_t> targets; ///< of brx.idx
  uint32_t meeting = kNoPlace;   ///< of a branch: where lanes reconverge
  unsigned line = 0;             ///< in the text, from 1
};

/// A variable or parameter.
struct Variable {
  std::string name;
  Space space = Space::None;
  uint64_t bytes = 0, align = 1;
  uint64_t address = 0; ///< offset of parameters, address of others
};

/// The value of a slot that no instruction writes.
struct ConstantSlot {
  Slot slot;
  bool wide;
  uint64_t value; ///< the same in all lanes
};
/// "%tid.x" and so on, in a slot.
struct SpecialSlot {
  Slot slot;
  std::string name;
};

struct Kernel {
  std::string name;
  unsigned line = 0;
  std::vector<Variable> parameters;
  std::vector<Variable> shared;
  uint64_t sharedBytes = 0;
  uint64_t maxThreads = 0; ///< .maxntid, 0: not said
  std::vector<Instruction> code;
  std::map<Slot, std::string> registers;
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  Slot numSlots = 0;
  std::set<Slot> wide; ///< slots of 64 bits
  /// The smallest elements accessed in global and in shared memory, in bytes.
  unsigned globalGranule = 4, sharedGranule = 4;
};

/// Data of .global and .const variables.
struct Static {
  Variable variable;
  std::unique_ptr<char[]> memory;
};

struct Program {
  unsigned version = 0; ///< 78 for 7.8
  unsigned target = 0;  ///< 90 for sm_90
  std::map<std::string, std::unique_ptr<Kernel>> kernels;
  std::vector<Static> statics;
  std::vector<std::string> lines;
};

/// Computes for each branch where its lanes reconverge.
void findMeetings(Kernel &kernel);

/// Tests set this to run the code for every x86-64 even where faster code could
/// run.
inline bool onlyPlainLanes = false;

/// Parses and decodes. Returns null if the text is wrong or contains something
/// unknown to this interpreter; `error` says why, with the line.
std::unique_ptr<Program> parse(const std::string &text, std::string &error);

} // namespace standin::ptx

#endif // CKOPT_TEST_LIB_CUDASTANDIN_PTX_PROGRAM_H
