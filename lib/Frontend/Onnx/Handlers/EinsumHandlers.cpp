//===- EinsumHandlers.cpp - Einsum ----------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each operand becomes a term: a value with one label for each dimension, all
// different (a repeated label takes the diagonal; a dimension that broadcasts
// is dropped). Labels that occur in no other term and not in the result are
// summed at once. Then the pair of terms whose product is cheapest, by
// multiplications with the smaller result first among equals, is multiplied
// until one term is left: as a matrix product where labels are summed and
// either side has labels of its own, elementwise otherwise. Cubic in the number
// of operands.
//
//===----------------------------------------------------------------------===//
#include "NodeImporter.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
/// Letters stand for themselves; the dimensions of an ellipsis are -1, -2, ...
/// from the last one on.
using Label = int;
using Labels = SmallVector<Label>;

struct Term {
  Value value;
  Labels labels;
};

class Einsum {
public:
  explicit Einsum(NodeImporter &n) : n(n) {}
  Value run();

private:
  bool parse();
  std::optional<Labels> parseTerm(StringRef text, int64_t ellipsisRank);
  bool addOperand(Value operand, StringRef text);
  Value diagonal(Value value, Labels &labels);
  void sumOwnLabels();
  Term multiply(Term x, Term y, const Labels &kept);
  Value arrange(const Term &term, ArrayRef<Label> order);

  bool isNeeded(Label label, size_t skip1, size_t skip2) const;
  Labels keptBy(size_t i, size_t j) const;
  double cost(size_t i, size_t j, double &resultSize) const;
  int64_t product(ArrayRef<Label> labels) const;

  NodeImporter &n;
  SmallVector<Term> terms;
  Labels result;
  llvm::MapVector<Label, int64_t> extents;
};
} // namespace

static bool has(ArrayRef<Label> labels, Label label) {
  return llvm::is_contained(labels, label);
}

//===----------------------------------------------------------------------===//
// The equation
//===----------------------------------------------------------------------===//

/// Parses the labels of a term; `ellipsisRank` is the number of dimensions that
/// "..." stands for.
std::optional<Labels> Einsum::parseTerm(StringRef text, int64_t ellipsisRank) {
  Labels labels;
  bool sawEllipsis = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("...") && !sawEllipsis) {
      sawEllipsis = true;
      for (int64_t d = ellipsisRank; d > 0; --d)
        labels.push_back(int(-d));
      i += 2;
    } else if (isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      n.error() << "the equation's term '" << text
                << "' holds something other than letters and one '...'";
      return std::nullopt;
    }
  }
  return labels;
}

bool Einsum::addOperand(Value operand, StringRef text) {
  if (!operand)
    return false;
  int64_t rank = n.rank(operand);
  bool ellipsis = text.contains("...");
  int64_t letters = int64_t(text.size()) - (ellipsis ? 3 : 0);
  if (ellipsis ? letters > rank : letters != rank) {
    n.error() << "the equation's term '" << text
              << "' does not fit an operand of type " << operand.getType();
    return false;
  }
  auto labels = parseTerm(text, rank - letters);
  if (!labels)
    return false;
  for (auto [label, size] : llvm::zip(*labels, n.shape(operand))) {
    int64_t &extent = extents.insert({label, 1}).first->second;
    if (size != 1 && extent != 1 && size != extent) {
      n.error() << "the equation gives dimensions of " << extent << " and "
                << size << " entries one label";
      return false;
    }
    if (size != 1)
      extent = size;
  }
  terms.push_back({operand, *labels});
  return true;
}

bool Einsum::parse() {
  std::string equation;
  for (char c : n.attrString("equation", ""))
    if (c != ' ')
      equation += c;
  auto [left, right] = StringRef(equation).split("->");
  bool explicitResult = StringRef(equation).contains("->");
  SmallVector<StringRef> texts;
  left.split(texts, ',');
  if (texts.size() != n.numInputs()) {
    n.error() << "the equation '" << equation << "' has "
              << int64_t(texts.size()) << " terms for "
              << int64_t(n.numInputs()) << " operands";
    return false;
  }
  for (auto [i, text] : llvm::enumerate(texts))
    if (!addOperand(n.in(i), text))
      return false;
  int64_t ellipsisRank = 0;
  Labels once; // without an arrow: the ellipsis, then labels that occur once
  for (auto [label, extent] : extents) {
    ellipsisRank = std::max<int64_t>(ellipsisRank, -label);
    int64_t count = 0;
    for (const Term &term : terms)
      count += llvm::count(term.labels, label);
    if (label < 0 || count == 1)
      once.push_back(label);
  }
  llvm::sort(once);
  if (!explicitResult) {
    result = once;
  } else {
    auto labels = parseTerm(right, ellipsisRank);
    if (!labels)
      return false;
    result = *labels;
  }
  for (auto [i, label] : llvm::enumerate(result))
    if (!extents.contains(label) ||
        has(ArrayRef<Label>(result).take_front(i), label)) {
      n.error() << "the equation '" << equation
                << "' names a label of the result twice, or one that no "
                   "operand has";
      return false;
    }
  return true;
}

