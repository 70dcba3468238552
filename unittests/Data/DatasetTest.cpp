//===- DatasetTest.cpp - data, right and wrong, and the order of it -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Dataset.h"
#include "TestFiles.h"
#include "ckopt/Support/Npz.h"
#include <cmath>
#include <cstring>

using namespace ckopt;

static FieldSpec imageSpec() {
  FieldSpec spec;
  spec.name = "x";
  spec.array = "images";
  spec.shape = std::vector<int64_t>{1, 8, 8};
  return spec;
}
static FieldSpec labelSpec(int64_t classes = 10) {
  FieldSpec spec;
  spec.name = "target";
  spec.array = "labels";
  spec.dtype = DType::I64;
  spec.shape = std::vector<int64_t>{};
  spec.limits.all.classes = classes;
  return spec;
}
static llvm::Expected<Dataset> digits(std::vector<FieldSpec> fields) {
  auto file = openArrayFile(CKOPT_TEST_DATA "/digits.npz");
  return file ? Dataset::fromFiles("digits", *file, fields)
              : llvm::Expected<Dataset>(file.takeError());
}

/// Two images of two pixels with labels 0 and 2.
static TensorMap tiny() {
  TensorMap map;
  map.insert("images", HostTensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6}));
  map.insert("labels", HostTensor::of<int32_t>({3}, {0, 2, 1}));
  return map;
}
static std::vector<FieldSpec> tinySpecs() {
  std::vector<FieldSpec> specs = {imageSpec(), labelSpec(3)};
  specs[0].shape = std::vector<int64_t>{2};
  return specs;
}
static std::string errorOf(const TensorMap &map) {
  return textOf(Dataset::fromTensors(map, tinySpecs(), "d.npz"));
}

/// Some samples of a field as a tensor.
static HostTensor batchOf(const Dataset &data, size_t field,
                          std::vector<int64_t> indices) {
  std::vector<int64_t> shape = data.sampleShape(field).vec();
  if (data.spec(field).batched)
    shape.insert(shape.begin(), int64_t(indices.size()));
  HostTensor result(data.spec(field).dtype, shape);
  data.gather(field, indices, result.mutableRawData());
  return result;
}

TEST(Dataset, Mappings) {
  auto two = valueOf(parseArrayMappings("x=images, mask = m", "--inputs"));
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].name, "x");
  EXPECT_EQ(two[0].array, "images");
  EXPECT_EQ(two[1].name, "mask");
  EXPECT_EQ(two[1].array, "m");
  EXPECT_EQ(valueOf(parseArrayMappings("labels", "--targets"))[0].array,
            "labels");
  for (const char *text : {"", "=a", "a=", "a,,b", ","})
    expectContains(textOf(parseArrayMappings(text, "--inputs")),
                   "--inputs: '" + std::string(text) + "' is not a list");
  expectContains(textOf(parseArrayMappings("x=a,x=b", "--inputs")),
                 "'x' is given twice");
}

TEST(Dataset, LoadsTheDigits) {
  Dataset data = valueOf(digits({imageSpec(), labelSpec()}));
  EXPECT_EQ(data.numSamples(), 1797);
  EXPECT_EQ(data.sampleElements(0), 64);
  EXPECT_EQ(data.storedType(0), DType::U8) << "kept small in memory";
  HostTensor batch = batchOf(data, 0, {5, 0, 1796});
  EXPECT_EQ(batch.typeString(), "f32 [3, 1, 8, 8]");
  TensorMap file = valueOf(readNpz(CKOPT_TEST_DATA "/digits.npz"));
  const HostTensor &images = *file.find("images");
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(batch.getDouble(i), images.getDouble(5 * 64 + i));
    EXPECT_EQ(batch.getDouble(128 + i), images.getDouble(1796 * 64 + i));
  }
  EXPECT_EQ(batchOf(data, 1, {7}).getInt(0), file.find("labels")->getInt(7));
}

