//===- Meetings.cpp - where lanes that part come together -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Finds the immediate post-dominator of each branch: the first instruction that
// every path from the branch to the end goes through. It is computed by the
// iteration of Cooper, Harvey and Kennedy ("A Simple, Fast Dominance
// Algorithm", 2001) over the reversed graph of basic blocks, with one node for
// the end.
//
//===----------------------------------------------------------------------===//
#include "Program.h"

#include <algorithm>

using namespace standin::ptx;

namespace {
struct Block {
  uint32_t begin, end; ///< instructions
  std::vector<uint32_t> next, before;
  uint32_t order = kNoPlace; ///< position in a postorder from the end, backward
  uint32_t dominator = kNoPlace;
};

class Graph {
public:
  explicit Graph(const Kernel &kernel);
  void solve();
  std::vector<Block> blocks; ///< the last one is the end

private:
  std::vector<uint32_t> places(const Instruction &in, uint32_t place) const;
  void number();
  uint32_t meet(uint32_t a, uint32_t b) const;
  uint32_t end() const { return uint32_t(blocks.size()) - 1; }
  std::vector<uint32_t> postorder;
};
} // namespace

static bool ends(const Instruction &in) {
  return in.control != Control::None && in.control != Control::Barrier;
}

/// Returns the successors of an instruction; kNoPlace stands for the end.
std::vector<uint32_t> Graph::places(const Instruction &in,
                                    uint32_t place) const {
  std::vector<uint32_t> to = in.targets;
  if (in.control == Control::Branch)
    to.push_back(in.detail);
  if (in.control == Control::Exit)
    to.push_back(kNoPlace);
  if (!ends(in) || in.guard != kNoSlot)
    to.push_back(place + 1);
  return to;
}

Graph::Graph(const Kernel &kernel) {
  auto size = uint32_t(kernel.code.size());
  std::vector<uint32_t> blockOf(size, 0);
  std::vector<bool> begins(size + 1, false);
  begins[0] = true;
  for (uint32_t i = 0; i < size; ++i)
    if (ends(kernel.code[i])) {
      begins[i + 1] = true;
      for (uint32_t to : places(kernel.code[i], i))
        if (to < size)
          begins[to] = true;
    }
  for (uint32_t i = 0; i < size; ++i) {
    if (begins[i]) {
      blocks.emplace_back();
      blocks.back().begin = i;
    }
    blocks.back().end = i + 1;
    blockOf[i] = uint32_t(blocks.size()) - 1;
  }
  blocks.emplace_back();
  blocks.back().begin = blocks.back().end = kNoPlace;
  for (uint32_t b = 0; b < end(); ++b) {
    uint32_t last = blocks[b].end - 1;
    for (uint32_t to : places(kernel.code[last], last)) {
      uint32_t other = to < size ? blockOf[to] : end();
      blocks[b].next.push_back(other);
      blocks[other].before.push_back(b);
    }
  }
}

void Graph::number() {
  std::vector<std::pair<uint32_t, size_t>> stack{{end(), 0}};
  std::vector<bool> seen(blocks.size(), false);
  seen[end()] = true;
  while (!stack.empty()) {
    auto &[b, at] = stack.back();
    if (at == blocks[b].before.size()) {
      blocks[b].order = uint32_t(postorder.size());
      postorder.push_back(b);
      stack.pop_back();
      continue;
    }
    uint32_t other = blocks[b].before[at++];
    if (!seen[other]) {
      seen[other] = true;
      stack.push_back({other, 0});
    }
  }
}

uint32_t Graph::meet(uint32_t a, uint32_t b) const {
  while (a != b) {
    while (blocks[a].order < blocks[b].order)
      a = blocks[a].dominator;
    while (blocks[b].order < blocks[a].order)
      b = blocks[b].dominator;
  }
  return a;
}

void Graph::solve() {
  number();
  blocks[end()].dominator = end();
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = postorder.size() - 1; i-- > 0;) {
      Block &block = blocks[postorder[i]];
      uint32_t made = kNoPlace;
      for (uint32_t other : block.next)
        if (blocks[other].dominator != kNoPlace)
          made = made == kNoPlace ? other : meet(made, other);
      changed |= made != block.dominator;
      block.dominator = made;
    }
  }
}

void standin::ptx::findMeetings(Kernel &kernel) {
  Graph graph(kernel);
  graph.solve();
  for (const Block &block : graph.blocks) {
    if (block.begin == kNoPlace)
      continue;
    Instruction &last = kernel.code[block.end - 1];
    // Lanes of a block that cannot reach the end never reconverge.
    if (ends(last) && block.dominator != kNoPlace)
      last.meeting = graph.blocks[block.dominator].begin;
  }
}
