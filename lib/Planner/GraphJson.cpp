//===- GraphJson.cpp - ckopt-graph/1 and ckopt-plan/1 files ---------------===//
//
// Files come from other programs: every field is checked for presence, type and
// range before it is used, and each error names its place. Ids in a file need
// not be dense or sorted (program order is their numeric order); in memory they
// are.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <map>

using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

class Reader {
public:
  explicit Reader(std::string &error) : error(error) {}

protected:
  bool fail(const std::string &message) {
    if (error.empty())
      error = message;
    return false;
  }
  static std::string str(int64_t n) { return std::to_string(n); }
  const json::Object *root(const json::Value &value, llvm::StringRef format) {
    const json::Object *object = value.getAsObject();
    if (!object) {
      fail("the file is not a JSON object");
      return nullptr;
    }
    auto found = object->getString("format");
    if (!found || *found != format) {
      fail("\"format\" must be \"" + format.str() + "\"" +
           (found ? ", it is \"" + found->str() + "\"" : ", it is missing"));
      return nullptr;
    }
    return object;
  }
  const json::Array *array(const json::Object &object, llvm::StringRef key,
                           const std::string &where, bool required = true) {
    const json::Value *value = object.get(key);
    if (!value) {
      if (required)
        fail(where + ": \"" + key.str() + "\" is missing");
      return nullptr;
    }
    const json::Array *list = value->getAsArray();
    if (!list)
      fail(where + ": \"" + key.str() + "\" must be a list");
    return list;
  }
  bool integer(const json::Value &value, const std::string &where,
               int64_t &result) {
    if (auto number = value.getAsInteger()) {
      result = *number;
      return true;
    }
    return fail(where + " must be an integer");
  }
  bool integer(const json::Object &object, llvm::StringRef key,
               const std::string &where, int64_t &result,
               bool required = true) {
    const json::Value *value = object.get(key);
    if (!value)
      return required ? fail(where + ": \"" + key.str() + "\" is missing")
                      : true;
    return integer(*value, where + ": \"" + key.str() + "\"", result);
  }

  std::string &error;
};

class GraphReader : Reader {
public:
  using Reader::Reader;
  std::optional<Graph> read(const json::Value &file);

private:
  bool readValues(const json::Array &list);
  bool readNodes(const json::Array &list);
  bool readNode(const json::Object &object, const std::string &where,
                Node &node);
  bool valueId(const json::Value &value, const std::string &where, ValueId &id);
  bool idList(const json::Object &object, llvm::StringRef key,
              const std::string &where, bool required,
              std::vector<ValueId> &ids);
  bool readPairs(const json::Object &object, const std::string &where,
                 Node &node);

  Graph graph;
  std::map<int64_t, ValueId> values;
  std::map<int64_t, NodeId> nodes;
};

bool GraphReader::valueId(const json::Value &value, const std::string &where,
                          ValueId &id) {
  int64_t raw = 0;
  if (!integer(value, where, raw))
    return false;
  auto it = values.find(raw);
  if (it == values.end())
    return fail(where + ": unknown value " + str(raw));
  id = it->second;
  return true;
}

bool GraphReader::idList(const json::Object &object, llvm::StringRef key,
                         const std::string &where, bool required,
                         std::vector<ValueId> &ids) {
  const json::Array *list = array(object, key, where, required);
  if (!list)
    return error.empty();
  for (const json::Value &value : *list) {
    ids.emplace_back();
    if (!valueId(value, where + ": \"" + key.str() + "\"", ids.back()))
      return false;
  }
  return true;
}

bool GraphReader::readValues(const json::Array &list) {
  std::map<int64_t, const json::Object *> byId;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string where = "values[" + str(i) + "]";
    const json::Object *object = list[i].getAsObject();
    if (!object)
      return fail(where + " must be an object");
    int64_t id = 0;
    if (!integer(*object, "id", where, id))
      return false;
    if (!byId.insert({id, object}).second)
      return fail(where + ": value " + str(id) + " is listed twice");
  }
  for (auto &[id, object] : byId) {
    values[id] = ValueId(graph.values.size());
    Value value;
    std::string where = "value " + str(id);
    if (!integer(*object, "bytes", where, value.bytes))
      return false;
    auto kind = object->getString("kind");
    if (!kind)
      return fail(where + ": \"kind\" is missing or no string");
    if (*kind == "temp")
      value.kind = ValueKind::Temp;
    else if (*kind == "input")
      value.kind = ValueKind::Input;
    else if (*kind == "persistent")
      value.kind = ValueKind::Persistent;
    else if (*kind == "output")
      value.kind = ValueKind::Output;
    else
      return fail(where + ": unknown kind \"" + kind->str() +
                  "\" (temp, input, persistent or output)");
    if (auto name = object->getString("name"))
      value.name = name->str();
    graph.values.push_back(std::move(value));
  }
  for (auto &[id, object] : byId)
    if (const json::Value *alias = object->get("alias_of"))
      if (!alias->getAsNull() &&
          !valueId(*alias, "value " + str(id) + ": \"alias_of\"",
                   graph.values[values[id]].aliasOf))
        return false;
  return true;
}

