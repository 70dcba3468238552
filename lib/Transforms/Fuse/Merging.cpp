//===- Merging.cpp - kernels over one domain become one -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: if two kernels over one domain read the same values, or one reads
// the other's result, one kernel with several results saves a load or a store.
//
// Method: units stand in a valid order. Two may become one at the place of the
// first if everything the second reads is made before it, or at the place of
// the second if nobody reads the first's results before it: both tests look at
// direct neighbours only and keep the order valid, so no cycle can arise.
// Units far apart (a library call between them) stay apart: merging them would
// stretch lifetimes.
//
// Complexity: O(units times operands); of a value's readers only the nearest
// are tried.
//
//===----------------------------------------------------------------------===//
#include "Grouping.h"
#include "OpKinds.h"
#include "ckopt/Support/Debug.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::fuse;

/// The most readers of a value that are tried as siblings.
static constexpr unsigned maxSiblings = 4;
/// The most elements of a domain whose kernels are merged even if they share no
/// value.
static constexpr int64_t tinyElements = 4096;

namespace ckopt::fuse {
class Merger {
public:
  explicit Merger(Grouping &grouping) : g(grouping) {}
  void run();

private:
  bool feeds(const Unit &a, const Unit &b) const;
  bool compatible(const Unit &a, const Unit &b) const;
  bool fits(const Unit &a, const Unit &b) const;
  /// Returns the points at which the ops of the merged kernel are computed, or
  /// nothing if an op would be computed at too many.
  std::optional<PointsOfOps> mergedPoints(const Unit &a, const Unit &b) const;
  bool canHoist(unsigned first, unsigned second) const;
  bool canDelay(unsigned first, unsigned second) const;
  bool reads(unsigned first, unsigned second) const;
  bool tryMerge(unsigned a, unsigned b);
  void join(unsigned first, unsigned second, int64_t place, PointsOfOps points);
  /// Calls `fn` for the units that read the value or a view of it.
  template <typename Fn> void forEachReader(Value value, Fn fn) const;
  void mergeInto(unsigned unit);
  bool isLarge(Value value, const Unit &unit) const;

  Grouping &g;
};
} // namespace ckopt::fuse

/// Returns whether starting the kernel costs more than running it.
static bool isTiny(const Unit &unit) {
  return unit.domain.getNumElements() <= tinyElements;
}

/// Returns whether one update reads the new state that another one makes (an
/// average of new parameters, for example).
bool Merger::feeds(const Unit &a, const Unit &b) const {
  return llvm::any_of(a.roots, [&](Operation *root) {
    return llvm::any_of(root->getResults(), [&](Value result) {
      return b.inputs.contains(result);
    });
  });
}

/// Returns whether one loop nest can compute both.
bool Merger::compatible(const Unit &a, const Unit &b) const {
  if (a.kind != b.kind || a.alone || b.alone || a.domain != b.domain)
    return false;
  if (a.kind == UnitKind::Elementwise)
    return true;
  if (a.kind == UnitKind::Update)
    return feeds(a, b) || (isTiny(a) && a.roots.front()->getName() ==
                                            b.roots.front()->getName());
  return a.kind == UnitKind::Reduction && a.axes == b.axes;
}

bool Merger::fits(const Unit &a, const Unit &b) const {
  if (a.ops + b.ops > g.options.maxOps)
    return false;
  size_t pointers = a.inputs.size() + a.roots.size() + b.roots.size();
  for (Value input : b.inputs)
    pointers += !a.inputs.contains(input);
  return pointers <= g.options.maxPointers;
}

template <typename Fn> void Merger::forEachReader(Value value, Fn fn) const {
  auto visit = [&](Value read) {
    auto found = g.readers.find(read);
    if (found != g.readers.end())
      for (unsigned id : found->second)
        fn(g.find(id));
  };
  visit(value);
  auto found = g.views.find(value);
  if (found != g.views.end())
    for (Value view : found->second)
      visit(view);
}