TEST(Dataset, ReportsAllThatIsWrongAtOnce) {
  FieldSpec image = imageSpec();
  image.shape = std::vector<int64_t>{3, 32, 32};
  FieldSpec missing = labelSpec();
  missing.array = "target";
  const std::string text = textOf(digits({image, missing, labelSpec(5)}));
  expectContains(text, "no array 'target'; the file has images, labels");
  expectContains(text, "holds samples of shape [1, 8, 8], but 'x' takes "
                       "[3, 32, 32]");
  expectContains(text, "has the label 5, but the model has 5 classes (0 to 4)");
}

TEST(Dataset, CountsMustAgree) {
  TensorMap map = tiny();
  map.set("labels", HostTensor::of<int32_t>({2}, {0, 1}));
  expectContains(errorOf(map), "d.npz: array 'labels' holds 2 samples, array "
                               "'images' holds 3");
  map.set("labels", HostTensor::scalar(int32_t(1)));
  expectContains(errorOf(map), "is a single number");
}

TEST(Dataset, EmptyDataIsAnError) {
  TensorMap map = tiny();
  map.set("images", HostTensor(DType::F32, {0, 2}));
  map.set("labels", HostTensor(DType::I32, {0}));
  expectContains(errorOf(map), "array 'images' is empty: it holds no samples");
}

TEST(Dataset, ValuesThatAreNotFinite) {
  TensorMap map = tiny();
  map.find("images")->setDouble(3, NAN);
  expectContains(errorOf(map), "array 'images': sample 1, element [1] is not a "
                               "number (NaN)");
  map.find("images")->setDouble(3, -INFINITY);
  expectContains(errorOf(map), "sample 1, element [1] is infinite");
}

TEST(Dataset, LabelsOutOfRange) {
  TensorMap map = tiny();
  map.find("labels")->setDouble(2, -1);
  expectContains(errorOf(map), "array 'labels': sample 2 has the label -1");
  expectContains(errorOf(map), "losses with an ignore index");
  std::vector<FieldSpec> specs = tinySpecs();
  specs[1].limits.all.hasIgnored = true;
  specs[1].limits.all.ignored = -1;
  EXPECT_EQ(textOf(Dataset::fromTensors(map, specs, "d")), "");
  map.find("labels")->setDouble(2, 3);
  expectContains(textOf(Dataset::fromTensors(map, specs, "d")),
                 "; ignored is -1");
  map.set("labels", HostTensor(DType::F32, {3}));
  expectContains(errorOf(map), "labels of classes must be integers");
}

TEST(Dataset, TypesThatDoNotConvert) {
  TensorMap map = tiny();
  std::vector<FieldSpec> specs = tinySpecs();
  specs[0].dtype = DType::I64;
  expectContains(textOf(Dataset::fromTensors(map, specs, "d")),
                 "d: array 'images' for 'x': cannot convert f32 to i64");
  specs[0].dtype = DType::F32;
  map.set("images", HostTensor::of<double>({3, 2}, {1, 2, 3, 1e300, 5, 6}));
  expectContains(textOf(Dataset::fromTensors(map, specs, "d")),
                 "element [1, 1]");
}

TEST(Dataset, ConstantsHaveNoBatch) {
  TensorMap map = tiny();
  map.insert("mask", HostTensor::of<uint8_t>({2, 2}, {1, 0, 1, 1}));
  std::vector<FieldSpec> specs = tinySpecs();
  FieldSpec mask;
  mask.name = mask.array = "mask";
  mask.batched = false;
  mask.shape = std::vector<int64_t>{2, 2};
  specs.push_back(mask);
  Dataset data = valueOf(Dataset::fromTensors(map, specs, "d"));
  EXPECT_EQ(data.numSamples(), 3);
  HostTensor batch = batchOf(data, 2, {0, 1, 2});
  EXPECT_EQ(batch.typeString(), "f32 [2, 2]");
  EXPECT_EQ(batch.getDouble(3), 1);
}

