//===- CostProfile.cpp - measured costs from a file -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Analysis/CostProfile.h"
#include "ckopt/Analysis/PlanningProblem.h"
#include "ckopt/Base/JsonText.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptKernelOps.h"
#include "ckopt/Interfaces/StructureInterface.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
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

llvm::Error CostProfile::addCurve(const llvm::json::Object &curve,
                                  size_t index) {
  auto fail = [&](const Twine &what) {
    return inputError("collectives[" + Twine(index) + "]: " + what);
  };
  for (const auto &member : curve)
    if (!llvm::is_contained({"op", "ranks", "points"}, StringRef(member.first)))
      return fail("unknown member '" + StringRef(member.first) + "'");
  auto op = curve.getString("op");
  if (!op ||
      !llvm::is_contained(
          {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}, *op))
    return fail("needs 'op', the name of a collective");
  std::optional<int64_t> ranks = curve.getInteger("ranks");
  if (!ranks || *ranks < 2)
    return fail("needs 'ranks', 2 or more");
  const llvm::json::Array *points = curve.getArray("points");
  if (!points || points->empty())
    return fail("needs 'points', pairs of bytes and seconds");
  auto [entry, isNew] = curves.try_emplace({op->str(), *ranks});
  if (!isNew)
    return fail("a curve for the same op and ranks stands before it");
  for (const llvm::json::Value &point : *points) {
    const llvm::json::Array *pair = point.getAsArray();
    std::optional<double> bytes, seconds;
    if (pair && pair->size() == 2) {
      bytes = (*pair)[0].getAsNumber();
      seconds = (*pair)[1].getAsNumber();
    }
    if (!bytes || !seconds || !(*bytes > 0) || !std::isfinite(*bytes) ||
        !(*seconds > 0 && *seconds <= kMaxSeconds))
      return fail("a point is a pair of positive numbers, bytes and seconds");
    if (!entry->second.empty() && entry->second.back().first >= *bytes)
      return fail("bytes of points ascend");
    entry->second.emplace_back(*bytes, *seconds);
  }
  return llvm::Error::success();
}

std::optional<double> CostProfile::collective(StringRef op, int64_t ranks,
                                              double bytes) const {
  auto found = curves.find({op.str(), ranks});
  if (found == curves.end())
    return std::nullopt;
  const auto &points = found->second;
  if (bytes <= points.front().first)
    return points.front().second;
  auto [lastBytes, lastSeconds] = points.back();
  if (bytes >= lastBytes)
    return lastSeconds * bytes / lastBytes;
  auto above = llvm::find_if(
      points, [&](const auto &point) { return point.first >= bytes; });
  auto below = std::prev(above);
  double share = (bytes - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

MachineRates CostProfile::ratesOver(MachineRates result) const {
  for (auto [rate, number] : rates)
    result.*rate = number;
  return result;
}

bool CostProfile::hasProductRates() const {
  return llvm::any_of(rates, [](const auto &rate) {
    return rate.first == &MachineRates::matmul ||
           rate.first == &MachineRates::conv;
  });
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
  for (auto [key, member] : {std::pair("device", &CostProfile::onDevice),
                             {"precision", &CostProfile::byPrecision}})
    if (const llvm::json::Value *value = root->get(key)) {
      std::optional<StringRef> word = value->getAsString();
      if (!word)
        return inputError("'" + Twine(key) + "' must be a string");
      profile.*member = word->str();
    }
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
  if (const llvm::json::Value *value = root->get("updates")) {
    const llvm::json::Object *updates = value->getAsObject();
    auto positive = [&](StringRef name) {
      double number = updates ? updates->getNumber(name).value_or(0) : 0;
      return std::isfinite(number) ? std::max(number, 0.0) : 0;
    };
    double bytes = positive("bytes"), seconds = positive("seconds");
    if (bytes == 0 || seconds == 0 || seconds > kMaxSeconds)
      return inputError("'updates' needs 'bytes' and 'seconds', positive "
                        "numbers");
    profile.updateSecondsPerByte = seconds / bytes;
  }
  if (const llvm::json::Value *value = root->get("collectives")) {
    const llvm::json::Array *curves = value->getAsArray();
    if (!curves)
      return inputError("'collectives' must be a list");
    for (auto [i, curve] : llvm::enumerate(*curves)) {
      const llvm::json::Object *entry = curve.getAsObject();
      if (!entry)
        return inputError("collectives[" + Twine(i) + "] must be an object");
      if (llvm::Error error = profile.addCurve(*entry, i))
        return std::move(error);
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
  auto file = openInputBuffer(path, /*endsWithZero=*/true);
  if (!file)
    return withContext(file.takeError(), "cannot read the profile " + path);
  auto profile = parse((*file)->getBuffer());
  if (!profile)
    return withContext(profile.takeError(), path);
  return profile;
}

/// Returns the seconds of a call of a collective, if they were measured.
static std::optional<double> ofCollective(Operation *op,
                                          const CostProfile &profile) {
  auto call = dyn_cast<KernelCallOp>(op);
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           op, call.getCalleeAttr())
                     : func::FuncOp();
  if (!callee || callee.isDeclaration())
    return std::nullopt;
  Operation *inner = &callee.front().front();
  auto collective = dyn_cast<CollectiveOpInterface>(inner);
  if (!collective || !collective.getRounds())
    return std::nullopt;
  double bytes = 0;
  for (Value tensor : collective.getWholeTensors())
    bytes += double(getByteSize(cast<RankedTensorType>(tensor.getType())));
  return profile.collective(collective.getCollective(),
                            collective.getGroup().size, bytes);
}

std::optional<double> CostProfile::lookup(Operation *op) const {
  if (!curves.empty())
    if (std::optional<double> seconds = ofCollective(op, *this))
      return seconds;
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
    if (found != entries.end()) {
      found->second.isUsed = true;
      return found->second.seconds;
    }
  }
  auto call = dyn_cast<KernelCallOp>(op);
  if (!call || call.getUpdates().empty() || updateSecondsPerByte == 0)
    return std::nullopt;
  double bytes = 0;
  for (Value operand : call->getOperands())
    bytes += double(getStorageBytes(operand.getType()));
  for (Value result : call.getOuts())
    bytes += double(getStorageBytes(result.getType()));
  return bytes * updateSecondsPerByte;
}

std::vector<std::string> CostProfile::unused() const {
  std::vector<std::string> names;
  for (const auto &entry : entries)
    if (!entry.second.isUsed) {
      SmallVector<StringRef> parts; // of keyOf()
      entry.first().split(parts, '\n');
      names.push_back((parts[0].empty() ? parts[1] : parts[0]).str());
    }
  llvm::sort(names);
  return names;
}
