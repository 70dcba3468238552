//===- NpzTest.cpp - numpy's files, whole, foreign and broken -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Npz.h"
#include "TestFiles.h"
#include "ckopt/Base/Npy.h"
#include <cmath>
#include <limits>
#include <set>

using namespace ckopt;
using llvm::StringRef;

static std::string data(StringRef name) {
  return (StringRef(CKOPT_TEST_DATA) + "/" + name).str();
}

TEST(Npz, ReadsEveryTypeThatNumpyWrites) {
  TensorMap map = valueOf(readNpz(data("npz/kinds.npz")));
  const std::pair<const char *, DType> kinds[] = {
      {"float64", DType::F64}, {"float32", DType::F32}, {"float16", DType::F16},
      {"int64", DType::I64},   {"int32", DType::I32},   {"int16", DType::I16},
      {"int8", DType::I8},     {"uint64", DType::U64},  {"uint32", DType::U32},
      {"uint16", DType::U16},  {"uint8", DType::U8}};
  for (const auto &[name, type] : kinds) {
    const HostTensor *tensor = map.find(name);
    ASSERT_TRUE(tensor) << name;
    EXPECT_EQ(tensor->dtype(), type);
    EXPECT_EQ(tensor->shape(), llvm::ArrayRef<int64_t>({2, 3}));
    EXPECT_EQ(tensor->getDouble(4), 100) << name;
    EXPECT_EQ(tensor->getDouble(5), 5) << name;
  }
  EXPECT_EQ(map.find("int64")->data<int64_t>()[0],
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(map.find("uint64")->data<uint64_t>()[0], ~uint64_t(0));
  EXPECT_TRUE(std::signbit(map.find("float64")->data<double>()[0]));
  EXPECT_EQ(map.find("float16")->getDouble(0), 65504);
  EXPECT_EQ(map.find("bfloat16")->dtype(), DType::BF16);
  EXPECT_EQ(map.find("bfloat16")->getDouble(0), 0.5);
  EXPECT_EQ(map.find("bfloat16")->getDouble(5), -5);
  EXPECT_EQ(map.find("bool")->dtype(), DType::Bool);
  EXPECT_EQ(map.find("bool")->getInt(2), 1);
  EXPECT_EQ(map.find("scalar")->rank(), 0);
  EXPECT_EQ(map.find("scalar")->getDouble(0), 2.5);
  EXPECT_EQ(map.find("empty")->shape(), llvm::ArrayRef<int64_t>({0, 3}));
  EXPECT_EQ(map.find("\xc3\xbcn\xc3\xaf"
                     "code/name")
                ->getInt(3),
            3);
}

TEST(Npz, ReadsDeflatedStreamedAndZip64Archives) {
  TensorMap map = valueOf(readNpz(data("npz/deflated.npz")));
  EXPECT_EQ(map.find("zeros")->numElements(), 10000);
  EXPECT_EQ(map.find("ramp")->getInt(999), 999);
  NpzReader streamed = valueOf(NpzReader::open(data("npz/streamed.npz")));
  EXPECT_EQ(streamed.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(valueOf(streamed.read("a")).getInt(4), 4);
  // As large archives are, with 64-bit fields everywhere.
  TensorMap wide = valueOf(readNpz(data("npz/zip64.npz")));
  EXPECT_EQ(wide.find("a0")->getInt(4), 4);
  EXPECT_EQ(wide.find("a1")->getInt(4), 5);
}

TEST(Npz, ReadsOrdersAndFormats) {
  HostTensor fortran = valueOf(readNpy(data("npz/fortran.npy")));
  EXPECT_EQ(fortran.shape(), llvm::ArrayRef<int64_t>({2, 3, 4}));
  for (int64_t i = 0; i < 24; ++i)
    EXPECT_EQ(fortran.getDouble(i), double(i));
  HostTensor swapped = valueOf(readNpy(data("npz/bigendian.npy")));
  EXPECT_EQ(swapped.getInt(5), 500000);
  EXPECT_EQ(valueOf(readNpy(data("npz/v2.npy"))).getInt(4), 4);
  EXPECT_EQ(valueOf(readNpy(data("npz/v3.npy"))).getInt(4), 4);
}

TEST(Npz, ForeignTypesHurtOnlyWhoAsks) {
  NpzReader reader = valueOf(NpzReader::open(data("npz/objects.npz")));
  EXPECT_EQ(valueOf(reader.read("good")).getInt(4), 4);
  expectContains(textOf(reader.read("bad")), "Python objects");
  expectContains(textOf(reader.read("text")), "integer labels");
  expectContains(textOf(reader.read("complex")), "complex numbers");
  expectContains(textOf(reader.read("none")),
                 "no array 'none'; the file has good, bad, text, complex");
}

TEST(Npz, ReadsTheDigits) {
  TensorMap map = valueOf(readNpz(data("digits.npz")));
  EXPECT_EQ(map.find("images")->typeString(), "u8 [1797, 1, 8, 8]");
  EXPECT_EQ(map.find("labels")->typeString(), "i64 [1797]");
}

static TensorMap someTensors() {
  TensorMap map;
  map.insert("weight", HostTensor::of<float>({2, 2}, {1, -2, 0.5f, 4}));
  map.insert("b/bias", HostTensor::of<BFloat16>({1}, {BFloat16(3.0)}));
  map.insert("h", HostTensor::of<Half>({2}, {Half(0.5), Half(-1.0)}));
  map.insert("n", HostTensor::scalar(int64_t(-7)));
  map.insert("flags", HostTensor::of<bool>({3}, {true, false, true}));
  map.insert("none", HostTensor(DType::U16, {0, 4}));
  map.insert("long", HostTensor(DType::F64, {100, 70}));
  return map;
}

class NpzFiles : public FilesTest {};

TEST_F(NpzFiles, WritesWhatItReads) {
  const TensorMap map = someTensors();
  for (bool deflate : {false, true}) {
    EXPECT_EQ(textOf(writeNpz(file("t.npz"), map, deflate)), "");
    TensorMap back = valueOf(readNpz(file("t.npz")));
    ASSERT_EQ(back.size(), map.size());
    for (const auto &[name, tensor] : map) {
      ASSERT_TRUE(back.contains(name)) << name;
      EXPECT_TRUE(back.find(name)->bitEqual(tensor)) << name;
    }
    EXPECT_EQ(back.begin()->first, "weight");
  }
  EXPECT_LT(get("t.npz").size(), 3000u) << "56 kB of zeros were not deflated";
}

TEST_F(NpzFiles, NoMemberLeadsOutOfTheArchive) {
  TensorMap map;
  for (const char *name : {"../../x", "/etc/x", "a/../../x", "..", "a/b..c/d"})
    map.insert(name, HostTensor::scalar(1.0f));
  map.insert(std::string("nul\0x", 5), HostTensor::scalar(1.0f));
  map.insert("line\nx", HostTensor::scalar(1.0f));
  map.insert("..\\x", HostTensor::scalar(1.0f));
  ASSERT_EQ(textOf(writeNpz(file("t.npz"), map)), "");
  std::set<std::string> names;
  for (const std::string &name :
       valueOf(NpzReader::open(file("t.npz"))).names())
    names.insert(name);
  EXPECT_EQ(names, (std::set<std::string>{"..%2F..%2Fx", "%2Fetc/x",
                                          "a%2F..%2F..%2Fx", "..", "a/b..c/d",
                                          "nul%00x", "line%0Ax", "..%5Cx"}));
  TensorMap same;
  same.insert("/x", HostTensor::scalar(1.0f));
  same.insert("%2Fx", HostTensor::scalar(1.0f));
  expectContains(textOf(writeNpz(file("s.npz"), same)), "two of its arrays");
}

TEST_F(NpzFiles, NamesDoNotBreakLines) {
  TensorMap map;
  map.insert("a?b", HostTensor::scalar(1.0f));
  ASSERT_EQ(textOf(writeNpz(file("t.npz"), map)), "");
  std::string bytes = get("t.npz");
  for (size_t at; (at = bytes.find("a?b")) != std::string::npos;)
    bytes[at + 1] = '\n';
  put("t.npz", bytes);
  expectContains(textOf(readNpz(file("t.npz"))), "the name 'a\\x0ab'");
}

TEST_F(NpzFiles, EqualTensorsGiveEqualBytes) {
  EXPECT_EQ(textOf(writeNpz(file("a.npz"), someTensors(), true)), "");
  EXPECT_EQ(textOf(writeNpz(file("b.npz"), someTensors(), true)), "");
  EXPECT_EQ(get("a.npz"), get("b.npz"));
}

TEST_F(NpzFiles, WritesNpy) {
  HostTensor tensor = HostTensor::of<int32_t>({2, 1, 2}, {1, 2, 3, 4});
  EXPECT_EQ(textOf(writeNpy(file("t.npy"), tensor)), "");
  EXPECT_TRUE(valueOf(readNpy(file("t.npy"))).bitEqual(tensor));
  EXPECT_EQ(npyHeader(DType::F32, std::vector<int64_t>{2, 3}).size() % 64, 0u);
  EXPECT_EQ(npyHeader(DType::F32, {}).size() % 64, 0u);
}

TEST_F(NpzFiles, AnEmptyArchiveIsAnArchive) {
  EXPECT_EQ(textOf(writeNpz(file("t.npz"), TensorMap())), "");
  EXPECT_EQ(valueOf(readNpz(file("t.npz"))).size(), 0u);
}

TEST_F(NpzFiles, FilesThatAreNoArchives) {
  put("empty", "");
  expectContains(textOf(readNpz(file("empty"))), "not an .npz archive");
  put("garbage", std::string(5000, 'x'));
  expectContains(textOf(readNpz(file("garbage"))), "not an .npz archive");
  expectContains(textOf(readNpz(data("npz/v2.npy"))), "a single .npy array");
  expectContains(textOf(readNpz(file("missing"))), "No such file");
  expectContains(textOf(readNpz(folder)), "cannot read");
  expectContains(textOf(readNpy(file("garbage"))), "not a .npy array");
  EXPECT_EQ(codeOf(readNpz(file("empty"))), ExitInputError);
}

TEST_F(NpzFiles, EveryTruncationIsAnError) {
  for (bool deflate : {false, true}) {
    TensorMap map;
    map.insert("a", HostTensor::of<float>({3}, {1, 2, 3}));
    map.insert("b", HostTensor::of<int8_t>({2}, {1, 2}));
    ASSERT_EQ(textOf(writeNpz(file("t.npz"), map, deflate)), "");
    const std::string whole = get("t.npz");
    for (size_t size = 0; size < whole.size(); ++size) {
      std::vector<char> storage;
      EXPECT_FALSE(
          textOf(
              NpzReader::fromBuffer(
                  exactBuffer(StringRef(whole).take_front(size), storage), "t"))
              .empty())
          << size;
    }
  }
}

TEST_F(NpzFiles, NoFlippedBitGivesOtherNumbers) {
  // Every single-bit error in the file is either seen or harmless (times,
  // versions, names): numbers never change in silence.
  TensorMap map;
  map.insert("a", HostTensor::of<float>({3}, {1, 2, 3}));
  for (bool deflate : {false, true}) {
    ASSERT_EQ(textOf(writeNpz(file("t.npz"), map, deflate)), "");
    const std::string whole = get("t.npz");
    for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
      std::string broken = whole;
      broken[bit / 8] = char(broken[bit / 8] ^ (1 << (bit % 8)));
      std::vector<char> storage;
      auto reader = NpzReader::fromBuffer(exactBuffer(broken, storage), "t");
      if (!reader) {
        llvm::consumeError(reader.takeError());
        continue;
      }
      auto tensor = reader->read("a");
      if (!tensor) {
        llvm::consumeError(tensor.takeError());
        continue;
      }
      EXPECT_TRUE(tensor->bitEqual(*map.find("a"))) << "bit " << bit;
    }
  }
}

TEST_F(NpzFiles, DamagedDataIsNamed) {
  TensorMap map;
  map.insert("first", HostTensor::of<float>({2}, {1, 2}));
  ASSERT_EQ(textOf(writeNpz(file("t.npz"), map)), "");
  std::string bytes = get("t.npz");
  const size_t at = bytes.find("\x93NUMPY") + 128;
  bytes[at] = char(bytes[at] ^ 1);
  put("t.npz", bytes);
  const std::string text = textOf(readNpz(file("t.npz")));
  expectContains(text, "array 'first'");
  expectContains(text, "checksum");
}

TEST_F(NpzFiles, AnArrayThatClaimsMoreThanItCanInflateTo) {
  TensorMap map;
  map.insert("a", HostTensor(DType::F32, {1000}));
  ASSERT_EQ(textOf(writeNpz(file("t.npz"), map, true)), "");
  std::string bytes = get("t.npz");
  const size_t entry = bytes.find("PK\x01\x02");
  bytes[entry + 24 + 3] = '\x70'; // 1.8 GB from a few bytes
  put("t.npz", bytes);
  expectContains(textOf(readNpz(file("t.npz"))), "cannot inflate to");
}

static std::string npy(StringRef header, StringRef bytes = "") {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += char(header.size() & 255);
  text += char(header.size() >> 8);
  return text + header.str() + bytes.str();
}

TEST_F(NpzFiles, UnpacksCompressedArraysToFilesOnce) {
  TensorMap map;
  HostTensor ramp(DType::I32, {300000});
  for (int64_t i = 0; i < ramp.numElements(); ++i)
    ramp.setDouble(i, double(i));
  map.insert("a/ramp", ramp);
  map.insert("empty", HostTensor(DType::F32, {0}));
  ASSERT_EQ(textOf(writeNpz(file("d.npz"), map, /*deflate=*/true)), "");
  const std::string cache = file("cache/below");
  auto files = [&] {
    std::vector<std::string> found;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(cache, code), end;
         it != end && !code; it.increment(code))
      found.push_back(it->path());
    return found;
  };
  EXPECT_FALSE(
      valueOf(valueOf(NpzReader::open(file("d.npz"))).map("a/ramp")).mapped);
  EXPECT_TRUE(files().empty());
  auto read = [&] {
    HostArray array =
        valueOf(valueOf(NpzReader::open(file("d.npz"), cache)).map("a/ramp"));
    EXPECT_TRUE(array.mapped);
    EXPECT_TRUE(array.tensor().bitEqual(ramp));
  };
  read();
  ASSERT_EQ(files().size(), 1u);
  const std::string path = files()[0];
  llvm::sys::fs::file_status before, after;
  ASSERT_FALSE(llvm::sys::fs::status(path, before));
  read();
  ASSERT_FALSE(llvm::sys::fs::status(path, after));
  EXPECT_EQ(before.getUniqueID(), after.getUniqueID()) << "written again";
  EXPECT_EQ(valueOf(valueOf(NpzReader::open(file("d.npz"), cache)).map("empty"))
                .numElements(),
            0);

  // A damaged file of the cache is made again, one of a damaged archive never.
  llvm::StringRef name = llvm::StringRef(path).drop_front(folder.size() + 1);
  std::string bytes = get(name);
  bytes[bytes.size() / 2] ^= 1;
  put(name, bytes);
  read();
  const size_t made = files().size();
  std::string archive = get("d.npz");
  archive[archive.size() / 4] ^= 1;
  put("damaged.npz", archive);
  expectContains(
      textOf(
          valueOf(NpzReader::open(file("damaged.npz"), cache)).map("a/ramp")),
      "damaged .npz archive");
  EXPECT_EQ(files().size(), made);
  put("file", "");
  expectContains(
      textOf(
          valueOf(NpzReader::open(file("d.npz"), file("file"))).map("a/ramp")),
      "file");
}

