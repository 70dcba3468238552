//===- LoadStore.cpp - PTX ISA, "Data Movement": ld and st ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks each memory access: it must be aligned to its size (a vector of four
// f32 to 16 bytes), lie in live memory of its state space, and not race with
// another thread's. Shared memory must be written before it is read, and memory
// that .nc reads must not be written during the launch. In a launch that begins
// early, a thread accesses global memory only behind its wait.
//
//===----------------------------------------------------------------------===//
#include "Accessor.h"
#include "Decode.h"

#include <algorithm>
#include <cstring>

using namespace standin::ptx;

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

char *Accessor::race(const Granule &granule, Conflict conflict, bool shared) {
  if (conflict == Conflict::Unwritten)
    return fault("reads shared memory that nobody wrote");
  if (conflict == Conflict::ReadOnly)
    return fault("ld.global.nc of what this launch writes");
  bool withWrite = conflict == Conflict::WithWrite;
  uint32_t other = withWrite ? granule.writer : granule.reader;
  uint32_t time = withWrite ? granule.writeTime : granule.readTime;
  std::string text = std::string(write ? "writes" : "reads") + " what thread " +
                     std::to_string(other % 1024);
  if (!shared && time < execution.memory.clock.block)
    text += " of another block";
  if (!withWrite && (granule.others & kOtherThreads))
    text += " and others";
  text += withWrite ? " wrote" : " read";
  text += " in line " +
          std::to_string(execution.kernel.code[other / 1024].line) +
          ", with no barrier between: a race in " +
          (shared ? "shared" : "global") + " memory";
  return fault(text);
}

bool Accessor::check(Granule *granules, unsigned granule, bool shared) {
  const Clock &clock = execution.memory.clock;
  if (write && in.relaxed) // is not torn, whoever else stores there
    return true;
  for (unsigned i = 0; i < bytes / granule; ++i) {
    Conflict conflict =
        in.readOnly && granules[i].writeTime >= clock.launch
            ? Conflict::ReadOnly
            : touch(granules[i], by, write, shared, clock, lanes.warp->time);
    if (conflict != Conflict::None) {
      race(granules[i], conflict, shared);
      return false;
    }
  }
  return true;
}

char *Accessor::inShared(uint64_t address) {
  uint64_t offset = address - kSharedBase, size = execution.sharedBytes;
  if (address < kSharedBase || bytes > size || offset > size - bytes)
    return fault("shared address " + number(address) + " is outside of the " +
                 std::to_string(size) + " bytes of the block");
  unsigned granule = execution.kernel.sharedGranule;
  for (unsigned i = 0; i < bytes / granule && !begins; ++i)
    if (uint32_t copy = execution.underWay[offset / granule + i])
      return fault(std::string(write ? "writes" : "reads") +
                   " shared memory that line " +
                   std::to_string(execution.kernel.code[copy - 1].line) +
                   " copies to, which nobody has waited for");
  return check(&execution.sharedGranules[offset / granule], granule, true)
             ? &execution.shared[offset]
             : nullptr;
}

char *Accessor::inStatics(uint64_t address) {
  for (const Static &one : execution.program.statics) {
    const Variable &variable = one.variable;
    if (address < variable.address ||
        address - variable.address + bytes > variable.bytes)
      continue;
    if (space != Space::None && space != variable.space)
      return fault("'" + variable.name + "' is in another state space");
    if (write)
      return fault("variables of the module are not written");
    return reinterpret_cast<char *>(address);
  }
  return fault("address " + number(address) +
               " is in no live memory of its state space");
}

char *Accessor::inGlobal(uint64_t address) {
  GlobalMemory::Tracked *region = execution.memory.find(address, bytes);
  if (!region)
    return inStatics(address);
  if (!(lanes.warp->sees >> by.thread % kLanes & 1))
    return fault(std::string(write ? "writes" : "reads") +
                 " global memory before it waits for the kernels before");
  unsigned granule = execution.kernel.globalGranule;
  Granule *granules = GlobalMemory::granules(*region, address, granule);
  return check(granules, granule, false) ? reinterpret_cast<char *>(address)
                                         : nullptr;
}

