# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The choice of a saved set for a byte budget.

Problem: of the values that the forward module makes, which are handed to the
backward module, so that neither module's live bytes exceed the budget and the
step is fastest? What is not saved, the backward module makes again, once.

Method: the joint graph, lowered to kernels, becomes a ckopt-graph/1 with a node
between the parts: it runs after all that the forward part runs and before all
that the backward part runs, so that in every plan what lies in memory there is
a saved set. The planner's plans for several budgets give such sets; each
is judged by the model of both modules (_joint.py), and the best are improved by
single values put in and taken out while that pays.

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
        cost = max(work / joint.flops, moved / joint.bandwidth, arithmetic / joint.element_ops)
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
_EVALUATED = 120_000  # nodes that the improvement may lower, over all its choices


class Search:
    """Choices for one joint graph, by what the model says of them."""

    def __init__(self, joint, default):
        self.joint = joint
        self.default = _joint.Choice(joint, default)
        self.graph, self.boundary = graph(joint)
        self.seconds = 0.0
        self._seen = {}

    def _judge(self, saved):
        key = frozenset(saved)
        if key not in self._seen:
            self._seen[key] = _joint.Choice(self.joint, key)
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
            return self.default
        begin = time.perf_counter()
        best = None
        for order in ({"fixed_order": True}, {}):
            target = budget
            for _ in range(3):
                choice = self._planned(target, **order)
                if choice is None:
                    break
                if choice.peak <= budget:
                    if best is None or choice.seconds < best.seconds:
                        best = choice
                    break
                target -= max(choice.peak - budget, budget // 200)
            if best is not None:
                break
        if best is not None:
            best = self._improve(best, budget)
        self.seconds += time.perf_counter() - begin
        return best

    def _improve(self, best, budget):
        """Puts single values in and takes them out while the step gets faster and fits."""
        joint, left = self.joint, _EVALUATED
        wanted = self.default.saved | {b for c in self._seen.values() for b in c.saved}
        primals = set(joint.primals)

        def worth(i):
            return (joint.work[i] / joint.flops + 2 * joint.bytes[i] / joint.bandwidth) / \
                max(1, joint.bytes[i])

        pairs = [(i, True) for i in sorted(wanted - best.saved, key=worth, reverse=True)]
        pairs += [(i, False) for i in sorted(best.saved - primals, key=worth)]
        for i, into in pairs:
            if left <= 0:
                break
            left -= len(joint.nodes)
            choice = self._judge(best.saved | {i} if into else best.saved - {i})
            if choice.peak <= budget and choice.seconds < best.seconds:
                best = choice
        return best
