//===- PlanJson.cpp - reads ckopt-plan/1 ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads plans, which may be written by hand or by other programs: form and ids
// are checked here (JsonReader.h); the verifier decides whether the plan is
// valid. Linear in the text, except for looking up ids that are not dense.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Planner/GraphJson.h"

#include "Formats/JsonReader.h"

#include <algorithm>

using namespace ckopt::planner;
namespace json = llvm::json;

namespace {

class PlanReader : JsonReader {
public:
  PlanReader(JsonErrors &errors, const Graph *graph)
      : JsonReader(errors), graph(graph) {}
  std::optional<PlanFile> read(const json::Value &file);

private:
  int32_t index(const std::vector<int64_t> *ids, size_t count, int64_t id,
                const char *what, const char *where);
  int32_t node(int64_t id, const char *where) {
    return index(graph ? &graph->nodeIds : nullptr,
                 graph ? graph->nodes.size() : 0, id, "node", where);
  }
  int32_t value(int64_t id, const char *where) {
    return index(graph ? &graph->valueIds : nullptr,
                 graph ? graph->values.size() : 0, id, "value", where);
  }
  void readSteps(const json::Object &object, Plan &plan);
  void refuseChoices(const json::Object &object);
  void readStatus(const json::Object &object, Plan &plan);
  void readScope(const json::Object &object, Plan &plan);
  void readNames(const json::Object &object, PlanFile &file);
  void readOffsets(const json::Object &object, Plan &plan);
  void readInitial(const json::Object &object, Plan &plan);
  void readPacking(const json::Object &object, Plan &plan);
  void readCertificates(const json::Object &object, Plan &plan);
  bool readCertificate(const json::Object &object, const std::string &where,
                       Certificate &result);
  bool readPrices(const json::Object &object, const std::string &where,
                  Certificate::Prices &result);
  bool readTree(const json::Array &tree, const std::string &where,
                Certificate &result);
  using Pair = std::pair<int64_t, int64_t>;
  bool readPairs(const json::Object &object, llvm::StringRef key,
                 const std::string &where, std::vector<Pair> &result);

