//===- CostProfile.cpp - measured costs from a file -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Base/JsonText.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

static constexpr StringLiteral kFormat = "ckopt-profile/1";

static std::string keyOf(StringRef name, StringRef op, StringRef type) {
  return (name + "\n" + op + "\n" + type).str();
}

/// Removes blanks from operand and result types printed as a function type,
/// since people may write blanks elsewhere.
static std::string withoutBlanks(StringRef text) {
  std::string result;
  llvm::copy_if(text, std::back_inserter(result),
                [](char c) { return !llvm::isSpace(c); });
  return result;
}

llvm::Error CostProfile::addEntry(const llvm::json::Object &entry,
                                  size_t index) {
  auto fail = [&](const Twine &what) {
    return inputError("ops[" + Twine(index) + "]: " + what);
  };
  for (const auto &member : entry)
    if (!llvm::is_contained({"op", "type", "name", "seconds"},
                            StringRef(member.first)))
      return fail("unknown member '" + StringRef(member.first) + "'");
  std::optional<double> seconds = entry.getNumber("seconds");
  if (!seconds || !(*seconds >= 0 && *seconds <= kMaxSeconds))
    return fail("needs 'seconds', a number that is not negative, up to 1e9");
  StringRef parts[3];
  unsigned shape = 0;
  static constexpr const char *keys[] = {"op", "type", "name"};
  for (auto [i, key] : llvm::enumerate(keys))
    if (const llvm::json::Value *value = entry.get(key)) {
      std::optional<llvm::StringRef> text = value->getAsString();
      if (!text || text->empty())
        return fail("'" + Twine(key) + "' must be a string that is not empty");
      parts[i] = *text;
      shape |= 1u << i;
    }
  if (!(shape & 5))
    return fail("needs 'op' or 'name'");
  std::string type = withoutBlanks(parts[1]);
  if (!entries.try_emplace(keyOf(parts[2], parts[0], type), *seconds).second)
    return fail("an entry for the same ops stands before it");
  shapesOfEntries |= 1u << shape;
  return llvm::Error::success();
}

MachineRates CostProfile::ratesOver(MachineRates result) const {
  for (auto [rate, number] : rates)
    result.*rate = number;
  return result;
}

llvm::Expected<CostProfile> CostProfile::parse(StringRef text) {
  if (std::string why = whyNotParse(text); !why.empty())
    return inputError(why);
  auto json = llvm::json::parse(text);
  if (!json)
    return inputError(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  if (!root || root->getString("format") != llvm::StringRef(kFormat))
    return inputError("needs \"format\": \"" + kFormat + "\"");
  CostProfile profile;
  if (const llvm::json::Value *value = root->get("rates")) {
    const llvm::json::Object *rates = value->getAsObject();
    if (!rates)
      return inputError("'rates' must be an object");
    for (const auto &member : *rates) {
      StringRef name = member.first;
      const auto *rate =
          llvm::find_if(kNamedRates, [&](const NamedRate &named) {
            return named.name == name;
          });
      std::optional<double> number = member.second.getAsNumber();
      if (rate == std::end(kNamedRates))
        return inputError("rates: unknown rate '" + name + "'");
      if (!number || !std::isfinite(*number) || *number < 0 ||
          (*number == 0 && name != "overhead"))
        return inputError("rates: '" + name + "' must be a positive number");
      profile.rates.emplace_back(rate->rate, *number);
    }
  }
  if (const llvm::json::Value *value = root->get("ops")) {
    const llvm::json::Array *ops = value->getAsArray();
    if (!ops)
      return inputError("'ops' must be a list");
    for (auto [i, op] : llvm::enumerate(*ops)) {
      const llvm::json::Object *entry = op.getAsObject();
      if (!entry)
        return inputError("ops[" + Twine(i) + "] must be an object");
      if (llvm::Error error = profile.addEntry(*entry, i))
        return std::move(error);
    }
  }
  return profile;
}

llvm::Expected<CostProfile> CostProfile::read(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return inputError("cannot read the profile " + path + ": " +
                      file.getError().message());
  auto profile = parse((*file)->getBuffer());
  if (!profile)
    return withContext(profile.takeError(), path);
  return profile;
}

std::optional<double> CostProfile::lookup(Operation *op) const {
  std::string type;
  for (unsigned shape = 7; shape >= 1; --shape) {
    if (!(shapesOfEntries >> shape & 1))
      continue;
    std::string name, kind;
    if (shape & 4)
      name = getSourceName(op->getLoc());
    if (shape & 1) {
      auto call = dyn_cast<KernelCallOp>(op);
      kind = call ? call.getCallee().str() : op->getName().getStringRef().str();
    }
    if (shape & 2 && type.empty()) {
      llvm::raw_string_ostream os(type);
      os << FunctionType::get(op->getContext(), op->getOperandTypes(),
                              op->getResultTypes());
      type = withoutBlanks(type);
    }
    auto found = entries.find(keyOf(name, kind, shape & 2 ? type : ""));
    if (found != entries.end())
      return found->second;
  }
  return std::nullopt;
}
