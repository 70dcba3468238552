//===- Options.cpp - ckopt-run's command line -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// One table has each flag's name, value, help and store. Flags that ckopt has,
// too, are spelled and meant as there.
//
//===----------------------------------------------------------------------===//
#include "Options.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <numeric>

using namespace ckopt::run;

namespace {

template <typename T> bool parseInteger(const std::string &text, T &value) {
  char *end = nullptr;
  errno = 0;
  long long parsed = std::strtoll(text.c_str(), &end, 10);
  value = static_cast<T>(parsed);
  return !text.empty() && *end == '\0' && errno == 0 && parsed >= 0;
}

bool parseReal(const std::string &text, double &value) {
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value);
}

bool parseInput(const std::string &text, Options &options) {
  // The name ends at the first "=", because names contain none, but file names
  // may.
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return false;
  options.inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  return true;
}

bool parseRandom(const std::string &text, Options &options) {
  // Search from the end, because names may contain colons.
  size_t high = text.rfind(':');
  size_t low = high == std::string::npos || high == 0
                   ? std::string::npos
                   : text.rfind(':', high - 1);
  if (low == std::string::npos || low == 0)
    return false;
  RandomInput input;
  input.name = text.substr(0, low);
  if (!parseReal(text.substr(low + 1, high - low - 1), input.low) ||
      !parseReal(text.substr(high + 1), input.high) || input.low >= input.high)
    return false;
  options.random.push_back(input);
  return true;
}

/// Parses "cuda:0" or "cuda".
bool parseDevice(const std::string &text, Options &options) {
  const std::string prefix = "cuda";
  options.deviceGiven = true;
  if (text == prefix)
    return true;
  return text.compare(0, 5, prefix + ":") == 0 && text.size() <= 9 &&
         parseInteger(text.substr(5), options.device);
}

/// Stores a value; false if it cannot be read.
using Store = bool (*)(const std::string &text, Options &options);

template <bool Options::*field> bool turnOn(const std::string &, Options &o) {
  return o.*field = true;
}
template <std::string Options::*field>
bool keep(const std::string &text, Options &o) {
  o.*field = text;
  return !text.empty();
}

struct Flag {
  const char *name;
  const char *value; ///< null: a switch
  const char *help;
  bool common; ///< the short help has it
  Store store;
};

const Flag kFlags[] = {
    {"--input", "NAME=FILE.npy", "data for an input or target (repeat)", true,
     parseInput},
    {"--random", "NAME:LO:HI", "or numbers from [LO, HI), by the seed (repeat)",
     true, parseRandom},
    {"--weights", "FILE", "parameters, state: .safetensors", true,
     keep<&Options::weights>},
    {"--steps", "N", "how many times (default 1)", true,
     [](const std::string &text, Options &o) {
       return parseInteger(text, o.steps);
     }},
    {"--lr", "X", "learning rate (default 0.001)", true,
     [](const std::string &text, Options &o) {
       return parseReal(text, o.learningRate);
     }},
    {"--print-loss", nullptr, "print the loss after every step", true,
     turnOn<&Options::printLoss>},
    {"--outputs", "DIR", "write outputs and gradients as .npy", true,
     keep<&Options::outputs>},
    {"--function", "NAME", "function to run: step (default) or eval", true,
     keep<&Options::function>},
    {"--list", nullptr, "list the artifact's tensors and functions", true,
     turnOn<&Options::list>},
    {"--device", "cuda:N", "for a step for a device: which (default cuda:0)",
     true, parseDevice},
    {"--seed", "N", "of initialization, dropout and --random (default 0)",
     false,
     [](const std::string &text, Options &o) {
       return parseInteger(text, o.seed);
     }},
    {"--time", nullptr, "print the best and the median step's time", false,
     turnOn<&Options::time>},
    {"--measure", nullptr, "print planned and measured peak of memory", false,
     turnOn<&Options::measure>},
    {"--check-arena", nullptr,
     "two runs over different patterns: fails unless they write exactly the "
     "planned bytes",
     false, turnOn<&Options::checkArena>},
    {"--hash", nullptr, "print a hash of outputs, parameters and state", false,
     turnOn<&Options::hash>},
    {"--rank-timeout", "SECONDS",
     "end where another rank has not answered for so long (default: wait)",
     false,
     [](const std::string &text, Options &o) {
       return parseReal(text, o.rankTimeout) && o.rankTimeout >= 0;
     }},
    {"--nccl-id", "FILE",
     "ranks on devices without mpirun: RANK and WORLD_SIZE number them, and "
     "they meet by this file",
     false, keep<&Options::ncclId>},
    {"--quiet", nullptr, "print nothing but errors", false,
     turnOn<&Options::quiet>},
    {"--one-by-one", nullptr,
     "device: wait for each kernel: names the one that fails", false,
     turnOn<&Options::oneByOne>},
    {"--lock", "FILE",
     "device: algorithms of cuBLASLt and cuDNN (default FOLDER.lock; empty: "
     "choose anew, write nothing)",
     false,
     [](const std::string &text, Options &o) {
       o.lock = text;
       return o.lockGiven = true;
     }},
    {"--kernel-times", "FILE",
     "device: time each kernel alone after the steps, by the device's clock; "
     "write them for --cost-model=profile=FILE",
     false, keep<&Options::kernelTimes>},
    {"--inspect", nullptr,
     "device: load the step and print what the device and its driver take",
     false, turnOn<&Options::inspect>},
    {"--help", nullptr, "the flags that most runs need", false,
     turnOn<&Options::help>},
    {"--help-all", nullptr, "this text", false, turnOn<&Options::helpAll>},
    {"--version", nullptr, "ckopt's version", false, turnOn<&Options::version>},
};

