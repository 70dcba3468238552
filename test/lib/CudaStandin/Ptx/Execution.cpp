//===- Execution.cpp - blocks and warps that run --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Execution.h"

#include <algorithm>
#include <bit>
#include <cstring>

using namespace standin::ptx;

// The most instructions without a barrier; no kernel of the tests has as many,
// so a thread that runs more is in an endless loop.
static constexpr uint64_t kMostInstructions = uint64_t(1) << 28;

std::string standin::ptx::coordinates(const uint32_t *of,
                                      const uint32_t *size) {
  std::string text = std::to_string(of[0]);
  if (size[1] * size[2] != 1)
    text += "," + std::to_string(of[1]) + "," + std::to_string(of[2]);
  return text;
}

Execution::Execution(const Program &program, const Kernel &kernel,
                     const LaunchSize &size,
                     const std::vector<char> &parameters, GlobalMemory &memory)
    : program(program), kernel(kernel), size(size), parameters(parameters),
      memory(memory), sharedBytes(kernel.sharedBytes + size.sharedBytes),
      shared(sharedBytes + 16),
      sharedGranules(sharedBytes / kernel.sharedGranule + 1),
      underWay(sharedGranules.size()),
      threads(size.block[0] * size.block[1] * size.block[2]),
      warps((threads + kLanes - 1) / kLanes) {
  for (size_t i = 0; i < warps.size(); ++i) {
    Warp &warp = warps[i];
    warp.execution = this;
    warp.number = uint32_t(i);
    warp.file.resize(size_t(kernel.numSlots) * kLanes);
    unsigned lanes = std::min(kLanes, threads - unsigned(i) * kLanes);
    warp.all = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
    for (const ConstantSlot &constant : kernel.constants) {
      uint32_t *words = &warp.file[size_t(constant.slot) * kLanes];
      for (unsigned l = 0; l < kLanes; ++l)
        if (constant.wide)
          reinterpret_cast<uint64_t *>(words)[l] = constant.value;
        else
          words[l] = uint32_t(constant.value);
    }
  }
}

