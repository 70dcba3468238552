//===- WarpOps.cpp - what lanes of a warp do together ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Instructions of whole warps (PTX ISA, "shfl.sync", "vote.sync", "activemask",
// "bar.warp.sync"). All lanes of the member mask that have not ended must be in
// the current group. Every other group has been run as far as possible before,
// so a missing lane waits elsewhere.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"
#include "Execution.h"

using namespace standin::ptx;

/// Returns whether the current lanes are exactly those of the mask in the slot.
static bool together(Lanes &lanes, Slot mask) {
  const uint32_t *masks = lanes.slot(mask);
  uint32_t living = lanes.warp->all & ~lanes.warp->exited;
  for (unsigned l = 0; l < kLanes; ++l)
    if ((lanes.active >> l & 1) && (masks[l] & living) != lanes.active) {
      lanes.fault = masks[l] >> l & 1
                        ? "lanes of the member mask are not together here"
                        : "this lane is not in the member mask";
      lanes.faultLane = l;
      return false;
    }
  return true;
}

// Bits of the detail: how lanes are picked; bit 2 says that a predicate follows
// the result.
enum Shuffle : uint32_t { Up, Down, Butterfly, Index };

static void shuffle(const Instruction &in, Lanes &lanes) {
  unsigned first = in.dsts;
  const uint32_t *a = lanes.slot(in.slots[first]);
  const uint32_t *b = lanes.slot(in.slots[first + 1]);
  const uint32_t *c = lanes.slot(in.slots[first + 2]);
  if (!together(lanes, in.slots[first + 3]))
    return;
  uint32_t values[kLanes] = {}, inRange = 0;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (!(lanes.active >> lane & 1))
      continue;
    // This follows the manual's pseudocode.
    unsigned bval = b[lane] & 0x1F, clamp = c[lane] & 0x1F;
    unsigned segment = c[lane] >> 8 & 0x1F;
    unsigned most = (lane & segment) | (clamp & ~segment & 0x1F);
    unsigned least = lane & segment, from = lane;
    bool good = false;
    switch (in.detail & 3) {
    case Up:
      from = lane - bval, good = int(from) >= int(most);
      break;
    case Down:
      from = lane + bval, good = from <= most;
      break;
    case Butterfly:
      from = lane ^ bval, good = from <= most;
      break;
    default:
      from = least | (bval & ~segment & 0x1F), good = from <= most;
    }
    if (!good)
      from = lane;
    values[lane] = a[from];
    inRange |= uint32_t(good) << lane;
    if (!(lanes.active >> from & 1))
      lanes.undefined |= 1u << lane;
  }
  uint32_t *to = lanes.slot(in.slots[0]);
  for (unsigned l = 0; l < kLanes; ++l)
    if (lanes.active >> l & 1)
      to[l] = values[l];
  if (in.detail & 4) {
    uint32_t *p = lanes.slot(in.slots[1]);
    *p = (*p & ~lanes.active) | (inRange & lanes.active);
  }
}

static bool decodeShuffle(Decoder &d) {
  std::string_view how = d.takeOf({"up", "down", "bfly", "idx"});
  if (!d.take("sync") || how.empty() || !d.expect(5, 1) ||
      d.types[0] != Type::B32)
    return d.fail("shfl.sync.{up,down,bfly,idx}.b32 d, a, b, c, mask is "
                  "needed");
  d.in.detail = how == "up"     ? Up
                : how == "down" ? Down
                : how == "bfly" ? Butterfly
                                : Index;
  const Operand &result = d.statement.operands[0];
  if (!d.def(result, Type::B32))
    return false;
  if (!result.parts.empty()) {
    d.in.detail |= 4;
    if (!d.def(result.parts[0], Type::Pred))
      return false;
  }
  d.in.run = &shuffle;
  for (size_t i = 1; i < 5; ++i)
    if (!d.use(i, Type::B32))
      return false;
  return true;
}

enum Vote : uint32_t { All, Any, Uniform, Ballot, Active };

static void vote(const Instruction &in, Lanes &lanes) {
  uint32_t *to = lanes.slot(in.slots[0]);
  uint32_t active = lanes.active, result = active;
  if (in.detail != Active) {
    if (!together(lanes, in.slots[2]))
      return;
    result = *lanes.slot(in.slots[1]) & active;
  }
  if (in.detail == Ballot || in.detail == Active) {
    for (unsigned l = 0; l < kLanes; ++l)
      if (active >> l & 1)
        to[l] = result;
    return;
  }
  bool all = result == active, none = result == 0;
  bool holds = in.detail == All ? all : in.detail == Any ? !none : all || none;
  *to = (*to & ~active) | (holds ? active : 0);
}

static bool decodeVote(Decoder &d) {
  d.in.run = &vote;
  if (d.op == "activemask") {
    d.in.detail = Active;
    return d.expect(1, 1) && d.def(size_t(0), Type::B32);
  }
  std::string_view how = d.takeOf({"all", "any", "uni", "ballot"});
  if (!d.take("sync") || how.empty() || !d.expect(3, 1))
    return d.fail("vote.sync.{all,any,uni,ballot} d, p, mask is needed");
  d.in.detail = how == "all"   ? All
                : how == "any" ? Any
                : how == "uni" ? Uniform
                               : Ballot;
  Type type = how == "ballot" ? Type::B32 : Type::Pred;
  if (d.types[0] != type)
    return d.unknownType();
  return d.defUse(type, {Type::Pred, Type::U32});
}

/// Orders memory among the lanes: see Memory.h.
static void warpBarrier(const Instruction &in, Lanes &lanes) {
  if (!together(lanes, in.slots[0]))
    return;
  Clock &clock = lanes.warp->execution->memory.clock;
  if (lanes.active == (lanes.warp->all & ~lanes.warp->exited))
    lanes.warp->time = ++clock.now;
}

bool standin::ptx::decodeWarp(Decoder &d) {
  if (d.op == "shfl") {
    (void)decodeShuffle(d);
  } else if (d.op == "vote" || d.op == "activemask") {
    (void)decodeVote(d);
  } else if (d.op == "bar" && d.take("warp")) {
    d.in.run = &warpBarrier;
    if (!d.take("sync") || d.operands() != 1)
      (void)d.fail("bar.warp.sync mask is needed");
    else
      (void)d.use(size_t(0), Type::B32);
  } else {
    return false;
  }
  return true;
}