bool GraphReader::readPairs(const json::Object &object,
                            const std::string &where, Node &node) {
  const json::Array *list = array(object, "reuse", where, false);
  if (!list)
    return error.empty();
  for (const json::Value &entry : *list) {
    const json::Array *pair = entry.getAsArray();
    if (!pair || pair->size() != 2)
      return fail(where + ": \"reuse\" must hold pairs [input, output]");
    ValueId in = 0, out = 0;
    if (!valueId((*pair)[0], where + ": \"reuse\"", in) ||
        !valueId((*pair)[1], where + ": \"reuse\"", out))
      return false;
    node.reuse.push_back({in, out});
  }
  return true;
}

bool GraphReader::readNode(const json::Object &object, const std::string &where,
                           Node &node) {
  if (auto name = object.getString("name"))
    node.name = name->str();
  if (auto group = object.getString("group"))
    node.group = group->str();
  auto cost = object.getNumber("cost");
  if (!cost || !std::isfinite(*cost))
    return fail(where + ": \"cost\" is missing or no number");
  node.cost = *cost;
  if (object.get("alternatives"))
    return fail(where + ": \"alternatives\" are not supported yet; choose one "
                        "of them in the file");
  if (!idList(object, "inputs", where, true, node.inputs) ||
      !idList(object, "outputs", where, true, node.outputs) ||
      !idList(object, "mutates", where, false, node.mutates) ||
      !integer(object, "workspace", where, node.workspace, false) ||
      !readPairs(object, where, node))
    return false;
  if (const json::Value *flag = object.get("recompute")) {
    auto boolean = flag->getAsBoolean();
    if (!boolean)
      return fail(where + ": \"recompute\" must be true or false");
    node.recompute = *boolean;
  }
  const json::Array *after = array(object, "after", where, false);
  if (!after)
    return error.empty();
  for (const json::Value &entry : *after) {
    int64_t id = 0;
    if (!integer(entry, where + ": \"after\"", id))
      return false;
    auto it = nodes.find(id);
    if (it == nodes.end())
      return fail(where + ": \"after\" names unknown node " + str(id));
    node.after.push_back(it->second);
  }
  return true;
}

bool GraphReader::readNodes(const json::Array &list) {
  std::map<int64_t, const json::Object *> byId;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string where = "nodes[" + str(i) + "]";
    const json::Object *object = list[i].getAsObject();
    if (!object)
      return fail(where + " must be an object");
    int64_t id = 0;
    if (!integer(*object, "id", where, id))
      return false;
    if (!byId.insert({id, object}).second)
      return fail(where + ": node " + str(id) + " is listed twice");
  }
  NodeId next = 0;
  for (auto &[id, object] : byId) {
    if (id != next)
      return fail("node ids must be 0, 1, 2, ...: " + str(next) +
                  " is missing");
    nodes[id] = next++;
  }
  for (auto &[id, object] : byId) {
    graph.nodes.emplace_back();
    if (!readNode(*object, "node " + str(id), graph.nodes.back()))
      return false;
  }
  return true;
}

std::optional<Graph> GraphReader::read(const json::Value &file) {
  const json::Object *object = root(file, "ckopt-graph/1");
  if (!object)
    return std::nullopt;
  if (auto name = object->getString("name"))
    graph.name = name->str();
  if (!integer(*object, "alignment", "graph", graph.alignment, false))
    return std::nullopt;
  const json::Array *list = array(*object, "values", "graph");
  if (!list || !readValues(*list))
    return std::nullopt;
  for (auto &[id, index] : values)
    if (id != index) {
      fail("value ids must be 0, 1, 2, ...: " + str(index) + " is missing");
      return std::nullopt;
    }
  list = array(*object, "nodes", "graph");
  if (!list || !readNodes(*list))
    return std::nullopt;
  std::string problem = validate(graph);
  if (!problem.empty()) {
    fail(problem);
    return std::nullopt;
  }
  return std::move(graph);
}

