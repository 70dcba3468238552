//===- ExportFolds.cpp - parameters that no call mentions -----------------===//
//
// Where folding computed a whole call, no node is left that says what went in:
// a position table looked up by constant indices, a transposed or repeated
// parameter, and just as well masks, rotary tables and initial states. Which
// constant is which follows, in this order, from the program's name for it
// ("zeros", "embedding_1"), its values, the line of Python that reads it, and,
// where one unmentioned parameter and one unexplained constant are left, from
// that. What stays open is said to be lost, never guessed.
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "PythonSource.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

/// Calls that make values of shapes and numbers alone.
static bool isCreation(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"zeros", "ones", "full", "arange", "eye", "linspace", "empty",
              "zeros_like", "ones_like", "full_like", "empty_like", "new_zeros",
              "new_ones", "new_full", "scalar_tensor_default", "scalar_tensor",
              "lift_fresh_copy", "_tensor_constant"},
             true)
      .Default(false);
}

/// Calls that cannot be without a weight.
static bool needsWeight(StringRef op) {
  return op.starts_with("conv") || op.contains("_norm") ||
         llvm::StringSwitch<bool>(op)
             .Cases({"linear", "addmm", "lstm", "gru", "prelu"}, true)
             .Default(false);
}

static StringRef scopeOf(const Node &node) {
  return node.scopes.empty() ? StringRef() : StringRef(node.scopes.back());
}

void ExportMatcher::lose(const Entry &entry, const Twine &how) {
  settled.insert(entry.target);
  result.lost.push_back("'" + entry.target + "': " + how.str());
}

void ExportMatcher::noteFolded(OperandUse use, const FxCall &call,
                               StringRef name, Form form) {
  const std::string &held = recovered.nameOf(use);
  if (call.guessed) {
    if (const Entry *entry = signature.target(held))
      return recovered.claim(entry->target);
    if (StringRef(held).starts_with("val_"))
      return noteConstant(use, "computed inside of '" + call.op +
                                   "', from no parameter");
    name = held;
  }
  std::vector<StringRef> candidates;
  for (const std::string &argument : call.args)
    if (!signature.placeholder(argument) && !produced.contains(argument) &&
        !constant.contains(argument))
      candidates.push_back(argument);
  if (name.empty() && candidates.empty())
    return noteConstant(use, "computed inside of '" + call.op +
                                 "', from no parameter");
  if (name.empty() && candidates.size() == 1)
    name = candidates.front();
  if (name.empty() && llvm::is_contained(candidates, held))
    name = held;
  // The value has the parameter's name only because both were equal.
  FoldedValue &value = folded[name.empty() ? held : name.str()];
  value.name = name.empty() ? held : name.str();
  value.transposed |= form == Form::Transposed;
  value.uses.push_back(use);
}

/// Rewriting makes nodes of no call, such as Split: a constant that they read
/// has the name of the call that it was.
void ExportMatcher::noteNameless(OperandUse use) {
  if (!readsInitializer(use) || signature.target(recovered.nameOf(use)))
    return;
  if (isFromNoParameter(recovered.nameOf(use)))
    return noteConstant(use, "computed from buffers and numbers alone");
  FoldedValue &value = folded[recovered.nameOf(use)];
  value.name = recovered.nameOf(use);
  value.uses.push_back(use);
}

/// The node's module; that of a reader where it has none.
StringRef ExportMatcher::scopeNear(size_t node) const {
  const Node &self = graph.nodes[node];
  if (!self.scopes.empty())
    return scopeOf(self);
  for (const Node &other : graph.nodes)
    for (const std::string &output : self.outputs)
      if (!other.scopes.empty() && llvm::is_contained(other.inputs, output))
        return scopeOf(other);
  return {};
}

std::vector<const TorchSignature::Entry *> ExportMatcher::unmentioned() const {
  std::vector<const Entry *> result;
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && !recovered.isBound(entry.target) &&
        !settled.contains(entry.target))
      result.push_back(&entry);
  return result;
}