TEST(Dataset, IndicesBeyondTheirTable) {
  TensorMap map = tiny();
  std::vector<FieldSpec> specs = tinySpecs();
  specs[1].limits.all = {0, false, 0, 2};
  expectContains(textOf(Dataset::fromTensors(map, specs, "d")),
                 "array 'labels': sample 1 holds the index 2, but the table "
                 "that 'target' indexes has 2 rows");
  map.find("labels")->setDouble(1, -2); // counts from the table's end
  EXPECT_EQ(textOf(Dataset::fromTensors(map, specs, "d")), "");
}

// Places along the samples are those of a batch, which nobody knows yet: they
// are checked in the batch.
TEST(Dataset, IndicesByTheirPlaceInASample) {
  TensorMap map;
  map.set("x", HostTensor::of<int64_t>({2, 2}, {2, 8, 0, 500}));
  FieldSpec spec;
  spec.name = spec.array = "x";
  spec.dtype = DType::I64;
  spec.shape = std::vector<int64_t>{2};
  spec.limits.parts = {{1, 0, 1, {0, false, 0, 3}},
                       {0, 0, 1, {0, false, 0, 1}}};
  EXPECT_EQ(textOf(Dataset::fromTensors(map, {spec}, "d")), "");
  map.find("x")->setDouble(2, 3);
  expectContains(textOf(Dataset::fromTensors(map, {spec}, "d")),
                 "array 'x': sample 1, element [0] holds the index 3, but the "
                 "table that 'x' indexes has 3 rows");
  auto place = [](int64_t i) { return "place " + std::to_string(i); };
  HostTensor batch = HostTensor::of<int64_t>({2, 2}, {0, 8, 5, 500});
  EXPECT_EQ(textOf(checkBatch(spec, batch, place)), "");
  batch.setDouble(0, 1);
  expectContains(textOf(checkBatch(spec, batch, place)),
                 "array 'x': place 0, element [0] holds the index 1, but the "
                 "table that 'x' indexes has 1 rows");
}

/// A file of tiny samples, from memory.
static ArrayFile fileOf(const std::string &name, TensorMap map) {
  ArrayFile file;
  file.name = name;
  file.read = [map = std::move(map)](
                  llvm::StringRef array) -> llvm::Expected<HostArray> {
    return HostArray::of(*map.find(array));
  };
  return file;
}

TEST(Dataset, SamplesOfSeveralFilesFollowEachOther) {
  TensorMap more;
  more.insert("images", HostTensor::of<float>({2, 2}, {7, 8, 9, 10}));
  more.insert("labels", HostTensor::of<int32_t>({2}, {1, 1}));
  Dataset data = valueOf(Dataset::fromFiles(
      "d-*.npz", {fileOf("d-1.npz", tiny()), fileOf("d-2.npz", more)},
      tinySpecs()));
  EXPECT_EQ(data.numSamples(), 5);
  EXPECT_EQ(data.name(), "d-*.npz");
  HostTensor batch = batchOf(data, 0, {4, 0, 3, 2});
  const double values[] = {9, 10, 1, 2, 7, 8, 5, 6};
  for (int64_t i = 0; i < 8; ++i)
    EXPECT_EQ(batch.getDouble(i), values[i]);
  EXPECT_EQ(batchOf(data, 1, {1, 3}).getInt(0), 2);
  EXPECT_EQ(data.nameSample(2), "sample 2 of d-1.npz");
  EXPECT_EQ(data.nameSample(3), "sample 0 of d-2.npz");
}

