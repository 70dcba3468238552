//===- GraphJson.cpp - reads ckopt-graph/1 --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Files come from other programs (JsonReader.h). Ids in a file need not be
// dense or listed in order: program order is their numeric order. In memory
// they are indices, and the graph keeps the file's ids for messages. Values and
// nodes are parsed one at a time, so memory stays near the size of the graph.
// O(n log n).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"

#include "Formats/JsonReader.h"

#include <algorithm>
#include <numeric>

using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

/// File ids by index, ascending.
class IdTable {
public:
  /// Sets the ids, sorted, and sorts `items` with them.
  template <typename T>
  void fill(std::vector<int64_t> given, std::vector<T> &items);
  /// Returns the index of an id, or -1.
  int32_t find(int64_t id) const {
    auto it = std::lower_bound(ids.begin(), ids.end(), id);
    return it != ids.end() && *it == id ? int32_t(it - ids.begin()) : -1;
  }
  /// Returns ids that occur more than once.
  std::vector<int64_t> repeated() const;
  /// Returns the ids; empty if they are 0, 1, 2, ...
  std::vector<int64_t> release() const {
    for (size_t i = 0; i < ids.size(); ++i)
      if (ids[i] != int64_t(i))
        return ids;
    return {};
  }

private:
  std::vector<int64_t> ids;
};

template <typename T>
void IdTable::fill(std::vector<int64_t> given, std::vector<T> &items) {
  ids = std::move(given);
  if (std::is_sorted(ids.begin(), ids.end()))
    return;
  std::vector<int32_t> order(ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return ids[a] != ids[b] ? ids[a] < ids[b] : a < b;
  });
  std::vector<T> sorted;
  sorted.reserve(items.size());
  for (int32_t i : order)
    sorted.push_back(std::move(items[i]));
  items = std::move(sorted);
  std::sort(ids.begin(), ids.end());
}

std::vector<int64_t> IdTable::repeated() const {
  std::vector<int64_t> twice;
  for (size_t i = 1; i < ids.size(); ++i)
    if (ids[i] == ids[i - 1] && (twice.empty() || twice.back() != ids[i]))
      twice.push_back(ids[i]);
  return twice;
}

/// A node, with the ids of `after` as in the file.
struct ReadNode {
  Node node;
  std::vector<int64_t> after;
};

class GraphReader : JsonReader {
public:
  using JsonReader::JsonReader;
  std::optional<Graph> read(std::string_view text);

private:
  using Item = bool (GraphReader::*)(const json::Object &,
                                     const std::string &where, int64_t id);
  bool items(const char *what, const char *each, std::string_view text,
             Item item, std::vector<int64_t> &ids);
  void checkKeys(const json::Object &object, const std::string &where,
                 llvm::ArrayRef<llvm::StringLiteral> known);
  bool readValue(const json::Object &object, const std::string &where,
                 int64_t id);
  bool readNode(const json::Object &object, const std::string &where,
                int64_t id);
  bool valueId(const json::Value &value, const std::string &where, ValueId &id);
  bool idList(const json::Object &object, llvm::StringRef key,
              const std::string &where, bool required,
              std::vector<ValueId> &ids);
  bool readPairs(const json::Object &object, const std::string &where,
                 Node &node);
  void resolveAliases();
  void takeNodes();
  bool readItems();
  bool readHead(std::string_view text);

  Graph graph;
  json::Object head; ///< all but values and nodes
  std::string_view valueText, nodeText;
  IdTable values, nodes;
  std::vector<std::pair<int64_t, int64_t>> aliases; ///< file ids
  std::vector<ReadNode> readNodes;
  std::vector<std::string> misspelt;
};

bool GraphReader::valueId(const json::Value &value, const std::string &where,
                          ValueId &id) {
  int64_t raw = 0;
  if (!integer(value, where, raw))
    return false;
  id = values.find(raw);
  return id >= 0 || fail(where + ": unknown value " + str(raw));
}

bool GraphReader::idList(const json::Object &object, llvm::StringRef key,
                         const std::string &where, bool required,
                         std::vector<ValueId> &ids) {
  const json::Array *entries = list(object, key, where, required);
  if (!entries)
    return false;
  for (const json::Value &value : *entries) {
    ids.emplace_back();
    valueId(value, where + ": \"" + key.str() + "\"", ids.back());
  }
  return true;
}