std::vector<FoldedValue *> ExportMatcher::unexplained() {
  std::vector<FoldedValue *> result;
  for (auto &[name, value] : folded)
    if (!value.explained)
      result.push_back(&value);
  // As the program numbers them: in the order of execution.
  llvm::sort(result, [](FoldedValue *a, FoldedValue *b) {
    return splitFxName(a->name) < splitFxName(b->name);
  });
  return result;
}

/// A module that reads the parameter of another one by the same leaf name is
/// tied to it: the program has one placeholder for both.
void ExportMatcher::findTied() {
  llvm::StringMap<llvm::SmallVector<size_t>> nodesOf;
  for (auto [i, node] : llvm::enumerate(graph.nodes))
    nodesOf[scopeOf(node)].push_back(i);
  for (const Entry *entry : unmentioned()) {
    StringRef module = moduleOf(entry->target);
    for (size_t node : nodesOf.lookup(module))
      for (const std::string &argument : calls[node].args) {
        const Entry *other = signature.placeholder(argument);
        if (!other || moduleOf(other->target) == module ||
            leafOf(other->target) != leafOf(entry->target) ||
            !settled.insert(entry->target).second)
          continue;
        tied += (tied.empty() ? "'" : ", '") + entry->target + "' (is '" +
                other->target + "')";
      }
  }
  if (!tied.empty())
    result.notes.push_back("tied parameters: " + tied);
}

void ExportMatcher::explainConstants() {
  for (auto &[name, value] : folded) {
    StringRef op = splitFxName(name).first;
    bool mask = llvm::all_of(value.uses, [&](OperandUse use) {
      return isMask(recovered.valueOf(use));
    });
    if (!isCreation(op) && !mask)
      continue;
    value.explained = true;
    for (OperandUse use : value.uses)
      noteConstant(use, mask ? "a mask" : ("made by '" + op + "'").str());
  }
}

static bool onlyWidens(StringRef op) {
  return op == "unsqueeze" || op == "view" || op == "reshape";
}

/// What made the value a view of a parameter: the calls that change shapes, in
/// the order of their names in `known` ("t", "unsqueeze, expand"), as far as
/// the optimizer notes them; else the call that it has its name from.
std::string ExportMatcher::viewOf(const FoldedValue &value) const {
  static constexpr StringRef known[] = {
      "t",       "numpy_T",   "transpose", "permute", "view",   "reshape",
      "squeeze", "unsqueeze", "expand",    "repeat",  "select", "embedding"};
  StringRef own = splitFxName(value.name).first;
  std::optional<StringRef> noted =
      foldedFrom(recovered.nameOf(value.uses.front()));
  if (!noted || own == "embedding") // others may have made the indices
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

/// Takes the parameter out of a folded view of it; `source` is what the line of
/// Python does with it ("" where that is not known).
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
  if (form == Form::Rows || op == "slice")
    result.notes.push_back("'" + entry.target + "' is stored as '" +
                           recovered.nameOf(value.uses.front()) +
                           "': the entries of it that the model reads");
  return true;
}

/// "x @ self.A.t()": the line names the parameter and what it does with it.
/// Calls of one kind in one line are numbered in the order in which it names
/// their parameters.
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
    // What is left of the line gets shorter from mention to mention.
    llvm::sort(mentions, [](const auto &a, const auto &b) {
      return a.first.size() > b.first.size();
    });
    for (auto [value, mention] : llvm::zip(line.values, mentions)) {
      // One part of several is not the parameter.
      const Entry *entry = mention.second;
      if (op != "slice" || llvm::count_if(mentions, [&](const auto &other) {
                             return other.second == entry;
                           }) == 1)
        bindFolded(*value, *entry, mention.first);
    }
  }
}