// Errors name samples of the batch that was read last, or of a rank's part.
TEST(Dataset, SourcesNameTheSamplesOfABatch) {
  DatasetSource source(valueOf(Dataset::fromTensors(tiny(), tinySpecs(), "d")));
  ASSERT_EQ(textOf(source.seek(5, {1, 0})), "");
  std::vector<float> images(6);
  std::vector<int64_t> labels(3);
  std::vector<void *> to = {images.data(), labels.data()};
  ASSERT_EQ(valueOf(source.next(3, to)), 3);
  for (int64_t i = 0; i < 3; ++i) // sample s has the first pixel 2s + 1
    EXPECT_EQ(source.nameSample(i),
              "sample " + std::to_string(int(images[size_t(2 * i)]) / 2));
  ASSERT_EQ(textOf(source.seek(5, {2, 0})), "");
  ASSERT_EQ(valueOf(source.nextRows(3, {1, 1}, to)), 3);
  EXPECT_EQ(source.nameSample(0), "");
  EXPECT_EQ(source.nameSample(1),
            "sample " + std::to_string(int(images[0]) / 2));
  EXPECT_EQ(source.nameSample(2), "");
}

TEST(Dataset, FilesMustAgree) {
  auto refused = [](TensorMap more) {
    return textOf(Dataset::fromFiles(
        "d", {fileOf("d-1.npz", tiny()), fileOf("d-2.npz", std::move(more))},
        tinySpecs()));
  };
  TensorMap more = tiny();
  more.find("labels")->setDouble(1, 7);
  expectContains(refused(more), "d-2.npz: array 'labels': sample 1 has the "
                                "label 7");
  more = tiny();
  more.set("images", HostTensor::of<double>({3, 2}, {1, 2, 3, 4, 5, 6}));
  expectContains(refused(more), "d-2.npz: array 'images' has another type");
  more.set("images", HostTensor::of<float>({1, 2}, {1, 2}));
  expectContains(refused(more), "d-2.npz: array 'labels' holds 3 samples, "
                                "array 'images' holds 1");
}

TEST(Dataset, ElementsNeedNotBeAligned) {
  constexpr int64_t kCount = 300000; // more than a block of the check
  auto bytes = std::make_shared<std::vector<char>>(size_t(kCount * 8 + 1), 0);
  auto set = [&](int64_t i, double value) {
    std::memcpy(bytes->data() + 1 + i * 8, &value, 8);
  };
  ArrayFile file;
  file.name = "odd";
  file.read = [&](llvm::StringRef) -> llvm::Expected<HostArray> {
    HostArray array;
    array.dtype = DType::F64;
    array.shape = {kCount};
    array.bytes = bytes->data() + 1;
    array.keeper = bytes;
    return array;
  };
  FieldSpec spec;
  spec.name = spec.array = "x";
  set(299998, 42);
  Dataset data = valueOf(Dataset::fromFiles("odd", file, spec));
  EXPECT_EQ(batchOf(data, 0, {299998, 0}).getDouble(0), 42);
  set(299999, NAN);
  expectContains(textOf(Dataset::fromFiles("odd", file, spec)),
                 "array 'x': sample 299999 is not a number");
}

class Tokens : public FilesTest {};

TEST_F(Tokens, AreCutToPieces) {
  put("t.bin", llvm::StringRef("\0\1\2\3\4\5\6\7", 8));
  ArrayFile file = valueOf(openTokenFile(this->file("t.bin"), DType::U8, 3));
  HostTensor tokens = valueOf(file.read("tokens")).tensor(),
             next = valueOf(file.read("next")).tensor();
  EXPECT_EQ(tokens.typeString(), "u8 [2, 3]");
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(tokens.getInt(i), i);
    EXPECT_EQ(next.getInt(i), i + 1);
  }
  EXPECT_EQ(valueOf(openTokenFile(this->file("t.bin"), DType::U8, 4))
                .read("tokens")
                ->shape.front(),
            1)
      << "the last piece has no next token";
  expectContains(textOf(file.read("labels")), "no array 'labels'");
  expectContains(textOf(openTokenFile(this->file("t.bin"), DType::U16, 4)),
                 "4 tokens do not fill a sequence of 4");
}
