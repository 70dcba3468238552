//===- WeightNames.cpp - what files call a model's weights ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a module that computes a loss around a model puts a prefix before
// the names of its weights ("model."), and PEFT's files leave out the name that
// an adapter has in the module. Method: both sides' names are compared without
// adapters' names; for each name, the ends of it that begin behind a dot and
// are names of the other side tell a prefix, and the prefix that most names
// tell is taken. A tie between two prefixes tells nothing. O(parts of names *
// log).
//
//===----------------------------------------------------------------------===//
#include "WeightNames.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace ckopt;
using llvm::StringRef;

/// Returns the name without the part that names an adapter, which stands behind
/// the part that names its matrix: "q.lora_A.default.weight".
static std::string withoutAdapter(StringRef name) {
  llvm::SmallVector<StringRef, 16> parts;
  name.split(parts, '.');
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    if (!parts[i].starts_with("lora_"))
      continue;
    if (parts[i] == "lora_magnitude_vector")
      parts.truncate(i + 1); // a module in memory, a tensor in files
    else if (parts[i + 1] != "weight" && parts[i + 1] != "bias")
      parts.erase(parts.begin() + ptrdiff_t(i) + 1);
    break;
  }
  return llvm::join(parts, ".");
}

std::string ckopt::nameInAdapterFile(StringRef name) {
  const size_t wrapper = name.find("base_model.model.");
  if (wrapper == StringRef::npos || !name.contains(".lora_"))
    return name.str();
  return withoutAdapter(name.drop_front(wrapper));
}

/// Calls `use` with each end of a name that begins behind a dot, and with what
/// is before it.
static void
forEachEnd(StringRef name,
           llvm::function_ref<void(StringRef before, StringRef end)> use) {
  for (size_t at = name.find('.'); at != StringRef::npos;
       at = name.find('.', at + 1))
    use(name.take_front(at + 1), name.drop_front(at + 1));
}

MatchedNames ckopt::matchNames(llvm::ArrayRef<std::string> given,
                               const std::set<std::string> &known) {
  std::map<std::string, std::string> model; // by its name without adapters
  std::set<std::string> twice;
  for (const std::string &name : known)
    if (!model.emplace(withoutAdapter(name), name).second)
      twice.insert(withoutAdapter(name));
  for (const std::string &name : twice)
    model.erase(name);
  for (const std::string &name : known) // as it is, a name means itself
    model[name] = name;
  std::vector<std::string> file;
  for (const std::string &name : given)
    file.push_back(known.count(name) ? name : withoutAdapter(name));
  const std::set<std::string> fileSet(file.begin(), file.end());

  std::map<NamePrefix, size_t> counts;
  for (const auto &[name, full] : model)
    forEachEnd(name, [&](StringRef before, StringRef end) {
      if (fileSet.count(end.str()))
        ++counts[{before.str(), ""}];
    });
  for (const std::string &name : fileSet)
    forEachEnd(name, [&](StringRef before, StringRef end) {
      if (model.count(end.str()))
        ++counts[{"", before.str()}];
    });
  auto modelName = [&](const NamePrefix &prefix, StringRef name) {
    auto found = name.starts_with(prefix.dropped)
                     ? model.find(prefix.added +
                                  name.drop_front(prefix.dropped.size()).str())
                     : model.end();
    return found == model.end() ? std::string() : found->second;
  };
  MatchedNames result;
  for (const std::string &name : file)
    result.fitting += !modelName({}, name).empty();
  size_t best = std::max(result.fitting, given.size() / 2);
  for (const auto &[prefix, count] : counts)
    if (count > best) {
      best = result.fitting = count;
      result.prefix = prefix;
    } else if (count == best && !result.prefix.empty()) {
      result.prefix = {};
    }
  result.fitting = 0;
  for (const std::string &name : file) {
    result.names.push_back(modelName(result.prefix, name));
    result.fitting += !result.names.back().empty();
  }
  return result;
}
