//===- BlockStretches.h - options of stretches of blocks --------*- C++ -*-===//
//
// Private to lib/Planner: a binary tree over a chain of blocks, whose nodes are
// stretches with options of their own, running forwards again among them.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_BLOCKSTRETCHES_H
#define CKOPT_LIB_PLANNER_BLOCKSTRETCHES_H

#include "BlockOptions.h"

namespace ckopt::planner {

/// An option of a tree node: two options of its children, or a block's own.
struct StretchChoice {
  BlockOption cost;
  int32_t left, right; ///< into the children's; left = -1: a block's option
  /// None: the children's. Again: the stretch runs forwards again. Handed: what
  /// its blocks hand on is made again from what they keep.
  enum Kind : uint8_t { None, Again, Handed } kind = None;
};

struct Stretch {
  int32_t left = -1, right = -1; ///< nodes; -1: a block
  int64_t hands = 0;             ///< bytes that later blocks read
  int64_t bound = 0;             ///< bytes that stay whatever is chosen
  int64_t incoming = 0;
  int64_t passTop = 0; ///< load of a forward part that keeps nothing
  double pass = 0;     ///< and its cost
  /// The least that its last block's results cost to make again.
  double leastRemake = 0;
  std::vector<StretchChoice> choices;
  int32_t firstAgain = 0; ///< choices from here on run forwards again
};

/// The stretches of 2^k blocks, the k-th level of the tree; a rest at the end
/// of the chain that is too short for one has none.
class StretchTree {
public:
  /// `options` is by kind. Choices that break `budget` (bytes, of which `base`
  /// are taken by what belongs to no block) are left out. Where the deadline
  /// passes, levels from some on are missing.
  StretchTree(const BlockChain &chain,
              const std::vector<std::vector<BlockOption>> &options,
              int64_t base, int64_t budget, Deadline &deadline);

  int32_t numLevels() const { return int32_t(levels.size()); }
  int32_t numStretches(int32_t level) const {
    return int32_t(levels[level].size());
  }
  /// The stretch of the blocks [index << level, (index + 1) << level).
  const Stretch &at(int32_t level, int32_t index) const {
    return stretches[levels[level][index]];
  }
  /// The most bytes beside blocks while the backward part is at a stretch.
  int64_t besideOf(int32_t level, int32_t index) const {
    return beside[level][index];
  }

private:
  void addBlocks(const std::vector<std::vector<BlockOption>> &options);
  void addLevels();
  std::vector<std::vector<int64_t>> handedOn() const;
  void join(int32_t left, int32_t right, int64_t hands);
  void addAgain(Stretch &stretch, const Stretch &last) const;
  void thin(std::vector<StretchChoice> &choices, size_t most) const;

  const BlockChain &chain;
  int64_t base, budget;
  Deadline &deadline;
  std::vector<Stretch> stretches;
  std::vector<std::vector<int32_t>> levels; ///< by level and index
  std::vector<std::vector<int64_t>> beside; ///< likewise
};

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_BLOCKSTRETCHES_H
