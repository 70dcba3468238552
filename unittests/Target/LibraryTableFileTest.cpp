//===- LibraryTableFileTest.cpp - library tables from files ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/LibraryTableFile.h"
#include "ckopt/Support/Error.h"

#include "gtest/gtest.h"

using namespace ckopt;
using namespace ckopt::runtime;

namespace {

std::string file(const std::string &classes) {
  return R"({"format": "ckopt-library-table/1", "classes": {)" + classes + "}}";
}

std::string rule(const std::string &members) {
  return file(R"("any": [{"kind": "matmul", "type": "f32", )" + members + "}]");
}

/// What is wrong with a file.
std::string refused(const std::string &text) {
  auto table = parseLibraryTable(text, "amx");
  return table ? "" : takeErrorText(table.takeError()).text;
}

LibraryForm formBy(const std::string &text, llvm::StringRef cpuClass) {
  PrimitiveDesc desc;
  desc.matmul = {{1, 1}, 8, 8, 8, {0, 0}, 8, 1, {0, 0}, 8, 1, {0, 0}, 8, 1};
  return llvm::cantFail(parseLibraryTable(text, cpuClass))->formOf(desc);
}

std::string hashOf(const std::string &text) {
  return llvm::cantFail(parseLibraryTable(text, "amx"))->hash;
}

} // namespace

/// Whatever is wrong is said with its place.
TEST(LibraryTableFile, ErrorsNameTheRule) {
  EXPECT_NE(refused("{"), "");
  EXPECT_EQ(refused(R"({"classes": {}})"),
            "needs \"format\": \"ckopt-library-table/1\"");
  EXPECT_EQ(refused(R"({"format": "ckopt-library-table/1"})"),
            "has 'format' and 'classes', an object, and no other members");
  EXPECT_EQ(refused(file(R"("avx9": [])")),
            "classes: no class 'avx9' of processors; there are baseline, avx2, "
            "avx512, avx512-bf16, amx, any");
  EXPECT_EQ(refused(file(R"("amx": {})")), "classes.amx is no list of rules");
  EXPECT_EQ(refused(file(R"("avx2": [1])")),
            "classes.avx2[0]: a rule is an object");
  EXPECT_EQ(refused(file(R"("amx": [{"kind": "gemm"}])")),
            "classes.amx[0]: 'kind' is none of matmul, convolution, "
            "convolution-input-gradient, convolution-weight-gradient");
  EXPECT_EQ(refused(file(R"("amx": [{"kind": "matmul", "type": "f64"}])")),
            "classes.amx[0]: 'type' is neither f32 nor bf16");
  EXPECT_EQ(refused(rule(R"("form": "fast")")),
            "classes.any[0]: 'form' is none of in-place, packed, openblas");
  EXPECT_EQ(refused(file(R"("any": [{"kind": "matmul", "type": "bf16",
                             "form": "openblas"}])")),
            "classes.any[0]: 'form' is none of in-place, packed");
  EXPECT_EQ(refused(file(R"("any": [{"kind": "convolution", "type": "f32",
                             "form": "packed"}])")),
            "classes.any[0]: 'form' is none of product, convolution");
  EXPECT_EQ(refused(rule(R"("form": "packed", "were": {})")),
            "classes.any[0]: unknown member 'were'");
  EXPECT_EQ(
      refused(rule(R"("form": "packed", "where": {"points": 3})")),
      "classes.any[0]: where: no number 'points'; this kind has batch, m, "
      "n, k, left_row, left_column, right_row, right_column, result_row, "
      "right_elements, added");
  EXPECT_EQ(refused(rule(R"("form": "packed", "where": {"m": "3"})")),
            "classes.any[0]: where.m: is no integer, [LEAST, MOST] or "
            "{\"multiple_of\": N}");
  EXPECT_EQ(refused(rule(R"("form": "packed", "where": {"m": [3, 2]})")),
            "classes.any[0]: where.m: a range is [LEAST, MOST]");
  EXPECT_EQ(
      refused(rule(R"("form": "packed", "where": {"m": {"multiple_of": 0}})")),
      "classes.any[0]: where.m: is no integer, [LEAST, MOST] or "
      "{\"multiple_of\": N}");
}

/// Rules of the class come before those for all, those of others do not count.
TEST(LibraryTableFile, ClassesOfProcessors) {
  std::string text = file(R"(
      "any": [{"kind": "matmul", "type": "f32", "form": "openblas"}],
      "amx": [{"kind": "matmul", "type": "f32", "form": "packed",
               "where": {"m": [null, 8], "n": 8, "k": {"multiple_of": 4}}}],
      "avx2": [{"kind": "matmul", "type": "f32", "form": "packed",
                "where": {"m": [9, null]}}])");
  EXPECT_EQ(formBy(text, "amx"), LibraryForm::Packed);
  EXPECT_EQ(formBy(text, "avx2"), LibraryForm::OpenBlas);
  EXPECT_EQ(formBy(text, "avx512"), LibraryForm::OpenBlas);
  EXPECT_EQ(formBy(file(""), "avx512"), LibraryForm::InPlace);
}

/// The hash is of what decides: not of measurements, blanks or the order of
/// members; but of forms, numbers, and the order of rules.
TEST(LibraryTableFile, HashesWhatDecides) {
  std::string hash =
      hashOf(rule(R"("form": "packed", "where": {"m": 3, "n": 4})"));
  EXPECT_EQ(hash.size(), 16u);
  EXPECT_EQ(hash, hashOf(rule(R"("where": {"n":4,"m":3}, "form": "packed")")));
  EXPECT_NE(hash,
            hashOf(rule(R"("form": "in-place", "where": {"m": 3, "n": 4})")));
  EXPECT_NE(hash,
            hashOf(rule(R"("form": "packed", "where": {"m": 4, "n": 3})")));
  EXPECT_NE(hash, hashOf(file("")));
}
