//===- MergedTwins.cpp - merged calls of weights that are shared ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a call that is gone was merged with one of equal operands. Where
// the one that stands reads a parameter that others start equal to, and each
// of these is read somewhere else too, no parameter is missing that would tell
// whether the call read the same one or one of the others:
// `sin(x * g[i]) + cos(x * g[j])` with all g equal.
// Method: a call that a line of Python writes down again (`attn(ln(x), ln(x),
// ln(x))`) read the same parameter: the line names its module once for each
// call that stands and each that is gone, no module of an equal parameter, and
// no element of a list. Calls further up must have been merged before: where
// the program's numbers have no place for one more of their kind, none was.
// Guarantee: a merge is taken for harmless only where the file shows that.
// O(merged calls * (nodes + parameters)).
//
//===----------------------------------------------------------------------===//
#include "MergedCalls.h"
#include "Reader/TorchMetadata.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::SmallVector;
using llvm::StringRef;
using Entry = TorchSignature::Entry;

/// The frames that a node was called in, innermost last: where and what.
std::vector<MergedCalls::Line> MergedCalls::linesOf(const Node &node) const {
  std::vector<Line> result;
  SmallVector<StringRef> frames;
  StringRef(node.sourceTrace).split(frames, '\n');
  for (size_t i = 0; i + 1 < frames.size(); ++i)
    if (frames[i].trim().starts_with("File "))
      result.push_back({frames[i].trim(), frames[i + 1].trim()});
  return result;
}

/// The parameters of other modules, or of the same list, that the file holds
/// in one initializer with a parameter of the call.
std::vector<const Entry *> MergedCalls::twinsOf(const FxCall &call) const {
  llvm::StringSet<> read;
  std::vector<const Entry *> own = signature.parametersOf(call), result;
  if (own.empty())
    return {};
  for (auto [node, other] : llvm::zip(graph.nodes, calls))
    if (other.name == call.name)
      for (const std::string &input : node.inputs)
        if (initializers.contains(input))
          read.insert(input);
  auto isLike = [&](const Entry &entry) {
    return llvm::any_of(own, [&](const Entry *mine) {
      return &entry != mine &&
             (leafOf(entry.target) == leafOf(mine->target) ||
              moduleOf(entry.target) == moduleOf(mine->target)) &&
             (read.contains(mine->target) || read.contains(entry.target) ||
              !initializers.contains(mine->target));
    });
  };
  for (const Entry &entry : signature.entries) {
    if (!entry.isParameter || llvm::is_contained(own, &entry) || !isLike(entry))
      continue;
    bool isEqual = read.contains(entry.target);
    if (!initializers.contains(entry.target))
      for (auto [node, other] : llvm::zip(graph.nodes, calls))
        isEqual |= llvm::is_contained(other.args, entry.placeholder) &&
                   llvm::any_of(node.inputs, [&](const std::string &input) {
                     return read.contains(input);
                   });
    if (isEqual)
      result.push_back(&entry);
  }
  // Another module has equal ones for all of them: biases of zero alone, beside
  // weights that differ, tell that the module is the same.
  bool isModule = llvm::all_of(own, [&](const Entry *mine) {
    return !moduleOf(mine->target).empty() &&
           moduleOf(mine->target) == moduleOf(own[0]->target);
  });
  if (isModule &&
      llvm::any_of(own,
                   [&](const Entry *mine) {
                     return llvm::none_of(result, [&](const Entry *twin) {
                       return leafOf(twin->target) == leafOf(mine->target);
                     });
                   }) &&
      own.size() > 1)
    return {};
  return result;
}

/// Returns whether a call of the kind may be gone whose number nothing shows: a
/// missing one, or those after the last that the file has, where none follows
/// the reader.
bool MergedCalls::mayBeGone(StringRef kind, size_t reader) const {
  if (isNumberMissing(kind))
    return true;
  size_t last = 0;
  for (auto [i, call] : llvm::enumerate(calls))
    if (splitFxName(call.name).first == kind)
      last = i;
  return last < reader;
}

/// The name that Python has for the module of a parameter, or for the
/// parameter; "" for elements of lists, which share one.
static StringRef identifierOf(const Entry &entry) {
  StringRef module = moduleOf(entry.target);
  StringRef name = module.empty() ? leafOf(entry.target) : leafOf(module);
  return llvm::all_of(name, llvm::isDigit) ? StringRef() : name;
}

/// The calls in the file that read `entry` and were made on `line`.
size_t MergedCalls::callsOnLine(const Line &line, const Entry &entry) const {
  llvm::StringSet<> found;
  for (auto [node, call] : llvm::zip(graph.nodes, calls))
    if (llvm::is_contained(call.args, entry.placeholder) &&
        llvm::is_contained(linesOf(node), line))
      found.insert(call.name);
  return found.size();
}

/// Whether a line of a reader writes the call of `own` down once more.
bool MergedCalls::isSameModule(llvm::ArrayRef<Read> reads, const Entry &own,
                               llvm::ArrayRef<const Entry *> twins) {
  StringRef name = identifierOf(own);
  if (name.empty())
    return false;
  for (const Line &line : linesOf(graph.nodes[reads[0].node])) {
    std::vector<StringRef> mentions = mentionsOf(line.second, name);
    bool isElement = llvm::any_of(
        mentions, [](StringRef after) { return after.starts_with("["); });
    bool namesTwin = llvm::any_of(twins, [&](const Entry *twin) {
      StringRef other = identifierOf(*twin);
      return other != name && !other.empty() &&
             hasIdentifier(line.second, other);
    });
    if (isElement || namesTwin)
      return false;
    size_t &gone = repeated[{line, &own}];
    if (mentions.size() > gone + callsOnLine(line, own)) {
      ++gone;
      return true;
    }
  }
  return false;
}

std::string MergedCalls::sharedTwins(llvm::ArrayRef<Read> reads, size_t node) {
  constexpr size_t most = 64;
  SmallVector<size_t> work{node};
  for (size_t i = 0; i < work.size() && work.size() < most; ++i) {
    const FxCall &call = calls[work[i]];
    std::vector<const Entry *> twins;
    if (i == 0 || mayBeGone(splitFxName(call.name).first, reads[0].node))
      twins = twinsOf(call);
    std::vector<const Entry *> parameters = signature.parametersOf(call);
    const Entry *own = parameters.empty() ? nullptr : parameters.front();
    if (!twins.empty() && !isSameModule(reads, *own, twins))
      return "merged when exporting with an equal call of '" + call.op +
             "'; it may have read '" + twins[0]->target + "' in place of '" +
             own->target + "', which starts with the same numbers";
    if (own && i == 0)
      break; // equal parameters, or the same one: the operands are the same
    for (const std::string &input : graph.nodes[work[i]].inputs)
      if (auto made = producer.find(input);
          made != producer.end() && !llvm::is_contained(work, made->second))
        work.push_back(made->second);
  }
  return "";
}
