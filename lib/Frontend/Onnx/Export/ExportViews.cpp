//===- ExportViews.cpp - parameters that were folded into views -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Explains constants that folding made of a parameter: transposed, widened,
// repeated or sliced, or rows of a table. The optimizer's note on the constant
// tells which parameter it was made of, and by which calls; where these only
// move elements, and the elements tell the form, the view is undone. Else it
// stays unexplained, and the file is refused. O(values * parameters), and
// bytes.
//
//===----------------------------------------------------------------------===//
#include "ExportMatcher.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::StringRef;

std::optional<ExportMatcher::View>
ExportMatcher::viewOf(const FoldedValue &value) const {
  View view;
  StringRef held = recovered.nameOf(value.uses.front());
  view.source = soleSource(held);
  StringRef own = splitFxName(value.name).first;
  std::vector<StringRef> names = foldedNames(held);
  // A constant of another name has the note of another value, which is equal;
  // but that of a recurrent state is made of the call's argument.
  bool isState = value.batch && llvm::is_contained(names, value.name);
  if (!view.source || (value.name != held && !isState))
    return std::nullopt;
  if (!isState)
    names.push_back(value.name);
  for (StringRef name : names) {
    StringRef call = splitFxName(name).first;
    // Of what the file computes, a constant can only know the shape.
    bool isInternal = call == "val" && name != StringRef(value.name);
    if (signature.target(name) || isInternal || isCreation(call) ||
        (produced.contains(name) && name != StringRef(value.name)))
      continue;
    if (call == "embedding" && own == call) {
      view.calls.insert("embedding");
      continue;
    }
    if (!isViewCall(call))
      return std::nullopt;
    bool copies = call == "clone" || call == "contiguous" || call == "alias";
    if (copies || own == "embedding") // others made the indices
      continue;
    bool turns = call == "t" || call == "numpy_T" || call == "transpose" ||
                 call == "permute";
    view.calls.insert(turns ? "turn" : call == "expand_as" ? "expand" : call);
    view.numTurns += turns;
    view.numAdded += call == "unsqueeze";
  }
  return view;
}

/// Returns the dimension that one unsqueeze added, if its place is clear.
static std::optional<size_t> onlyUnitDim(const HostTensor &held) {
  std::optional<size_t> only;
  for (size_t i = 0; i < size_t(held.rank()); ++i)
    if (held.dim(int64_t(i)) == 1) {
      if (only)
        return std::nullopt;
      only = i;
    }
  return only;
}

/// Recovers the parameter from a folded view of it.
bool ExportMatcher::bindFolded(FoldedValue &value, const View &view) {
  const HostTensor &held = recovered.valueOf(value.uses.front());
  std::optional<size_t> dim;
  auto isOnly = [&](ArrayRef<StringRef> calls) {
    return view.calls.size() == calls.size() &&
           llvm::all_of(calls, [&](StringRef call) {
             return view.calls.contains(call);
           });
  };
  Form form = Form::Same;
  if (isOnly({"turn"}) && view.numTurns == 1)
    form = Form::Transposed;
  else if (isOnly({"expand"}) || isOnly({"repeat"})) {
    form = Form::Expanded;
    dim = value.batch;
  } else if (isOnly({"unsqueeze", "expand"}) &&
             RecoveredParameters::hasNewFirst(held))
    form = Form::Repeated;
  else if (isOnly({"embedding"}))
    form = Form::Rows;
  else if (isOnly({"unsqueeze"})) {
    form = Form::Reshaped; // a vector, or what one dimension was added to
    dim = onlyUnitDim(held);
    int64_t added = llvm::count(held.shape(), 1);
    if (added != view.numAdded || (!dim && added + 1 != held.rank()))
      return false;
  } else if (!isOnly({"slice"}) && !view.calls.empty())
    return false;
  if (value.transposed && form != Form::Same && form != Form::Transposed)
    return false;
  if (value.transposed)
    form = form == Form::Same ? Form::Transposed : Form::Same;
  const Entry &entry = *view.source;
  for (OperandUse use : value.uses)
    if (!recovered.bind(use, entry.target, form, dim))
      return false;
  value.explained = true;
  value.target = entry.target;
  settled.insert(entry.target);
  if (form == Form::Rows || isOnly({"slice"})) {
    result.partial.push_back(entry.target);
    result.notes.push_back("'" + entry.target + "' is stored as '" +
                           recovered.nameOf(value.uses.front()) +
                           "': the entries of it that the model reads; it "
                           "cannot go back to the module, which has more");
  }
  return true;
}

void ExportMatcher::explainByNotes() {
  for (FoldedValue *value : unexplained()) {
    std::optional<View> view = viewOf(*value);
    if (!view || !bindFolded(*value, *view) ||
        !view->calls.contains("embedding"))
      continue;
    bool unclear = llvm::any_of(value->uses, [&](OperandUse use) {
      return RecoveredParameters::hasUnclearRows(recovered.valueOf(use));
    });
    if (unclear)
      lose(*view->source, "only those of its rows that constant indices look "
                          "up are in the file ('" +
                              value->name + "')");
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
