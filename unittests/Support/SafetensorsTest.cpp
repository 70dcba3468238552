//===- SafetensorsTest.cpp - weights, whole and broken --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Safetensors.h"
#include "TestFiles.h"

using namespace ckopt;
using llvm::StringRef;

class Safetensors : public FilesTest {
protected:
  /// A file of this header and this many bytes of data.
  static std::string bytesOf(StringRef header, size_t dataSize) {
    std::string bytes;
    for (int i = 0; i < 8; ++i)
      bytes += char((uint64_t(header.size()) >> (8 * i)) & 0xff);
    return bytes + header.str() + std::string(dataSize, '\1');
  }
  static std::string errorOf(StringRef header, size_t dataSize) {
    std::vector<char> storage;
    return textOf(
        parseSafetensors(exactBuffer(bytesOf(header, dataSize), storage), "t"));
  }
};

static TensorMap everyType() {
  TensorMap map;
  for (unsigned i = 0; i < numDTypes; ++i) {
    HostTensor tensor(DType(i), {3});
    tensor.setDouble(1, 1);
    map.insert(std::string("t.") + dtypeName(DType(i)), tensor);
  }
  map.insert("scalar", HostTensor::scalar(3.5f));
  map.insert("empty", HostTensor(DType::F32, {0, 2}));
  map.insert("quote\"back\\slash\xc3\xa9", HostTensor::scalar(int64_t(1)));
  return map;
}

TEST_F(Safetensors, WritesWhatItReads) {
  const TensorMap map = everyType();
  EXPECT_EQ(textOf(writeSafetensors(file("t"), map, {{"k", "v \"x\""}})), "");
  SafetensorsFile back = valueOf(readSafetensors(file("t")));
  ASSERT_EQ(back.tensors.size(), map.size());
  for (const auto &[name, tensor] : map) {
    ASSERT_TRUE(back.tensors.contains(name)) << name;
    EXPECT_TRUE(back.tensors.find(name)->bitEqual(tensor)) << name;
  }
  EXPECT_EQ(back.metadata.at("k"), "v \"x\"");
}

TEST_F(Safetensors, TensorsAreAlignedViewsInTheFile) {
  EXPECT_EQ(textOf(writeSafetensors(file("t"), everyType())), "");
  SafetensorsFile back = valueOf(readSafetensors(file("t")));
  EXPECT_TRUE(back.metadata.empty());
  for (const auto &[name, tensor] : back.tensors)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.rawData()) %
                  uintptr_t(dtypeSize(tensor.dtype())),
              0u);
  EXPECT_EQ(uint8_t(get("t")[0]) % 8, 0);
}

TEST_F(Safetensors, EqualTensorsGiveEqualBytes) {
  EXPECT_EQ(textOf(writeSafetensors(file("a"), everyType())), "");
  EXPECT_EQ(textOf(writeSafetensors(file("b"), everyType())), "");
  EXPECT_EQ(get("a"), get("b"));
}