/// Returns whether every input of the second, except results of the first,
/// exists before the first.
bool Merger::canHoist(unsigned first, unsigned second) const {
  for (Value input : g.units[second].inputs) {
    auto maker = g.maker.find(Grouping::base(input));
    if (maker == g.maker.end())
      continue;
    unsigned id = g.find(maker->second);
    if (id == first ? Grouping::base(input) != input
                    : g.units[id].place > g.units[first].place)
      return false;
  }
  return true;
}

/// Returns whether no unit but the second reads the first's results before the
/// second runs.
bool Merger::canDelay(unsigned first, unsigned second) const {
  bool can = true;
  for (Operation *root : g.units[first].roots)
    for (Value result : root->getResults())
      forEachReader(result, [&](unsigned reader) {
        can &= reader == first || reader == second ||
               g.units[reader].place > g.units[second].place;
      });
  // The second must not read a view of the first's results.
  for (Value input : g.units[second].inputs) {
    auto maker = g.maker.find(Grouping::base(input));
    if (maker != g.maker.end() && g.find(maker->second) == first)
      can &= Grouping::base(input) == input;
  }
  return can;
}

std::optional<PointsOfOps> Merger::mergedPoints(const Unit &a,
                                                const Unit &b) const {
  SmallVector<Operation *> roots(a.roots.begin(), a.roots.end()), body;
  llvm::append_range(roots, b.roots);
  for (const Unit *unit : {&a, &b})
    for (auto &[op, points] : unit->points)
      if (unit == &a || !a.points.contains(op))
        body.push_back(op);
  llvm::sort(body, [&](Operation *x, Operation *y) {
    return g.place.lookup(x) < g.place.lookup(y);
  });
  PointsOfOps merged = g.pointTable.ofKernel(body, roots);
  for (auto &[op, points] : merged)
    if (points.size() > maxPoints && !isTrivial(op))
      return std::nullopt;
  return merged;
}

void Merger::join(unsigned first, unsigned second, int64_t place,
                  PointsOfOps points) {
  Unit &a = g.units[first], &b = g.units[second];
  debug::log(debug::Part::Fuse, [&](llvm::raw_ostream &os) {
    os << "joins the kernels of " << a.roots.front()->getName() << " and "
       << b.roots.front()->getName() << ", of " << a.ops << " and " << b.ops
       << " ops";
  });
  a.place = place;
  a.points = std::move(points);
  a.ops += b.ops;
  for (Value input : b.inputs) {
    llvm::erase(g.readers[input], second);
    if (a.inputs.insert(input))
      g.readers[input].push_back(first);
  }
  llvm::append_range(a.roots, b.roots);
  llvm::sort(a.roots, [&](Operation *x, Operation *y) {
    return g.place.lookup(x) < g.place.lookup(y);
  });
  // A value that one group made and only the other read is not stored any more.
  for (Operation *root : a.roots)
    for (Value result : root->getResults())
      if (a.inputs.remove(result))
        llvm::erase(g.readers[result], first);
  b.merged = true;
  g.parent[second] = first;
}

/// Returns whether the second reads a result of the first.
bool Merger::reads(unsigned first, unsigned second) const {
  return llvm::any_of(g.units[second].inputs, [&](Value input) {
    auto maker = g.maker.find(Grouping::base(input));
    return maker != g.maker.end() && g.find(maker->second) == first;
  });
}

bool Merger::tryMerge(unsigned a, unsigned b) {
  a = g.find(a), b = g.find(b);
  if (a == b)
    return false;
  if (g.units[a].place > g.units[b].place)
    std::swap(a, b);
  int64_t first = g.units[a].place, second = g.units[b].place;
  if (!compatible(g.units[a], g.units[b]) || !fits(g.units[a], g.units[b]) ||
      g.libraryBetween(first, second))
    return false;
  // A reduction's result is known at the end of the loops, so the same loops
  // cannot read it (for example, a sum of e^(x - max)).
  if (g.units[a].kind == UnitKind::Reduction && reads(a, b))
    return false;
  bool hoist = canHoist(a, b);
  if (!hoist && !canDelay(a, b))
    return false;
  std::optional<PointsOfOps> points = mergedPoints(g.units[a], g.units[b]);
  if (!points)
    return false;
  join(a, b, hoist ? first : second, std::move(*points));
  return true;
}

