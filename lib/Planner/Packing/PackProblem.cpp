//===- PackProblem.cpp - packing problems of their own --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: offsets for boxes that no plan made (`--pack-only`): offline
// dynamic storage allocation. Method: times are ranked, so that only their
// order counts, the load is a proven bound, and what lies between load and
// capacity is left to the packer. Gives up: with the packer (PackSolve.cpp).
// Complexity: O(n log n) beside it.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSolve.h"

#include <algorithm>
#include <limits>

using namespace ckopt::planner;

namespace {

/// This takes ten to fifteen seconds.
constexpr int64_t defaultWork = 200'000'000;

/// Replaces times by their ranks; each box has the first and the last rank that
/// it covers.
std::vector<Box> rankTimes(const std::vector<PackItem> &items) {
  std::vector<int64_t> times;
  for (const PackItem &item : items)
    times.push_back(item.lower);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto rank = [&](int64_t time) {
    return int32_t(std::lower_bound(times.begin(), times.end(), time) -
                   times.begin());
  };
  std::vector<Box> boxes;
  for (const PackItem &item : items)
    boxes.push_back({rank(item.lower), rank(item.upper) - 1, item.size, -1});
  return boxes;
}

/// Returns what is wrong with the request, or an empty string.
std::string check(const std::vector<PackItem> &items,
                  const PackOptions &options) {
  if (options.alignment < 1 || options.alignment > (int64_t(1) << 40))
    return "the alignment must be between 1 and 2^40";
  if (options.capacity < 0)
    return "the capacity must not be negative";
  int64_t room = std::numeric_limits<int64_t>::max() / 4;
  for (size_t i = 0; i < items.size(); ++i) {
    std::string name = "item " + std::to_string(i) + ": ";
    if (items[i].lower >= items[i].upper)
      return name + "lower must be before upper";
    if (items[i].size < 0)
      return name + "the size must not be negative";
    if (items[i].size > room ||
        alignTo(items[i].size, options.alignment) > room)
      return name + "the sizes up to here add up to more than 2^61 bytes";
    room -= alignTo(items[i].size, options.alignment);
  }
  return {};
}

} // namespace

PackResult ckopt::planner::packProblem(const std::vector<PackItem> &items,
                                       const PackOptions &options) {
  PackResult result;
  result.message = check(items, options);
  if (!result.message.empty())
    return result;
  PackModel model(rankTimes(items), options.alignment);
  int64_t units = options.workLimit > 0 ? options.workLimit : defaultWork;
  Deadline deadline(options.timeLimitSeconds, units);
  PackAnswer answer =
      packModel(model, options.capacity, options.seed, deadline);
  result.height = answer.arena;
  result.lowerBound = answer.lowerBound;
  if (answer.arena <= answer.lowerBound)
    result.proof = answer.searched ? PackProof::Search : PackProof::Load;
  for (int32_t unit : model.unitOf)
    result.offsets.push_back(answer.offsets[unit]);
  if (options.capacity == 0 || result.height <= options.capacity)
    result.status = PackStatus::Fits;
  else if (result.lowerBound > options.capacity)
    result.status = PackStatus::TooMuch;
  else
    result.status = PackStatus::Unknown;
  if (result.status == PackStatus::TooMuch)
    result.proof =
        model.load > options.capacity ? PackProof::Load : PackProof::Search;
  return result;
}
