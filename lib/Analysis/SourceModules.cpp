//===- SourceModules.cpp - modules that ops come from ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/SourceModules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ckopt;

void ckopt::collectNames(Location loc, SmallVectorImpl<NameLoc> &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    names.push_back(name);
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
  else if (auto call = dyn_cast<CallSiteLoc>(loc))
    collectNames(call.getCallee(), names);
}

static std::string withoutNumbers(StringRef text) {
  std::string result;
  for (char c : text)
    if (!llvm::isDigit(c))
      result += c;
    else if (result.empty() || result.back() != '#')
      result += '#';
  return result;
}

/// Splits "/layer1/layer1.0/conv1/Conv" into modules: layer1, layer1.0, conv1.
static std::vector<ModuleScope> modulesOfName(StringRef name) {
  std::vector<ModuleScope> modules;
  SmallVector<StringRef> parts;
  name.split(parts, '/', -1, /*KeepEmpty=*/false);
  std::string path;
  for (StringRef part : ArrayRef(parts).drop_back(parts.empty() ? 0 : 1)) {
    path += (path.empty() ? "" : "/") + part.str();
    modules.push_back({path, withoutNumbers(part)});
  }
  return modules;
}

std::vector<ModuleScope> ckopt::getModules(NameLoc node, StringRef name) {
  Location below = node.getChildLoc();
  if (auto kind = dyn_cast<NameLoc>(below))
    below = kind.getChildLoc();
  auto fused = dyn_cast<FusedLoc>(below);
  auto data = fused ? dyn_cast_or_null<DictionaryAttr>(fused.getMetadata())
                    : DictionaryAttr();
  auto scopes = data ? data.getAs<ArrayAttr>("scopes") : ArrayAttr();
  auto classes = data ? data.getAs<ArrayAttr>("classes") : ArrayAttr();
  if (!scopes || !classes || scopes.size() != classes.size())
    return modulesOfName(name);
  std::vector<ModuleScope> modules;
  for (auto [scope, kind] : llvm::zip(scopes, classes))
    if (isa<StringAttr>(scope) && isa<StringAttr>(kind))
      modules.push_back(
          {cast<StringAttr>(scope).str(), cast<StringAttr>(kind).str()});
  return modules;
}
