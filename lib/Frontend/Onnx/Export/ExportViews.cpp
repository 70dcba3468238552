//===- ExportViews.cpp - parameters that were folded into views -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explains constants that folding made of a parameter: transposed, widened,
// repeated or sliced, or rows of a table. The line of Python that reads the
// constant, the one parameter that is left, or the elements of a known
// parameter tell which parameter it is a view of; the view is then undone.
// O(values * parameters), and bytes.
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "PythonSource.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

static bool onlyWidens(StringRef op) {
  return op == "unsqueeze" || op == "view" || op == "reshape";
}

/// Returns the calls that made the value a view of a parameter, in the order of
/// their names in `known` ("t", "unsqueeze, expand"), as far as the optimizer
/// records them; else the call that the value is named after.
std::string ExportMatcher::viewOf(const FoldedValue &value) const {
  static constexpr StringRef known[] = {
      "t",       "numpy_T",   "transpose", "permute", "view",   "reshape",
      "squeeze", "unsqueeze", "expand",    "repeat",  "select", "embedding"};
  StringRef own = splitFxName(value.name).first;
  std::optional<StringRef> noted =
      foldedFrom(recovered.nameOf(value.uses.front()));
  if (!noted || own == "embedding") // other calls may have made the indices
    return own.str();
  llvm::StringSet<> calls;
  llvm::SmallVector<StringRef> names;
  noted->split(names, '\'');
  for (StringRef name : names) {
    StringRef call = splitFxName(name).first;
    calls.insert(call == "expand_as" ? "expand" : call);
  }
  calls.insert(own == "expand_as" ? "expand" : own);
  std::string text;
  for (StringRef call : known)
    if (calls.contains(call))
      text += (text.empty() ? "" : ", ") + call.str();
  return text.empty() ? own.str() : text;
}

/// Recovers the parameter from a folded view of it; `source` is the Python text
/// after the parameter's name ("" if not known).
bool ExportMatcher::bindFolded(FoldedValue &value, const Entry &entry,
                               StringRef source) {
  std::string view = viewOf(value);
  StringRef op = view;
  const HostTensor &held = recovered.valueOf(value.uses.front());
  std::optional<size_t> dim;
  Form form = Form::Same;
  if (op == "t" || op == "numpy_T")
    form = Form::Transposed;
  else if ((op == "permute" || op == "transpose") &&
           (source.starts_with(".T") || source.starts_with(".mT") ||
            source.starts_with(".t")))
    form = Form::Transposed;
  else if (op == "expand" || op == "expand_as" ||
           (op == "repeat" && held.rank() > 2 && repeatsAlongFirst(source))) {
    form = Form::Expanded;
    dim = value.batch;
  } else if (op == "unsqueeze, expand" &&
             (widensFirst(source) || RecoveredParameters::hasNewFirst(held)))
    form = Form::Repeated;
  else if (op == "embedding")
    form = Form::Rows;
  else if (onlyWidens(op)) {
    auto widened = widenedBy(source, size_t(held.rank()));
    if (!widened)
      return false;
    form = Form::Reshaped;
    dim = widened->dim;
  } else if (op != "slice" && op != "clone" && op != "alias" &&
             op != "contiguous")
    return false;
  if (value.transposed && form != Form::Same && form != Form::Transposed)
    return false;
  if (value.transposed)
    form = form == Form::Same ? Form::Transposed : Form::Same;
  for (OperandUse use : value.uses)
    if (!recovered.bind(use, entry.target, form, dim))
      return false;
  value.explained = true;
  value.target = entry.target;
  settled.insert(entry.target);
  if (form == Form::Rows || op == "slice") {
    result.partial.push_back(entry.target);
    result.notes.push_back("'" + entry.target + "' is stored as '" +
                           recovered.nameOf(value.uses.front()) +
                           "': the entries of it that the model reads; it "
                           "cannot go back to the module, which has more");
  }
  return true;
}

