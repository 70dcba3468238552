//===- MergedTwins.cpp - merged calls of weights that are shared ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a call that is gone was merged with one of equal operands. Where
// the one that stands reads a parameter that others start equal to, and each
// of these is read somewhere else too, no parameter is missing that would tell
// whether the call read the same one or one of the others:
// `sin(x * g[i]) + cos(x * g[j])` with all g equal.
// Method: every merge of such calls is lost. Calls further up must have been
// merged before: where the program's numbers have no place for one more of
// their kind, none was.
// Guarantee: a merge is taken for harmless only where the file shows that.
// O(merged calls * (nodes + parameters)).
//
//===----------------------------------------------------------------------===//
#include "MergedCalls.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

/// The parameters of other modules, or of the same list, that the file holds
/// in one initializer with a parameter of the call.
std::vector<const TorchSignature::Entry *>
MergedCalls::twinsOf(const FxCall &call) const {
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

std::string MergedCalls::sharedTwins(size_t node, size_t reader) const {
  std::vector<size_t> nodes = behind(node, reader);
  // Equal parameters, or the same one: the operands are the same.
  if (!signature.parametersOf(calls[node]).empty())
    nodes = {node};
  for (size_t each : nodes) {
    const FxCall &call = calls[each];
    if (std::vector<const Entry *> twins = twinsOf(call); !twins.empty())
      return "'" + twins[0]->target + "' in place of '" +
             signature.parametersOf(call)[0]->target +
             "', which starts with the same numbers";
  }
  return "";
}

std::string MergedCalls::foldedTwins(size_t node, size_t reader) const {
  for (size_t each : behind(node, reader))
    for (const std::string &input : graph.nodes[each].inputs)
      for (const Entry &entry : signature.entries)
        if (entry.isParameter && foldedFrom(graph, input)
                                     .value_or("")
                                     .contains("'" + entry.target + "'"))
          return "a constant of the same numbers as '" + input +
                 "', which was made of '" + entry.target + "'";
  return "";
}