/// Unknown keys may belong to other tools, unless they are misspelled ones of
/// this format: "recompte" must not silently mean the default.
void GraphReader::checkKeys(const json::Object &object,
                            const std::string &where,
                            llvm::ArrayRef<llvm::StringLiteral> known) {
  for (const auto &entry : object) {
    llvm::StringRef key = entry.first;
    if (key.size() < 4 || llvm::is_contained(known, key))
      continue;
    for (llvm::StringRef ours : known)
      if (ours.size() >= 4 && key.edit_distance(ours, true, 2) <= 2)
        misspelt.push_back(where + ": unknown key \"" + key.str() +
                           "\"; did you mean \"" + ours.str() + "\"?");
  }
  // llvm::json objects are hash maps, so iterate in sorted key order.
  llvm::sort(misspelt);
  for (const std::string &problem : misspelt)
    fail(problem);
  misspelt.clear();
}

bool GraphReader::readValue(const json::Object &object,
                            const std::string &where, int64_t id) {
  static constexpr llvm::StringLiteral known[] = {"id", "bytes", "kind", "name",
                                                  "alias_of"};
  checkKeys(object, where, known);
  Value &value = graph.values.emplace_back();
  integer(object, "bytes", where, value.bytes, true);
  if (value.bytes < 0)
    fail(where + ": negative size " + str(value.bytes));
  auto kind = object.getString("kind");
  if (!kind)
    fail(where + ": \"kind\" is missing or no string");
  else if (*kind == "temp")
    value.kind = ValueKind::Temp;
  else if (*kind == "input")
    value.kind = ValueKind::Input;
  else if (*kind == "persistent")
    value.kind = ValueKind::Persistent;
  else if (*kind == "output")
    value.kind = ValueKind::Output;
  else
    fail(where + ": unknown kind \"" + kind->str() +
         "\" (temp, input, persistent or output)");
  value.name = text(object, "name");
  const json::Value *alias = object.get("alias_of");
  int64_t base = 0;
  if (alias && !alias->getAsNull() &&
      integer(*alias, where + ": \"alias_of\"", base))
    aliases.push_back({id, base});
  return true;
}

bool GraphReader::readPairs(const json::Object &object,
                            const std::string &where, Node &node) {
  const json::Array *pairs = list(object, "reuse", where, false);
  if (!pairs)
    return false;
  for (const json::Value &entry : *pairs) {
    const json::Array *pair = entry.getAsArray();
    if (!pair || pair->size() != 2)
      return fail(where + ": \"reuse\" must hold pairs [input, output]");
    ValueId in = 0, out = 0;
    if (valueId((*pair)[0], where + ": \"reuse\"", in) &&
        valueId((*pair)[1], where + ": \"reuse\"", out))
      node.reuse.push_back({in, out});
  }
  return true;
}

bool GraphReader::readNode(const json::Object &object, const std::string &where,
                           int64_t) {
  static constexpr llvm::StringLiteral known[] = {
      "id",      "name",  "group",        "cost",      "inputs", "outputs",
      "mutates", "reuse", "alternatives", "workspace", "after",  "recompute"};
  checkKeys(object, where, known);
  ReadNode &read = readNodes.emplace_back();
  Node &node = read.node;
  node.name = text(object, "name");
  node.group = text(object, "group");
  const json::Array *alternatives =
      list(object, "alternatives", where, /*required=*/false);
  if (alternatives && !alternatives->empty())
    return fail(where + ": \"alternatives\" are not supported: choose one and "
                        "write its \"inputs\" and \"cost\" as the node's own");
  number(object, "cost", where, node.cost, true);
  idList(object, "inputs", where, true, node.inputs);
  idList(object, "outputs", where, true, node.outputs);
  idList(object, "mutates", where, false, node.mutates);
  integer(object, "workspace", where, node.workspace, false);
  if (node.workspace < 0)
    fail(where + ": negative workspace " + str(node.workspace));
  if (node.cost < 0)
    fail(where + ": the cost must be a finite number, not negative");
  readPairs(object, where, node);
  if (const json::Value *flag = object.get("recompute")) {
    if (auto boolean = flag->getAsBoolean())
      node.recompute = *boolean;
    else
      fail(where + ": \"recompute\" must be true or false");
  }
  if (const json::Array *entries = list(object, "after", where, false))
    integers(*entries, where + ": \"after\"", read.after);
  return true;
}

