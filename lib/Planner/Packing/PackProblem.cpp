//===- PackProblem.cpp - one packing problem ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Objective: offsets for buffers, those of plans or others (`--pack-only`):
// offline dynamic storage allocation (NP-hard). Method: times are ranked, so
// that only their order counts, the load is a proven bound, and what lies
// between load and capacity is left to the packer. Gives up: with the packer
// (PackSolve.cpp). Complexity: O(n log n) beside it.
//
//===----------------------------------------------------------------------===//
#include "Packing/PackSolve.h"
#include "ckopt/Support/Debug.h"

#include <algorithm>
#include <limits>

using namespace ckopt;
using namespace ckopt::planner;

namespace {

/// Replaces times by the ranks of those at which a buffer's life begins.
void rankTimes(std::vector<Buffer> &buffers) {
  std::vector<int64_t> times;
  for (const Buffer &buffer : buffers)
    times.push_back(buffer.lifespan.lower);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto rank = [&](int64_t time) {
    return std::lower_bound(times.begin(), times.end(), time) - times.begin();
  };
  for (auto &[lifespan, size, inPlaceOf] : buffers)
    lifespan = {rank(lifespan.lower), rank(lifespan.upper)};
}

/// Returns what is wrong with the problem, or an empty string.
std::string check(const PackProblem &problem, bool ranked) {
  const std::vector<Buffer> &buffers = problem.buffers;
  if (problem.alignment < 1 || problem.alignment > (int64_t(1) << 40))
    return "the alignment must be between 1 and 2^40";
  if (problem.capacity < 0)
    return "the capacity must not be negative";
  constexpr int64_t latest = std::numeric_limits<int32_t>::max();
  int64_t room = std::numeric_limits<int64_t>::max() / 4;
  for (size_t i = 0; i < buffers.size(); ++i) {
    auto [lifespan, size, inPlaceOf] = buffers[i];
    std::string name = "buffer " + std::to_string(i) + ": ";
    if (lifespan.lower >= lifespan.upper)
      return name + "lower must be before upper";
    if (!ranked && (lifespan.lower < 0 || lifespan.upper > latest))
      return name + "times must be between 0 and 2^31";
    if (inPlaceOf >= 0 && size_t(inPlaceOf) >= i)
      return name + "it can take the place of an earlier one only";
    if (size < 0)
      return name + "the size must not be negative";
    if (size > room || alignTo(size, problem.alignment) > room)
      return name + "the sizes up to here add up to more than 2^61 bytes";
    room -= alignTo(size, problem.alignment);
  }
  return {};
}

} // namespace

PackResult ckopt::planner::pack(const PackProblem &problem,
                                const PackOptions &options) {
  PackResult result;
  result.message = check(problem, options.rankTimes);
  if (!result.message.empty())
    return result;
  std::vector<Buffer> buffers = problem.buffers;
  if (options.rankTimes)
    rankTimes(buffers);
  PackModel model(buffers, problem.alignment);
  result.facts = {model.load, model.load, false};
  result.status = PackStatus::Unknown;
  if (!options.search)
    return result;
  debug::count(debug::Counter::Packings);
  Deadline deadline(options.timeLimitSeconds, options.workLimit);
  PackAnswer answer =
      packModel(model, problem.capacity, options.seed, deadline);
  result.height = answer.arena;
  result.facts = {model.load, answer.lowerBound, answer.searched};
  for (int32_t unit : model.unitOf)
    result.offsets.push_back(answer.offsets[unit]);
  if (problem.capacity == 0 || result.height <= problem.capacity)
    result.status = PackStatus::Fits;
  else if (answer.lowerBound > problem.capacity)
    result.status = PackStatus::TooMuch;
  bool tooMuch = result.status == PackStatus::TooMuch;
  if (tooMuch || answer.arena <= answer.lowerBound)
    result.proof = (tooMuch ? model.load <= problem.capacity : answer.searched)
                       ? PackProof::Search
                       : PackProof::Load;
  return result;
}
