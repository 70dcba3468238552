//===- Options.cpp - ckopt-run's command line -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Options.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

using namespace ckopt::run;

const char ckopt::run::kUsage[] =
    "usage: ckopt-run STEP.so|FOLDER [options]\n"
    "  --function=NAME        function to run: step (default) or eval\n"
    "  --steps=N              how many times (default 1)\n"
    "  --input=NAME=FILE.npy  data for an input or target (repeat)\n"
    "  --random=NAME:LO:HI    or numbers from [LO, HI), by the seed (repeat)\n"
    "  --weights=FILE         parameters, state: .safetensors\n"
    "  --seed=N               of initialization and dropout (default 0)\n"
    "  --lr=X                 learning rate (default 0.001)\n"
    "  --print-loss           print the loss after every step\n"
    "  --time                 print the best and the median step's time\n"
    "  --measure              print planned and measured peak of memory\n"
    "  --check-arena          two runs over different patterns: fails unless "
    "they write\n"
    "                         exactly the planned bytes\n"
    "  --outputs=DIR          write outputs and gradients as .npy\n"
    "  --expect=FILE          fail unless the function makes all tensors of "
    "this file\n"
    "                         (.safetensors), as near as --tolerance=X: norm "
    "of "
    "the\n"
    "                         difference over norm (default 1e-4)\n"
    "  --hash                 print a hash of outputs, parameters and state\n"
    "  --list                 list the artifact's tensors and functions\n"
    "for a step compiled for a device:\n"
    "  --device=cuda:N        which device (default cuda:0)\n"
    "  --one-by-one           wait for each kernel: names the one that fails\n"
    "  --lock=FILE            algorithms of cuBLASLt and cuDNN (default "
    "FOLDER.lock;\n"
    "                         empty: choose anew, write nothing)\n"
    "  --inspect              load it and print what the device and its driver "
    "take\n"
    "--version prints ckopt's version\n";

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

/// Returns "", or what is wrong with `argument`.
std::string parseOption(const std::string &argument, Options &options) {
  size_t equals = argument.find('=');
  std::string key = argument.substr(0, equals);
  std::string value =
      equals == std::string::npos ? "" : argument.substr(equals + 1);
  bool sound = true;
  if (key == "--function")
    options.function = value;
  else if (key == "--steps")
    sound = parseInteger(value, options.steps);
  else if (key == "--input")
    sound = parseInput(value, options);
  else if (key == "--random")
    sound = parseRandom(value, options);
  else if (key == "--expect")
    sound = !value.empty(), options.expect = value;
  else if (key == "--tolerance")
    sound = parseReal(value, options.tolerance) && options.tolerance >= 0;
  else if (argument == "--hash")
    options.hash = true;
  else if (key == "--weights")
    options.weights = value;
  else if (key == "--seed")
    sound = parseInteger(value, options.seed);
  else if (key == "--lr")
    sound = parseReal(value, options.learningRate);
  else if (key == "--outputs")
    options.outputs = value;
  else if (argument == "--print-loss")
    options.printLoss = true;
  else if (argument == "--time")
    options.time = true;
  else if (argument == "--measure")
    options.measure = true;
  else if (argument == "--list")
    options.list = true;
  else if (argument == "--check-arena")
    options.checkArena = true;
  else if (argument == "--one-by-one")
    options.oneByOne = true;
  else if (argument == "--inspect")
    options.inspect = true;
  else if (key == "--lock")
    options.lock = value, options.lockGiven = true;
  else if (key == "--device")
    sound = parseDevice(value, options);
  else
    return "unknown option " + argument;
  return sound ? "" : "cannot read " + argument;
}

} // namespace

std::string ckopt::run::parseArguments(int argc, char **argv,
                                       Options &options) {
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return "";
    }
    if (argument == "--version") {
      options.version = true;
      return "";
    }
    // `--input NAME=FILE` as two words, as users type it.
    if (argument == "--input" && i + 1 < argc)
      argument += std::string("=") + argv[++i];
    if (argument.compare(0, 2, "--") == 0) {
      std::string wrong = parseOption(argument, options);
      if (!wrong.empty())
        return wrong;
    } else if (options.artifact.empty()) {
      options.artifact = argument;
    } else {
      return "two artifacts: " + options.artifact + ", " + argument;
    }
  }
  return options.artifact.empty() ? "no artifact" : "";
}