/// Returns whether the value is so large that reading it once instead of twice
/// is worth a merge.
bool Merger::isLarge(Value value, const Unit &unit) const {
  return cast<RankedTensorType>(value.getType()).getNumElements() * 2 >=
         unit.domain.getNumElements();
}

/// Tries to merge `unit` with the makers of its inputs and with the nearest
/// other readers of them.
void Merger::mergeInto(unsigned unit) {
  bool changed = true;
  while (changed) {
    changed = false;
    unit = g.find(unit);
    if (g.units[unit].alone)
      return;
    SmallVector<Value> inputs(g.units[unit].inputs.getArrayRef());
    for (Value input : inputs) {
      if (!isLarge(input, g.units[unit]))
        continue;
      if (auto maker = g.maker.find(input); maker != g.maker.end())
        changed |= tryMerge(maker->second, unit);
      unit = g.find(unit);
      if (g.units[unit].kind == UnitKind::Update)
        // Siblings of one state do not merge; an update reads only another's
        // new value.
        continue;
      SmallVector<unsigned> siblings;
      for (unsigned reader : g.readers.lookup(input))
        if (g.units[reader].place < g.units[unit].place)
          siblings.push_back(reader);
      llvm::sort(siblings, [&](unsigned x, unsigned y) {
        return g.units[x].place > g.units[y].place;
      });
      if (siblings.size() > maxSiblings)
        siblings.resize(maxSiblings);
      for (unsigned sibling : siblings)
        changed |= tryMerge(sibling, unit);
      if (changed)
        break;
    }
  }
}

void Merger::run() {
  SmallVector<unsigned> order;
  for (unsigned id = 0; id < g.units.size(); ++id)
    order.push_back(id);
  llvm::sort(order, [&](unsigned a, unsigned b) {
    return g.units[a].place < g.units[b].place;
  });
  for (unsigned id : order)
    if (UnitKind kind = g.units[id].kind; kind == UnitKind::Elementwise ||
                                          kind == UnitKind::Reduction ||
                                          kind == UnitKind::Update)
      mergeInto(id);
  // The last tiny unit over each domain.
  DenseMap<std::pair<Type, unsigned>, unsigned> last;
  for (unsigned id : order) {
    id = g.find(id);
    const Unit &unit = g.units[id];
    if ((unit.kind != UnitKind::Elementwise && unit.kind != UnitKind::Update) ||
        unit.alone || !isTiny(unit))
      continue;
    auto [entry, isNew] =
        last.try_emplace({unit.domain, unsigned(unit.kind)}, id);
    if (!isNew && !tryMerge(entry->second, id))
      entry->second = id;
  }
}

void Grouping::merge() { Merger(*this).run(); }

LogicalResult Grouping::orderUpdates() {
  // Positions are doubled so that updates fit between them.
  for (Unit &unit : units)
    unit.place *= 2;
  LogicalResult result = success();
  for (unsigned id = 0; id < units.size(); ++id) {
    Unit &unit = units[id];
    if (unit.merged || unit.kind != UnitKind::Update)
      continue;
    for (Operation *root : unit.roots)
      for (auto [operand, r] : cast<KernelOpInterface>(root).getUpdatePairs()) {
        Value old = base(root->getOperand(operand));
        if (!isa<BlockArgument>(old)) {
          result = root->emitError()
                   << "updates a value that is no argument; only arguments "
                      "hold state";
          continue;
        }
        auto visit = [&](Value value) {
          for (unsigned reader : readers.lookup(value))
            if (find(reader) != id)
              unit.place = std::max(unit.place, units[find(reader)].place + 1);
        };
        visit(old);
        for (Value view : views.lookup(old))
          visit(view);
      }
  }
  for (Unit &unit : units) {
    if (unit.merged || unit.kind != UnitKind::Update)
      continue;
    for (Operation *root : unit.roots)
      for (Value value : root->getResults())
        for (unsigned reader : readers.lookup(value))
          if (units[find(reader)].place <= unit.place)
            result = root->emitError()
                     << "the old value of this state is read after a use of "
                        "the new one; in-place update is impossible";
  }
  return result;
}