/// Tables looked up by constant indices: "embeddings + position_embeddings"
/// names the table's module, or only one table is left.
void ExportMatcher::explainLookups() {
  auto findLookups = [&] {
    std::vector<FoldedValue *> lookups = unexplained();
    llvm::erase_if(lookups, [](FoldedValue *value) {
      return splitFxName(value->name).first != "embedding";
    });
    return lookups;
  };
  // What one is found to be may leave one choice for another.
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

/// The table that `value` holds rows of: the one that the line of Python names,
/// the last one, or the one of positions where one value alone reads each row
/// once.
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

/// One parameter and one view are left: of the model, or, where the view holds
/// numbers as only an initialization makes them, of the module that reads it.
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

static bool isZero(const HostTensor &value) {
  for (int64_t i = 0; i < value.numElements(); ++i)
    if (value.getDouble(i) != 0)
      return false;
  return value.numElements() > 0;
}

/// Whether a parameter was folded as a zero state may be: then zeros are no
/// constants.
bool ExportMatcher::hasZeroState() const {
  return llvm::any_of(folded, [&](const auto &item) {
    const std::string &target = item.second.target;
    return !target.empty() && isZero(*recovered.parameter(target));
  });
}

/// Whether the node's module has a linear map to `outputs` numbers, without a
/// bias, whose weight makes zeros of zeros only.
bool ExportMatcher::readsWeightOf(StringRef scope, int64_t outputs) {
  bool found = false;
  if (hasZeroState())
    return false;
  for (const Entry &entry : signature.entries) {
    const HostTensor *weight = recovered.parameter(entry.target);
    if (!entry.isParameter || !weight || weight->rank() != 2 ||
        !StringRef(entry.target).starts_with(scope) ||
        leafOf(entry.target) == "bias" || weight->dim(0) != outputs)
      continue;
    if (isZero(*weight) || weight->dim(0) < weight->dim(1))
      return false; // it makes zeros of other values, too
    found = true;
  }
  return found;
}

/// A linear map of a zero state is its bias, repeated. Only that is known of
/// it: the weight must have something to say for the state to be zero.
void ExportMatcher::explainBiasOnly() {
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    OperandUse first = value->uses.front();
    const HostTensor &held = recovered.valueOf(first);
    if ((op != "linear" && op != "addmm") || held.rank() != 2)
      continue;
    if (isZero(held) && readsWeightOf(scopeNear(first.node), held.dim(1))) {
      value->explained = true;
      for (OperandUse use : value->uses)
        noteConstant(use, "a linear map of zeros");
      continue;
    }
    const Entry *bias = nullptr;
    bool sure = !hasZeroState();
    for (const Entry &entry : signature.entries) {
      const HostTensor *parameter = recovered.parameter(entry.target);
      if (!entry.isParameter || !parameter || parameter->numElements() == 0 ||
          moduleOf(entry.target) != scopeNear(first.node))
        continue;
      if (parameter->rank() == 2 && parameter->dim(0) == held.dim(1))
        sure &=
            llvm::any_of(llvm::seq<int64_t>(parameter->numElements()),
                         [&](int64_t i) { return parameter->getDouble(i); });
      bool equal = parameter->rank() == 1 && parameter->dim(0) == held.dim(1);
      for (int64_t i = 0; equal && i < held.numElements(); ++i)
        equal = held.getDouble(i) == parameter->getDouble(i % held.dim(1));
      sure &= !equal || !bias;
      bias = equal ? &entry : bias;
    }
    value->explained = bias && sure;
    for (OperandUse use : value->uses)
      if (value->explained)
        value->explained = recovered.bind(use, bias->target, Form::Repeated);
  }
}

