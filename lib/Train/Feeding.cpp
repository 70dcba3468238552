//===- Feeding.cpp - batches of a source for a session --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Samples of sources that were not checked as a whole are checked here, before
// a step sees them. O(bytes of a batch) a batch.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Feeding.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"

#include <cstring>

using namespace ckopt;
using runtime::TensorRole;

/// The source's names of fields, for errors.
static std::string listFields(const BatchSource &source) {
  std::string text;
  for (const SourceField &field : source.fields())
    text += (text.empty() ? "'" : ", '") + field.name + "'";
  return text.empty() ? "none" : text;
}

llvm::Expected<Feeder> Feeder::create(Session &session, BatchSource &source,
                                      const StepData &data, bool needTargets,
                                      Rows rows) {
  auto specs = describeFields(session, data);
  if (!specs)
    return specs.takeError();
  Feeder result(session, source);
  const int64_t share = ckopt::batchSize(session.manifest());
  result.ranks = rows == Rows::All ? 1 : session.ranks().size();
  result.batch = share * result.ranks;
  if (rows == Rows::Own && result.ranks > 1 && source.readsRows())
    result.own = RowRange{session.ranks().number() * share, share};
  for (const SourceField &field : source.fields()) {
    auto spec = llvm::find_if(
        *specs, [&](const FieldSpec &is) { return is.name == field.name; });
    if (spec == specs->end())
      return inputError(source.name() + ": the step takes no field '" +
                        field.name + "', or takes it twice");
    if (spec->batched != field.batched)
      return inputError(source.name() + ": '" + field.name + "' is " +
                        (spec->batched ? "data of each sample"
                                       : "one constant for all samples") +
                        " in the step, not in the source");
    std::vector<int64_t> shape = field.shape;
    if (field.batched)
      shape.insert(shape.begin(), share);
    if (!source.isChecked())
      spec->array = field.name; // there is no file whose array it could be
    if (llvm::Error error = checkShape(*spec, shape))
      return withContext(std::move(error), source.name());
    if (field.batched)
      shape.front() = result.numHeld();
    HostTensor value(field.dtype, std::move(shape));
    auto index = session.find(field.name);
    if (!index)
      return index.takeError();
    result.tensors.push_back(*index);
    result.values.push_back(std::move(value));
    result.specs.push_back(std::move(*spec));
    specs->erase(spec);
  }
  for (const FieldSpec &spec : *specs) {
    auto index = session.find(spec.name);
    if (!index)
      return index.takeError();
    if (needTargets || session.infoOf(*index).role != TensorRole::Target)
      return inputError(source.name() + ": no field '" + spec.name +
                        "'; there are " + listFields(source));
  }
  return std::move(result);
}

void Feeder::fillUp(int64_t valid) {
  for (size_t field = 0; field < specs.size(); ++field) {
    if (!specs[field].batched)
      continue;
    size_t bytes = size_t(values[field].sizeInBytes() / numHeld());
    char *data = static_cast<char *>(values[field].mutableRawData());
    // Where places of a batch have limits the first sample may not fit others;
    // 0 is a label and an index everywhere.
    bool fits = llvm::none_of(specs[field].limits.parts,
                              [](const PartLimits &is) { return !is.axis; });
    for (int64_t i = valid; i < numHeld(); ++i)
      if (fits)
        std::memcpy(data + size_t(i) * bytes, data, bytes);
      else
        std::memset(data + size_t(i) * bytes, 0, bytes);
  }
}

/// Names a sample by its place in the batch of all ranks.
std::string Feeder::nameSample(int64_t i) const {
  std::string name = source->nameSample(i);
  return name.empty() ? "sample " + std::to_string(loadedAt.position + i) +
                            " of epoch " + std::to_string(loadedAt.epoch + 1)
                      : name;
}

llvm::Error Feeder::check() const {
  auto name = [&](int64_t i) { return nameSample(i + (own ? own->first : 0)); };
  for (size_t field = 0; field < specs.size(); ++field)
    if (llvm::Error error = checkValues(specs[field], values[field], name))
      return withContext(std::move(error), source->name());
  return llvm::Error::success();
}

llvm::Expected<int64_t> Feeder::load(DataPosition at) {
  compared = false;
  auto count = source->nextTensors(batch, own, values);
  if (!count)
    return count.takeError();
  if (*count < 0 || *count > batch)
    return inputError(source->name() + " gave " + llvm::Twine(*count) +
                      " samples where " + llvm::Twine(batch) +
                      " were asked for");
  int64_t valid = own ? own->within(*count) : *count;
  if (valid == 0)
    return *count;
  fillUp(valid);
  loadedAt = at;
  if (!source->isChecked())
    if (llvm::Error error = check())
      return std::move(error);
  return *count;
}