//===----------------------------------------------------------------------===//
// Single terms
//===----------------------------------------------------------------------===//

/// Takes the diagonal where a label is repeated: two dimensions of n entries
/// become one of n * n, of which every (n + 1)-th entry is on the diagonal.
Value Einsum::diagonal(Value value, Labels &labels) {
  for (size_t i = 0; value && i < labels.size(); ++i) {
    size_t j = i + 1;
    while (j < labels.size() && labels[j] != labels[i])
      ++j;
    if (j == labels.size())
      continue;
    int64_t size = n.shape(value)[i];
    if (size != n.shape(value)[j]) {
      // A dimension of size 1 broadcasts, so it is dropped and the other one
      // stays.
      size_t gone = size == 1 ? i : j;
      Shape shape(n.shape(value));
      shape.erase(shape.begin() + int64_t(gone));
      value = n.reshape(value, shape);
      labels.erase(labels.begin() + int64_t(gone));
      --i;
      continue;
    }
    Shape order;
    for (size_t d = 0; d < labels.size(); ++d)
      if (d != i && d != j)
        order.push_back(int64_t(d));
    Labels rest;
    Shape shape;
    for (int64_t d : order) {
      rest.push_back(labels[size_t(d)]);
      shape.push_back(n.shape(value)[d]);
    }
    order.append({int64_t(i), int64_t(j)});
    rest.push_back(labels[i]);
    Shape flat(shape);
    flat.push_back(size * size);
    value = n.reshape(n.transpose(value, order), flat);
    Shape starts(flat.size(), 0), steps(flat.size(), 1);
    shape.push_back(size);
    steps.back() = size + 1;
    value = n.slice(value, starts, shape, steps);
    labels = rest;
    i = size_t(-1); // labels changed: start again
  }
  return value;
}

/// Returns whether the result or a term other than the two given has the label.
bool Einsum::isNeeded(Label label, size_t skip1, size_t skip2) const {
  if (has(result, label))
    return true;
  for (auto [i, term] : llvm::enumerate(terms))
    if (i != skip1 && i != skip2 && has(term.labels, label))
      return true;
  return false;
}

void Einsum::sumOwnLabels() {
  for (auto [i, term] : llvm::enumerate(terms)) {
    Shape axes;
    Labels kept;
    for (auto [d, label] : llvm::enumerate(term.labels))
      if (isNeeded(label, i, i))
        kept.push_back(label);
      else
        axes.push_back(int64_t(d));
    if (!axes.empty())
      term.value = n.reduce(ReduceKind::Sum, term.value, axes, false);
    term.labels = kept;
  }
}