TEST_F(Safetensors, HeadersThatLie) {
  const std::string a =
      R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]})";
  EXPECT_EQ(errorOf("{" + a + "}", 8), "");
  EXPECT_EQ(errorOf("{" + a + "}    ", 8), "");
  expectContains(errorOf("{" + a + "}", 7), "ends at byte 8");
  expectContains(errorOf("{" + a + "}", 9), "1 bytes follow the last tensor");
  expectContains(errorOf("{" + a + "," + a + "}", 8), "'a' appears twice");
  // The same name, written with an escape.
  expectContains(
      errorOf(
          "{" + a +
              R"(,"\u0061":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})",
          8),
      "'a' appears twice");
  expectContains(
      errorOf("{" + a +
                  R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
              12),
      "tensor 'b' overlaps");
  expectContains(
      errorOf("{" + a +
                  R"(,"b":{"dtype":"F32","shape":[2],"data_offsets":[12,20]}})",
              20),
      "a hole of 4 bytes");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}})", 8),
      "takes 8 bytes");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8),
      "f32 [3] takes 12 bytes");
  expectContains(
      errorOf(R"({"a":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})", 8),
      "element type 'F8' is not supported");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", 8),
      "not a list of sizes");
  expectContains(
      errorOf(
          R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}})",
          8),
      "more bytes than");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", 8),
      "not a pair");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[-8,0]}})", 8),
      "not a pair");
  expectContains(errorOf(R"({"a":{"dtype":"F32","shape":[2]}})", 8),
                 "is missing");
  expectContains(
      errorOf(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"x":1}})",
              8),
      "unknown key 'x'");
  expectContains(errorOf(R"({"a":7})", 8), "not an object");
  expectContains(errorOf(R"({"__metadata__":{"k":1}})", 0), "is not a string");
  expectContains(errorOf(R"({"__metadata__":[]})", 0), "is not an object");
  expectContains(errorOf(R"({"a":)", 8), "bad safetensors header");
  expectContains(errorOf("{" + std::string(1 << 20, '['), 8),
                 "a string is missing");
  expectContains(errorOf(R"({"a":{"shape":)" + std::string(1 << 20, '['), 8),
                 "not a list of sizes");
  expectContains(errorOf("{\"\xc0\xaf\":7}", 8), "a string is not valid");
  expectContains(errorOf(R"({"\ud800":7})", 8), "a string is not valid");
  expectContains(errorOf(R"({"\u00e9\ud83d\ude00\u20ac":7})", 8),
                 "tensor '\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac': its");
  expectContains(errorOf("{" + a + "} x", 8), "text follows the object");
  expectContains(errorOf("{\"" + std::string(100, 'x'), 8), "does not end");
  expectContains(errorOf(R"({"a\nverdict":7})", 8),
                 "the name 'a\\x0averdict' has control characters");
  EXPECT_EQ(errorOf("{}", 0), "");
}

TEST_F(Safetensors, FilesThatAreNone) {
  put("empty", "");
  expectContains(textOf(readSafetensors(file("empty"))), "shorter than 8");
  put("garbage", std::string(200, 'x'));
  expectContains(textOf(readSafetensors(file("garbage"))),
                 "not a safetensors file");
  expectContains(textOf(readSafetensors(file("missing"))), "No such file");
}

TEST_F(Safetensors, EveryTruncationIsAnError) {
  EXPECT_EQ(textOf(writeSafetensors(file("t"), everyType(), {{"a", "b"}})), "");
  const std::string whole = get("t");
  for (size_t size = 0; size < whole.size(); ++size) {
    std::vector<char> storage;
    EXPECT_NE(
        textOf(parseSafetensors(
            exactBuffer(StringRef(whole).take_front(size), storage), "t")),
        "")
        << size;
  }
}

TEST_F(Safetensors, NoFlippedBitCrashes) {
  TensorMap map;
  map.insert("a", HostTensor::of<float>({3}, {1, 2, 3}));
  map.insert("b", HostTensor::of<int8_t>({2}, {1, 2}));
  EXPECT_EQ(textOf(writeSafetensors(file("t"), map, {{"k", "v"}})), "");
  const std::string whole = get("t");
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string broken = whole;
    broken[bit / 8] = char(broken[bit / 8] ^ (1 << (bit % 8)));
    std::vector<char> storage;
    auto read = parseSafetensors(exactBuffer(broken, storage), "t");
    if (!read) {
      llvm::consumeError(read.takeError());
      continue;
    }
    for (const auto &entry : read->tensors)
      for (int64_t i = 0; i < entry.second.numElements(); ++i)
        (void)entry.second.getDouble(i);
  }
}

TEST_F(Safetensors, NamesThatTheFormatCannotHold) {
  TensorMap map;
  map.insert("__metadata__", HostTensor::scalar(1.0f));
  expectContains(textOf(writeSafetensors(file("t"), map)), "keeps the name");
  TensorMap bytes;
  bytes.insert("a\xff", HostTensor::scalar(1.0f));
  expectContains(textOf(writeSafetensors(file("t"), bytes)), "not valid UTF-8");
  TensorMap lines;
  lines.insert("a\nb", HostTensor::scalar(1.0f));
  expectContains(textOf(writeSafetensors(file("t"), lines)), "'a\\x0ab'");
  EXPECT_EQ(fileCount(), 0u);
}