/// A parameter may be read as it is in one place and folded in another: then a
/// line of Python names it more often than the calls of that line read it.
void ExportMatcher::explainInPart() {
  for (FoldedValue *value : unexplained()) {
    const Node &node = graph.nodes[value->uses.front().node];
    for (const Entry &entry : signature.entries) {
      StringRef path = entry.target, scope = scopeOf(node);
      if (!entry.isParameter ||
          (!scope.empty() &&
           !(path.consume_front(scope) && path.consume_front("."))))
        continue;
      auto named =
          llvm::count_if(mentionsOf(node.sourceLine, path), [](StringRef rest) {
            return !rest.starts_with(".dtype") &&
                   !rest.starts_with(".device") &&
                   !rest.starts_with(".shape") && !rest.starts_with(".size(");
          });
      if (!named)
        continue;
      ptrdiff_t read = 0;
      for (const auto &[name, nodes] : groups) {
        const Node &other = graph.nodes[nodes.front()];
        if (other.sourceLine == node.sourceLine &&
            scopeOf(other) == scopeOf(node))
          read += llvm::count(calls[nodes.front()].args, entry.placeholder);
      }
      for (const auto &[name, other] : folded) {
        const Node &reader = graph.nodes[other.uses.front().node];
        read += other.target == entry.target &&
                reader.sourceLine == node.sourceLine;
      }
      if (named <= read ||
          (!recovered.isBound(entry.target) && !settled.contains(entry.target)))
        continue;
      value->explained = true;
      if (lostInPart.insert(entry.target).second)
        lose(entry, "in " + node.describe() + " it is folded into '" +
                        value->name + "'");
    }
    for (OperandUse use : value->uses)
      if (value->explained)
        trained.insert(recovered.nameOf(use));
  }
}

/// Whether the elements of `part` stand side by side in `whole`.
static bool holdsElements(const HostTensor &whole, const HostTensor &part) {
  auto text = [](const HostTensor &value) {
    return StringRef(static_cast<const char *>(value.rawData()),
                     size_t(value.sizeInBytes()));
  };
  return whole.dtype() == part.dtype() && text(whole).contains(text(part));
}

/// A view of a parameter that other calls read as it is ("x @ emb.weight.t()"):
/// its elements, which no initialization repeats, say of which. Elements that
/// are all alike say nothing: a matrix of them is taken for a parameter's that
/// has as many, which is said to be lost, as it is where a part is left of it.
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

/// "x * scale" is no operation where the scale is 1: then the readers of the
/// product read x.
void ExportMatcher::explainVanished() {
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    const FxCall &call = calls[i];
    if (call.guessed || node.inputs.size() != call.args.size())
      continue;
    for (auto [input, argument] : llvm::zip(node.inputs, call.args)) {
      StringRef op = splitFxName(argument).first;
      bool mayVanish = op == "mul" || op == "add" || op == "sub" ||
                       op == "div" || op == "pow";
      if (mayVanish && input != argument && vanished.empty() &&
          !produced.contains(argument) && !recovered.initializer(input))
        vanished = argument;
    }
  }
}

void ExportMatcher::reportFolded() {
  explainVanished();
  std::vector<const Entry *> left = unmentioned();
  std::string suspects;
  for (FoldedValue *value : unexplained()) {
    StringRef op = splitFxName(value->name).first;
    const Node &node = graph.nodes[value->uses.front().node];
    bool suspect = needsWeight(op) || !left.empty();
    for (OperandUse use : value->uses) {
      if (!suspect)
        noteConstant(use, "computed when exporting ('" + value->name +
                              "'), and taken for a constant");
      else
        trained.insert(recovered.nameOf(use));
    }
    if (needsWeight(op))
      result.lost.push_back("'" + value->name +
                            "': computed from parameters when exporting, in " +
                            (scopeOf(node).empty()
                                 ? std::string("the model")
                                 : "'" + scopeOf(node).str() + "'") +
                            ", for " + node.describe());
    if (suspect)
      suspects += (suspects.empty() ? "'" : ", '") + value->name + "'";
  }
  std::string unused;
  for (const Entry *entry : left) {
    if (!suspects.empty())
      lose(*entry, "folded into one of " + suspects);
    else if (!merged.empty())
      lose(*entry, "the call that reads it, perhaps '" + merged.front() +
                       "', was merged with an equal one when exporting, or did "
                       "nothing then");
    else if (!vanished.empty())
      lose(*entry, "it is not in the file, and neither are operations that may "
                   "have read it ('" +
                       vanished +
                       "'): its value made them do nothing when exporting");
    else
      unused += (unused.empty() ? "'" : ", '") + entry->target + "'";
  }
  if (!unused.empty())
    result.notes.push_back("the model does not read " + unused);
}

