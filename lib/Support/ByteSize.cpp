//===- ByteSize.cpp - byte budgets as people write them -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Decimal fractions are kept as integers: 1.1GiB is
// floor(11 * 2^30 / 10), whatever a double would make of 1.1.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace ckopt {

namespace {
struct Unit {
  const char *name;
  int64_t bytes;
};
constexpr Unit units[] = {
    {"b", 1},
    {"kb", 1000},
    {"mb", 1000 * 1000},
    {"gb", 1000 * 1000 * 1000},
    {"tb", int64_t(1000) * 1000 * 1000 * 1000},
    {"kib", int64_t(1) << 10},
    {"mib", int64_t(1) << 20},
    {"gib", int64_t(1) << 30},
    {"tib", int64_t(1) << 40},
};

Error malformed(StringRef text, const Twine &why) {
  return usageError("'" + text + "' is not a byte size: " + why +
                    "; write plain bytes (4096), a binary unit (512MiB, "
                    "1.5GiB; KiB, TiB) or a decimal one (2GB; KB, MB, TB)");
}
} // namespace

Expected<int64_t> parseByteSize(StringRef text) {
  StringRef rest = text.trim();
  if (rest.empty())
    return malformed(text, "it is empty");
  if (rest.starts_with("-"))
    return malformed(text, "it is negative");
  const StringRef whole = rest.take_while(isDigit);
  rest = rest.drop_front(whole.size());
  StringRef fraction;
  if (rest.consume_front(".")) {
    fraction = rest.take_while(isDigit);
    rest = rest.drop_front(fraction.size());
    if (fraction.empty())
      return malformed(text, "no digits follow the point");
  }
  if (whole.empty())
    return malformed(text, "it does not start with a number");
  const StringRef name = rest.ltrim();
  int64_t unit = name.empty() ? 1 : 0;
  for (const Unit &known : units)
    if (name.equals_insensitive(known.name))
      unit = known.bytes;
  if (!unit)
    return malformed(text, "'" + name + "' is no unit of bytes");
  if (unit == 1 && !fraction.empty())
    return malformed(text, "a byte has no fractions");
  if (whole.ltrim('0').size() > 19)
    return malformed(text, "it is more than 2^63 - 1 bytes");
  // More than 18 digits cannot change the result, even in TiB, because it is
  // rounded down.
  fraction = fraction.take_front(18);

  using Wide = unsigned __int128;
  Wide number = 0, scale = 1;
  for (char digit : whole)
    number = number * 10 + unsigned(digit - '0');
  for (char digit : fraction) {
    number = number * 10 + unsigned(digit - '0');
    scale *= 10;
  }
  // The number is at most 10^37 here, but times 2^40 it could exceed 2^128.
  const Wide limit = std::numeric_limits<int64_t>::max();
  const Wide integral = number / scale, part = number % scale;
  if (integral > limit / Wide(unit))
    return malformed(text, "it is more than 2^63 - 1 bytes");
  const Wide bytes = integral * Wide(unit) + part * Wide(unit) / scale;
  if (bytes > limit)
    return malformed(text, "it is more than 2^63 - 1 bytes");
  return int64_t(bytes);
}

Expected<MemoryBudget> parseMemoryBudget(StringRef text,
                                         const MessageText &flag) {
  MemoryBudget budget;
  if (text.trim() == "min") {
    budget.kind = MemoryBudget::Kind::Minimum;
    return budget;
  }
  if (StringRef share = text.trim();
      share.consume_back_insensitive("x") &&
      share.find_first_not_of("0123456789.") == StringRef::npos)
    return parseBudgetRatio(share, MemoryBudget::Kind::Ratio, flag);
  Expected<int64_t> bytes = parseByteSize(text);
  if (!bytes) {
    ErrorText why = takeErrorText(bytes.takeError());
    return makeError(why.code, flag + ": " + why.message +
                                   ", '0.6x' for a share of the peak without "
                                   "recomputation, or 'min' for the smallest "
                                   "possible");
  }
  budget.kind = MemoryBudget::Kind::Bytes;
  budget.bytes = *bytes;
  return budget;
}

Expected<MemoryBudget> parseBudgetRatio(StringRef text, MemoryBudget::Kind kind,
                                        const MessageText &flag) {
  MemoryBudget budget;
  if (text.trim() == "min") {
    budget.kind = MemoryBudget::Kind::Minimum;
    return budget;
  }
  double ratio = 0;
  // Only digits and a point are allowed: no "nan", "inf" or hexadecimal.
  const bool plain =
      !text.trim().empty() &&
      text.trim().find_first_not_of("0123456789.") == StringRef::npos;
  if (!plain || text.trim().getAsDouble(ratio) || !(ratio > 0 && ratio <= 1))
    return usageError(flag + ": '" + text +
                      "' is not a ratio: write a number above 0 up to 1 "
                      "(0.6), or 'min' for the smallest possible");
  budget.kind = kind;
  budget.ratio = ratio;
  return budget;
}

int64_t MemoryBudget::resolve(int64_t fullArena, int64_t fixedPart) const {
  switch (kind) {
  case Kind::Unlimited:
  case Kind::Minimum:
    return std::numeric_limits<int64_t>::max();
  case Kind::Bytes:
    return bytes;
  case Kind::Ratio:
    return int64_t(std::floor(ratio * double(fullArena)));
  case Kind::ActivationRatio:
    return fixedPart +
           int64_t(std::floor(ratio * double(fullArena - fixedPart)));
  }
  return bytes;
}

std::string MemoryBudget::describe() const {
  switch (kind) {
  case Kind::Unlimited:
    return "unlimited";
  case Kind::Bytes:
    return formatBytesExact(bytes);
  case Kind::Ratio:
    return formatNumber(ratio) + " of the unconstrained arena";
  case Kind::ActivationRatio:
    return formatNumber(ratio) + " of the arena's reducible part";
  case Kind::Minimum:
    return "the minimum";
  }
  return "";
}

std::string groupDigits(int64_t value) {
  std::string digits = std::to_string(value);
  const size_t first = value < 0 ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;)
    digits.insert(at -= 3, 1, ',');
  return digits;
}

std::string formatBytes(int64_t bytes) {
  static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double value = double(bytes);
  unsigned unit = 0;
  // 1023.6 KiB would print as "1024 KiB": use the next unit if rounding reaches
  // it.
  while (unit + 1 < std::size(names) && std::fabs(value) >= 1023.5) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0)
    return std::to_string(bytes) + " B";
  const double size = std::fabs(value);
  const int digits = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  std::string text;
  raw_string_ostream(text) << format("%.*f ", digits, value) << names[unit];
  return text;
}

std::string formatBytesExact(int64_t bytes) {
  if (bytes > -1024 && bytes < 1024)
    return groupDigits(bytes) + " B";
  return formatBytes(bytes) + " (" + groupDigits(bytes) + " B)";
}

} // namespace ckopt
