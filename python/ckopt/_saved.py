# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice of a saved set for a byte budget.

Problem: of the values that the forward module makes, which are handed to the
backward module, so that neither module's live bytes exceed the budget and the
step is fastest? What is not saved, the backward module makes again, once.

Method: the joint graph, lowered to kernels, becomes a ckopt-graph/1 with a node
between the parts: it runs after all that the forward part runs and before all
that the backward part runs, so that in every plan what lies in memory there is
a saved set. The planner's plans for several budgets give such sets, PyTorch's own
partitioner others, and what is too large is made smaller by the kinds of values
that cost least for their bytes. Each is judged by the model of both modules
(_joint.py), and the best is improved by values put in and taken out while that pays.

Guarantee: a returned choice fits by the model. Complexity: a few hundred
evaluations of the model, each linear, and a bounded search of the planner.
"""

from __future__ import annotations

import time

from . import _joint
from .plan import plan as _plan
from .errors import BudgetError


def kernels(joint):
    """The joint graph lowered as one module: what is made, once, if all is saved."""
    order = [i for i, k in enumerate(joint.kind) if k not in (_joint.SOURCE, _joint.NOTHING)]
    outputs = joint.forward_outputs + joint.backward_outputs
    inputs = joint.primals + sorted(joint.tangents)
    # What both parts read and is dear would be computed in both, were it not saved.
    crossing = {i for i in order if joint.required[i] and
                any(not joint.required[joint.at[u]] for u in joint.nodes[i].users)}
    return _joint.Module(joint, order, inputs, outputs, set(joint.primals), crossing)


def graph(joint, name="joint"):
    """The ckopt-graph/1 of the two-module form."""
    whole = kernels(joint)
    outputs = set(joint.forward_outputs) | set(joint.backward_outputs) | whole.outputs
    values, nodes, known = [], [], {}

    def value(i, kind, size):
        if i not in known:
            known[i] = len(values)
            values.append({"id": i, "name": joint.nodes[i].name, "bytes": int(size), "kind": kind})
        return i

    primals = set(joint.primals)
    whole_nodes = _clusters(whole)
    # Groups are numbered in an order that has what each one reads before it.
    first = [c for c in whole_nodes if joint.required[whole.kernels[c[0]][0]]]
    second = [c for c in whole_nodes if not joint.required[whole.kernels[c[0]][0]]]
    boundary = len(first)
    for number, cluster in enumerate(first + [()] + second):
        if not cluster:
            nodes.append({"id": boundary, "name": "boundary", "cost": 0, "inputs": [], "outputs": [],
                          "recompute": False, "after": list(range(boundary))})
            continue
        inside = set(cluster)
        reads, writes, arithmetic, work, extra = set(), [], 0.0, 0.0, 0
        for k in cluster:
            i, r, w, loop, ops = whole.kernels[k]
            reads |= r
            writes += w
            work += joint.work[i]
            extra += joint.extra[i]
            arithmetic += ops * (joint.reduced[i] or joint.numel[i]) if loop else 0
        reads -= set(writes)
        writes = [w for w in writes if w in outputs or
                  not _passes(whole, w) or whole.made_by[w] not in inside]
        for b in sorted(reads):
            if b not in known:  # there before the step
                value(b, "persistent" if b in primals else "input",
                      0 if b in primals else joint.bytes[b])
        for w in writes:
            value(w, "output" if w in outputs else "temp", joint.bytes[w])
        moved = sum(joint.bytes[b] for b in (*reads, *writes))
        cost = max(work, moved / joint.speeds.bandwidth, arithmetic / joint.speeds.elements)
        forward = number < boundary
        makers = [whole.kernels[k][0] for k in cluster]
        node = {"id": number, "name": joint.nodes[makers[-1]].name, "cost": round(cost * 1e9),
                "inputs": sorted(reads), "outputs": writes, "workspace": extra,
                "recompute": forward and not any(joint.once[i] for i in makers)}
        if not forward:
            node["after"] = [boundary]
        nodes.append(node)
    return {"format": "ckopt-graph/1", "name": name, "alignment": 64,
            "cost_model": "roofline, ns", "values": values, "nodes": nodes}, boundary


def _passes(whole, value):
    """Only the loop that makes it reads it: it never lies in memory."""
    group = whole.maker[value]
    return whole.groups[group][1] and value not in whole.outputs and \
        value not in whole.read_late and whole.readers_of.get(value) == {group}


def _clusters(whole):
    """Kernels that belong together: what passes between them cannot be saved."""
    joint = whole.joint
    whole.made_by = {w: k for k, kernel in enumerate(whole.kernels) for w in kernel[2]}
    read = {b for kernel in whole.kernels for b in kernel[1]}
    # What runs once and is for the step's outputs alone (running statistics) must not keep the
    # loop that it is fused with from running again.
    late = {k for k, (i, _, writes, _, _) in enumerate(whole.kernels)
            if joint.once[i] and not read & set(writes)}
    whole.read_late = {b for k in late for b in whole.kernels[k][1]}
    clusters = []
    for kernels_of in (group[0] for group in whole.groups):
        spans = []
        for k in [k for k in kernels_of if k not in late]:
            low = min([whole.made_by[b] for b in whole.kernels[k][1]
                       if b in whole.made_by and _passes(whole, b)], default=k)
            mine = [k]
            while spans and spans[-1][-1] >= low:
                mine = spans.pop() + mine
            spans.append(mine)
        clusters += spans + [[k] for k in kernels_of if k in late]
    return clusters


def saved_of(planned, text, boundary):
    """The saved set of a plan: values made before the boundary that are read after it.

    A value whose maker runs again before its next reader is none.
    """
    nodes = text["nodes"]
    at = planned.steps.index(boundary)
    made = {w for s in planned.steps[:at] for w in nodes[s]["outputs"]}
    saved, again = set(), set()
    for s in planned.steps[at + 1:]:
        saved.update(b for b in nodes[s]["inputs"] if b in made and b not in again)
        again.update(nodes[s]["outputs"])
    return saved


# Units of 50 ns or so for each kernel that one plan may take; counted, so that plans do not
# depend on the clock.
_PLAN_WORK = 40_000
_EVALUATED = 130_000  # nodes that one search may lower, over all its choices
# Choices of PyTorch's partitioner that the search knows: it is not to be slower than they are.
_RATIOS = (0.75, 0.5)


class Search:
    """Choices for one joint graph, by what the model says of them.

    ``theirs(ratio)`` is the set that PyTorch's own partitioner saves at a ratio.
    """

    def __init__(self, joint, theirs):
        self.joint, self._theirs = joint, theirs
        self.default = _joint.Choice(joint, theirs(1.0))
        self.graph, self.boundary = graph(joint)
        self.seconds = 0.0
        self._seen, self._left, self._tried = {}, 0, set()

    def _judge(self, saved):
        """The choice that saves those values: what a view looks at, in place of the view."""
        joint = self.joint
        key = frozenset(r if joint.savable[r] or r in joint.primals else i
                        for i in saved for r in (joint.root[i],))
        if key not in self._seen:
            self._left -= len(joint.nodes)
            self._seen[key] = _joint.Choice(joint, key)
        return self._seen[key]

    def _planned(self, budget, **search):
        try:
            work = max(8_000_000, _PLAN_WORK * len(self.graph["nodes"]))
            found = _plan(self.graph, budget=max(1, budget), work_limit=work,
                          strategy="local-search", **search)
        except BudgetError:
            return None
        return self._judge(saved_of(found, self.graph, self.boundary))

    def smallest(self):
        """The choice with the least bytes that is found, by budgets that shrink."""
        best, step = self.default, 0.2
        while step > 0.02:
            choice = self.find(int(best.peak * (1 - step)))
            if choice is None:
                step /= 2
            else:
                best = choice
        return best

    def find(self, budget):
        """The fastest choice that is found whose peak is at most ``budget``, or None."""
        if self.default.peak <= budget:
            # PyTorch's partitioner goes on from here and changes the graph: not asked again.
            self._tried.update(_RATIOS)
            return self.default
        begin = time.perf_counter()
        self._left = _EVALUATED
        for ratio in _RATIOS:
            if ratio not in self._tried:
                self._tried.add(ratio)
                self._judge(self._theirs(ratio))
        target = budget
        for _ in range(2):
            choice = self._planned(target, fixed_order=True)
            if choice is None or choice.peak <= budget:
                break
            target -= max(choice.peak - budget, budget // 200)
        # From above: the fastest of those that are too large, and the one nearest to the budget.
        large = sorted((c for c in self._seen.values() if c.peak > budget),
                       key=lambda c: (c.seconds, c.peak))
        for start in large[:1] + sorted(large[1:], key=lambda c: c.peak)[:1]:
            self._shrink(start, budget)
        if all(c.peak > budget for c in self._seen.values()):
            self._planned(budget)
            self._lower(min(self._seen.values(), key=lambda c: c.peak), budget)
        fits = [c for c in self._seen.values() if c.peak <= budget]
        best = None
        if fits:
            best = self._improve(min(fits, key=lambda c: (c.seconds, c.peak)), budget)
        self.seconds += time.perf_counter() - begin
        return best

    def _classes(self, values):
        """Values of one kind (the same op and size, layer by layer), in the graph's order."""
        joint, found = self.joint, {}
        for i in sorted(values):
            found.setdefault((joint.nodes[i].target, joint.bytes[i]), []).append(i)
        return list(found.values())

    def _shrink(self, start, budget):
        """Takes out what costs least for its bytes, kind by kind, until the rest fits."""
        joint, primals = self.joint, set(self.joint.primals)
        ranked = []
        for group in self._classes(start.saved - primals):
            if self._left <= _EVALUATED // 2:
                break
            without = self._judge(start.saved - set(group))
            freed = start.peak - without.peak or sum(joint.bytes[i] for i in group) // 4
            if freed > 0:
                ranked.append(((without.seconds - start.seconds) / freed, group))
        ranked.sort(key=lambda pair: pair[0])
        best = start
        for _, group in ranked:
            # The first layers go first: they are made again when most memory is free.
            for count in (len(group), len(group) // 2):
                if count == 0 or self._left <= _EVALUATED // 3:
                    continue
                fewer = self._judge(best.saved - set(group[:count]))
                if fewer.peak >= best.peak:
                    continue
                if fewer.peak > budget:
                    best = fewer
                    break
                # All of them fit: as many of them as must go.
                low = 1
                while low < count:
                    middle = (low + count) // 2
                    if self._judge(best.saved - set(group[:middle])).peak <= budget:
                        count = middle
                    else:
                        low = middle + 1
                return

    def _lower(self, best, budget):
        """Changes single values, the largest first, while that lowers the peak, until it fits."""
        joint, primals = self.joint, set(self.joint.primals)
        wanted = {b for c in self._seen.values() for b in c.saved} - primals
        for i in sorted(wanted, key=lambda i: (-joint.bytes[i], i)):
            if self._left <= 0 or best.peak <= budget:
                return
            choice = self._judge(best.saved ^ {i})
            if choice.peak < best.peak:
                best = choice

    def _improve(self, best, budget):
        """Puts values in and takes them out while the step gets faster and fits.

        First all of one kind together, then single ones.
        """
        joint = self.joint
        primals = set(joint.primals)
        wanted = {b for c in self._seen.values() for b in c.saved} - primals

        def worth(group):
            return sum(joint.work[i] + 2 * joint.bytes[i] / joint.speeds.bandwidth
                       for i in group) / max(1, sum(joint.bytes[i] for i in group))

        def moves(groups):
            groups = sorted(groups, key=worth, reverse=True)
            return [(set(g), True) for g in groups] + [(set(g), False) for g in groups[::-1]]

        for group, into in [*moves([g for g in self._classes(wanted) if len(g) > 1]),
                            *moves([i] for i in sorted(wanted))]:
            if self._left <= 0:
                break
            changed = best.saved | group if into else best.saved - group
            if changed == best.saved:
                continue
            choice = self._judge(changed)
            if choice.peak <= budget and choice.seconds < best.seconds:
                best = choice
        return best
