//===- FlagTable.h - command lines of the tools -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The table has for each flag its name, the commands that take it, its help
// and section, and a function that stores its value. LLVM's own command line
// library would bring the fifteen hundred options of the back ends along, and
// exits with codes of its own.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_FLAGTABLE_H
#define CKOPT_SUPPORT_FLAGTABLE_H

#include "ckopt/Support/Choice.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/OutputFiles.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace ckopt {

struct Flag {
  /// Stores the value, or returns a usage error that names the flag; also knows
  /// where it stores names of files.
  struct Store {
    template <typename F> Store(F keep) : keep(std::move(keep)) {}
    llvm::Error operator()(llvm::StringRef text) const { return keep(text); }

    std::function<llvm::Error(llvm::StringRef)> keep;
    FileUse use = FileUse::None;
    std::vector<const std::string *> files;
    std::string prefix; ///< before the file's name; without it there is none
    MessageText renews; ///< the flag of an input that this output may replace
  };

  std::string name;  ///< without dashes
  std::string value; ///< "BYTES"; "[=N]" may be left out; empty: a switch
  unsigned groups;   ///< the groups (commands, modes) that take it, a bit each
  MessageText help;
  Store store;
  std::string section; ///< title over the flag in the help
};

/// The name of a flag, without dashes, and its value; switches take "". Flags
/// that are repeatable may come several times.
using GivenSetting = std::pair<std::string, std::string>;

class FlagTable {
public:
  /// Puts the flags that are added from now on under a title.
  void beginSection(llvm::StringRef title) { section = title.str(); }
  void add(llvm::StringRef name, llvm::StringRef value, unsigned groups,
           const MessageText &help, Flag::Store store);
  /// Names the groups, by their bits, for messages on flags of other groups.
  void nameGroups(std::vector<std::string> names) {
    groupNames = std::move(names);
  }

  /// Finds the flag of that name for one of the groups; null if there is none.
  const Flag *find(llvm::StringRef name, unsigned groups) const;

  /// The flags that a command line held, in their order.
  using Given = std::vector<const Flag *>;

  /// Parses the arguments and stores their values. `positional` receives the
  /// arguments that are no flags (`-` too). One usage error lists all mistakes.
  llvm::Error parse(llvm::ArrayRef<char *> arguments, unsigned groups,
                    llvm::function_ref<llvm::Error(llvm::StringRef)> positional,
                    Given *given = nullptr) const;
  /// Stores settings of a program. One usage error lists all mistakes.
  llvm::Error store(llvm::ArrayRef<GivenSetting> settings,
                    unsigned groups) const;

  /// Returns the files that flags of these groups name, as stored now.
  std::vector<NamedFile> files(FileUse use, unsigned groups) const;

  /// Prints one entry for each flag, by sections, in lines of 79 characters.
  void printHelp(llvm::raw_ostream &os, unsigned groups,
                 SettingStyle style = SettingStyle::Flags) const;
  /// Prints only the entries of these flags, in their order, without those that
  /// the groups do not take.
  void printHelp(llvm::raw_ostream &os, unsigned groups,
                 llvm::ArrayRef<llvm::StringRef> names) const;
  /// Returns how many flags printHelp() shows.
  size_t count(unsigned groups) const;

private:
  const Flag *nearest(llvm::StringRef name, unsigned groups) const;
  /// Makes the error "unknown flag --sede; did you mean --seed?".
  llvm::Error unknown(const MessageText &text, llvm::StringRef name,
                      unsigned groups, llvm::StringRef elsewhere = "") const;

  std::vector<Flag> flags;
  std::string section;
  std::vector<std::string> groupNames;
};

/// Functions that store values; `name` is the flag's, for messages.
namespace flag {

/// Formats a limit for messages: "1", "0.5".
std::string limitText(double limit);
inline std::string limitText(int64_t limit) { return std::to_string(limit); }
/// Makes the error "is no number from 0 to 1".
llvm::Error notInRange(llvm::StringRef name, llvm::StringRef text, bool integer,
                       const std::string &low, const std::string &high,
                       bool open);
/// Parses digits, a point and an exponent; refuses "nan", "inf" and
/// hexadecimal.
bool parseReal(llvm::StringRef text, double &value);

/// Makes a function that stores a number from `low` to `high`, without `high`
/// itself if `open`.
template <typename T>
Flag::Store number(llvm::StringRef name, T &slot,
                   T low = std::numeric_limits<T>::lowest(),
                   T high = std::numeric_limits<T>::max(), bool open = false) {
  return [name = name.str(), &slot, low, high,
          open](llvm::StringRef text) -> llvm::Error {
    T value{};
    bool bad;
    if constexpr (std::is_floating_point_v<T>)
      bad = !parseReal(text, value);
    else
      bad = text.getAsInteger(10, value);
    if (bad || value < low || value > high || (open && value == high)) {
      using Limits = std::numeric_limits<T>;
      using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
      bool anyLow = low == Limits::lowest() && low != 0;
      return notInRange(
          name, text, std::is_integral_v<T>, anyLow ? "" : limitText(Wide(low)),
          high == Limits::max() ? "" : limitText(Wide(high)), open);
    }
    slot = value;
    return llvm::Error::success();
  };
}

/// Marks a flag as the name of a file that is read; the name is in `slot`,
/// after `prefix`.
Flag::Store reads(Flag::Store store, const std::string &slot,
                  llvm::StringRef prefix = "");
/// Marks a flag as the name of a file that is written. It may replace the file
/// of the flag `renews`, from which the command continues.
Flag::Store writes(Flag::Store store, const std::string &slot,
                   const MessageText &renews = {});

/// Makes a function that stores any text that is not empty.
Flag::Store text(llvm::StringRef name, std::string &slot);
inline Flag::Store inputFile(llvm::StringRef name, std::string &slot) {
  return reads(text(name, slot), slot);
}
inline Flag::Store outputFile(llvm::StringRef name, std::string &slot,
                              const MessageText &renews = {}) {
  return writes(text(name, slot), slot, renews);
}
/// Makes a function that stores a regular expression; refuses malformed ones.
Flag::Store pattern(llvm::StringRef name, std::string &slot);
Flag::Store turnOn(bool &slot);
Flag::Store oneOf(llvm::StringRef name, std::string &slot,
                  std::vector<std::string> values);
llvm::Error notOneOf(llvm::StringRef name, llvm::StringRef text,
                     const std::string &values);
template <Choice E> Flag::Store oneOf(llvm::StringRef name, E &slot) {
  return [name = name.str(), &slot](llvm::StringRef text) -> llvm::Error {
    std::optional<E> value = parseChoice<E>(text);
    if (!value)
      return notOneOf(name, text, listChoices(choiceNames(E())));
    slot = *value;
    return llvm::Error::success();
  };
}
/// Makes a function that stores the name of an output file, by its suffix.
Flag::Store bySuffix(llvm::StringRef name,
                     std::vector<std::pair<std::string, std::string *>> slots);

} // namespace flag

} // namespace ckopt

#endif // CKOPT_SUPPORT_FLAGTABLE_H
