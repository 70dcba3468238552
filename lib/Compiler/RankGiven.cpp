//===- RankGiven.cpp - compares what ranks were given ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans and compiles for all, so that what another rank was given
// besides would be ignored in silence. Options, models and weights are compared
// before anything is planned: the same flags with the same values, however
// numbers are written. Of files only contents count, since machines may have
// them elsewhere; what rank 0 alone writes or prints is left out.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Together.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/Real.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/ScopedPrinter.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

#include <map>

using namespace ckopt;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

/// Returns whether a flag says nothing to ranks other than 0, or is a rank's
/// own affair.
static bool isOwnAffair(llvm::StringRef flag, bool sharded) {
  static constexpr llvm::StringLiteral names[] = {
      "report",      "timeline",     "trace",     "plan-out", "plan-report",
      "dump-phases", "log",          "quiet",     "verbose",  "rank-timeout",
      "data-cache",  "kernel-cache", "checkpoint"};
  if (flag == "o" || flag == "ema-out")
    return !sharded; // ranks that share weights write them together
  return llvm::is_contained(names, flag);
}

/// Returns the flag as it was written, or what else there is to say.
static MessageText written(const StringMetadata &flags, const std::string &name,
                           const std::string &who) {
  auto found = flags.find(name);
  if (found == flags.end())
    return who + " has no " + Setting::ofFlag(name);
  return who + " has" + MessageText::unpack(found->second);
}

llvm::Expected<std::vector<StringMetadata>>
ckopt::gatherNamed(const Ranks &ranks, const StringMetadata &own) {
  constexpr char kNameEnd = '\0', kTextEnd = '\1';
  std::string text;
  for (const auto &[name, value] : own)
    text += name + kNameEnd + value + kTextEnd;
  auto texts = ranks.gatherTexts(text);
  if (!texts)
    return texts.takeError();
  std::vector<StringMetadata> all;
  for (llvm::StringRef rest : *texts) {
    StringMetadata &given = all.emplace_back();
    while (!rest.empty()) {
      auto [name, behind] = rest.split(kNameEnd);
      auto [value, next] = behind.split(kTextEnd);
      given[name.str()] = value.str();
      rest = next;
    }
  }
  return all;
}

/// Writes a number in one way: the shortest that reads as the same.
static std::string comparableNumber(llvm::StringRef text) {
  double value = 0;
  bool isInteger =
      text.find_first_not_of("0123456789") == llvm::StringRef::npos;
  if (isInteger || !flag::parseReal(text, value))
    return text.str();
  return llvm::to_string(Real(value));
}

std::string ckopt::comparableText(llvm::StringRef value) {
  for (llvm::StringRef prefix : {"file:", "profile="})
    if (value.starts_with(prefix)) // --lr-schedule, --cost-model
      return (prefix + "FILE").str();
  std::string text;
  while (true) {
    size_t end = value.find_first_of(",=:");
    text += comparableNumber(value.take_front(end));
    if (end == llvm::StringRef::npos)
      return text;
    text += value[end];
    value = value.drop_front(end + 1);
  }
}

