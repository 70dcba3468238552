//===- Report.h - tables and JSON for people and scripts --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// All tools print tables and write JSON with these functions, so that they look
// alike and equal results give equal bytes. llvm::json::OStream writes members
// in the order of the calls; use it, not json::Object, where the order matters
// to a reader (an Object prints sorted by key).
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_REPORT_H
#define CKOPT_SUPPORT_REPORT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace ckopt {

/// A table whose columns are aligned by their widest cell, with an underlined
/// header.
class TextTable {
public:
  enum Align { Left, Right };

  void addColumn(llvm::StringRef header, Align align = Left);
  /// Adds a row. Missing cells are empty; more cells than columns are a defect.
  void addRow(std::vector<std::string> cells);
  /// Adds a rule between the rows before and after.
  void addRule();
  /// Prints the table. Every line starts with `indent` blanks; no line ends in
  /// blanks.
  void print(llvm::raw_ostream &os, unsigned indent = 0) const;

private:
  struct Column {
    std::string header;
    Align align;
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows; ///< empty: a rule
};

/// Passes text for people on, with the control characters of foreign names
/// escaped. Each write must end between characters.
class PrintableStream : public llvm::raw_ostream {
public:
  explicit PrintableStream(llvm::raw_ostream &to)
      : raw_ostream(/*unbuffered=*/true), to(to) {}

private:
  void write_impl(const char *bytes, size_t size) override;
  uint64_t current_pos() const override { return written; }

  llvm::raw_ostream &to;
  uint64_t written = 0;
};

/// Formats `value` with `digits` significant digits, never in exponent form
/// between 1e-4 and 1e15: "0.9833", "12.3".
std::string formatNumber(double value, int digits = 4);
/// Formats a time: "1.23 ms", "45.6 us", "2.05 s", "3 min 12 s".
std::string formatSeconds(double seconds);
/// Formats 0.6 as "60.0 %", with `digits` digits after the point.
std::string formatPercent(double share, int digits = 1);

/// Makes a JSON number, or null where `value` is not finite (JSON has no NaN).
llvm::json::Value jsonNumber(double value);
/// Makes a JSON string; bytes that are not UTF-8 become U+FFFD.
llvm::json::Value jsonString(llvm::StringRef text);

/// Writes the JSON that `fill` emits (two blanks a level, a line end at the
/// end), atomically; "-" is standard output.
llvm::Error writeJsonFile(llvm::StringRef path,
                          llvm::function_ref<void(llvm::json::OStream &)> fill);
std::string jsonText(llvm::function_ref<void(llvm::json::OStream &)> fill);

} // namespace ckopt

#endif // CKOPT_SUPPORT_REPORT_H
