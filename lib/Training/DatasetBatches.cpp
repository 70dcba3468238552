//===- DatasetBatches.cpp - splits and the order of batches ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Everything is a pure function of (count, seed, epoch): a run is resumed from
// two numbers. O(samples) an epoch.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Training/Dataset.h"
#include "ckopt/Training/Permutation.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;

namespace ckopt {

Expected<DataSplit> splitHoldout(int64_t count, double fraction,
                                 uint64_t seed) {
  if (!(fraction >= 0 && fraction < 1))
    return usageError("the held-out fraction must be at least 0 and below 1");
  // A hair above keeps 0.3 of 10 at 3, where 0.3 * 10 is 2.9999...
  const int64_t held =
      std::min(count, int64_t(std::floor(double(count) * fraction + 1e-9)));
  if (fraction > 0 && (held == 0 || held == count))
    return inputError("holding out " + Twine(std::to_string(fraction)) +
                      " of " + Twine(count) + " samples leaves one part empty");
  const std::vector<int64_t> order =
      randomPermutation(count, seed, RandomUse::Holdout, 0);
  DataSplit split;
  split.holdout.assign(order.begin(), order.begin() + held);
  split.train.assign(order.begin() + held, order.end());
  llvm::sort(split.holdout);
  llvm::sort(split.train);
  return split;
}

Expected<BatchIterator> BatchIterator::create(std::vector<int64_t> samples,
                                              int64_t batchSize, uint64_t seed,
                                              DataPosition start) {
  if (batchSize < 1)
    return usageError("the batch size must be at least 1");
  if (int64_t(samples.size()) < batchSize)
    return inputError(Twine(samples.size()) +
                      " training samples do not fill one batch of " +
                      Twine(batchSize) + "; use a smaller batch");
  const int64_t whole = int64_t(samples.size()) / batchSize * batchSize;
  if (start.epoch < 0 || start.position < 0 || start.position > whole ||
      start.position % batchSize != 0)
    return inputError("no batch begins at epoch " + Twine(start.epoch) +
                      ", sample " + Twine(start.position) +
                      " (was the run begun with another batch size?)");
  BatchIterator result;
  result.samples = std::move(samples);
  result.batchSize = batchSize;
  result.seed = seed;
  result.at = start;
  if (start.position == whole)
    result.at = {start.epoch + 1, 0};
  return result;
}

void BatchIterator::makeOrder() {
  order = epochPermutation(int64_t(samples.size()), seed, at.epoch);
  for (int64_t &index : order)
    index = samples[size_t(index)];
  orderEpoch = at.epoch;
}

ArrayRef<int64_t> BatchIterator::next() {
  if (orderEpoch != at.epoch)
    makeOrder();
  // The order outlives this batch: it is made anew only by the next call.
  const ArrayRef<int64_t> batch(order.data() + at.position, size_t(batchSize));
  at.position += batchSize;
  if (at.position + batchSize > int64_t(samples.size()))
    at = {at.epoch + 1, 0};
  return batch;
}

std::vector<EvalBatch> evaluationBatches(ArrayRef<int64_t> samples,
                                         int64_t batchSize) {
  assert(batchSize > 0 && "checked by the caller");
  std::vector<EvalBatch> batches;
  while (!samples.empty()) {
    const ArrayRef<int64_t> part = samples.take_front(size_t(batchSize));
    samples = samples.drop_front(part.size());
    EvalBatch batch;
    batch.valid = int64_t(part.size());
    batch.indices.assign(part.begin(), part.end());
    batch.indices.resize(size_t(batchSize), part.front());
    batch.mask.assign(size_t(batchSize), 0);
    std::fill_n(batch.mask.begin(), part.size(), uint8_t(1));
    batches.push_back(std::move(batch));
  }
  return batches;
}

} // namespace ckopt