/// Returns the term's value with dimensions in that order; labels that it lacks
/// get a dimension of size 1.
Value Einsum::arrange(const Term &term, ArrayRef<Label> order) {
  if (!term.value)
    return {};
  Shape permutation, shape;
  for (Label label : order) {
    auto *place = llvm::find(term.labels, label);
    bool there = place != term.labels.end();
    if (there)
      permutation.push_back(place - term.labels.begin());
    shape.push_back(there ? n.shape(term.value)[permutation.back()] : 1);
  }
  Value value = term.value;
  if (!llvm::is_sorted(permutation))
    value = n.transpose(value, permutation);
  return shape.size() == permutation.size() ? value : n.reshape(value, shape);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

int64_t Einsum::product(ArrayRef<Label> labels) const {
  int64_t count = 1;
  for (Label label : labels)
    count *= extents.find(label)->second;
  return count;
}

/// Returns the labels that the product of two terms keeps.
Labels Einsum::keptBy(size_t i, size_t j) const {
  Labels kept;
  for (size_t k : {i, j})
    for (Label label : terms[k].labels)
      if (!has(kept, label) && isNeeded(label, i, j))
        kept.push_back(label);
  return kept;
}

double Einsum::cost(size_t i, size_t j, double &resultSize) const {
  double all = 1;
  resultSize = 1;
  for (auto [label, extent] : extents)
    if (has(terms[i].labels, label) || has(terms[j].labels, label)) {
      all *= double(extent);
      if (isNeeded(label, i, j))
        resultSize *= double(extent);
    }
  return all;
}

/// Multiplies two terms and sums over the labels that are not kept. Each of
/// these is in both terms, because labels of a single term were summed before.
Term Einsum::multiply(Term x, Term y, const Labels &kept) {
  Labels batch, sum, left, right;
  for (Label label : x.labels)
    (!has(y.labels, label) ? left
     : has(kept, label)    ? batch
                           : sum)
        .push_back(label);
  for (Label label : y.labels)
    if (!has(x.labels, label))
      right.push_back(label);
  if (!x.value || !y.value)
    return {};
  if (sum.empty() || (left.empty() && right.empty()) || !n.isFloat(x.value)) {
    Labels all(batch);
    for (const Labels *part : {&left, &right, &sum})
      all.append(*part);
    Value z = n.mul(arrange(x, all), arrange(y, all));
    Shape axes = llvm::to_vector(llvm::seq<int64_t>(
        int64_t(all.size() - sum.size()), int64_t(all.size())));
    all.truncate(all.size() - sum.size());
    return {axes.empty() ? z : n.reduce(ReduceKind::Sum, z, axes, false), all};
  }
  // Computes [batch, left, sum] x [batch, sum, right]; an operand that already
  // lies transposed is passed as transposed.
  auto side = [&](const Term &term, const Labels &own, bool ownFirst,
                  bool &transposed) {
    Labels straight(batch), swapped(batch);
    straight.append(ownFirst ? own : sum);
    straight.append(ownFirst ? sum : own);
    swapped.append(ownFirst ? sum : own);
    swapped.append(ownFirst ? own : sum);
    transposed = term.labels == swapped && straight != swapped;
    Shape shape;
    for (Label label : batch)
      shape.push_back(extents[label]);
    int64_t a = product(own), b = product(sum);
    if (ownFirst != transposed)
      shape.append({a, b});
    else
      shape.append({b, a});
    return n.reshape(arrange(term, transposed ? swapped : straight), shape);
  };
  bool transposeX = false, transposeY = false;
  Value a = side(x, left, /*ownFirst=*/true, transposeX);
  Value b = side(y, right, /*ownFirst=*/false, transposeY);
  Term z{n.matmul(a, b, transposeX, transposeY), batch};
  z.labels.append(left);
  z.labels.append(right);
  Shape shape;
  for (Label label : z.labels)
    shape.push_back(extents[label]);
  z.value = n.reshape(z.value, shape);
  return z;
}

Value Einsum::run() {
  if (!parse())
    return {};
  for (Term &term : terms) {
    term.value = diagonal(term.value, term.labels);
    if (!term.value)
      return {};
    // A dimension of size 1 broadcasts against larger ones in the product
    // itself.
    Shape shape;
    Labels kept;
    for (auto [label, size] : llvm::zip(term.labels, n.shape(term.value)))
      if (size == extents[label]) {
        shape.push_back(size);
        kept.push_back(label);
      }
    if (kept.size() != term.labels.size())
      term.value = n.reshape(term.value, shape);
    term.labels = kept;
  }
  sumOwnLabels();
  while (terms.size() > 1) {
    size_t bestI = 0, bestJ = 1;
    std::pair<double, double> best(INFINITY, INFINITY);
    for (size_t i = 0; i < terms.size(); ++i)
      for (size_t j = i + 1; j < terms.size(); ++j) {
        double size = 0, flops = cost(i, j, size);
        if (std::pair(flops, size) < best) {
          best = {flops, size};
          bestI = i;
          bestJ = j;
        }
      }
    Labels kept = keptBy(bestI, bestJ);
    Term x = terms[bestI], y = terms[bestJ];
    // The order of the result's labels decides which term is the left operand.
    auto place = [&](const Term &term, const Term &other) {
      for (auto [i, label] : llvm::enumerate(result))
        if (has(term.labels, label) && !has(other.labels, label))
          return i;
      return result.size();
    };
    if (place(y, x) < place(x, y))
      std::swap(x, y);
    Term z = multiply(x, y, kept);
    if (!z.value)
      return {};
    terms.erase(terms.begin() + int64_t(bestJ));
    terms[bestI] = z;
    sumOwnLabels();
  }
  Value value = arrange(terms[0], result);
  if (!value)
    return {};
  Shape shape;
  for (Label label : result)
    shape.push_back(extents[label]);
  return n.shape(value) == ArrayRef<int64_t>(shape) ? value
                                                    : n.expand(value, shape);
}

static LogicalResult einsum(NodeImporter &n) {
  if (n.numInputs() == 0) {
    n.error() << "needs operands";
    return failure();
  }
  n.set(0, Einsum(n).run());
  return success();
}

llvm::ArrayRef<HandlerEntry> onnx_frontend::einsumHandlers() {
  static const HandlerEntry entries[] = {{"Einsum", 12, einsum}};
  return entries;
}