  const Graph *graph;
};

/// Returns the index of a file's id; -1, with a problem, if the graph does not
/// have it.
int32_t PlanReader::index(const std::vector<int64_t> *ids, size_t count,
                          int64_t id, const char *what, const char *where) {
  int64_t found = id;
  if (ids && !ids->empty()) {
    auto it = std::lower_bound(ids->begin(), ids->end(), id);
    found = it != ids->end() && *it == id ? it - ids->begin() : -1;
  }
  if (found >= 0 && found <= INT32_MAX && (!graph || found < int64_t(count)))
    return int32_t(found);
  fail(std::string(where) + ": unknown " + what + " " + str(id));
  return -1;
}

void PlanReader::readSteps(const json::Object &object, Plan &plan) {
  const json::Array *entries =
      list(object, "steps", "plan", isPlan(plan.status));
  std::vector<int64_t> steps;
  if (!entries || !integers(*entries, "steps", steps))
    return;
  for (int64_t step : steps)
    plan.steps.push_back(node(step, "steps"));
}

/// A plan of another program may state no status: it claims to be valid.
void PlanReader::readStatus(const json::Object &object, Plan &plan) {
  plan.status = Status::Feasible;
  if (const json::Value *value = object.get("status")) {
    auto known = parseStatus(value->getAsString().value_or("").str());
    if (known)
      plan.status = *known;
    else
      fail("unknown status '" + text(object, "status") + "'");
  }
  std::string proof = text(object, "proof");
  if (proof == "search")
    plan.proof = Proof::Search;
  else if (!proof.empty())
    fail("unknown proof '" + proof + "'");
}

void PlanReader::readScope(const json::Object &object, Plan &plan) {
  const json::Value *value = object.get("restricted_to");
  if (!value)
    return;
  json::Array one{*value};
  const json::Array *list = value->getAsArray();
  for (const json::Value &entry : list ? *list : one)
    if (auto name = entry.getAsString(); !name || !plan.scope.add(name->str()))
      fail("restricted to '" + name.value_or("").str() + "', which is unknown");
}

/// Refuses plans of earlier versions that choose among alternatives of nodes,
/// which graphs no longer have.
void PlanReader::refuseChoices(const json::Object &object) {
  const json::Value *value = object.get("choices");
  const json::Object *choices = value ? value->getAsObject() : nullptr;
  if (value && !choices)
    fail("\"choices\" must be an object {\"node\": index}");
  else if (choices && !choices->empty())
    fail("\"choices\" are not supported: nodes have no alternatives");
}

void PlanReader::readNames(const json::Object &object, PlanFile &file) {
  const json::Array *names = list(object, "nodes", "plan", false);
  if (!names)
    return;
  for (const json::Value &name : *names)
    if (auto text = name.getAsString())
      file.nodes.push_back(text->str());
    else
      fail("\"nodes\" must hold the names of nodes");
}

void PlanReader::readOffsets(const json::Object &object, Plan &plan) {
  const json::Array *rows = list(object, "offsets", "plan", false);
  if (!rows)
    return;
  for (size_t i = 0; i < rows->size(); ++i) {
    std::string where = "offsets[" + str(i) + "]";
    const json::Array *row = (*rows)[i].getAsArray();
    plan.offsets.emplace_back();
    if (!row)
      fail(where + " must be a list");
    else
      integers(*row, where, plan.offsets.back());
  }
}

void PlanReader::readInitial(const json::Object &object, Plan &plan) {
  const json::Array *rows = list(object, "initial", "plan", false);
  if (!rows)
    return;
  for (const json::Value &entry : *rows) {
    const json::Array *row = entry.getAsArray();
    std::vector<int64_t> pair;
    if (!row || row->size() != 2)
      fail("initial must hold pairs [value, offset]");
    else if (integers(*row, "initial", pair))
      plan.initial.push_back({value(pair[0], "initial"), pair[1]});
  }
}

void PlanReader::readPacking(const json::Object &object, Plan &plan) {
  const json::Value *value = object.get("packing");
  if (!value)
    return;
  const json::Object *packing = value->getAsObject();
  if (!packing) {
    fail("\"packing\" must be an object");
    return;
  }
  PackingFacts &facts = plan.packing;
  std::string proof = text(*packing, "proof");
  facts.searched = proof == "search";
  if (integer(*packing, "load", "packing", facts.load, true) &&
      integer(*packing, "lower_bound", "packing", facts.lowerBound, true) &&
      !facts.searched && proof != "load")
    fail("packing: \"proof\" must be \"load\" or \"search\"");
}

bool PlanReader::readPairs(const json::Object &object, llvm::StringRef key,
                           const std::string &where,
                           std::vector<Pair> &result) {
  const json::Array *rows = list(object, key, where, true);
  if (!rows)
    return false;
  for (const json::Value &entry : *rows) {
    const json::Array *row = entry.getAsArray();
    std::vector<int64_t> pair;
    if (!row || row->size() != 2)
      return fail(where + ": \"" + key.str() + "\" must hold pairs");
    if (!integers(*row, where + ": \"" + key.str() + "\"", pair))
      return false;
    result.push_back({pair[0], pair[1]});
  }
  return true;
}

bool PlanReader::readPrices(const json::Object &object,
                            const std::string &where,
                            Certificate::Prices &result) {
  std::vector<Pair> prices;
  if (!readPairs(object, "prices", where, prices))
    return false;
  for (auto [row, price] : prices) {
    if (row < 0 || row > INT32_MAX)
      return fail(where + ": \"prices\" names row " + str(row));
    result.push_back({int32_t(row), price});
  }
  return true;
}

/// Reads cases in preorder: {"gap": [storage, node]} or {"prices": ...}.
bool PlanReader::readTree(const json::Array &tree, const std::string &where,
                          Certificate &result) {
  for (const json::Value &item : tree) {
    const json::Object *entry = item.getAsObject();
    if (!entry)
      return fail(where + ": \"tree\" must hold objects");
    Certificate::Case &next = result.tree.emplace_back();
    const json::Array *gap = list(*entry, "gap", where, false);
    if (!gap) {
      if (!readPrices(*entry, where, next.prices))
        return false;
      continue;
    }
    std::vector<int64_t> names;
    if (gap->size() != 2 || !integers(*gap, where + ": \"gap\"", names))
      return fail(where + ": \"gap\" must be a pair [storage, node]");
    next.storage = value(names[0], "certificate: gap");
    next.from = node(names[1], "certificate: gap");
    if (next.storage < 0)
      return false;
  }
  return true;
}

bool PlanReader::readCertificate(const json::Object &object,
                                 const std::string &where,
                                 Certificate &result) {
  std::string bounds = text(object, "bounds");
  if (bounds != "lower_bound" && bounds != "order_lower_bound")
    return fail(where + ": \"bounds\" must be \"lower_bound\" or "
                        "\"order_lower_bound\"");
  result.anyOrder = bounds == "lower_bound";
  int64_t bits = 0;
  std::vector<int64_t> rows;
  std::vector<Pair> claims;
  const json::Array *given = list(object, "rows", where, false);
  if (!integer(object, "budget", where, result.budget, true) ||
      !integer(object, "scale_bits", where, bits, true) ||
      (given && !integers(*given, where + ": \"rows\"", rows)) ||
      !readPairs(object, "claims", where, claims))
    return false;
  if (given && !result.anyOrder)
    return fail(where + ": \"rows\" belong to a \"lower_bound\"; an "
                        "\"order_lower_bound\" has all nodes");
  const json::Array *tree = list(object, "tree", where, false);
  if (tree ? !readTree(*tree, where, result)
           : !readPrices(object, where, result.prices))
    return false;
  if (bits < INT32_MIN || bits > INT32_MAX)
    return fail(where + ": \"scale_bits\" out of range");
  result.scaleBits = int32_t(bits);
  for (int64_t id : rows)
    result.rows.push_back(node(id, "certificate: rows"));
  for (auto [storage, payer] : claims)
    result.claims.push_back({value(storage, "certificate: claims"),
                             value(payer, "certificate: claims")});
  return true;
}

void PlanReader::readCertificates(const json::Object &object, Plan &plan) {
  const json::Array *entries = list(object, "certificate", "plan", false);
  if (!entries)
    return;
  for (size_t i = 0; i < entries->size(); ++i) {
    std::string where = "certificate[" + str(int64_t(i)) + "]";
    if (const json::Object *entry = (*entries)[i].getAsObject())
      readCertificate(*entry, where, plan.certificates.emplace_back());
    else
      fail(where + " must be an object");
  }
}

std::optional<PlanFile> PlanReader::read(const json::Value &file) {
  const json::Object *object = file.getAsObject();
  if (!object) {
    fail("the file is not a JSON object");
    return std::nullopt;
  }
  if (!format(*object, "ckopt-plan/1"))
    return std::nullopt;
  PlanFile result;
  Plan &plan = result.plan;
  readStatus(*object, plan);
  result.graph = text(*object, "graph");
  readSteps(*object, plan);
  refuseChoices(*object);
  bool hasSteps = object->get("steps") != nullptr;
  number(*object, "cost", "plan", plan.cost, hasSteps);
  number(*object, "lower_bound", "plan", plan.lowerBound, false);
  number(*object, "order_lower_bound", "plan", plan.orderLowerBound, false);
  result.statesPeak = object->get("peak") && !object->get("peak")->getAsNull();
  integer(*object, "peak", "plan", plan.peak, false);
  integer(*object, "budget", "plan", result.budget, false);
  integer(*object, "arena", "plan", plan.arena, false);
  integer(*object, "minimum_budget", "plan", plan.minimumBudget, false);
  integer(*object, "proven_minimum", "plan", plan.provenMinimum, false);
  readNames(*object, result);
  readOffsets(*object, plan);
  readInitial(*object, plan);
  readPacking(*object, plan);
  readScope(*object, plan);
  readCertificates(*object, plan);
  if (errors.any())
    return std::nullopt;
  return result;
}

std::optional<PlanFile> parse(std::string_view text, const Graph *graph,
                              std::string &error) {
  error = checkJsonText(text);
  if (!error.empty())
    return std::nullopt;
  llvm::Expected<json::Value> file = json::parse(llvm::StringRef(text));
  if (!file) {
    error = "not JSON: " + llvm::toString(file.takeError());
    return std::nullopt;
  }
  JsonErrors errors;
  std::optional<PlanFile> plan = PlanReader(errors, graph).read(*file);
  error = errors.text();
  return plan;
}

} // namespace

std::optional<Plan> ckopt::planner::parsePlan(std::string_view text,
                                              std::string &error) {
  std::optional<PlanFile> file = parse(text, nullptr, error);
  if (!file)
    return std::nullopt;
  return std::move(file->plan);
}

std::optional<PlanFile> ckopt::planner::parsePlan(std::string_view text,
                                                  const Graph &graph,
                                                  std::string &error) {
  return parse(text, &graph, error);
}
