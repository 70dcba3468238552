//===- ArrayStreamTest.cpp - samples from a pipe --------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/ArrayStream.h"
#include "TestFiles.h"
#include "ckopt/Base/Npy.h"
#include <cmath>
#include <cstring>

using namespace ckopt;

namespace {

std::vector<FieldSpec> streamFields() {
  std::vector<FieldSpec> fields(2);
  fields[0].name = "x";
  fields[0].array = "images";
  fields[0].shape = std::vector<int64_t>{2};
  fields[1].name = "target";
  fields[1].array = "labels";
  fields[1].dtype = DType::I64;
  fields[1].shape = std::vector<int64_t>();
  fields[1].limits.all.classes = 3;
  return fields;
}

template <typename T>
std::string npy(std::vector<int64_t> shape, std::vector<T> values) {
  std::string text = npyHeader(dtypeOf<T>(), shape);
  text.append(reinterpret_cast<const char *>(values.data()),
              values.size() * sizeof(T));
  return text;
}

/// A record of samples `first`, first + 1, ...: pixels 2i and 2i + 1.
std::string record(int first, int count) {
  std::vector<float> pixels;
  std::vector<int32_t> labels; // of another type than the step's
  for (int i = first; i < first + count; ++i) {
    pixels.push_back(float(2 * i));
    pixels.push_back(float(2 * i + 1));
    labels.push_back(i % 3);
  }
  return npy<float>({count, 2}, pixels) + npy<int32_t>({count}, labels);
}

class ArrayStreams : public FilesTest {
protected:
  std::unique_ptr<ArrayStreamSource> open(llvm::StringRef bytes) {
    if (stream)
      std::fclose(stream);
    put("stream", bytes);
    stream = std::fopen(file("stream").c_str(), "rb");
    auto source = valueOf(
        ArrayStreamSource::create(stream, "standard input", streamFields()));
    EXPECT_EQ(textOf(source->seek(0, {})), "");
    return source;
  }
  ~ArrayStreams() override {
    if (stream)
      std::fclose(stream);
  }
  /// Takes batches of two to the end; the error of one that fails.
  std::string takeAll(ArrayStreamSource &source) {
    taken.clear();
    while (true) {
      float pixels[4];
      int64_t labels[2];
      auto count = source.next(2, {pixels, labels});
      if (!count)
        return textOf(count.takeError());
      for (int64_t i = 0; i < *count; ++i) {
        EXPECT_EQ(pixels[2 * i] + 1, pixels[2 * i + 1]);
        EXPECT_EQ(labels[i], int64_t(pixels[2 * i] / 2) % 3);
        taken.push_back(int(pixels[2 * i] / 2));
      }
      if (*count < 2)
        return "";
    }
  }
  std::string errorOf(llvm::StringRef bytes) { return takeAll(*open(bytes)); }

  std::FILE *stream = nullptr;
  std::vector<int> taken;
};

TEST_F(ArrayStreams, GiveSamplesOfRecordsOfAnySize) {
  const std::vector<int> wanted = {0, 1, 2, 3, 4, 5, 6};
  for (auto sizes : std::vector<std::vector<int>>{
           {7}, {1, 1, 1, 1, 1, 1, 1}, {3, 0, 4}, {5, 2}, {0, 7, 0}}) {
    std::string bytes;
    int first = 0;
    for (int size : sizes) {
      bytes += record(first, size);
      first += size;
    }
    EXPECT_EQ(errorOf(bytes), "");
    EXPECT_EQ(taken, wanted);
  }
  EXPECT_EQ(errorOf(""), "");
  EXPECT_TRUE(taken.empty());
}

TEST_F(ArrayStreams, CannotGoBack) {
  auto source = open(record(0, 4));
  EXPECT_FALSE(source->canSeek());
  EXPECT_EQ(source->numSamples(), std::nullopt);
  EXPECT_NE(textOf(source->seek(0, {0, 2})), "");
  EXPECT_NE(textOf(source->holdOut(0.5, 0)), "");
  EXPECT_EQ(takeAll(*source), "");
  EXPECT_EQ(taken.size(), 4u);
  EXPECT_EQ(textOf(source->seek(0, {1, 0})), "");
  EXPECT_EQ(takeAll(*source), "");
  EXPECT_TRUE(taken.empty());
}

TEST_F(ArrayStreams, NameWhatIsWrong) {
  const std::string good = record(0, 3);
  expectContains(errorOf(good + npy<float>({1, 2}, {1, 2})),
                 "standard input: record 2, array 'labels' is missing");
  expectContains(errorOf(good + npy<float>({1, 3}, {1, 2, 3})),
                 "standard input: record 2: array 'images' holds samples of "
                 "shape [3]");
  expectContains(
      errorOf(good + npy<float>({2, 2}, {0, 1, 2, 3}) + npy<int32_t>({1}, {0})),
      "record 2, array 'labels' holds 1 samples, array 'images' "
      "holds 2");
  expectContains(
      errorOf(npy<float>({2, 2}, {0, 1, 2, NAN}) + npy<int32_t>({2}, {0, 1})),
      "record 1: array 'images': sample 1, element [1] is not a "
      "number");
  expectContains(
      errorOf(npy<float>({2, 2}, {0, 1, 2, 3}) + npy<int32_t>({2}, {0, 3})),
      "record 1: array 'labels': sample 1 has the label 3");
  expectContains(errorOf(good + "hello, this is no array"),
                 "record 2, array 'images': no .npy array begins here");
  for (size_t size = 1; size < good.size(); ++size) {
    std::string text = errorOf(llvm::StringRef(good).take_front(size));
    expectContains(text, "standard input: record 1");
    EXPECT_TRUE(taken.empty());
  }
  // A head may claim any size; what is not there is not allocated.
  expectContains(errorOf(npy<float>({int64_t(1) << 50, 2}, {1})),
                 "ends in the middle");
}

TEST_F(ArrayStreams, HoldNoConstants) {
  auto fields = streamFields();
  fields[0].batched = false;
  expectContains(textOf(ArrayStreamSource::create(stdin, "in", fields)),
                 "'x' is one constant for all samples");
}

} // namespace
