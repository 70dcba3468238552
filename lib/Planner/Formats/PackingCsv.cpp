//===- PackingCsv.cpp - packing problems as CSV files ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads and writes packing problems in the form of MiniMalloc's and idealloc's
// benchmarks: a header and one buffer a line. A solution is the same file with
// a column `offset`, so rows are kept as they were written. Numbers are checked
// one by one and as a sum, so that no later sum of sizes overflows. O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/Packing.h"

#include <charconv>
#include <limits>

using namespace ckopt::planner;

namespace {

/// The sum of all sizes stays below this, so that sums of heights fit 64 bits.
constexpr int64_t largestSum = std::numeric_limits<int64_t>::max() / 4;

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos)
    return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t from = 0;;) {
    size_t comma = line.find(',', from);
    fields.push_back(trim(line.substr(from, comma - from)));
    if (comma == std::string_view::npos)
      return fields;
    from = comma + 1;
  }
}

class Reader {
public:
  Reader(std::string_view text, std::string &error)
      : text(text), error(error) {}
  std::optional<PackingCsv> read();

private:
  bool nextLine(std::string_view &line);
  bool readHeader(std::string_view line);
  bool readRow(std::string_view line);
  bool fail(const std::string &what) {
    error = "line " + std::to_string(lineNumber) + ": " + what;
    return false;
  }
  bool number(std::string_view field, const char *column, int64_t &result);
  /// Returns the line's fields without a former `offset`.
  std::string kept(const std::vector<std::string_view> &fields) const;

  std::string_view text;
  std::string &error;
  size_t lineNumber = 0, columns = 0;
  int lower = -1, upper = -1, size = -1, offset = -1;
  int64_t sum = 0;
  PackingCsv csv;
};

bool Reader::nextLine(std::string_view &line) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view()
                                         : text.substr(end + 1);
    ++lineNumber;
    if (!line.empty())
      return true;
  }
  return false;
}

std::string Reader::kept(const std::vector<std::string_view> &fields) const {
  std::string line;
  bool first = true;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (int(i) == offset)
      continue;
    if (!first)
      line += ',';
    line += fields[i];
    first = false;
  }
  return line;
}

bool Reader::readHeader(std::string_view line) {
  std::vector<std::string_view> fields = split(line);
  columns = fields.size();
  struct {
    const char *name;
    int *column;
  } known[] = {{"lower", &lower},
               {"upper", &upper},
               {"size", &size},
               {"offset", &offset}};
  for (size_t i = 0; i < fields.size(); ++i)
    for (auto &entry : known)
      if (fields[i] == entry.name) {
        if (*entry.column >= 0)
          return fail("the header names '" + std::string(fields[i]) +
                      "' twice");
        *entry.column = int(i);
      }
  for (auto &entry : known)
    if (*entry.column < 0 && entry.column != &offset)
      return fail("the header has no column '" + std::string(entry.name) +
                  "'; it must name lower, upper and size, as in "
                  "'id,lower,upper,size'");
  csv.header = kept(fields);
  return true;
}

bool Reader::number(std::string_view field, const char *column,
                    int64_t &result) {
  auto [end, code] =
      std::from_chars(field.data(), field.data() + field.size(), result);
  if (code == std::errc::result_out_of_range)
    return fail(std::string(column) + " '" + std::string(field) +
                "' does not fit 64 bits");
  if (code != std::errc() || end != field.data() + field.size())
    return fail(std::string(column) + " '" + std::string(field) +
                "' is not a whole number");
  return true;
}

bool Reader::readRow(std::string_view line) {
  std::vector<std::string_view> fields = split(line);
  if (fields.size() != columns)
    return fail(std::to_string(fields.size()) + " fields, but the header has " +
                std::to_string(columns));
  Buffer buffer{};
  if (!number(fields[lower], "lower", buffer.lifespan.lower) ||
      !number(fields[upper], "upper", buffer.lifespan.upper) ||
      !number(fields[size], "size", buffer.size))
    return false;
  if (buffer.lifespan.lower >= buffer.lifespan.upper)
    return fail("lower " + std::to_string(buffer.lifespan.lower) +
                " is not before upper " +
                std::to_string(buffer.lifespan.upper) +
                " (upper is exclusive)");
  if (buffer.size < 0)
    return fail("size " + std::to_string(buffer.size) + " is negative");
  if (buffer.size > largestSum - sum)
    return fail("the sizes up to here add up to more than 2^61 bytes");
  if (csv.buffers.size() >= size_t(std::numeric_limits<int32_t>::max() / 2))
    return fail("too many buffers");
  sum += buffer.size;
  csv.buffers.push_back(buffer);
  csv.rows.push_back(kept(fields));
  return true;
}

std::optional<PackingCsv> Reader::read() {
  std::string_view line;
  if (!nextLine(line)) {
    error = "the file is empty; a header such as 'id,lower,upper,size' is "
            "missing";
    return std::nullopt;
  }
  if (!readHeader(line))
    return std::nullopt;
  while (nextLine(line))
    if (!readRow(line))
      return std::nullopt;
  return std::move(csv);
}

} // namespace

std::optional<PackingCsv> ckopt::planner::parsePackingCsv(std::string_view text,
                                                          std::string &error) {
  return Reader(text, error).read();
}

std::string
ckopt::planner::printPackingCsv(const PackingCsv &csv,
                                const std::vector<int64_t> &offsets) {
  std::string text = csv.header + ",offset\n";
  for (size_t i = 0; i < csv.rows.size(); ++i) {
    text += csv.rows[i];
    text += ',';
    text += std::to_string(offsets[i]);
    text += '\n';
  }
  return text;
}
