//===- FlagTable.cpp - command lines of the tools -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/FlagTable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Regex.h"

using namespace ckopt;
using llvm::StringRef;

/// Columns of help: where descriptions start, and their width.
static constexpr size_t helpColumn = 26, helpWidth = 53;

void FlagTable::add(StringRef name, StringRef value, unsigned groups,
                    const MessageText &help, Flag::Store store) {
  assert((value != "FILE" || store.use != FileUse::None) &&
         "whether the file is read or written decides what it may replace");
  flags.push_back(
      {name.str(), value.str(), groups, help, std::move(store), section});
}

const Flag *FlagTable::find(StringRef name, unsigned groups) const {
  for (const Flag &flag : flags)
    if (flag.name == name && (flag.groups & groups))
      return &flag;
  return nullptr;
}

/// Returns whether `name` is one of the words of a longer name: "budget" of
/// "memory-budget".
static bool isWordOf(StringRef name, StringRef whole) {
  llvm::SmallVector<StringRef> words;
  whole.split(words, '-');
  return llvm::any_of(words, [&](StringRef word) {
    return word == name || (name.size() > 4 && // "bugdet"
                            word.edit_distance(name, true, 2) <= 2);
  });
}

const Flag *FlagTable::nearest(StringRef name, unsigned groups) const {
  const Flag *best = nullptr;
  // A name that shares less than half with another one is not a misspelling of
  // it.
  unsigned distance = std::min<unsigned>(4, unsigned(name.size() + 1) / 2);
  for (const Flag &flag : flags)
    if (flag.groups & groups)
      if (unsigned d = name.edit_distance(flag.name, true, distance);
          d < distance) {
        distance = d;
        best = &flag;
      }
  auto hasWord = [&](const Flag &flag) {
    return (flag.groups & groups) && isWordOf(name, flag.name);
  };
  if (auto whole = llvm::find_if(flags, hasWord); !best && whole != flags.end())
    return &*whole;
  return best;
}

/// Says what an unknown flag may have been meant to be.
llvm::Error FlagTable::unknown(const MessageText &text, StringRef name,
                               unsigned groups, StringRef elsewhere) const {
  if (const Flag *other = find(name, ~groups); other && !groupNames.empty()) {
    std::string takers;
    for (auto [bit, group] : llvm::enumerate(groupNames))
      if (other->groups >> bit & 1)
        takers += (takers.empty() ? "" : ", ") + group;
    if (!takers.empty())
      return usageError(text + "; it is one of " + takers);
  }
  if (const Flag *near = nearest(name, groups))
    return usageError(text + "; did you mean " + Setting::ofFlag(near->name) +
                      "?");
  return usageError(text + elsewhere);
}

llvm::Error
FlagTable::parse(llvm::ArrayRef<char *> arguments, unsigned groups,
                 llvm::function_ref<llvm::Error(StringRef)> positional,
                 Given *given) const {
  llvm::Error errors = llvm::Error::success();
  auto take = [&](llvm::Error error) {
    errors = llvm::joinErrors(std::move(errors), std::move(error));
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    StringRef argument = arguments[i];
    if (argument == "-" || !argument.starts_with("-")) {
      take(positional(argument));
      continue;
    }
    auto [written, value] = argument.split('=');
    StringRef name = written.ltrim('-');
    bool hasValue = argument.contains('=');
    const Flag *flag = find(name, groups);
    if (!flag) {
      take(unknown("unknown flag " + written.str(), name, groups,
                   " (see " + foreignFlag("help-all") + ")"));
      continue;
    }
    if (flag->value.empty() && hasValue) {
      take(usageError(Setting::ofFlag(name) + " takes no value"));
      continue;
    }
    bool optional = StringRef(flag->value).starts_with("[");
    if (!flag->value.empty() && !optional && !hasValue) {
      if (i + 1 == arguments.size()) {
        take(usageError(Setting::ofFlag(name) + " needs a value (" +
                        flag->value + ")"));
        break;
      }
      value = arguments[++i];
    }
    if (given)
      given->push_back(flag);
    take(flag->store(value));
  }
  return errors;
}

llvm::Error FlagTable::store(llvm::ArrayRef<GivenSetting> settings,
                             unsigned groups) const {
  llvm::Error errors = llvm::Error::success();
  auto take = [&](llvm::Error error) {
    errors = llvm::joinErrors(std::move(errors), std::move(error));
  };
  for (const auto &[name, value] : settings) {
    const Flag *flag = find(name, groups);
    if (!flag)
      take(unknown("unknown setting " + Setting::ofFlag(name), name, groups));
    else if (flag->value.empty() && !value.empty())
      take(usageError(Setting::ofFlag(name) + " takes no value"));
    else
      take(flag->store(value));
  }
  return errors;
}

std::vector<NamedFile> FlagTable::files(FileUse use, unsigned groups) const {
  std::vector<NamedFile> result;
  llvm::SmallPtrSet<const std::string *, 32> seen; // flags may share places
  for (const Flag &flag : flags) {
    if (!(flag.groups & groups) || flag.store.use != use)
      continue;
    for (const std::string *slot : flag.store.files) {
      StringRef path = *slot;
      if (path.consume_front(flag.store.prefix) && !path.empty() &&
          seen.insert(slot).second)
        result.push_back(
            {Setting::ofFlag(flag.name), path.str(), flag.store.renews});
    }
  }
  return result;
}