/// In "x @ self.A.t()" the line names the parameter and its view. Calls of one
/// kind in one line are numbered in the order in which the line names their
/// parameters.
void ExportMatcher::explainBySource() {
  struct Line {
    std::vector<FoldedValue *> values;
    const Node *node = nullptr;
  };
  std::map<std::string, Line> lines;
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    const Node &node = graph.nodes[value->uses.front().node];
    if (!isViewCall(op) || node.sourceLine.empty())
      continue;
    Line &line =
        lines[(op + " " + scopeOf(node) + " " + node.sourceLine).str()];
    line.values.push_back(value);
    line.node = &node;
  }
  for (auto &[key, line] : lines) {
    StringRef op = splitFxName(line.values[0]->name).first;
    std::vector<std::pair<StringRef, const Entry *>> mentions;
    for (const Entry *entry : unmentioned())
      if (moduleOf(entry->target) == scopeOf(*line.node))
        for (StringRef rest :
             mentionsOf(line.node->sourceLine, leafOf(entry->target)))
          if (op == "t" ? rest.starts_with(".t()") || rest.starts_with(".T")
              : op == "slice" ? rest.starts_with("[")
              : op == "unsqueeze"
                  ? rest.starts_with("[") || rest.starts_with(".unsqueeze(")
              : onlyWidens(op)
                  ? rest.starts_with(".view(") || rest.starts_with(".reshape(")
                  : rest.starts_with(("." + op + "(").str()) ||
                        (op == "expand" && widensFirst(rest)) ||
                        (op == "permute" &&
                         (rest.starts_with(".T") || rest.starts_with(".mT"))))
            mentions.push_back({rest, entry});
    if (mentions.size() != line.values.size())
      continue;
    // The rest of the line gets shorter from mention to mention.
    llvm::sort(mentions, [](const auto &a, const auto &b) {
      return a.first.size() > b.first.size();
    });
    for (auto [value, mention] : llvm::zip(line.values, mentions)) {
      // A parameter of which the value is only one part cannot be recovered
      // from it.
      const Entry *entry = mention.second;
      if (op != "slice" || llvm::count_if(mentions, [&](const auto &other) {
                             return other.second == entry;
                           }) == 1)
        bindFolded(*value, *entry, mention.first);
    }
  }
}

/// Explains tables looked up by constant indices: "embeddings +
/// position_embeddings" names the table's module, or only one table is left.
void ExportMatcher::explainLookups() {
  auto findLookups = [&] {
    std::vector<FoldedValue *> lookups = unexplained();
    llvm::erase_if(lookups, [](FoldedValue *value) {
      return splitFxName(value->name).first != "embedding";
    });
    return lookups;
  };
  // Explaining one value may leave a single choice for another.
  for (bool changed = true; changed;) {
    changed = false;
    std::vector<FoldedValue *> lookups = findLookups();
    for (FoldedValue *value : lookups) {
      const Entry *table = findTable(*value, lookups);
      if (!table || !bindFolded(*value, *table, ""))
        continue;
      changed = true;
      bool unclear = llvm::any_of(value->uses, [&](OperandUse use) {
        return RecoveredParameters::hasUnclearRows(recovered.valueOf(use));
      });
      if (unclear)
        lose(*table, "only those of its rows that constant indices look up are "
                     "in the file ('" +
                         value->name + "')");
      break;
    }
  }
}

/// Returns the table that `value` holds rows of: the one that the line of
/// Python names, the last one left, or the table of positions, if a single
/// value reads each row once.
const TorchSignature::Entry *
ExportMatcher::findTable(const FoldedValue &value,
                         ArrayRef<FoldedValue *> lookups) {
  const Node &node = graph.nodes[value.uses.front().node];
  std::vector<const Entry *> tables, named, positions;
  for (const Entry *entry : unmentioned()) {
    if (leafOf(entry->target) != "weight")
      continue;
    tables.push_back(entry);
    StringRef module = moduleOf(entry->target);
    if (moduleOf(module) == scopeOf(node) &&
        hasIdentifier(node.sourceLine, leafOf(module)))
      named.push_back(entry);
    if (leafOf(module).contains("position"))
      positions.push_back(entry);
  }
  if (named.size() == 1)
    return named[0];
  if (lookups.size() == 1 && tables.size() == 1)
    return tables[0];
  auto readsAll = [&](const FoldedValue &other) {
    return RecoveredParameters::hasDistinctRows(
        recovered.valueOf(other.uses.front()));
  };
  bool alone = llvm::count_if(lookups, [&](FoldedValue *other) {
                 return readsAll(*other);
               }) == 1;
  return positions.size() == 1 && alone && readsAll(value) ? positions[0]
                                                           : nullptr;
}

