//===- Copies.cpp - PTX ISA, "Data Movement": cp.async --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Copies to shared memory that are under way while threads compute. They are
// made as late as a wait allows, and until then nobody may access their bytes:
// a read before its wait is an error, and so is one by another thread without a
// barrier behind the wait, which is a race with the copy.
//
//===----------------------------------------------------------------------===//
#include "Accessor.h"
#include "Decode.h"

#include <algorithm>
#include <cstring>

using namespace standin::ptx;

// Bits of the detail: 0 and 1, addresses have 32 bits; 2, the bytes to read are
// an operand; from 8 on, the bytes of the copy.
static void begin(const Instruction &in, Lanes &lanes) {
  unsigned bytes = in.detail >> 8;
  Accessor to(in, lanes, /*write=*/true, Space::Shared, bytes),
      from(in, lanes, /*write=*/false, Space::Global, bytes);
  Execution &execution = *lanes.warp->execution;
  auto address = [&](unsigned slot, unsigned l) {
    uint32_t *base = lanes.slot(in.slots[slot]);
    return in.detail >> slot & 1 ? uint64_t(base[l])
                                 : reinterpret_cast<uint64_t *>(base)[l];
  };
  uint64_t sources[kLanes];
  uint32_t reads = 0;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    lanes.faultLane = l;
    uint64_t offset = reinterpret_cast<uint64_t *>(lanes.slot(in.slots[2]))[l];
    Copy copy{address(0, l) + uint64_t(in.offset), address(1, l) + offset,
              bytes, bytes, uint32_t(&in - execution.kernel.code.data())};
    if (in.detail & 4)
      copy.read = lanes.slot(in.slots[3])[l];
    if (copy.read != 0 && copy.read != bytes) {
      lanes.fault =
          "a copy of some bytes and zeros, which the interpreter does "
          "not know";
      return;
    }
    if (!to.place(copy.to, l) || (copy.read && !from.place(copy.from, l)))
      return;
    uint64_t first = (copy.to - kSharedBase) / execution.kernel.sharedGranule;
    for (unsigned i = 0; i < bytes / execution.kernel.sharedGranule; ++i)
      execution.underWay[first + i] = copy.instruction + 1;
    sources[l] = copy.from;
    reads |= uint32_t(copy.read != 0) << l;
    lanes.warp->copies[l].open.push_back(copy);
  }
  countSectors(execution.memory.loads, sources, reads, bytes);
}

static void commit(const Instruction &, Lanes &lanes) {
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1) {
      Warp::Copies &copies = lanes.warp->copies[l];
      copies.closed.push_back(std::move(copies.open));
      copies.open.clear();
    }
}

/// Makes a copy, which the thread then has written.
static bool finish(const Instruction &in, Lanes &lanes, const Copy &copy,
                   unsigned lane) {
  Accessor to(in, lanes, /*write=*/true, Space::Shared, copy.bytes),
      from(in, lanes, /*write=*/false, Space::Global, copy.bytes);
  to.begins = true;
  const char *source = copy.read ? from.place(copy.from, lane) : nullptr;
  char *target = to.place(copy.to, lane);
  if (!target || (copy.read && !source))
    return false;
  if (source)
    std::memcpy(target, source, copy.bytes);
  else
    std::memset(target, 0, copy.bytes);
  Execution &execution = *lanes.warp->execution;
  unsigned granule = execution.kernel.sharedGranule;
  uint64_t first = (copy.to - kSharedBase) / granule;
  std::fill_n(&execution.underWay[first], copy.bytes / granule, 0);
  return true;
}

// The detail is the number of groups that may be under way, or kAllOf.
static constexpr uint32_t kAllOf = ~0u;

static void wait(const Instruction &in, Lanes &lanes) {
  if (in.detail == kAllOf)
    commit(in, lanes);
  size_t pending = in.detail == kAllOf ? 0 : in.detail;
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(lanes.active >> l & 1))
      continue;
    auto &closed = lanes.warp->copies[l].closed;
    size_t done = closed.size() - std::min(closed.size(), pending);
    for (size_t group = 0; group < done; ++group)
      for (const Copy &copy : closed[group])
        if (!finish(in, lanes, copy, l)) {
          lanes.faultLane = l;
          return;
        }
    closed.erase(closed.begin(), closed.begin() + long(done));
  }
}

static bool decodeCopy(Decoder &d) {
  std::string_view caching = d.takeOf({"ca", "cg"});
  if (caching.empty() || (!d.take("shared") && !d.take("shared::cta")) ||
      !d.take("global") || d.operands() < 3 || d.operands() > 4)
    return d.fail("cp.async.{ca,cg}.shared.global [to], [from], bytes is "
                  "needed");
  d.takeOf({"L2::64B", "L2::128B", "L2::256B"});
  const auto &operands = d.statement.operands;
  uint64_t bytes = operands[2].value;
  if (operands[2].kind != Operand::Immediate ||
      (bytes != 16 && (caching == "cg" || (bytes != 4 && bytes != 8))))
    return d.fail("a copy has 4, 8 or 16 bytes, with .cg 16");
  if (!d.address(operands[0]))
    return false;
  uint32_t detail = d.in.detail | uint32_t(bytes) << 8;
  int64_t offset = d.in.offset;
  if (!d.address(operands[1]))
    return false;
  detail |= d.in.detail << 1;
  Operand from;
  from.kind = Operand::Immediate, from.literal = Type::U64;
  from.value = uint64_t(d.in.offset);
  if (!d.use(from, Type::U64))
    return false;
  if (operands.size() == 4) {
    detail |= 4;
    if (!d.use(operands[3], Type::B32))
      return false;
  }
  d.in.offset = offset;
  d.in.detail = detail;
  d.in.run = &begin;
  d.kernel.sharedGranule = std::min(d.kernel.sharedGranule, unsigned(bytes));
  d.kernel.globalGranule = std::min(d.kernel.globalGranule, unsigned(bytes));
  return true;
}

static bool decodeAsync(Decoder &d) {
  if (d.take("commit_group")) {
    d.in.run = &commit;
    return d.operands() == 0 || d.fail("no operand is needed");
  }
  if (d.take("wait_all")) {
    d.in.run = &wait;
    d.in.detail = kAllOf;
    return d.operands() == 0 || d.fail("no operand is needed");
  }
  if (!d.take("wait_group"))
    return decodeCopy(d);
  d.in.run = &wait;
  if (d.operands() != 1 || d.statement.operands[0].kind != Operand::Immediate)
    return d.fail("a number of groups is needed");
  d.in.detail = uint32_t(d.statement.operands[0].value);
  return true;
}

bool standin::ptx::decodeCopies(Decoder &d) {
  if (d.op != "cp" || !d.take("async"))
    return false;
  (void)decodeAsync(d);
  return true;
}
