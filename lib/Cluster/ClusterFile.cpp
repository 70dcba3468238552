//===- ClusterFile.cpp - descriptions of clusters -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Members that are not known are errors: a misspelt one would leave its default
// in place, and the prediction would be wrong without a word.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Cluster/Cluster.h"

#include "ckopt/Base/JsonText.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::cluster;
using llvm::StringRef;

namespace {

/// Reads the members of one object and remembers the first defect.
class MemberReader {
public:
  MemberReader(const llvm::json::Object &object, StringRef where)
      : object(object), where(where.empty() ? "" : where.str() + ".") {}

  void number(StringRef key, double least, bool orEqual, double &result,
              bool required = true) {
    const llvm::json::Value *value = take(key, required);
    if (!value)
      return;
    auto given = value->getAsNumber();
    if (!given || !std::isfinite(*given) || *given < least ||
        (!orEqual && *given == least))
      return fail(key, orEqual ? "must be a number that is not negative"
                               : "must be a positive number");
    result = *given;
  }
  void count(StringRef key, int64_t &result, bool required = true) {
    const llvm::json::Value *value = take(key, required);
    if (!value)
      return;
    auto given = value->getAsInteger();
    if (!given || *given < 1 || *given > kMost)
      return fail(key, "must be an integer from 1 to " + llvm::Twine(kMost));
    result = *given;
  }
  void text(StringRef key, std::string &result) {
    const llvm::json::Value *value = take(key, /*required=*/false);
    if (!value)
      return;
    if (auto given = value->getAsString())
      result = given->str();
    else
      fail(key, "must be a text");
  }
  const llvm::json::Object *part(StringRef key, bool required) {
    const llvm::json::Value *value = take(key, required);
    if (!value)
      return nullptr;
    if (const llvm::json::Object *found = value->getAsObject())
      return found;
    fail(key, "must be an object");
    return nullptr;
  }
  /// Refuses members that nothing took.
  std::string finish() {
    for (const auto &[key, value] : object)
      if (!llvm::is_contained(taken, StringRef(key)))
        fail(key, "is not known; there are " + llvm::join(taken, ", "));
    return defect;
  }

private:
  static constexpr int64_t kMost = 1 << 20;

  const llvm::json::Value *take(StringRef key, bool required) {
    taken.push_back(key);
    const llvm::json::Value *value = object.get(key);
    if (!value && required)
      fail(key, "is missing");
    return value;
  }
  void fail(StringRef key, const llvm::Twine &what) {
    if (defect.empty())
      defect = ("\"" + where + key + "\" " + what).str();
  }

  const llvm::json::Object &object;
  std::string where, defect;
  llvm::SmallVector<StringRef> taken;
};

/// Returns the defect of a link's members, or "".
std::string readLink(const llvm::json::Object &object, StringRef where,
                     Link &link) {
  MemberReader reader(object, where);
  reader.number("bandwidth", 0, /*orEqual=*/false, link.bandwidth);
  reader.number("latency", 0, /*orEqual=*/true, link.latency);
  reader.number("message_seconds", 0, /*orEqual=*/true, link.messageSeconds,
                /*required=*/false);
  reader.count("links", link.count, /*required=*/false);
  return reader.finish();
}

std::string readMembers(const llvm::json::Object &object, Cluster &cluster) {
  MemberReader reader(object, "");
  std::string format;
  reader.text("format", format);
  if (format != "ckopt-cluster/1")
    return "\"format\" must be \"ckopt-cluster/1\"";
  reader.text("name", cluster.name);
  reader.count("nodes", cluster.nodes);
  reader.count("ranks_per_node", cluster.ranksPerNode);
  reader.number("memory_bandwidth", 0, /*orEqual=*/false,
                cluster.memoryBandwidth);
  reader.number("speed", 0, /*orEqual=*/false, cluster.speed,
                /*required=*/false);
  // A rank has a way to each other of its node, unless they share fewer.
  cluster.inside.count = cluster.ranksPerNode;
  const llvm::json::Object *inside =
      reader.part("inside", cluster.ranksPerNode > 1);
  const llvm::json::Object *between = reader.part("between", cluster.nodes > 1);
  std::string defect = reader.finish();
  if (defect.empty() && inside)
    defect = readLink(*inside, "inside", cluster.inside);
  if (defect.empty() && between)
    defect = readLink(*between, "between", cluster.between);
  return defect;
}

} // namespace

llvm::Expected<Cluster> ckopt::cluster::parseCluster(StringRef text) {
  if (!llvm::json::isUTF8(text))
    return inputError("the file is not UTF-8 text");
  if (std::string why = whyNotParse(text); !why.empty())
    return inputError(why);
  auto value = llvm::json::parse(text);
  if (!value)
    return inputError("not JSON: " + llvm::toString(value.takeError()));
  const llvm::json::Object *object = value->getAsObject();
  if (!object)
    return inputError("not a JSON object");
  Cluster cluster;
  if (std::string defect = readMembers(*object, cluster); !defect.empty())
    return inputError(defect);
  return cluster;
}

llvm::Expected<Cluster> ckopt::cluster::readCluster(StringRef path) {
  auto buffer = openInputBuffer(path, /*endsWithZero=*/true);
  if (!buffer)
    return withContext(buffer.takeError(), path);
  auto cluster = parseCluster((*buffer)->getBuffer());
  if (!cluster)
    return withContext(cluster.takeError(), path);
  return cluster;
}
