//===- ArrayFileTest.cpp - arrays in files, mapped rather than read -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/ArrayFile.h"
#include "TestFiles.h"
#include "ckopt/Support/Npz.h"

using namespace ckopt;

class ArrayFiles : public FilesTest {};

/// Numbers whose bytes all differ.
static HostTensor numbers(int64_t rows) {
  HostTensor tensor(DType::F32, {rows, 100});
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    tensor.setDouble(i, double(i) / 3);
  return tensor;
}

TEST_F(ArrayFiles, StoredMembersAreMappedWhereverTheyLie) {
  bool misaligned = false;
  for (std::string name : {"a", "ab", "abc", "abcd"}) {
    TensorMap map;
    map.insert(name, numbers(200));
    ASSERT_EQ(textOf(writeNpz(file("a.npz"), map)), "");
    ArrayFile opened = valueOf(openArrayFile(file("a.npz")));
    EXPECT_TRUE(opened.contains(name));
    HostArray array = valueOf(opened.read(name));
    EXPECT_TRUE(array.mapped);
    misaligned |= !array.isAligned();
    EXPECT_TRUE(array.tensor().bitEqual(numbers(200)));
    HostTensor part = array.rows(17, 2);
    EXPECT_EQ(part.typeString(), "f32 [2, 100]");
    EXPECT_EQ(part.getDouble(0), numbers(200).getDouble(1700));
  }
  EXPECT_TRUE(misaligned) << "or the test shows nothing";
}

TEST_F(ArrayFiles, WhatMustBeUnpackedIsNotMapped) {
  TensorMap map;
  map.insert("a", numbers(200));
  ASSERT_EQ(textOf(writeNpz(file("a.npz"), map, /*deflate=*/true)), "");
  HostArray array = valueOf(valueOf(openArrayFile(file("a.npz"))).read("a"));
  EXPECT_FALSE(array.mapped);
  EXPECT_TRUE(array.tensor().bitEqual(numbers(200)));
  HostArray fortran = valueOf(mapNpy(CKOPT_TEST_DATA "/npz/fortran.npy"));
  EXPECT_FALSE(fortran.mapped);
  EXPECT_TRUE(fortran.tensor().bitEqual(
      valueOf(readNpy(CKOPT_TEST_DATA "/npz/fortran.npy"))));
}

TEST_F(ArrayFiles, FoldersHoldAnArrayAFile) {
  ASSERT_EQ(textOf(writeNpy(file("x.npy"), numbers(3))), "");
  ASSERT_EQ(textOf(writeNpy(file("y.npy"), numbers(2))), "");
  ArrayFile arrays = valueOf(openArrayFile(folder));
  EXPECT_EQ(arrays.arrays, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(valueOf(arrays.read("y")).tensor().bitEqual(numbers(2)));
  expectContains(textOf(arrays.read("z")), "no array 'z'; there are x, y");
  ArrayFile one = valueOf(openArrayFile(file("x.npy")));
  EXPECT_TRUE(valueOf(one.read("x")).tensor().bitEqual(numbers(3)));
}

TEST_F(ArrayFiles, PatternsFindFilesInOrder) {
  for (const char *name : {"b-10.npz", "b-02.npz", "c-1.npz"})
    put(name, "");
  EXPECT_EQ(valueOf(listFiles(file("b-*.npz"))),
            (std::vector<std::string>{file("b-02.npz"), file("b-10.npz")}));
  EXPECT_EQ(valueOf(listFiles(file("?-1.npz"))),
            (std::vector<std::string>{file("c-1.npz")}));
  EXPECT_EQ(valueOf(listFiles(file("none.npz"))),
            (std::vector<std::string>{file("none.npz")}))
      << "without a pattern: a name, whose error comes when it is opened";
  expectContains(textOf(listFiles(file("d-*"))), "no file matches");
}

TEST_F(ArrayFiles, NumbersWithoutAHeader) {
  put("n.bin", llvm::StringRef("\1\0\2\0\3\0", 6));
  HostArray array = valueOf(mapNumbers(file("n.bin"), DType::U16));
  EXPECT_EQ(array.shape, (std::vector<int64_t>{3}));
  EXPECT_EQ(array.tensor().getInt(2), 3);
  expectContains(textOf(mapNumbers(file("n.bin"), DType::U32)),
                 "6 bytes are no whole number of u32");
  expectContains(textOf(mapNumbers(file("none"), DType::U8)), "cannot read");
}