/// Parses each element of a list by itself; returns false if one is not JSON.
bool GraphReader::items(const char *what, const char *each,
                        std::string_view text, Item item,
                        std::vector<int64_t> &ids) {
  return splitList(text, [&](std::string_view element) {
    llvm::Expected<json::Value> value = json::parse(llvm::StringRef(element));
    if (!value) {
      llvm::consumeError(value.takeError());
      return false;
    }
    std::string where =
        std::string(what) + "[" + str(int64_t(ids.size())) + "]";
    ids.push_back(0);
    const json::Object *object = value->getAsObject();
    if (!object) {
      fail(where + " must be an object");
    } else if (integer(*object, "id", where, ids.back(), true)) {
      (this->*item)(*object, std::string(each) + " " + str(ids.back()),
                    ids.back());
    }
    return true;
  });
}

void GraphReader::resolveAliases() {
  for (auto [id, base] : aliases) {
    ValueId found = values.find(base);
    if (found < 0)
      fail("value " + str(id) + ": \"alias_of\": unknown value " + str(base));
    else
      graph.values[values.find(id)].aliasOf = found;
  }
}

void GraphReader::takeNodes() {
  graph.nodes.reserve(readNodes.size());
  for (ReadNode &read : readNodes) {
    Node &node = graph.nodes.emplace_back(std::move(read.node));
    for (int64_t id : read.after) {
      node.after.push_back(nodes.find(id));
      if (node.after.back() < 0)
        fail("node " + str(graph.nodeFileId(NodeId(graph.nodes.size()) - 1)) +
             ": \"after\" names unknown node " + str(id));
    }
  }
}

/// Reads everything but the lists of values and nodes; returns false if the
/// text is not a JSON object.
bool GraphReader::readHead(std::string_view text) {
  return splitObject(text, [&](std::string_view key, std::string_view part) {
    llvm::Expected<json::Value> name = json::parse(llvm::StringRef(key));
    if (!name) {
      llvm::consumeError(name.takeError());
      return false;
    }
    llvm::StringRef word = *name->getAsString();
    if ((word == "values" || word == "nodes") && part.front() == '[') {
      (word == "values" ? valueText : nodeText) = part;
      return true;
    }
    llvm::Expected<json::Value> value = json::parse(llvm::StringRef(part));
    if (!value) {
      llvm::consumeError(value.takeError());
      return false;
    }
    head[word.str()] = std::move(*value);
    return true;
  });
}

/// Reads values, then nodes; returns false if a part is not JSON.
bool GraphReader::readItems() {
  std::vector<int64_t> ids;
  if (!valueText.empty() &&
      !items("values", "value", valueText, &GraphReader::readValue, ids))
    return false;
  if (ids.size() != graph.values.size())
    return true; // without ids, every reference would be reported
  values.fill(std::move(ids), graph.values);
  for (int64_t id : values.repeated())
    fail("value " + str(id) + " is listed twice");
  resolveAliases();
  ids.clear();
  if (!nodeText.empty() &&
      !items("nodes", "node", nodeText, &GraphReader::readNode, ids))
    return false;
  if (ids.size() != readNodes.size())
    return true;
  nodes.fill(std::move(ids), readNodes);
  for (int64_t id : nodes.repeated())
    fail("node " + str(id) + " is listed twice");
  graph.valueIds = values.release();
  graph.nodeIds = nodes.release();
  takeNodes();
  return true;
}

std::optional<Graph> GraphReader::read(std::string_view whole) {
  if (!readHead(whole)) {
    fail(whyNotJson(whole));
    return std::nullopt;
  }
  if (!format(head, "ckopt-graph/1"))
    return std::nullopt;
  checkKeys(head, "graph",
            {"format", "name", "alignment", "cost_model", "values", "nodes"});
  graph.name = text(head, "name");
  graph.costModel = text(head, "cost_model");
  integer(head, "alignment", "graph", graph.alignment, false);
  if (valueText.empty())
    list(head, "values", "graph", true);
  if (nodeText.empty())
    list(head, "nodes", "graph", true);
  if (!readItems())
    fail(whyNotJson(whole));
  if (errors.any())
    return std::nullopt;
  std::string problem = validate(graph);
  if (!problem.empty()) {
    fail(problem);
    return std::nullopt;
  }
  return std::move(graph);
}

} // namespace

std::optional<Graph> ckopt::planner::parseGraph(std::string_view text,
                                                std::string &error) {
  error = checkJsonText(text);
  if (!error.empty())
    return std::nullopt;
  JsonErrors errors;
  std::optional<Graph> graph = GraphReader(errors).read(text);
  error = errors.text();
  return graph;
}
