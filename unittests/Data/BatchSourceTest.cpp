//===- BatchSourceTest.cpp - the order of samples, and their sources ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/BatchSource.h"
#include "TestFiles.h"
#include "ckopt/Train/Data/Dataset.h"
#include "ckopt/Train/Data/ReadAhead.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace ckopt;

/// A source whose samples are the numbers from 0 to `count`.
static std::unique_ptr<DatasetSource>
numbers(int64_t count,
        DatasetSource::Order order = DatasetSource::Order::Shuffled) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(i);
  TensorMap map;
  map.insert("x", HostTensor::of<int64_t>({count}, values));
  FieldSpec spec;
  spec.name = spec.array = "x";
  spec.dtype = DType::I64;
  return std::make_unique<DatasetSource>(
      valueOf(Dataset::fromTensors(map, {spec}, "numbers")), order);
}

/// The next samples of a source with one field of i64.
static std::vector<int64_t> take(BatchSource &source, int64_t count) {
  std::vector<int64_t> values(size_t(count), -1);
  void *buffer = values.data();
  values.resize(size_t(valueOf(source.next(count, buffer))));
  return values;
}

/// An epoch from a position on.
static std::vector<int64_t> epoch(BatchSource &source, uint64_t seed,
                                  DataPosition from = {}) {
  EXPECT_EQ(textOf(source.seek(seed, from)), "");
  return take(source, 10000);
}

TEST(DatasetSource, EpochsArePermutations) {
  auto source = numbers(10);
  std::vector<int64_t> first = epoch(*source, 5), second;
  EXPECT_EQ(std::set<int64_t>(first.begin(), first.end()).size(), 10u);
  EXPECT_EQ(first, epoch(*source, 5));
  EXPECT_NE(first, epoch(*source, 5, {1, 0}));
  EXPECT_NE(first, epoch(*source, 6));
  EXPECT_EQ(epoch(*source, 42, {0, 0}),
            (std::vector<int64_t>{1, 0, 5, 3, 2, 9, 4, 8, 7, 6}))
      << "the numbers of OrderTest.cpp";
}

TEST(DatasetSource, AnyPlaceCanBeReached) {
  auto source = numbers(10);
  std::vector<int64_t> whole = epoch(*source, 5, {3, 0});
  for (int64_t from = 0; from <= 10; ++from)
    EXPECT_EQ(epoch(*source, 5, {3, from}),
              std::vector<int64_t>(whole.begin() + from, whole.end()));
  for (DataPosition place :
       {DataPosition{-1, 0}, DataPosition{0, -1}, DataPosition{0, 11}})
    expectContains(textOf(source->seek(5, place)), "numbers: epoch");
}

