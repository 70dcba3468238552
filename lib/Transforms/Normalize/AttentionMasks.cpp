//===- AttentionMasks.cpp - what masks and biases of attention allow ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: exporters write causality, windows and packed samples as masks of
// all pairs of tokens. Method: a mask, or a bias that is selected by one, is
// taken apart into conditions that must all hold; those that bound keys by
// their distance (MaskBands.cpp, or a constant read row by row) or by numbers
// of segments become attributes and an operand. Guarantee: see
// FuseAttention.cpp. Complexity: linear in ops, and the evaluation of constant
// masks.
//
//===----------------------------------------------------------------------===//
#include "AttentionMatch.h"
#include "ckopt/Dialect/Ckopt/IR/Splat.h"
#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Scores that a mask sets to this or less count as masked, where the row keeps
/// a key.
static constexpr double masked = -1e9;
/// Constant biases within this leave a row's keys far above masked ones.
static constexpr double mild = 1e8;

namespace {
/// Finds the band that a constant allows in [.., queries, keys].
class BandReader {
public:
  BandReader(RankedTensorType type, int64_t queries, int64_t keys)
      : keys(keys),
        isBand(type.getRank() >= 2 && type.getShape().take_back(2) ==
                                          ArrayRef<int64_t>({queries, keys})) {}

  /// Returns whether further rows can say more.
  template <typename Allows>
  bool read(int64_t row, const reference::Tensor &rows, Allows allows) {
    int64_t lines = isBand ? rows.getDimSize(rows.getRank() - 2) : 1;
    for (int64_t line = 0; line * keys < rows.size() && (all || isBand); ++line)
      readRow(row + line % lines, [&](int64_t j) {
        int64_t i = line * keys + j;
        return i >= rows.size() || allows(i);
      });
    return all || isBand;
  }
  std::optional<MaskBand> band() const {
    if (all)
      return MaskBand();
    bool isWhole = isBand && least.value_or(leastAtMost) <= leastAtMost &&
                   most.value_or(mostAtLeast) >= mostAtLeast;
    if (!isWhole)
      return std::nullopt;
    MaskBand none;
    return MaskBand{least.value_or(none.least), most.value_or(none.most)};
  }

private:
  /// Bounds say at which distance they lie; at the ends of a row, at which one
  /// at least.
  template <typename Allows> void readRow(int64_t row, Allows allows) {
    int64_t first = 0, end = 0;
    while (first < keys && !allows(first))
      ++first;
    for (end = first; end < keys && allows(end);)
      ++end;
    all &= first == 0 && end == keys;
    isBand &= first < end; // every row has a key
    for (int64_t j = end; j < keys && isBand; ++j)
      isBand &= !allows(j);
    auto meets = [&](std::optional<int64_t> &bound, int64_t distance) {
      isBand &= bound.value_or(distance) == distance;
      bound = distance;
    };
    if (first > 0)
      meets(least, first - row);
    else
      leastAtMost = std::min(leastAtMost, -row);
    if (end < keys)
      meets(most, end - 1 - row);
    else
      mostAtLeast = std::max(mostAtLeast, keys - 1 - row);
  }

  int64_t keys;
  bool all = true, isBand;
  std::optional<int64_t> least, most;
  int64_t leastAtMost = std::numeric_limits<int64_t>::max(),
          mostAtLeast = std::numeric_limits<int64_t>::min();
};

/// A bias that is 0 where a condition allows a key, else `low`.
struct SelectedBias {
  Value condition;
  bool allowedWhere;
  double low;
};
} // namespace

static std::optional<SelectedBias> selectedBias(Value bias) {
  while (auto expand = bias.getDefiningOp<ExpandOp>())
    bias = expand.getInput();
  auto select = bias.getDefiningOp<SelectOp>();
  auto onTrue = select ? splatNumber(select.getOnTrue()) : std::nullopt;
  auto onFalse = select ? splatNumber(select.getOnFalse()) : std::nullopt;
  if (!onTrue || !onFalse || (*onTrue == 0) == (*onFalse == 0))
    return std::nullopt;
  bool allowedWhere = *onTrue == 0;
  return SelectedBias{select.getCondition(), allowedWhere,
                      allowedWhere ? *onFalse : *onTrue};
}

bool AttentionMatch::Lowering::isKnown() const {
  return form.isKnown() ||
         (!parts.empty() && llvm::all_of(parts, [](const MaskPart &part) {
           return part.form.isKnown();
         }));
}

