//===- Options.h - ckopt-run's command line ---------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TOOLS_CKOPT_RUN_OPTIONS_H
#define CKOPT_TOOLS_CKOPT_RUN_OPTIONS_H

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ckopt::run {

/// An input that gets random numbers from [low, high), integers if it has an
/// integer type.
struct RandomInput {
  std::string name;
  double low = 0, high = 1;
};

struct Options {
  std::string artifact, function = "step", weights, outputs, lock, kernelTimes;
  std::vector<RandomInput> random;
  std::vector<std::pair<std::string, std::string>> inputs;
  int64_t steps = 1;
  uint64_t seed = 0;
  double learningRate = 1e-3;
  std::string ncclId;
  double rankTimeout = 0; ///< seconds; 0: wait for ever
  bool printLoss = false, time = false, measure = false, list = false;
  bool checkArena = false, oneByOne = false, inspect = false, hash = false;
  bool help = false, helpAll = false, version = false, quiet = false;
  bool deviceGiven = false, lockGiven = false;
  int32_t device = 0;
  std::string line; ///< the arguments, as a shell takes them
};

/// Returns the text that --help prints, or --help-all.
std::string helpText(bool all);
/// Returns a word as a shell takes it.
std::string shellWord(const std::string &word);

/// Parses all arguments into `options`; returns "", or what is wrong.
std::string parseArguments(int argc, char **argv, Options &options);

} // namespace ckopt::run

#endif // CKOPT_TOOLS_CKOPT_RUN_OPTIONS_H