static llvm::Error agreeOnFlags(const CompileOptions &options) {
  StringMetadata own;
  for (const auto &[name, value] : options.flags)
    if (!isOwnAffair(name, options.step.shards > 1))
      own[name] = value.pack();
  auto given = gatherNamed(options.ranks, own);
  if (!given)
    return given.takeError();
  const StringMetadata &first = given->front();
  for (size_t rank = 1; rank < given->size(); ++rank) {
    const StringMetadata &other = (*given)[rank];
    StringMetadata all = first;
    all.insert(other.begin(), other.end());
    for (const auto &[name, value] : all) {
      auto one = first.find(name), two = other.find(name);
      bool same = one != first.end() && two != other.end() &&
                  one->second == two->second;
      std::string who = "rank " + std::to_string(rank);
      if (!same)
        return rankError(who + " differs from rank 0 in its options: " +
                         written(other, name, who) + ", " +
                         written(first, name, "rank 0") +
                         "; all ranks take the same settings");
    }
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Processors
//===----------------------------------------------------------------------===//

static llvm::Error agreeOnCpu(const Ranks &ranks, CpuOptions &cpu) {
  MachineCpu own = MachineCpu::own(ranks.name());
  auto texts = ranks.gatherTexts(own.name + "\n" + own.architecture + "\n" +
                                 llvm::join(own.features, "\n"));
  if (!texts)
    return texts.takeError();
  std::vector<MachineCpu> all;
  for (llvm::StringRef text : *texts) {
    llvm::SmallVector<llvm::StringRef> lines;
    text.split(lines, '\n', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
    MachineCpu machine{lines[0].str(), lines[1].str(), {}};
    for (llvm::StringRef feature : llvm::drop_begin(lines, 2))
      machine.features.push_back(feature.str());
    all.push_back(std::move(machine));
  }
  return settleCpu(cpu, own, all);
}

llvm::Error ckopt::agreeOnGiven(CompileOptions &options) {
  if (llvm::Error error = agreeOnFlags(options))
    return error;
  return agreeOnCpu(options.ranks, options.target);
}

//===----------------------------------------------------------------------===//
// Models and weights
//===----------------------------------------------------------------------===//

void ckopt::hashTensor(std::string &hashes, llvm::StringRef name,
                       const HostTensor &value) {
  uint64_t hash = llvm::xxh3_64bits(llvm::StringRef(
      static_cast<const char *>(value.rawData()), size_t(value.sizeInBytes())));
  hashes += name.str() + " " + std::to_string(hash) + "\n";
}

void ckopt::addHash(uint64_t &hash, const TensorMap &tensors) {
  std::string text = std::to_string(hash);
  for (const auto &[name, value] : tensors)
    hashTensor(text, name, value);
  hash = llvm::xxh3_64bits(text);
}

llvm::Error ckopt::addHash(uint64_t &hash, const StoredTensors &tensors) {
  std::string text = std::to_string(hash);
  for (auto [number, spec] : llvm::enumerate(tensors.specs())) {
    auto value = tensors.read(number);
    if (!value)
      return value.takeError();
    hashTensor(text, spec.name, *value);
  }
  hash = llvm::xxh3_64bits(text);
  return llvm::Error::success();
}

/// Returns a hash of the graph as it was imported; names of files are no part.
static uint64_t hashGraph(const Compilation &compilation) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  compilation.module().print(stream);
  return llvm::xxh3_64bits(text);
}

namespace {
/// What ranks tell each other of their models and weights.
struct GivenHashes {
  int64_t failed = 0;
  uint64_t model = 0, weights = 0;
};
} // namespace

/// Compares the hashes of all ranks; `own` is this rank's error.
static llvm::Error compareHashes(const Ranks &ranks, GivenHashes hashes,
                                 llvm::Error own, const char *weights) {
  hashes.failed = bool(own);
  auto gathered = ranks.gather(hashes);
  if (own) {
    llvm::consumeError(gathered.takeError());
    return own;
  }
  if (!gathered)
    return gathered.takeError();
  const std::vector<GivenHashes> &all = *gathered;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].failed)
      return failedRank(rank);
  for (size_t rank = 1; rank < all.size(); ++rank) {
    bool model = all[rank].model != all[0].model;
    if (model || all[rank].weights != all[0].weights)
      return rankError("rank " + llvm::Twine(rank) +
                       " differs from rank 0 in its " +
                       (model ? "model" : weights) +
                       ": all ranks take the same settings and files");
  }
  return llvm::Error::success();
}

llvm::Error ckopt::agreeOnModel(const Compilation &compilation,
                                llvm::Error own) {
  const Ranks &ranks = compilation.given().ranks;
  if (!ranks.areSeveral() || (own && ranks.failureEndsAll()))
    return own;
  GivenHashes hashes;
  if (!own) {
    hashes.model = hashGraph(compilation);
    addHash(hashes.weights, compilation.weights());
  }
  return compareHashes(ranks, hashes, std::move(own), "model's weights");
}

llvm::Error ckopt::agreeOnWeights(const Ranks &ranks,
                                  const TensorMap &weights) {
  if (!ranks.areSeveral())
    return llvm::Error::success();
  GivenHashes hashes;
  addHash(hashes.weights, weights);
  return compareHashes(ranks, hashes, llvm::Error::success(), "given weights");
}