class PlanReader : Reader {
public:
  using Reader::Reader;
  std::optional<Plan> read(const json::Value &file);

private:
  bool numbers(const json::Array &list, const std::string &where,
               std::vector<int64_t> &result) {
    for (const json::Value &value : list) {
      result.emplace_back();
      if (!integer(value, where, result.back()))
        return false;
    }
    return true;
  }
  bool readOffsets(const json::Object &object, Plan &plan);
};

bool PlanReader::readOffsets(const json::Object &object, Plan &plan) {
  if (const json::Array *list = array(object, "offsets", "plan", false)) {
    for (size_t i = 0; i < list->size(); ++i) {
      const json::Array *row = (*list)[i].getAsArray();
      if (!row)
        return fail("offsets[" + str(i) + "] must be a list");
      plan.offsets.emplace_back();
      if (!numbers(*row, "offsets[" + str(i) + "]", plan.offsets.back()))
        return false;
    }
  }
  if (const json::Array *list = array(object, "initial", "plan", false)) {
    for (const json::Value &entry : *list) {
      const json::Array *row = entry.getAsArray();
      std::vector<int64_t> pair;
      if (!row || row->size() != 2)
        return fail("initial must hold pairs [value, offset]");
      if (!numbers(*row, "initial", pair))
        return false;
      if (pair[0] < 0 || pair[0] > 0x7fffffff)
        return fail("initial: unknown value " + str(pair[0]));
      plan.initial.push_back({ValueId(pair[0]), pair[1]});
    }
  }
  return error.empty();
}

std::optional<Plan> PlanReader::read(const json::Value &file) {
  const json::Object *object = root(file, "ckopt-plan/1");
  if (!object)
    return std::nullopt;
  Plan plan;
  if (auto status = object->getString("status"))
    plan.status = status->str();
  const json::Array *list =
      array(*object, "steps", "plan", plan.status != "infeasible");
  std::vector<int64_t> steps;
  if ((!list && !error.empty()) || (list && !numbers(*list, "steps", steps)))
    return std::nullopt;
  for (int64_t step : steps) {
    if (step < 0 || step > 0x7fffffff) {
      fail("steps: unknown node " + str(step));
      return std::nullopt;
    }
    plan.steps.push_back(NodeId(step));
  }
  plan.cost = object->getNumber("cost").value_or(0);
  plan.lowerBound = object->getNumber("lower_bound").value_or(0);
  plan.orderLowerBound = object->getNumber("order_lower_bound").value_or(0);
  if (!integer(*object, "peak", "plan", plan.peak, list != nullptr) ||
      !integer(*object, "arena", "plan", plan.arena, false) ||
      !integer(*object, "minimum_budget", "plan", plan.minimumBudget, false) ||
      !integer(*object, "proven_minimum", "plan", plan.provenMinimum, false) ||
      !readOffsets(*object, plan))
    return std::nullopt;
  return plan;
}

/// The JSON parser recurses: no file of ours nests deeply, garbage may.
bool nestsDeeply(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted) {
      if (c == '\\')
        ++i;
      quoted = c != '"';
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++depth > 64)
        return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

template <typename ReaderType, typename T>
std::optional<T> parse(std::string_view text, std::string &error) {
  error.clear();
  if (!json::isUTF8(llvm::StringRef(text))) {
    error = "the file is not UTF-8 text";
    return std::nullopt;
  }
  if (nestsDeeply(text)) {
    error = "not JSON of this format: brackets nest more than 64 deep";
    return std::nullopt;
  }
  llvm::Expected<json::Value> file = json::parse(llvm::StringRef(text));
  if (!file) {
    error = "not JSON: " + llvm::toString(file.takeError());
    return std::nullopt;
  }
  return ReaderType(error).read(*file);
}

} // namespace

std::optional<Graph> ckopt::planner::parseGraph(std::string_view text,
                                                std::string &error) {
  return parse<GraphReader, Graph>(text, error);
}

std::optional<Plan> ckopt::planner::parsePlan(std::string_view text,
                                              std::string &error) {
  return parse<PlanReader, Plan>(text, error);
}