static void printEntry(llvm::raw_ostream &os, const Flag &flag,
                       SettingStyle style = SettingStyle::Flags) {
  std::string head = style == SettingStyle::Flags
                         ? MessageText(Setting::ofFlag(flag.name)).inShell()
                         : flag.name;
  if (StringRef(flag.value).starts_with("["))
    head += flag.value;
  else if (!flag.value.empty())
    head += (flag.name.size() == 1 ? " " : "=") + flag.value;
  os << "  " << llvm::left_justify(head, helpColumn - 3);
  if (head.size() > helpColumn - 3)
    os << "\n" << std::string(helpColumn - 1, ' ');
  os << ' ';
  const std::string help = flag.help.in(style);
  StringRef rest = help;
  while (rest.size() > helpWidth) {
    size_t at = rest.rfind(' ', helpWidth + 1);
    if (at == StringRef::npos)
      break;
    os << rest.take_front(at) << '\n' << std::string(helpColumn, ' ');
    rest = rest.drop_front(at + 1);
  }
  os << rest << '\n';
}

void FlagTable::printHelp(llvm::raw_ostream &os, unsigned groups,
                          SettingStyle style) const {
  std::vector<StringRef> sections;
  for (const Flag &flag : flags)
    if ((flag.groups & groups) && !llvm::is_contained(sections, flag.section))
      sections.push_back(flag.section);
  for (StringRef title : sections) {
    if (!title.empty())
      os << (title == sections.front() ? "" : "\n") << title << ":\n";
    for (const Flag &flag : flags)
      if ((flag.groups & groups) && flag.section == title)
        printEntry(os, flag, style);
  }
}

void FlagTable::printHelp(llvm::raw_ostream &os, unsigned groups,
                          llvm::ArrayRef<StringRef> names) const {
  for (StringRef name : names)
    if (const Flag *flag = find(name, groups))
      printEntry(os, *flag);
}

size_t FlagTable::count(unsigned groups) const {
  return size_t(llvm::count_if(
      flags, [&](const Flag &flag) { return (flag.groups & groups) != 0; }));
}

std::string flag::limitText(double limit) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%g", limit);
  return text;
}

llvm::Error flag::notInRange(StringRef name, StringRef text, bool integer,
                             const std::string &low, const std::string &high,
                             bool open) {
  std::string range;
  if (!low.empty() && !high.empty())
    range = " from " + low + (open ? " to below " : " to ") + high;
  else if (!low.empty())
    range = " of at least " + low;
  else if (!high.empty())
    range = (open ? " below " : " of at most ") + high;
  return usageError(Setting::ofFlag(name) + ": '" + text + "' is no " +
                    (integer ? "integer" : "number") + range);
}

bool flag::parseReal(StringRef text, double &value) {
  return !text.empty() &&
         text.find_first_not_of("0123456789.eE-+") == StringRef::npos &&
         !text.getAsDouble(value);
}

Flag::Store flag::reads(Flag::Store store, const std::string &slot,
                        StringRef prefix) {
  store.use = FileUse::Reads;
  store.files.push_back(&slot);
  store.prefix = prefix.str();
  return store;
}

Flag::Store flag::writes(Flag::Store store, const std::string &slot,
                         const MessageText &renews) {
  store.use = FileUse::Writes;
  store.files.push_back(&slot);
  store.renews = renews;
  return store;
}

Flag::Store flag::text(StringRef name, std::string &slot) {
  return [name = name.str(), &slot](StringRef value) -> llvm::Error {
    if (value.empty())
      return usageError(Setting::ofFlag(name) +
                        " has an empty value; leave it out "
                        "instead");
    slot = value.str();
    return llvm::Error::success();
  };
}

Flag::Store flag::pattern(StringRef name, std::string &slot) {
  return [name = name.str(), &slot](StringRef value) -> llvm::Error {
    std::string problem;
    if (!llvm::Regex(value).isValid(problem))
      return usageError(Setting::ofFlag(name) +
                        ": malformed regular expression '" + value +
                        "': " + problem);
    return flag::text(name, slot)(value);
  };
}

Flag::Store flag::turnOn(bool &slot) {
  return [&slot](StringRef) -> llvm::Error {
    slot = true;
    return llvm::Error::success();
  };
}

llvm::Error flag::notOneOf(StringRef name, StringRef text,
                           const std::string &values) {
  return usageError(Setting::ofFlag(name) + ": '" + text + "' is not one of " +
                    values);
}

Flag::Store flag::oneOf(StringRef name, std::string &slot,
                        std::vector<std::string> values) {
  return [name = name.str(), &slot,
          values = std::move(values)](StringRef value) -> llvm::Error {
    if (!llvm::is_contained(values, value))
      return notOneOf(name, value, llvm::join(values, ", "));
    slot = value.str();
    return llvm::Error::success();
  };
}

Flag::Store
flag::bySuffix(StringRef name,
               std::vector<std::pair<std::string, std::string *>> slots) {
  Flag::Store store = [name = name.str(),
                       slots](StringRef value) -> llvm::Error {
    std::string suffixes;
    for (const auto &[suffix, slot] : slots) {
      if (value.ends_with(suffix)) {
        *slot = value.str();
        return llvm::Error::success();
      }
      suffixes += (suffixes.empty() ? "" : " or ") + suffix;
    }
    return usageError(Setting::ofFlag(name) + " must end in " + suffixes +
                      ", got '" + value + "'");
  };
  for (const auto &[suffix, slot] : slots)
    store = writes(std::move(store), *slot);
  return store;
}