/// The optimizer notes what a constant was folded from, directly or not, as a
/// list of names between quotes.
std::optional<StringRef> ExportMatcher::foldedFrom(StringRef name) const {
  auto source = graph.metadata.find(
      ("pkg.onnxscript.optimizer.folded_from " + name).str());
  if (source == graph.metadata.end())
    return std::nullopt;
  return StringRef(source->second);
}

/// Notes what constants that no parameter is part of were folded from: neither
/// is one part of that.
void ExportMatcher::findConstantValues() {
  for (const Tensor &tensor : graph.initializers) {
    if (!isFromNoParameter(tensor.name))
      continue;
    llvm::SmallVector<StringRef> names;
    foldedFrom(tensor.name)->split(names, '\'');
    for (StringRef name : names)
      constant.insert(name);
  }
}

/// Whether the constant was folded, and from no parameter.
bool ExportMatcher::isFromNoParameter(StringRef name) const {
  std::optional<StringRef> noted = foldedFrom(name);
  return noted && llvm::none_of(signature.entries, [&](const Entry &entry) {
           return entry.isParameter &&
                  noted->contains(("'" + entry.target + "'"));
         });
}

/// The one parameter that the constant was folded from.
const TorchSignature::Entry *ExportMatcher::soleSource(StringRef name) const {
  const Entry *sole = nullptr;
  for (const Entry &entry : signature.entries)
    if (entry.isParameter &&
        foldedFrom(name).value_or("").contains("'" + entry.target + "'")) {
      if (sole)
        return nullptr;
      sole = &entry;
    }
  return sole;
}

/// A constant that is left in the graph and came from a parameter would stay as
/// it is while that is trained.
void ExportMatcher::reportHidden(StringRef name) {
  std::optional<StringRef> source = foldedFrom(name);
  auto reason = reasons.find(name);
  bool harmless = reason != reasons.end() &&
                  (StringRef(reason->second).starts_with("made by") ||
                   reason->second == "a mask");
  if (!source || harmless)
    return;
  auto isLost = [&](const Entry &entry) {
    return llvm::any_of(result.lost, [&](StringRef text) {
      return text.starts_with("'" + entry.target + "'");
    });
  };
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && recovered.isBound(entry.target) &&
        !isLost(entry) && source->contains("'" + entry.target + "'"))
      lose(entry, "it is also folded into the constant '" + name + "'");
}

void ExportMatcher::finish() {
  int64_t count = 0;
  for (const Entry &entry : signature.entries)
    count += entry.isParameter;
  result.form =
      "PyTorch (torch.export), " + std::to_string(count) + " parameters";
  if (recovered.numSplit)
    result.notes.push_back(
        std::to_string(recovered.numSplit) +
        " operands read the equal initializer of another parameter: each reads "
        "its own again");
  if (recovered.numFormed)
    result.notes.push_back(std::to_string(recovered.numFormed) +
                           " weights are stored transposed, packed or "
                           "repeated: they are made from the parameters again");
  auto stopped = std::move(result.edits.stopped);
  result.edits = recovered.finish();
  result.edits.stopped = std::move(stopped);
  llvm::StringSet<> names;
  for (const Tensor &tensor : graph.initializers)
    if (isFloat(tensor.value.dtype()) &&
        !result.edits.removed.count(tensor.name))
      names.insert(tensor.name);
  for (const Tensor &tensor : result.edits.added)
    if (isFloat(tensor.value.dtype()))
      names.insert(tensor.name);
  for (const auto &item : names) {
    StringRef name = item.first();
    const Entry *entry = signature.target(name);
    auto reason = reasons.find(name);
    if (entry ? entry->isParameter : trained.contains(name)) {
      result.parameters.insert(name);
      continue;
    }
    reportHidden(name);
    result.constants[name.str()] = entry ? "a buffer of the module"
                                   : reason != reasons.end()
                                       ? reason->second
                                       : "a constant, not a parameter";
  }
}
