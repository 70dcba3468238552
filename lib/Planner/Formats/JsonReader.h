//===- JsonReader.h - reading JSON that other programs wrote ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Private to lib/Planner. Reads JSON with checks: every field is checked for
// presence, type and range before it is used; each problem names its place, and
// reading continues after it, so that all problems of a file are listed
// together.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_PLANNER_FORMATS_JSONREADER_H
#define CKOPT_LIB_PLANNER_FORMATS_JSONREADER_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/JSON.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ckopt::planner {

/// The problems of a file, one a line; the first 20 are named.
class JsonErrors {
public:
  /// Returns false, for `return errors.add(...)`.
  bool add(const std::string &message);
  bool any() const { return count > 0; }
  const std::string &text() const { return lines; }

private:
  std::string lines;
  int count = 0;
};

/// Typed access to members; every function returns false (or null) after adding
/// a problem.
class JsonReader {
public:
  explicit JsonReader(JsonErrors &errors) : errors(errors) {}

protected:
  bool fail(const std::string &message) { return errors.add(message); }
  static std::string str(int64_t n) { return std::to_string(n); }

  bool integer(const llvm::json::Value &value, const std::string &where,
               int64_t &result);
  /// Reads a member; if it is missing, `result` stays unchanged, unless it is
  /// `required`.
  bool integer(const llvm::json::Object &object, llvm::StringRef key,
               const std::string &where, int64_t &result, bool required);
  /// Reads a finite number in the same way.
  bool number(const llvm::json::Object &object, llvm::StringRef key,
              const std::string &where, double &result, bool required);
  /// Returns null if the member is missing (a problem only if `required`) or is
  /// not a list.
  const llvm::json::Array *list(const llvm::json::Object &object,
                                llvm::StringRef key, const std::string &where,
                                bool required);
  /// Reads all numbers of a list.
  bool integers(const llvm::json::Array &list, const std::string &where,
                std::vector<int64_t> &result);
  bool format(const llvm::json::Object &object, llvm::StringRef wanted);
  static std::string text(const llvm::json::Object &object,
                          llvm::StringRef key);

  JsonErrors &errors;
};

/// Returns why a text must not be parsed (it is not UTF-8, or brackets nest
/// more than 64 deep, on which the parser recurses), or an empty string.
std::string checkJsonText(std::string_view text);

/// Returns why a text is not JSON, with the place.
std::string whyNotJson(std::string_view text);

/// Splits an object or a list into its members without building a tree, since a
/// tree of 100,000 nodes takes a gigabyte. Each part is still to be parsed.
/// Returns false if the text is not an object (list) or a callback returns
/// false.
bool splitObject(
    std::string_view text,
    llvm::function_ref<bool(std::string_view key, std::string_view value)>
        member);
bool splitList(std::string_view text,
               llvm::function_ref<bool(std::string_view value)> element);

} // namespace ckopt::planner

#endif // CKOPT_LIB_PLANNER_FORMATS_JSONREADER_H