TEST(Npy, BadHeadersAreErrors) {
  const std::pair<const char *, const char *> cases[] = {
      {"", "not a dictionary"},
      {"{", "a key is not a string"},
      {"{'descr': '<f4'}", "lacks"},
      {"{'descr': '<f4', 'descr': '<f4'}", "twice"},
      {"{'descr': '<f4', 'evil': 1}", "unknown key"},
      {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
       "structured array"},
      {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
       "neither True nor False"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': 3}", "not a tuple"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
       "tuple of sizes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
       "tuple of integers"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), } x",
       "text follows"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(99999999999999999999,)}",
       "tuple of sizes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': "
       "(4611686018427387904, 4611686018427387904)}",
       "more bytes than"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "truncated"},
      {"{'descr': '<f16', 'fortran_order': False, 'shape': (2,)}",
       "element type '<f16' is not supported"},
  };
  for (const auto &[header, part] : cases)
    expectContains(textOf(parseNpy(npy(header), "x")), part);
  expectContains(
      textOf(parseNpy(
          npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}", "ab"),
          "x")),
      "bytes after");
  expectContains(
      textOf(parseNpy(StringRef("\x93NUMPY\x04\x00\x00\x00", 10), "x")),
      "format 4.0 is not supported");
  expectContains(textOf(parseNpy("\x93NUMPY", "x")), "truncated");
}

TEST(Npy, OtherBytesThanZeroAndOneAreTrue) {
  HostTensor flags = valueOf(
      parseNpy(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,)}",
                   StringRef("\x00\x42", 2)),
               "x"));
  EXPECT_EQ(static_cast<const uint8_t *>(flags.rawData())[1], 1);
}