/// Returns what a condition alone says.
MaskForm AttentionMatch::formOfMask(const MaskPart &part) const {
  int64_t queries = scores.getDimSize(scores.getRank() - 2);
  auto [at, isNew] =
      evaluate.forms.try_emplace({part.condition, int(part.allowedWhere)});
  if (isNew) {
    std::optional<MaskBand> band =
        findMaskBand(part.condition, part.allowedWhere,
                     [&](Value value) { return evaluate(value); });
    BandReader reader(tensorType(part.condition), queries,
                      scores.getShape().back());
    if (!band && evaluate.scan(part.condition, queries,
                               [&](int64_t row, const reference::Tensor &rows) {
                                 return reader.read(row, rows, [&](int64_t i) {
                                   return (rows.get(i) != 0) ==
                                          part.allowedWhere;
                                 });
                               }))
      band = reader.band();
    at->second.band = band;
  }
  MaskForm form = at->second;
  if (!form.band) // its shape beside the scores differs from place to place
    form.segments = findSegments(part, scores.getRank());
  return form;
}

MaskForm AttentionMatch::formOfBias(Value bias) const {
  std::pair<Value, int> place(bias, 2);
  if (auto found = evaluate.forms.find(place); found != evaluate.forms.end())
    return found->second;
  int64_t queries = scores.getDimSize(scores.getRank() - 2);
  BandReader reader(tensorType(bias), queries, scores.getShape().back());
  bool isMask = true, isMild = true, isExact = true, isFailed = false;
  bool isConstant = evaluate.scan(
      bias, queries, [&](int64_t row, const reference::Tensor &rows) {
        for (double x : rows.getReals()) {
          isMask &= x == 0 || x <= masked;
          isMild &= std::abs(x) <= mild;
          isExact &= x == 0 || x == -infinity;
          isFailed |= !(x < infinity);
        }
        reader.read(row, rows, [&](int64_t i) { return rows.real(i) == 0; });
        return true;
      });
  MaskForm form;
  if (isConstant) {
    if (isMask)
      form.band = reader.band();
    form.isExact = isExact;
    form.isMild = isMild;
    form.isFailed = isFailed;
  }
  return evaluate.forms[place] = form;
}

/// Takes a condition apart into those that must all hold. Returns false where
/// they are known only together.
static bool splitCondition(const MaskPart &whole,
                           function_ref<MaskForm(const MaskPart &)> formOf,
                           SmallVectorImpl<MaskPart> &parts, bool isReshaped) {
  MaskPart part = whole;
  part.form = formOf(part);
  Operation *op = part.condition.getDefiningOp();
  auto inner = [&](Value condition, bool allowedWhere) {
    return MaskPart{condition, allowedWhere,
                    isReshaped
                        ? part.shape
                        : llvm::to_vector(tensorType(condition).getShape())};
  };
  if (!part.form.isKnown() && op) {
    if (isa<NotOp>(op))
      return splitCondition(inner(op->getOperand(0), !part.allowedWhere),
                            formOf, parts, isReshaped);
    if (isa<ExpandOp>(op) && !isReshaped)
      return splitCondition(inner(op->getOperand(0), part.allowedWhere), formOf,
                            parts, false);
    if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      ArrayRef<int64_t> from = tensorType(reshape.getInput()).getShape();
      MaskPart next = part;
      next.condition = reshape.getInput();
      SmallVector<MaskPart> behind;
      if (from.size() >= 2 &&
          from.take_back(2) == ArrayRef(part.shape).take_back(2) &&
          splitCondition(next, formOf, behind, true)) {
        parts.append(behind);
        return true;
      }
    } else if (part.allowedWhere ? isa<AndOp>(op) : isa<OrOp>(op)) {
      return llvm::all_of(op->getOperands(), [&](Value operand) {
        return splitCondition(inner(operand, part.allowedWhere), formOf, parts,
                              isReshaped);
      });
    }
  }
  parts.push_back(part);
  return part.form.isKnown() || !isReshaped;
}

/// Positions that are data bound keys only beside segments that say where they
/// count up.
void AttentionMatch::findParts(Lowering &lowering) const {
  SelectedBias selected{lowering.value, lowering.allowedWhere, fill};
  if (lowering.isBias) {
    std::optional<SelectedBias> found = selectedBias(lowering.value);
    if (!found || !(found->low <= masked)) {
      lowering.form = formOfBias(lowering.value);
      lowering.low = lowering.form.isExact ? -infinity : masked;
      return;
    }
    selected = *found;
  }
  lowering.low = selected.low;
  auto shape = tensorType(selected.condition).getShape();
  MaskPart whole{selected.condition, selected.allowedWhere,
                 llvm::to_vector(shape)};
  SmallVector<Value> counted;
  auto formOf = [&](const MaskPart &part) {
    MaskForm form = formOfMask(part);
    if (form.segments)
      if (Value positions = positionsBehind(form.segments))
        counted.push_back(positions);
    return form;
  };
  splitCondition(whole, formOf, lowering.parts, /*isReshaped=*/false);
  for (MaskPart &part : lowering.parts)
    for (Value positions : counted)
      if (!part.form.isKnown() && isOfSamples(part, scores.getRank()))
        part.form.band = findMaskBand(
            part.condition, part.allowedWhere,
            [&](Value value) { return evaluate(value); }, positions);
}