char *Accessor::inParameters(uint64_t address) {
  const std::vector<char> &parameters = execution.parameters;
  if (write)
    return fault("parameters are not written");
  if (bytes > parameters.size() || address > parameters.size() - bytes)
    return fault("reads behind the parameters");
  return const_cast<char *>(&parameters[address]);
}

char *Accessor::place(uint64_t address, unsigned lane) {
  if (address % bytes)
    return fault("address " + number(address) + " is not aligned to " +
                 std::to_string(bytes) + " bytes");
  by.thread = lanes.warp->thread(lane);
  by.instruction = uint32_t(&in - execution.kernel.code.data());
  switch (space) {
  case Space::Shared:
    return inShared(address);
  case Space::Param:
    return inParameters(address);
  case Space::Const:
    return inStatics(address);
  case Space::Global:
    return inGlobal(address);
  default:
    return address >= kSharedWindow ? inShared(address - kSharedWindow)
                                    : inGlobal(address);
  }
}

/// Returns the address of lane l.
static uint64_t addressOf(const Instruction &in, const Lanes &lanes,
                          unsigned slot, unsigned l) {
  uint32_t *base = lanes.slot(in.slots[slot]);
  uint64_t value =
      in.detail & 1 ? base[l] : reinterpret_cast<uint64_t *>(base)[l];
  return value + uint64_t(in.offset);
}

void standin::ptx::countSectors(Traffic &traffic, const uint64_t *addresses,
                                uint32_t active, unsigned bytes) {
  uint64_t sectors[kLanes];
  unsigned count = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(active >> l & 1))
      continue;
    traffic.bytes += bytes;
    uint64_t sector = addresses[l] / 32;
    if (std::find(sectors, sectors + count, sector) == sectors + count)
      sectors[count++] = sector;
  }
  ++traffic.requests;
  traffic.sectors += count;
}

/// Counts a warp's access, if it is one of global memory.
static void count(const Instruction &in, const Lanes &lanes, unsigned slot,
                  Traffic GlobalMemory::*kind) {
  if (in.space != Space::Global)
    return;
  uint64_t addresses[kLanes];
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1)
      addresses[l] = addressOf(in, lanes, slot, l);
  countSectors(lanes.warp->execution->memory.*kind, addresses, lanes.active,
               unsigned(in.bytes) * in.count);
}

// Bits of the detail: bit 0 says that the address has 32 bits, bit 1 that a
// narrow value is signed; bits 8 to 15 hold the bits of the registers.
static void load(const Instruction &in, Lanes &lanes) {
  Accessor accessor(in, lanes, /*write=*/false, in.space,
                    unsigned(in.bytes) * in.count);
  count(in, lanes, in.dsts, &GlobalMemory::loads);
  bool wide = in.bytes == 8;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    const char *from = accessor.place(addressOf(in, lanes, in.dsts, l), l);
    if (!from) {
      lanes.faultLane = l;
      return;
    }
    for (unsigned i = 0; i < in.count; ++i, from += in.bytes) {
      uint32_t *to = lanes.slot(in.slots[i]);
      if (wide) {
        std::memcpy(reinterpret_cast<uint64_t *>(to) + l, from, 8);
        continue;
      }
      uint32_t value = 0;
      std::memcpy(&value, from, in.bytes);
      if ((in.detail >> 8 & 0xFF) == 64) {
        unsigned unused = 64 - 8 * in.bytes;
        uint64_t high = uint64_t(value) << unused;
        reinterpret_cast<uint64_t *>(to)[l] =
            in.detail & 2 ? uint64_t(int64_t(high) >> unused) : high >> unused;
        continue;
      }
      if (in.detail & 2) {
        unsigned unused = 32 - 8 * in.bytes;
        value = uint32_t(int32_t(value << unused) >> unused);
        if ((in.detail >> 8 & 0xFF) == 16)
          value &= 0xFFFF;
      }
      to[l] = value;
    }
  }
}