/// The least number of letters to insert, delete or replace. O(|a| * |b|).
size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

std::string describeUnknown(const std::string &name) {
  const Flag *near = nullptr;
  size_t distance = std::min<size_t>(4, name.size() / 2);
  for (const Flag &flag : kFlags)
    if (size_t d = editDistance(name, flag.name); d < distance) {
      distance = d;
      near = &flag;
    }
  return "unknown flag " + name +
         (near ? "; did you mean " + std::string(near->name) + "?"
               : std::string(" (see --help-all)"));
}

/// Parses argument `i`, which has dashes, and moves on to its value where that
/// is the next one. Returns "", or what is wrong.
std::string parseFlag(int argc, char **argv, int &i, Options &options) {
  std::string argument = argv[i];
  size_t equals = argument.find('=');
  std::string name = argument.substr(0, equals);
  if (name == "-h")
    name = "--help";
  auto flag = std::find_if(std::begin(kFlags), std::end(kFlags),
                           [&](const Flag &f) { return name == f.name; });
  if (flag == std::end(kFlags))
    return describeUnknown(name);
  if (!flag->value && equals != std::string::npos)
    return name + " takes no value";
  std::string value;
  if (equals != std::string::npos)
    value = argument.substr(equals + 1);
  else if (flag->value && i + 1 == argc)
    return name + " needs a value (" + flag->value + ")";
  else if (flag->value)
    value = argv[++i];
  return flag->store(value, options) ? "" : "cannot read " + name + "=" + value;
}

} // namespace

std::string ckopt::run::shellWord(const std::string &word) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                              "WXYZ0123456789_-+=./:,@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos)
    return word;
  std::string text = "'";
  for (char c : word)
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string ckopt::run::helpText(bool all) {
  constexpr size_t column = 26, width = 53;
  std::string text = "usage: ckopt-run STEP.so|FOLDER [flags]\n\nRuns a step "
                     "that ckopt compile made.\n\n";
  for (const Flag &flag : kFlags) {
    if (!all && !flag.common)
      continue;
    std::string head = std::string("  ") + flag.name +
                       (flag.value ? "=" + std::string(flag.value) : "");
    head.resize(std::max(head.size() + 1, column), ' ');
    text += head;
    size_t at = head.size();
    std::string rest = flag.help;
    while (at + rest.size() > column + width) {
      size_t end = rest.rfind(' ', column + width - at);
      text += rest.substr(0, end) + "\n" + std::string(column, ' ');
      rest = rest.substr(end + 1);
      at = column;
    }
    text += rest + "\n";
  }
  if (!all)
    text += "\nckopt-run --help-all lists all " +
            std::to_string(std::size(kFlags)) + " flags.\n";
  return text;
}

std::string ckopt::run::parseArguments(int argc, char **argv,
                                       Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    options.line += " " + shellWord(argument);
    if (argument.compare(0, 1, "-") == 0) {
      int at = i;
      std::string wrong = parseFlag(argc, argv, i, options);
      if (!wrong.empty())
        return wrong;
      if (i > at)
        options.line += " " + shellWord(argv[i]);
      if (options.help || options.helpAll || options.version)
        return "";
    } else if (options.artifact.empty()) {
      options.artifact = argument;
    } else {
      return "two artifacts: " + options.artifact + ", " + argument;
    }
  }
  return options.artifact.empty()
             ? "no artifact; usage: ckopt-run STEP.so|FOLDER [flags]"
             : "";
}