/// Returns part `number` of a batch that is cut into parts of so many rows.
static HostTensor rowsOf(const HostTensor &value, int64_t rows,
                         int64_t number) {
  std::vector<int64_t> shape = value.shape().vec();
  shape.front() = rows;
  HostTensor part(value.dtype(), std::move(shape));
  size_t bytes = size_t(part.sizeInBytes());
  std::memcpy(part.mutableRawData(),
              static_cast<const char *>(value.rawData()) +
                  size_t(number) * bytes,
              bytes);
  return part;
}

/// Returns the rows of a batch that belong to this rank.
static HostTensor shareOf(const HostTensor &value, const Ranks &ranks) {
  return rowsOf(value, value.dim(0) / ranks.size(), ranks.number());
}

static uint64_t hashOf(llvm::ArrayRef<HostTensor> values) {
  std::string hashes;
  for (const HostTensor &value : values)
    hashes += std::to_string(llvm::xxh3_64bits(
                  {static_cast<const uint8_t *>(value.rawData()),
                   size_t(value.sizeInBytes())})) +
              " ";
  return llvm::xxh3_64bits(hashes);
}

/// Other samples behind one name would train on a mixture that no run could
/// repeat.
static llvm::Error checkSameBatch(const Ranks &ranks,
                                  llvm::ArrayRef<HostTensor> values) {
  auto all = ranks.gather(hashOf(values));
  if (!all)
    return all.takeError();
  for (size_t rank = 1; rank < all->size(); ++rank)
    if ((*all)[rank] != all->front())
      return makeError(ExitRank, "rank " + llvm::Twine(rank) +
                                     " read other samples than rank 0");
  return llvm::Error::success();
}

llvm::Expected<bool> Feeder::agree(llvm::Expected<bool> found) {
  if (ranks == 1 || own || (!found && session->ranks().failureEndsAll()))
    return found;
  Meeting meeting = {Call::Batch, 0, "read other samples than rank 0"};
  bool given = found && *found;
  if (given)
    meeting.same = hashOf(values);
  else if (found)
    meeting.call = Call::End;
  if (llvm::Error error = session->ranks().meet(meeting, found.takeError()))
    return std::move(error);
  compared = given;
  return given;
}