static void store(const Instruction &in, Lanes &lanes) {
  Accessor accessor(in, lanes, /*write=*/true, in.space,
                    unsigned(in.bytes) * in.count);
  count(in, lanes, 0, &GlobalMemory::stores);
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    char *to = accessor.place(addressOf(in, lanes, 0, l), l);
    if (!to) {
      lanes.faultLane = l;
      return;
    }
    for (unsigned i = 0; i < in.count; ++i, to += in.bytes) {
      const uint32_t *from = lanes.slot(in.slots[1 + i]);
      if ((in.detail >> 8 & 0xFF) == 64)
        std::memcpy(to, reinterpret_cast<const uint64_t *>(from) + l, in.bytes);
      else
        std::memcpy(to, from + l, in.bytes);
    }
  }
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static bool takeSpace(Decoder &d) {
  std::string_view name = d.takeOf(
      {"global", "shared", "shared::cta", "param", "param::entry", "const"});
  d.in.space = name == "global"             ? Space::Global
               : name.starts_with("shared") ? Space::Shared
               : name.starts_with("param")  ? Space::Param
               : name == "const"            ? Space::Const
                                            : Space::None;
  return true;
}

/// Takes modifiers that change how fast memory is accessed, but not the values.
static void takeCaching(Decoder &d) {
  d.takeOf({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.takeOf({"L1::evict_normal", "L1::evict_first", "L1::evict_last",
            "L1::no_allocate", "L1::evict_unchanged"});
  d.takeOf({"L2::64B", "L2::128B", "L2::256B"});
}

static void noteGranule(Decoder &d) {
  unsigned bytes = d.in.bytes;
  if (d.in.space != Space::Shared)
    d.kernel.globalGranule = std::min(d.kernel.globalGranule, bytes);
  if (d.in.space == Space::Shared || d.in.space == Space::None)
    d.kernel.sharedGranule = std::min(d.kernel.sharedGranule, bytes);
}

static bool decodeAccess(Decoder &d, bool isLoad) {
  d.in.relaxed = d.takeOf({"weak", "volatile", "relaxed"}) == "relaxed";
  d.takeOf({"cta", "gpu", "sys"});
  takeSpace(d);
  takeCaching(d);
  if (isLoad && d.in.space == Space::Global)
    d.in.readOnly = d.take("nc");
  std::string_view vector = d.takeOf({"v2", "v4"});
  if (!d.expect(2, 1))
    return false;
  Type type = d.types[0];
  if (type == Type::Pred || bitsOf(type) < 8)
    return d.unknownType();
  d.in.bytes = uint8_t(bitsOf(type) / 8);
  d.in.count = vector == "v4" ? 4 : vector == "v2" ? 2 : 1;
  if (d.in.bytes * d.in.count > 16)
    return d.fail("a vector has at most 16 bytes");
  noteGranule(d);
  const Operand &data = d.statement.operands[isLoad ? 0 : 1];
  const Operand &address = d.statement.operands[isLoad ? 1 : 0];
  std::vector<Operand> single{data};
  const std::vector<Operand> &parts =
      data.kind == Operand::Vector ? data.parts : single;
  if (parts.size() != d.in.count)
    return d.fail("as many registers are needed as the vector has elements");
  // An immediate has the size of the type.
  unsigned bits = parts[0].bits ? parts[0].bits : bitsOf(type);
  for (const Operand &part : parts)
    if ((part.bits ? part.bits : bitsOf(type)) / 64 != bits / 64)
      return d.fail("registers of a vector must be of one size");
  if (!isLoad) {
    if (!d.address(address))
      return false;
    for (const Operand &part : parts)
      if (!d.use(part, type, /*most=*/64))
        return false;
    d.in.detail |= bits << 8;
    d.in.run = &store;
    return true;
  }
  for (const Operand &part : parts)
    if (!d.def(part, type, /*most=*/64))
      return false;
  if (!d.address(address))
    return false;
  d.in.detail |= (isSigned(type) ? 2u : 0) | bits << 8;
  d.in.run = &load;
  return true;
}

bool standin::ptx::decodeMemory(Decoder &d) {
  if (d.op != "ld" && d.op != "st" && d.op != "ldu")
    return false;
  (void)decodeAccess(d, d.op != "st");
  return true;
}