bool Execution::fault(const Warp &warp, const Instruction &in, uint32_t lanes,
                      const std::string &why) {
  uint32_t thread = warp.thread(unsigned(std::countr_zero(lanes)));
  std::string text = in.line && in.line <= program.lines.size()
                         ? program.lines[in.line - 1]
                         : "";
  text.erase(0, text.find_first_not_of(" \t"));
  std::replace(text.begin(), text.end(), '\t', ' ');
  error = "kernel '" + kernel.name + "', line " + std::to_string(in.line) +
          " (" + text + "), block " + coordinates(blockNumber, size.grid) +
          ", thread " + std::to_string(thread) + ": " + why;
  return false;
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

std::string Execution::run() {
  Clock &clock = memory.clock;
  clock.launch = ++clock.now;
  memory.loads = memory.stores = {};
  auto &b = blockNumber;
  for (b[2] = 0; b[2] < size.grid[2]; ++b[2])
    for (b[1] = 0; b[1] < size.grid[1]; ++b[1])
      for (b[0] = 0; b[0] < size.grid[0]; ++b[0]) {
        runBlock();
        if (!error.empty())
          return error;
      }
  return error;
}

void Execution::startWarp(Warp &warp) {
  warp.state = Warp::Running;
  warp.exited = 0;
  warp.sees = size.early ? 0 : warp.all;
  warp.executed = 0;
  warp.current = {0, warp.all, kNoPlace};
  warp.waiting.clear();
  warp.time = memory.clock.now;
  for (Warp::Copies &copies : warp.copies)
    copies = {};
  warp.written.assign(kernel.numSlots, 0);
  warp.holes.clear();
  for (const ConstantSlot &constant : kernel.constants)
    warp.written[constant.slot] = kAllLanes;
  for (const SpecialSlot &special : kernel.specials) {
    warp.written[special.slot] = kAllLanes;
    uint32_t *words = &warp.file[size_t(special.slot) * kLanes];
    std::string_view name = special.name;
    unsigned axis = unsigned(name.back() - 'x');
    for (unsigned l = 0; l < kLanes; ++l) {
      uint32_t t = warp.thread(l), x = size.block[0], y = size.block[1];
      uint32_t of[3] = {t % x, t / x % y, t / (x * y)};
      uint32_t bit = 1u << l;
      words[l] = name.starts_with("%tid")      ? of[axis]
                 : name.starts_with("%ntid")   ? size.block[axis]
                 : name.starts_with("%ctaid")  ? blockNumber[axis]
                 : name.starts_with("%nctaid") ? size.grid[axis]
                 : name == "%laneid"           ? l
                 : name == "%warpid"           ? warp.number
                 : name == "%lanemask_eq"      ? bit
                 : name == "%lanemask_lt"      ? bit - 1
                 : name == "%lanemask_le"      ? (bit - 1) | bit
                 : name == "%lanemask_gt"      ? ~((bit - 1) | bit)
                                               : ~(bit - 1);
    }
  }
}

void Execution::runBlock() {
  Clock &clock = memory.clock;
  clock.block = clock.interval = ++clock.now;
  std::fill(underWay.begin(), underWay.end(), 0);
  for (Warp &warp : warps)
    startWarp(warp);
  while (error.empty()) {
    for (Warp &warp : warps) {
      runWarp(warp);
      if (!error.empty())
        return;
    }
    if (std::all_of(warps.begin(), warps.end(),
                    [](Warp &warp) { return warp.state == Warp::Done; }))
      return;
    releaseBarrier();
  }
}

void Execution::releaseBarrier() {
  const Warp &first = *std::find_if(warps.begin(), warps.end(), [](Warp &warp) {
    return warp.state == Warp::AtBarrier;
  });
  const Instruction &here = kernel.code[first.current.place];
  for (const Warp &warp : warps) {
    if (warp.state == Warp::Done) {
      fault(first, here, 1,
            "waits for thread " + std::to_string(warp.thread(0)) +
                ", which is through: not all threads of the block come to "
                "this barrier");
      return;
    }
    if (warp.current.place != first.current.place) {
      fault(first, here, 1,
            "waits here, thread " + std::to_string(warp.thread(0)) +
                " at the barrier of line " +
                std::to_string(kernel.code[warp.current.place].line) +
                ": all threads of a block must come to the same one");
      return;
    }
  }
  Clock &clock = memory.clock;
  clock.interval = ++clock.now;
  for (Warp &warp : warps) {
    warp.state = Warp::Running;
    warp.time = clock.now;
    warp.executed = 0;
    ++warp.current.place;
  }
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void Execution::runWarp(Warp &warp) {
  while (warp.state == Warp::Running) {
    Group &current = warp.current;
    while (current.place == current.until)
      warp.next();
    const Instruction &in = kernel.code[current.place];
    uint32_t active = current.mask;
    if (in.guard != kNoSlot && !guard(warp, in, active))
      return;
    if (++warp.executed > kMostInstructions) {
      fault(warp, in, active ? active : 1, "does not come to an end");
      return;
    }
    if (in.control != Control::None) {
      if (!control(warp, in, active))
        return;
      continue;
    }
    if (active && !execute(warp, in, active))
      return;
    ++current.place;
  }
}

bool Execution::unwritten(Warp &warp, const Instruction &in, Slot slot,
                          uint32_t lanes) {
  auto name = kernel.registers.find(slot);
  return fault(warp, in, lanes,
               "reads register " +
                   (name == kernel.registers.end() ? "?" : name->second) +
                   holeText(warp, slot, unsigned(std::countr_zero(lanes))));
}

bool Execution::guard(Warp &warp, const Instruction &in, uint32_t &active) {
  if (uint32_t missing = active & ~warp.written[in.guard])
    return unwritten(warp, in, in.guard, missing);
  uint32_t bits = warp.file[size_t(in.guard) * kLanes];
  active &= in.guardNegated ? ~bits : bits;
  return true;
}

bool Execution::checkSources(Warp &warp, const Instruction &in,
                             uint32_t active) {
  for (unsigned i = in.dsts; i < unsigned(in.dsts) + in.srcs; ++i)
    if (uint32_t missing = active & ~warp.written[in.slots[i]])
      return unwritten(warp, in, in.slots[i], missing);
  return true;
}

/// Checks selp d, a, b, c, which selects a where c is true and b elsewhere:
/// only the selected source must be defined.
bool Execution::checkSelection(Warp &warp, const Instruction &in,
                               uint32_t active) {
  if (uint32_t missing = active & ~warp.written[in.slots[3]])
    return unwritten(warp, in, in.slots[3], missing);
  uint32_t first = warp.file[size_t(in.slots[3]) * kLanes];
  if (uint32_t missing = active & first & ~warp.written[in.slots[1]])
    return unwritten(warp, in, in.slots[1], missing);
  if (uint32_t missing = active & ~first & ~warp.written[in.slots[2]])
    return unwritten(warp, in, in.slots[2], missing);
  return true;
}

bool Execution::execute(Warp &warp, const Instruction &in, uint32_t active) {
  uint32_t missing = 0; // lanes
  for (unsigned i = in.dsts; i < unsigned(in.dsts) + in.srcs; ++i)
    missing |= active & ~warp.written[in.slots[i]];
  if (missing) {
    if (in.moves && movesHoles(warp, in, missing)) {
      moveHoles(warp, in, active);
      return true;
    }
    if (in.lazy ? !checkSelection(warp, in, active)
                : !checkSources(warp, in, active))
      return false;
  }
  if (!in.run)
    return true;
  Lanes lanes{warp.file.data(), active, &warp};
  in.run(in, lanes);
  if (lanes.fault)
    return fault(warp, in, 1u << lanes.faultLane, lanes.fault);
  for (unsigned i = 0; i < in.dsts; ++i)
    warp.written[in.slots[i]] |= active;
  if (lanes.undefined) {
    warp.written[in.slots[0]] &= ~lanes.undefined;
    warp.holes.erase(in.slots[0]);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

std::string standin::ptx::launch(const Program &program, const Kernel &kernel,
                                 const LaunchSize &size,
                                 const std::vector<char> &parameters,
                                 GlobalMemory &memory) {
  uint64_t threads = uint64_t(size.block[0]) * size.block[1] * size.block[2];
  if (threads == 0 || threads > 1024 ||
      (kernel.maxThreads && threads > kernel.maxThreads))
    return "kernel '" + kernel.name + "' cannot have " +
           std::to_string(threads) + " threads";
  if (size.sharedBytes && kernel.sharedBytes)
    return "kernel '" + kernel.name +
           "' has shared memory of its own beside that of the launch, which "
           "the interpreter does not know";
  return Execution(program, kernel, size, parameters, memory).run();
}

std::string standin::ptx::launch(const Program &program,
                                 const std::string &name, uint32_t grid,
                                 uint32_t block,
                                 const std::vector<uint64_t> &values,
                                 GlobalMemory &memory, uint32_t sharedBytes,
                                 bool early) {
  auto found = program.kernels.find(name);
  if (found == program.kernels.end())
    return "no kernel '" + name + "'";
  const Kernel &kernel = *found->second;
  if (kernel.parameters.size() != values.size())
    return "kernel '" + name + "' has " +
           std::to_string(kernel.parameters.size()) + " parameters";
  std::vector<char> bytes;
  for (size_t i = 0; i < values.size(); ++i) {
    const Variable &parameter = kernel.parameters[i];
    bytes.resize(parameter.address + parameter.bytes);
    std::memcpy(&bytes[parameter.address], &values[i],
                std::min<size_t>(8, parameter.bytes));
  }
  LaunchSize size;
  size.grid[0] = grid, size.block[0] = block;
  size.sharedBytes = sharedBytes;
  size.early = early;
  return launch(program, kernel, size, bytes, memory);
}