llvm::Error Feeder::write() {
  if (ranks > 1 && !own && !compared)
    if (llvm::Error error = checkSameBatch(session->ranks(), values))
      return error;
  for (size_t field = 0; field < specs.size(); ++field) {
    bool whole = ranks == 1 || own || !specs[field].batched;
    const HostTensor &value =
        whole ? values[field] : shareOf(values[field], session->ranks());
    int64_t first = own     ? own->first
                    : whole ? 0
                            : session->ranks().number() * value.dim(0);
    if (llvm::Error error = writeField(*session, field, value, first))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Feeder::write(Session &smaller, int64_t samples) {
  for (size_t field = 0; field < specs.size(); ++field) {
    const HostTensor &value = specs[field].batched
                                  ? rowsOf(values[field], samples, 0)
                                  : values[field];
    if (llvm::Error error = writeField(smaller, field, value, 0))
      return error;
  }
  return llvm::Error::success();
}

/// Writes a field's samples, of which the first has this number in the batch.
llvm::Error Feeder::writeField(Session &to, size_t field,
                               const HostTensor &value, int64_t first) const {
  if (llvm::Error error = checkBatch(specs[field], value, [&](int64_t i) {
        return nameSample(first + i);
      }))
    return withContext(std::move(error), source->name());
  return to.write(tensors[field], value);
}

llvm::Error Feeder::compareFirst(uint64_t seed, DataPosition at) {
  if (!own)
    return llvm::Error::success();
  std::vector<HostTensor> first;
  std::vector<void *> buffers;
  for (size_t field = 0; field < specs.size(); ++field) {
    std::vector<int64_t> shape = values[field].shape().vec();
    if (specs[field].batched)
      shape.front() = 1;
    first.emplace_back(values[field].dtype(), std::move(shape));
  }
  for (HostTensor &value : first)
    buffers.push_back(value.mutableRawData());
  llvm::Error error = source->seek(seed, at);
  if (!error)
    error = source->next(1, buffers).takeError();
  if (error)
    return error;
  return checkSameBatch(session->ranks(), first);
}

llvm::Expected<int64_t> ckopt::feed(Session &session, BatchSource &source,
                                    const StepData &data, DataPosition at) {
  auto feeder = Feeder::create(session, source, data);
  if (!feeder)
    return feeder.takeError();
  auto count = feeder->load(at);
  if (count && *count)
    if (llvm::Error error = feeder->write())
      return std::move(error);
  return count;
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

static llvm::Error tooFew(int64_t samples, int64_t batch) {
  return inputError(llvm::Twine(samples) +
                    " training samples do not fill one batch of " +
                    llvm::Twine(batch) + "; use a smaller batch");
}

llvm::Expected<BatchStream>
BatchStream::create(Feeder feeder, BatchSource &source, uint64_t seed,
                    DataPosition start, int64_t least) {
  const int64_t batch = feeder.batchSize();
  BatchStream result(std::move(feeder), source, seed, least);
  int64_t whole = INT64_MAX;
  if (result.count) {
    if (*result.count < batch && !result.takes(*result.count))
      return tooFew(*result.count, batch);
    result.rest = *result.count % batch;
    if (result.takes(result.rest))
      result.rest = 0;
    whole = *result.count - result.rest;
  }
  if (start.epoch < 0 || start.position < 0 || start.position > whole ||
      start.position % batch != 0)
    return inputError("no batch begins at epoch " + llvm::Twine(start.epoch) +
                      ", sample " + llvm::Twine(start.position) +
                      " (was the run begun with another batch size?)");
  result.at = start;
  if (start.position == whole)
    result.at = {start.epoch + 1, 0};
  return std::move(result);
}

void BatchStream::endEpoch(int64_t left) {
  rest = left;
  at = {at.epoch + 1, 0};
  placed = false;
  loaded = 0;
}

/// A source that has more samples than it says would train on the same few in
/// each epoch, and nobody would notice.
llvm::Error BatchStream::checkEnd() {
  auto given = feeder.load(at);
  if (!given)
    return given.takeError();
  if (*given == *count - at.position)
    return llvm::Error::success();
  return inputError(source->name() + " says that it has " +
                    llvm::Twine(*count) + " samples, and gives " +
                    (*given == feeder.batchSize() ? "at least " : "") +
                    llvm::Twine(at.position + *given));
}

/// Takes the batch at `at`; false: the epoch has no more.
llvm::Expected<bool> BatchStream::take() {
  if (!placed)
    if (llvm::Error error = source->seek(seed, at))
      return std::move(error);
  placed = true;
  auto given = feeder.load(at);
  if (!given)
    return given.takeError();
  bool isLast = takes(*given) && (!count || at.position + *given == *count);
  loaded = *given == feeder.batchSize() || isLast ? *given : 0;
  if (loaded)
    return true;
  if (count)
    return inputError(source->name() + " ended after sample " +
                      llvm::Twine(at.position + *given) + " of " +
                      llvm::Twine(*count));
  if (at.position == 0 && at.epoch > 0 && *given == 0)
    return inputError(source->name() + " gave no samples for epoch " +
                      llvm::Twine(at.epoch + 1) +
                      ": it can be read but once, train one epoch");
  if (at.position == 0)
    return tooFew(*given, feeder.batchSize());
  endEpoch(*given);
  return false;
}

/// The same of all ranks, which then have one, or have none.
llvm::Expected<bool> BatchStream::load() { return feeder.agree(take()); }

llvm::Expected<int64_t> BatchStream::feed(Smaller smaller) {
  while (!loaded) {
    auto found = load();
    if (!found)
      return found.takeError();
  }
  int64_t samples = std::exchange(loaded, 0);
  bool isWhole = samples == feeder.batchSize();
  if (isWhole) {
    if (llvm::Error error = feeder.write())
      return std::move(error);
  } else {
    auto session = smaller(samples);
    if (!session)
      return session.takeError();
    if (llvm::Error error = feeder.write(**session, samples))
      return std::move(error);
  }
  at.position += samples;
  int64_t left = count ? *count - at.position : isWhole ? INT64_MAX : 0;
  if (left >= feeder.batchSize() || takes(left))
    return samples;
  if (count)
    if (llvm::Error error = checkEnd())
      return std::move(error);
  endEpoch(left);
  return samples;
}

llvm::Error BatchStream::lookAhead() {
  if (count || loaded || !placed)
    return llvm::Error::success();
  return load().takeError();
}
