//===- DatasetSource.cpp - the samples of a dataset, batch by batch -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The order is a pure function of (count, seed, epoch): a run is resumed from
// two numbers. O(samples) an epoch.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Data/Dataset.h"
#include "ckopt/Train/Data/Permutation.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace llvm;

namespace ckopt {

Expected<ArrayFile> openTokenFile(StringRef path, DType type,
                                  int64_t sequence) {
  if (sequence < 1)
    return usageError("a sequence has at least one token");
  Expected<HostArray> numbers = mapNumbers(path, type);
  if (!numbers)
    return numbers.takeError();
  const int64_t count = numbers->shape.front();
  const int64_t pieces = (count - 1) / sequence; // the last has a next one, too
  if (pieces < 1)
    return inputError(path + ": " + Twine(count) +
                      " tokens do not fill a sequence of " + Twine(sequence) +
                      " and the token that follows it");
  ArrayFile file;
  file.name = path.str();
  file.arrays = {"tokens", "next"};
  file.read = [=, tokens = *numbers,
               name = path.str()](StringRef array) -> Expected<HostArray> {
    if (array != "tokens" && array != "next")
      return inputError(name + ": no array '" + array +
                        "'; there are tokens, next");
    HostArray result = tokens;
    result.shape = {pieces, sequence};
    result.bytes += array == "next" ? dtypeSize(type) : 0;
    return result;
  };
  return file;
}

DatasetSource::DatasetSource(Dataset given, Order order)
    : data(std::move(given)), order(order) {
  for (size_t i = 0; i < data.numFields(); ++i) {
    const FieldSpec &spec = data.spec(i);
    list.push_back(
        {spec.name, spec.dtype, data.sampleShape(i).vec(), spec.batched});
  }
}

Error DatasetSource::seek(uint64_t seed, DataPosition place) {
  const int64_t count = *numSamples();
  if (data.numSamples() > UINT32_MAX)
    return inputError(name() + ": more than 2^32 samples");
  if (place.epoch < 0 || place.position < 0 || place.position > count)
    return inputError(name() + ": epoch " + Twine(place.epoch) +
                      " has no sample " + Twine(place.position));
  at = place.position;
  if (order == Order::Shuffled)
    sequence = epochPermutation<uint32_t>(count, seed, place.epoch);
  return Error::success();
}

Expected<int64_t> DatasetSource::nextRows(int64_t count, RowRange rows,
                                          ArrayRef<void *> to) {
  count = std::min(count, *numSamples() - at);
  last.clear();
  lastFirst = rows.first;
  for (int64_t i = 0; i < rows.within(count); ++i) {
    int64_t place = at + rows.first + i;
    int64_t index = sequence.empty() ? place : sequence[size_t(place)];
    last.push_back(samples ? (*samples)[size_t(index)] : index);
  }
  at += count;
  for (size_t field = 0; field < to.size(); ++field)
    data.gather(field, last, to[field]);
  return count;
}

std::string DatasetSource::nameSample(int64_t i) const {
  i -= lastFirst;
  return i < 0 || i >= int64_t(last.size()) ? ""
                                            : data.nameSample(last[size_t(i)]);
}

Expected<HeldOut> drawHeldOut(int64_t count, double share, uint64_t seed) {
  if (!(share >= 0 && share < 1))
    return usageError(Setting("holdout") + " must be at least 0 and below 1");
  // A hair above keeps 0.3 of 10 at 3, where 0.3 * 10 is 2.9999...
  const int64_t held =
      std::min(count, int64_t(std::floor(double(count) * share + 1e-9)));
  if (share > 0 && (held == 0 || held == count))
    return inputError("holding out " + Twine(std::to_string(share)) + " of " +
                      Twine(count) + " samples leaves one part empty");
  if (held == 0)
    return HeldOut();
  const std::vector<uint32_t> all =
      randomPermutation<uint32_t>(count, seed, RandomUse::Holdout, 0);
  HeldOut result{{all.begin() + held, all.end()},
                 {all.begin(), all.begin() + held}};
  llvm::sort(result.train);
  llvm::sort(result.held);
  return result;
}

Expected<std::unique_ptr<BatchSource>> DatasetSource::holdOut(double share,
                                                              uint64_t seed) {
  Expected<HeldOut> parts = drawHeldOut(data.numSamples(), share, seed);
  if (!parts)
    return parts.takeError();
  samples.reset();
  if (parts->held.empty())
    return nullptr;
  samples = std::move(parts->train);
  auto rest = std::make_unique<DatasetSource>(data, Order::AsStored);
  rest->samples = std::move(parts->held);
  return std::move(rest);
}

} // namespace ckopt
