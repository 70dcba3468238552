//===- Flow.cpp - branches, barriers and ends -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Branches and barriers. bar.sync is barrier.sync.aligned: all threads of a
// warp must reach it together, and all threads of the block must reach the same
// one. A thread that has ended, or waits elsewhere, is an error: hardware would
// hang, or go on with values that are not there yet.
//
//===----------------------------------------------------------------------===//
#include "Execution.h"

#include <bit>

using namespace standin::ptx;

bool Execution::control(Warp &warp, const Instruction &in, uint32_t active) {
  switch (in.control) {
  case Control::Branch:
    return branch(warp, in, active);
  case Control::BranchIndexed:
    return branchIndexed(warp, in, active);
  case Control::Barrier:
    return barrier(warp, in, active);
  default:
    return exit(warp, in, active);
  }
}

void Execution::part(Warp &warp, uint32_t meeting,
                     const std::vector<Group> &ways) {
  Group from = warp.current;
  // Push a group for the point of reconvergence, unless a waiting group
  // continues there.
  if (meeting != from.until)
    warp.waiting.push_back({meeting, from.mask, from.until});
  for (const Group &way : ways)
    if (way.place != meeting)
      warp.waiting.push_back(way);
  warp.next();
}

bool Execution::branch(Warp &warp, const Instruction &in, uint32_t active) {
  Group &current = warp.current;
  uint32_t stay = current.mask & ~active;
  if (in.uniform && active && stay)
    return fault(warp, in, active,
                 "bra.uni, but threads of a warp go different ways");
  if (!stay)
    current.place = in.detail;
  else if (!active)
    ++current.place;
  else
    part(warp, in.meeting,
         {{in.detail, active, in.meeting},
          {current.place + 1, stay, in.meeting}});
  return true;
}

bool Execution::branchIndexed(Warp &warp, const Instruction &in,
                              uint32_t active) {
  if (!checkSources(warp, in, active))
    return false;
  std::map<uint32_t, uint32_t> masks; // lane masks, by place
  if (uint32_t stay = warp.current.mask & ~active)
    masks[warp.current.place + 1] = stay;
  const uint32_t *index = &warp.file[size_t(in.slots[0]) * kLanes];
  for (unsigned l = 0; l < kLanes; ++l) {
    if (!(active >> l & 1))
      continue;
    if (index[l] >= in.targets.size())
      return fault(warp, in, 1u << l, "jumps behind the list of targets");
    masks[in.targets[index[l]]] |= 1u << l;
  }
  if (masks.size() == 1) {
    warp.current.place = masks.begin()->first;
    return true;
  }
  std::vector<Group> ways;
  for (auto [place, mask] : masks)
    ways.push_back({place, mask, in.meeting});
  part(warp, in.meeting, ways);
  return true;
}

bool Execution::barrier(Warp &warp, const Instruction &in, uint32_t active) {
  if (!checkSources(warp, in, active))
    return false;
  if (warp.exited)
    return fault(warp, in, active ? active : warp.all,
                 "waits at a barrier, thread " +
                     std::to_string(
                         warp.thread(unsigned(std::countr_zero(warp.exited)))) +
                     " is through");
  if (active != warp.all)
    return fault(warp, in, active ? active : warp.all,
                 "threads of a warp are not together at a barrier: thread " +
                     std::to_string(warp.thread(
                         unsigned(std::countr_zero(warp.all & ~active)))) +
                     " is elsewhere");
  for (unsigned i = 0; i < in.srcs; ++i) {
    const uint32_t *words = &warp.file[size_t(in.slots[i]) * kLanes];
    for (unsigned l = 0; l < kLanes; ++l)
      if ((active >> l & 1) &&
          (i == 0 ? words[l] > 15
                  : words[l] != (threads + kLanes - 1) / kLanes * kLanes))
        return fault(warp, in, 1u << l,
                     i == 0 ? "there are 16 barriers"
                            : "a barrier of a part of the block is not known "
                              "to the interpreter");
  }
  warp.state = Warp::AtBarrier;
  return true;
}

bool Execution::exit(Warp &warp, const Instruction &in, uint32_t active) {
  // The next launch's wait is for this one alone.
  if (uint32_t blind = active & ~warp.sees)
    return fault(warp, in, blind, "ends without a wait for the kernels before");
  warp.exited |= active;
  warp.current.mask &= ~active;
  for (Group &group : warp.waiting)
    group.mask &= ~active;
  ++warp.current.place;
  while (!warp.current.mask && !warp.waiting.empty())
    warp.next();
  if (!warp.current.mask)
    warp.state = Warp::Done;
  return true;
}
