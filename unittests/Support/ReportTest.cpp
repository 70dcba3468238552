//===- ReportTest.cpp - tables, numbers, JSON -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Report.h"
#include "TestFiles.h"
#include <cmath>

using namespace ckopt;

TEST(TextTable, AlignsColumns) {
  TextTable table;
  table.addColumn("budget");
  table.addColumn("peak", TextTable::Right);
  table.addColumn("note");
  table.addRow({"unlimited", "2.94 MiB", "x"});
  table.addRule();
  table.addRow({"min", "812 KiB"});
  std::string text;
  llvm::raw_string_ostream os(text);
  table.print(os, 2);
  EXPECT_EQ(text, "  budget         peak  note\n"
                  "  -------------------------\n"
                  "  unlimited  2.94 MiB  x\n"
                  "  -------------------------\n"
                  "  min         812 KiB\n");
}

TEST(TextTable, CountsColumnsNotBytes) {
  TextTable table;
  table.addColumn("a");
  table.addColumn("b");
  table.addRow({"\xc3\xa9\xc3\xa9", "x"});
  table.addRow({"ee", "x"});
  std::string text;
  llvm::raw_string_ostream os(text);
  table.print(os);
  EXPECT_EQ(text, "a   b\n-----\n\xc3\xa9\xc3\xa9  x\nee  x\n");
}

TEST(TextTable, NamesStayInTheirCells) {
  TextTable table;
  table.addColumn("name");
  table.addRow({"a\x1b]0;t\a\nb"});
  std::string text;
  llvm::raw_string_ostream os(text);
  table.print(os);
  EXPECT_EQ(text, "name\n------------------\na\\x1b]0;t\\x07\\x0ab\n");
  text.clear();
  PrintableStream(os) << "a\x1b\n" << "b\r";
  EXPECT_EQ(text, "a\\x1b\nb\\x0d");
}

TEST(Report, Numbers) {
  EXPECT_EQ(formatNumber(0.98333), "0.9833");
  EXPECT_EQ(formatNumber(12.345, 3), "12.3");
  EXPECT_EQ(formatNumber(0), "0.000");
  EXPECT_EQ(formatNumber(-1234.5), "-1234");
  EXPECT_EQ(formatNumber(1e-7, 3), "1e-07");
  EXPECT_EQ(formatNumber(NAN), "nan");
  EXPECT_EQ(formatSeconds(1.2345e-3), "1.23 ms");
  EXPECT_EQ(formatSeconds(45.6e-6), "45.6 us");
  EXPECT_EQ(formatSeconds(2.05), "2.05 s");
  EXPECT_EQ(formatSeconds(192), "3 min 12 s");
  EXPECT_EQ(formatSeconds(0), "0.00 s");
  EXPECT_EQ(formatPercent(0.6), "60.0 %");
  EXPECT_EQ(formatPercent(0.9833, 2), "98.33 %");
}

TEST(Report, JsonKeepsTheOrderOfCallsAndHasNoNaN) {
  const std::string text = jsonText([](llvm::json::OStream &out) {
    out.object([&] {
      out.attribute("z", 1);
      out.attribute("a", jsonNumber(NAN));
      out.attribute("m", jsonString("x\xff"));
    });
  });
  EXPECT_EQ(text,
            "{\n  \"z\": 1,\n  \"a\": null,\n  \"m\": \"x\xef\xbf\xbd\"\n}\n");
}

class ReportFiles : public FilesTest {};

TEST_F(ReportFiles, JsonFile) {
  EXPECT_EQ(textOf(writeJsonFile(file("a.json"),
                                 [](llvm::json::OStream &out) {
                                   out.array([&] { out.value(1); });
                                 })),
            "");
  EXPECT_EQ(get("a.json"), "[\n  1\n]\n");
  EXPECT_EQ(
      codeOf(writeJsonFile(file("no/a.json"),
                           [](llvm::json::OStream &out) { out.value(1); })),
      ExitIoError);
}
