//===- BatchSource.cpp - where the samples of a run come from -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/BatchSource.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/HostTensor.h"

using namespace llvm;

namespace ckopt {

Expected<std::unique_ptr<BatchSource>> BatchSource::holdOut(double share,
                                                            uint64_t) {
  if (share == 0)
    return nullptr;
  return usageError(name() + ": no share of its samples can be held out; give "
                             "a source of validation samples");
}

Expected<int64_t> BatchSource::nextRows(int64_t, RowRange, ArrayRef<void *>) {
  return makeError(ExitInternal, name() + " gives whole batches alone");
}

Expected<int64_t> BatchSource::nextTensors(int64_t count,
                                           std::optional<RowRange> rows,
                                           MutableArrayRef<HostTensor> to) {
  std::vector<void *> buffers;
  for (HostTensor &tensor : to)
    buffers.push_back(tensor.mutableRawData());
  return rows ? nextRows(count, *rows, buffers) : next(count, buffers);
}

std::string BatchSource::identity() const {
  std::optional<int64_t> count = numSamples();
  return count ? name() + " (" + std::to_string(*count) + " samples)" : name();
}

Error CallbackSource::seek(uint64_t newSeed, DataPosition place) {
  seed = newSeed;
  at = place;
  return Error::success();
}

Expected<int64_t> CallbackSource::next(int64_t count, ArrayRef<void *> to) {
  if (!function)
    return usageError(name() + " has no function that writes samples");
  Expected<int64_t> given = function({seed, at, count, to});
  if (given)
    at.position += *given;
  return given;
}

} // namespace ckopt