TEST(DatasetSource, BatchesEndWithTheEpoch) {
  auto source = numbers(5, DatasetSource::Order::AsStored);
  EXPECT_EQ(textOf(source->seek(1, {})), "");
  EXPECT_EQ(take(*source, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(take(*source, 3), (std::vector<int64_t>{3, 4}));
  EXPECT_TRUE(take(*source, 3).empty());
}

TEST(DatasetSource, HoldsOut) {
  auto source = numbers(1797);
  auto rest = valueOf(source->holdOut(0.2, 1));
  EXPECT_EQ(source->numSamples(), 1438);
  EXPECT_EQ(rest->numSamples(), 359);
  std::vector<int64_t> held = epoch(*rest, 0), kept = epoch(*source, 0);
  EXPECT_TRUE(std::is_sorted(held.begin(), held.end()));
  std::set<int64_t> all(kept.begin(), kept.end());
  all.insert(held.begin(), held.end());
  EXPECT_EQ(all.size(), 1797u);
  EXPECT_EQ(source->identity(), numbers(1797)->identity());

  EXPECT_EQ(epoch(*valueOf(source->holdOut(0.2, 1)), 0), held)
      << "each call begins with all samples";
  EXPECT_NE(epoch(*valueOf(source->holdOut(0.2, 2)), 0), held);
  EXPECT_EQ(valueOf(source->holdOut(0, 1)), nullptr);
  EXPECT_EQ(source->numSamples(), 1797);
  EXPECT_EQ(valueOf(numbers(10)->holdOut(0.3, 1))->numSamples(), 3);
  for (double share : {-0.1, 1.0, 2.0, double(NAN)})
    EXPECT_EQ(codeOf(source->holdOut(share, 1)), ExitUsage);
  expectContains(textOf(numbers(3)->holdOut(0.1, 1)), "one part empty");
}

TEST(DatasetSource, IsKnownByItsSamples) {
  EXPECT_EQ(numbers(10)->identity(), numbers(10)->identity());
  EXPECT_NE(numbers(10)->identity(), numbers(11)->identity());
  EXPECT_EQ(numbers(10)->bytesInMemory(), 80);
}

TEST(CallbackSource, AsksForOnePlaceAfterAnother) {
  std::vector<BatchRequest> asked;
  CallbackSource::Options options;
  options.fields = {{"x", DType::I64, {}}};
  CallbackSource source(
      options, [&](const BatchRequest &request) -> llvm::Expected<int64_t> {
        asked.push_back(request);
        int64_t count =
            std::min<int64_t>(request.count, 5 - request.at.position);
        for (int64_t i = 0; i < count; ++i)
          static_cast<int64_t *>(request.to[0])[i] = request.at.position + i;
        return count;
      });
  EXPECT_EQ(source.identity(), "callback");
  EXPECT_EQ(source.numSamples(), std::nullopt);
  EXPECT_EQ(textOf(source.seek(7, {2, 0})), "");
  EXPECT_EQ(take(source, 3), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(take(source, 3), (std::vector<int64_t>{3, 4}));
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[1].seed, 7u);
  EXPECT_EQ(asked[1].at, (DataPosition{2, 3}));
  EXPECT_EQ(valueOf(source.holdOut(0, 1)), nullptr);
  EXPECT_EQ(codeOf(source.holdOut(0.5, 1)), ExitUsage);
}

TEST(ReadAhead, GivesTheSameSamples) {
  auto source = numbers(100);
  ReadAheadSource ahead(numbers(100));
  for (DataPosition from : {DataPosition{0, 0}, {0, 7}, {1, 0}, {1, 96}}) {
    EXPECT_EQ(textOf(source->seek(3, from)), "");
    EXPECT_EQ(textOf(ahead.seek(3, from)), "");
    for (int batch = 0; batch < 5; ++batch) // leaves one that was read
      ASSERT_EQ(take(ahead, 8), take(*source, 8));
  }
  EXPECT_EQ(textOf(ahead.seek(3, {2, 0})), "");
  EXPECT_EQ(take(ahead, 8).size(), 8u);
  auto held = valueOf(ahead.holdOut(0.25, 1));
  EXPECT_EQ(held->numSamples(), 25);
  EXPECT_EQ(ahead.numSamples(), 75);
  EXPECT_EQ(ahead.identity(), source->identity());
}

TEST(ReadAhead, ExchangesTensorsInPlaceOfCopies) {
  auto source = numbers(20);
  ReadAheadSource ahead(numbers(20));
  EXPECT_EQ(textOf(source->seek(3, {})), "");
  EXPECT_EQ(textOf(ahead.seek(3, {})), "");
  std::vector<HostTensor> batch = {HostTensor(DType::I64, {8})};
  std::set<const void *> places = {batch[0].rawData()};
  for (int64_t left : {8, 8, 4}) { // the last one is not full
    EXPECT_EQ(valueOf(ahead.nextTensors(8, std::nullopt, batch)), left);
    std::vector<int64_t> wanted = take(*source, 8);
    EXPECT_EQ(batch[0].data<int64_t>().take_front(size_t(left)),
              llvm::ArrayRef(wanted));
    places.insert(batch[0].rawData());
  }
  EXPECT_EQ(places.size(), 2u) << "two places in turn";
}

TEST(ReadAhead, GivesErrorsWhereTheyBelong) {
  CallbackSource::Options options;
  options.fields = {{"x", DType::I64, {}}};
  auto failing = [](const BatchRequest &request) -> llvm::Expected<int64_t> {
    if (request.at.position >= 16)
      return inputError("no more");
    return request.count;
  };
  {
    ReadAheadSource ahead(std::make_unique<CallbackSource>(options, failing));
    EXPECT_EQ(textOf(ahead.seek(0, {})), "");
    EXPECT_EQ(take(ahead, 8).size(), 8u);
    EXPECT_EQ(take(ahead, 8).size(), 8u);
    std::vector<int64_t> values(8);
    void *buffer = values.data();
    EXPECT_EQ(textOf(ahead.next(8, buffer)), "no more");
  }
  ReadAheadSource dropped(std::make_unique<CallbackSource>(options, failing));
  EXPECT_EQ(textOf(dropped.seek(0, {0, 8})), "");
  EXPECT_EQ(take(dropped, 8).size(), 8u); // the error that follows is dropped
}