bool AttentionMatch::allowsAll(const MaskForm &form) const {
  return form.band &&
         form.band->least <= 1 - scores.getDimSize(scores.getRank() - 2) &&
         form.band->most >= scores.getShape().back() - 1;
}

/// Returns the band of all that is known, if every row has a key in it.
std::optional<MaskBand>
AttentionMatch::commonBand(ArrayRef<const Lowering *> all) const {
  MaskBand band;
  bool hasSegments = false;
  auto add = [&](const MaskForm &form) {
    if (form.band)
      band = band & *form.band;
    hasSegments |= bool(form.segments);
  };
  for (const Lowering *lowering : all) {
    add(lowering->form);
    for (const MaskPart &part : lowering->parts)
      add(part.form);
  }
  int64_t queries = scores.getDimSize(scores.getRank() - 2),
          keys = scores.getShape().back();
  // Between the ends the number of keys is no smaller.
  for (int64_t row : {int64_t(0), queries - 1}) {
    int64_t first = band.least < -row ? 0 : row + band.least,
            last = band.most > keys - 1 - row ? keys - 1 : row + band.most;
    if (first > last || (hasSegments && (first > row || last < row)))
      return std::nullopt;
  }
  return band;
}

/// Sets the bounds that follow from `taken`; the rest stays masks and biases.
void AttentionMatch::takeBounds(ArrayRef<Lowering> all,
                                ArrayRef<const Lowering *> taken,
                                const MaskBand &band) {
  MaskForm form;
  form.band = {band.least, std::numeric_limits<int64_t>::max()};
  if (!allowsAll(form))
    window = 1 - band.least;
  form.band = {std::numeric_limits<int64_t>::min(), band.most};
  if (!allowsAll(form))
    causal = band.most;
  masks.clear();
  biases.clear();
  for (const Lowering &lowering : all) {
    if (!llvm::is_contained(taken, &lowering)) {
      if (lowering.isBias)
        biases.push_back(lowering.value);
      else
        masks.emplace_back(lowering.value, lowering.allowedWhere);
      continue;
    }
    for (const MaskPart &part : lowering.parts) {
      if (part.form.segments)
        segments = part.form.segments;
      else if (!part.form.band)
        masks.emplace_back(part.condition, part.allowedWhere);
    }
  }
  if (masks.empty() || !taken.empty())
    fill = -infinity;
}

/// Turns what is known into bounds. Finite numbers count as -inf only if each
/// row keeps a key: where something else may take it, the row goes to keys that
/// are lowered.
bool AttentionMatch::settleMasks() {
  std::vector<Lowering> all;
  auto add = [&](Lowering lowering) {
    findParts(lowering);
    for (MaskPart &part : lowering.parts) // there is one operand of segments
      if (Value own = part.form.segments) {
        segments = segments ? segments : own;
        part.form.segments = own == segments ? own : Value();
      }
    bool isNone = !lowering.parts.empty() || lowering.form.band;
    isNone &= !lowering.form.band || allowsAll(lowering.form);
    for (const MaskPart &part : lowering.parts)
      isNone &= allowsAll(part.form);
    if (!isNone)
      all.push_back(std::move(lowering));
  };
  for (auto [condition, allowedWhere] : masks)
    add({condition, allowedWhere, /*isBias=*/false});
  for (Value bias : biases)
    add({bias, /*allowedWhere=*/true, /*isBias=*/true});
  segments = {};
  SmallVector<const Lowering *> known, exact;
  bool keepsKeys = true, hasMasks = false;
  for (const Lowering &lowering : all) {
    if (lowering.form.isFailed)
      return false;
    bool isKnown = lowering.isKnown() && lowering.low <= masked;
    bool tells = lowering.form.isKnown() ||
                 llvm::any_of(lowering.parts, [](const MaskPart &part) {
                   return part.form.isKnown();
                 });
    keepsKeys &= isKnown || lowering.form.isMild;
    hasMasks |= !lowering.isBias;
    if (isKnown)
      known.push_back(&lowering);
    if (tells && lowering.low == -infinity)
      exact.push_back(&lowering);
  }
  std::optional<MaskBand> band;
  if (keepsKeys)
    band = commonBand(known);
  if (!band) {
    known = exact;
    if (hasMasks && fill != -infinity) // all masks have one fill
      known.clear();
    band = commonBand(known);
  }
  if (!band) {
    known.clear();
    band = MaskBand();
  }
  takeBounds(all, known, *band);
  // A constant condition that holds for no row (with a causal mask, say) would
  // be a mask of all rows.
  if (emptyRows && evaluate.holdsNowhere(emptyRows, scores.getShape())) {
    emptyRows = {};
    zeroEmptyRows = false;
  }
  // Rows are emptied by the mask, and a finite fill would leave them a mean.
  return !emptyRows || fill == -infinity;
}
