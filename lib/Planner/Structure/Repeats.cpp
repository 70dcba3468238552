//===- Repeats.cpp - equal blocks in a sequence of labels -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: find the layers of a network in the sequence of its kernels, if
// nothing names them. Equal layers are equal sequences of kernels. Method: for
// each period, find ranges in which each label equals the one a period later
// (tandem repeats). The range of the largest weight wins, or the shortest
// period among equals; the blocks begin at the rotation with the fewest bytes
// across its cuts. Then the same to the left and right of it. Guarantee: every
// piece of a repeat has the same labels. Complexity: O(labels
// * longest period) a stretch; periods above 4096 are not tried.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Repeats.h"

#include <algorithm>

using namespace ckopt::planner;

namespace {

constexpr int32_t longestPeriod = 4096;

struct Stretch {
  int32_t first = 0, end = 0, period = 0;
  double weight = 0;
};

class RepeatFinder {
public:
  RepeatFinder(const std::vector<int32_t> &labels,
               const std::vector<double> &weights,
               const std::vector<int64_t> &cuts, int32_t leastPeriod)
      : labels(labels), cuts(cuts), leastPeriod(leastPeriod) {
    sums.assign(labels.size() + 1, 0);
    for (size_t i = 0; i < labels.size(); ++i)
      sums[i + 1] = sums[i] + weights[i];
  }
  std::vector<Repeat> run();

private:
  Stretch best(int32_t first, int32_t end) const;
  Repeat rotate(const Stretch &stretch) const;

  const std::vector<int32_t> &labels;
  const std::vector<int64_t> &cuts;
  const int32_t leastPeriod;
  std::vector<double> sums;
};

} // namespace

Stretch RepeatFinder::best(int32_t first, int32_t end) const {
  Stretch result;
  int32_t longest = std::min((end - first) / 2, longestPeriod);
  for (int32_t period = leastPeriod; period <= longest; ++period) {
    int32_t start = first;
    for (int32_t i = first; i + period <= end; ++i) {
      if (i + period < end && labels[i] == labels[i + period])
        continue;
      // Labels [start, i + period) repeat; only whole periods count.
      int32_t count = (i + period - start) / period;
      double weight = sums[start + count * period] - sums[start];
      if (count >= 2 && weight > result.weight * (1 + 1e-9))
        result = {start, i + period, period, weight};
      start = i + 1;
    }
  }
  return result;
}

Repeat RepeatFinder::rotate(const Stretch &stretch) const {
  Repeat result;
  double least = 0;
  for (int32_t r = 0; r < stretch.period; ++r) {
    int32_t first = stretch.first + r;
    int32_t count = (stretch.end - first) / stretch.period;
    if (count < 2 && r > 0)
      break;
    double across = 0;
    for (int32_t k = 0; k <= count && !cuts.empty(); ++k)
      across += double(cuts[size_t(first + k * stretch.period)]);
    across /= count + 1;
    if (r == 0 || across < least) {
      least = across;
      result = {first, stretch.period, count};
    }
  }
  return result;
}

std::vector<Repeat> RepeatFinder::run() {
  std::vector<Repeat> result;
  std::vector<std::pair<int32_t, int32_t>> open{{0, int32_t(labels.size())}};
  while (!open.empty()) {
    auto [first, end] = open.back();
    open.pop_back();
    if (end - first < 2 * leastPeriod)
      continue;
    Stretch stretch = best(first, end);
    if (stretch.period == 0)
      continue;
    Repeat found = rotate(stretch);
    result.push_back(found);
    open.push_back({first, found.first});
    open.push_back({found.first + found.count * found.period, end});
  }
  std::sort(result.begin(), result.end(),
            [](const Repeat &a, const Repeat &b) { return a.first < b.first; });
  return result;
}

std::vector<Repeat> ckopt::planner::findRepeats(
    const std::vector<int32_t> &labels, const std::vector<double> &weights,
    const std::vector<int64_t> &cuts, int32_t leastPeriod) {
  return RepeatFinder(labels, weights, cuts, std::max(1, leastPeriod)).run();
}
