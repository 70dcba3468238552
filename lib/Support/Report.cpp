//===- Report.cpp - tables and JSON for people and scripts ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Lays out tables of text. Widths count terminal columns of UTF-8 text, not
// bytes. O(cells).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Report.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Unicode.h"
#include "llvm/Support/raw_ostream.h"
#include <cassert>
#include <cmath>

using namespace llvm;

namespace ckopt {

static size_t width(StringRef text) {
  const int columns = sys::unicode::columnWidthUTF8(text);
  return columns < 0 ? text.size() : size_t(columns);
}

void TextTable::addColumn(StringRef header, Align align) {
  columns.push_back({header.str(), align});
}

void TextTable::addRow(std::vector<std::string> cells) {
  assert(cells.size() <= columns.size() && "more cells than columns");
  for (std::string &cell : cells) // a name would break the table's lines
    cell = printable(cell);
  cells.resize(columns.size());
  rows.push_back(std::move(cells));
}

void TextTable::addRule() { rows.emplace_back(); }

void TextTable::print(raw_ostream &os, unsigned indent) const {
  std::vector<size_t> widths;
  size_t total = 0;
  for (size_t c = 0; c < columns.size(); ++c) {
    size_t widest = width(columns[c].header);
    for (const std::vector<std::string> &row : rows)
      if (!row.empty())
        widest = std::max(widest, width(row[c]));
    widths.push_back(widest);
    total += widest + (c ? 2 : 0);
  }
  auto printLine = [&](auto cellOf) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < columns.size(); ++c) {
      const StringRef cell = cellOf(c);
      const std::string gap(widths[c] - width(cell), ' ');
      line += c ? "  " : "";
      if (columns[c].align == Right)
        line += gap;
      line += cell;
      if (columns[c].align == Left)
        line += gap;
    }
    os << StringRef(line).rtrim(' ') << '\n';
  };
  auto printRule = [&] {
    os.indent(indent) << std::string(total, '-') << '\n';
  };
  printLine([&](size_t c) -> StringRef { return columns[c].header; });
  printRule();
  for (const std::vector<std::string> &row : rows) {
    if (row.empty())
      printRule();
    else
      printLine([&](size_t c) -> StringRef { return row[c]; });
  }
}

void PrintableStream::write_impl(const char *bytes, size_t size) {
  to << printable({bytes, size}, /*keepLines=*/true);
  written += size;
  // flush() of an unbuffered stream does not come here: errors, which go
  // elsewhere, stand behind the lines before them all the same.
  if (size && (bytes[size - 1] == '\n' || bytes[size - 1] == '\r'))
    to.flush();
}

std::string formatNumber(double value, int digits) {
  std::string text;
  raw_string_ostream os(text);
  const double size = std::fabs(value);
  if (!std::isfinite(value) || (size != 0 && (size < 1e-4 || size >= 1e15))) {
    os << format("%.*g", digits, value);
    return text;
  }
  const int exponent = size == 0 ? 0 : int(std::floor(std::log10(size)));
  os << format("%.*f", std::max(0, digits - 1 - exponent), value);
  return text;
}

std::string formatSeconds(double seconds) {
  std::string text;
  raw_string_ostream os(text);
  const double size = std::fabs(seconds);
  if (!std::isfinite(seconds)) {
    os << format("%g s", seconds);
  } else if (size >= 119.5) {
    const int64_t whole = int64_t(std::llround(size));
    os << (seconds < 0 ? "-" : "") << whole / 60 << " min " << whole % 60
       << " s";
  } else {
    const double scales[] = {1, 1e3, 1e6, 1e9};
    const char *const names[] = {"s", "ms", "us", "ns"};
    unsigned unit = 0;
    while (unit < 3 && size * scales[unit] < 0.9995)
      ++unit;
    const double scaled = size == 0 ? 0 : seconds * scales[unit];
    os << formatNumber(scaled, 3) << ' ' << (size == 0 ? "s" : names[unit]);
  }
  return text;
}

std::string formatPercent(double share, int digits) {
  std::string text;
  raw_string_ostream(text) << format("%.*f %%", digits, share * 100);
  return text;
}

json::Value jsonNumber(double value) {
  if (!std::isfinite(value))
    return nullptr;
  return value;
}

json::Value jsonString(StringRef text) {
  return json::isUTF8(text) ? text.str() : json::fixUTF8(text);
}

std::string jsonText(function_ref<void(json::OStream &)> fill) {
  std::string text;
  raw_string_ostream stream(text);
  {
    json::OStream out(stream, /*IndentSize=*/2);
    fill(out);
  }
  stream << '\n';
  return text;
}

Error writeJsonFile(StringRef path, function_ref<void(json::OStream &)> fill) {
  const std::string text = jsonText(fill);
  if (path != "-")
    return writeFileAtomically(path, text);
  outs() << text;
  outs().flush();
  if (outs().has_error()) {
    const std::string why = outs().error().message();
    outs().clear_error();
    return ioError("cannot write to standard output: " + why);
  }
  return Error::success();
}

} // namespace ckopt