/// Matches the last parameter with the last view: of the model, or, if the view
/// holds numbers that only an initialization makes, of the module that reads
/// it.
void ExportMatcher::explainLast() {
  auto explain = [&](FoldedValue &value, const Entry &entry) {
    const Node &reader = graph.nodes[value.uses.front().node];
    std::vector<StringRef> mentions =
        mentionsOf(reader.sourceLine, leafOf(entry.target));
    bindFolded(value, entry, mentions.size() == 1 ? mentions[0] : StringRef());
  };
  std::vector<const Entry *> parameters = unmentioned();
  std::vector<FoldedValue *> values = unexplained();
  if (parameters.size() == 1 && values.size() == 1 &&
      isViewCall(splitFxName(values[0]->name).first))
    return explain(*values[0], *parameters[0]);
  auto scopeOfValue = [&](const FoldedValue *value) {
    return scopeNear(value->uses.front().node);
  };
  for (FoldedValue *value : values) {
    StringRef scope = scopeOfValue(value);
    auto isOther = [&](const Entry *entry) {
      return moduleOf(entry->target) != scope;
    };
    std::vector<const Entry *> own = parameters;
    llvm::erase_if(own, isOther);
    if (own.size() == 1 && isViewCall(splitFxName(value->name).first) &&
        !isUniform(recovered.valueOf(value->uses.front())) &&
        llvm::count(llvm::map_range(values, scopeOfValue), scope) == 1)
      explain(*value, *own[0]);
  }
}

/// Returns whether the elements of `part` are adjacent in `whole`.
static bool holdsElements(const HostTensor &whole, const HostTensor &part) {
  auto text = [](const HostTensor &value) {
    return StringRef(static_cast<const char *>(value.rawData()),
                     size_t(value.sizeInBytes()));
  };
  return whole.dtype() == part.dtype() && text(whole).contains(text(part));
}

/// Explains views of a parameter that other calls read directly ("x @
/// emb.weight.t()"). Its elements, which no initialization repeats, tell which
/// parameter it is. If all elements are equal they do not tell: then a
/// parameter of as many elements is reported as lost.
void ExportMatcher::explainTiedViews() {
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    OperandUse use = value->uses.front();
    const Entry *source = soleSource(recovered.nameOf(use));
    bool turns = op == "t" || op == "numpy_T" ||
                 ((op == "permute" || op == "transpose") &&
                  recovered.valueOf(use).rank() == 2);
    if (source && turns && !recovered.initializer(source->target))
      (void)bindFolded(*value, *source, ".t()");
  }
  for (FoldedValue *value : unexplained()) {
    OperandUse use = value->uses.front();
    const HostTensor &held = recovered.valueOf(use);
    if (!isViewCall(splitFxName(value->name).first) || !isFloat(held.dtype()) ||
        held.numElements() < 2)
      continue;
    HostTensor turned = held.rank() == 2 ? transposed(held) : held;
    const Entry *source = nullptr;
    bool isOnly = true, isWhole = false;
    for (const Entry &entry : signature.entries) {
      const HostTensor *known = recovered.initializer(entry.target);
      if (!entry.isParameter || !known)
        continue;
      bool same = known->bitEqual(held) ||
                  (held.rank() == 2 && known->bitEqual(turned));
      if (!same && (isUniform(held) || !(holdsElements(*known, held) ||
                                         holdsElements(*known, turned))))
        continue;
      isOnly = !source;
      isWhole = same;
      source = &entry;
    }
    if (!source || (isUniform(held) && held.rank() < 2))
      continue;
    if (isOnly && isWhole && !isUniform(held))
      value->explained = llvm::all_of(value->uses, [&](OperandUse each) {
        return recovered.bind(each, source->target, Form::Same) ||
               recovered.bind(each, source->target, Form::Transposed);
      });
    if (value->explained || !settled.insert(source->target).second)
      continue;
    value->explained = true;
    for (OperandUse each : value->uses)
      trained.insert(recovered.nameOf(each));
    lose(*source, "in " + graph.nodes[use.node].describe() +
                      " a view of it is folded into '" + value->name + "'");
  }
}
