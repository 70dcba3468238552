# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans: of compiled steps, and of graphs of other compilers."""

from __future__ import annotations

import html
import json
import os
from typing import Any

import numpy

from . import _ckopt
from .errors import InputError, OutputError, UsageError
from .optim import budget_setting, to_text

Path = str | os.PathLike[str]


class Plan:
    """A plan: the order of a step's kernels, what is kept and what is computed again.

    ``print(plan)`` gives a table, a notebook shows it with memory over the step.
    """

    def __init__(self, report: dict[str, Any], text: str):
        self._report = report
        self._text = text

    @property
    def values(self) -> list[dict[str, Any]]:
        """What becomes of each value: "name", "bytes", "fate", "reason", ... (docs/planner.md)."""
        return self._report.get("values", [])

    def explain(self, value: str) -> str:
        """Says in a sentence what becomes of the value of this name, and why.

        Raises InputError, with names that are alike, where there is none.
        """
        if not isinstance(value, str):
            raise UsageError(f"explain takes the name of a value, not {value!r}")
        named = [entry for entry in self.values if entry["name"] == value]
        if not named:
            close = [entry["name"] for entry in self.values if value in entry["name"]][:5]
            raise InputError(f"the plan has no value '{value}'" +
                             (f"; there are {', '.join(close)}" if close else ""))
        lines = []
        for entry in named:
            line = f"{entry['name']} ({entry['bytes']:,} bytes): {entry['fate']}"
            if entry.get("made", 1) > 1:
                line += f", made {entry['made']} times"
            if entry.get("reason"):
                line += f"; {entry['reason']}"
            lines.append(line)
        return "\n".join(lines)

    def _graph(self) -> str:
        raise NotImplementedError

    def _svg(self) -> str:
        raise NotImplementedError

    def pareto(self, points: int = 11, **search: Any) -> Curve:
        """Plans ``points`` budgets (2 or more) from the smallest to no recomputation.

        search: flags of ``ckopt-plan``: ``effort=0``, ``time_limit=5``, ...
        """
        if points < 2:
            raise UsageError(f"points={points}: a curve has two ends")
        text = _ckopt.curve(self._graph(), points, [("pack", ""), *_search(search)])
        return Curve(json.loads(text))

    def timeline(self, path: Path | None = None) -> str:
        """Returns memory over the step as SVG, and writes it to FILE.svg if given."""
        svg = self._svg()
        if path is not None:
            _write(path, svg, ".svg")
        return svg

    def __str__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>{self._svg()}"


class StepPlan(Plan):
    """The plan of a compiled step."""

    def __init__(self, step: _ckopt.Step):
        functions = json.loads(step.plan_report())["functions"]
        report = next((f for f in functions if f.get("name", f.get("function")) == "step"),
                      functions[0] if functions else {})
        super().__init__(report.get("plan", {}), step.plan_text())
        self._step = step

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the table, as a ckopt-step-report/1 has them (bytes, seconds)."""
        return json.loads(self._step.report())["plan"]

    def check(self, budget: int | str | None = None) -> None:
        """Replays the plans of the step's functions by a checker of its own.

        Raises InputError with what is wrong; ``budget`` (bytes or "2GiB") stands
        in for the step's own.
        """
        wrong = self._step.verify_plans("" if budget is None else str(budget))
        if wrong:
            raise InputError(f"not a valid plan: {wrong}")

    def _graph(self) -> str:
        return self._step.graph()

    def _svg(self) -> str:
        return self._step.timeline_svg()

    def timeline(self, path: Path | None = None) -> str:
        """Returns memory over the step as SVG; writes FILE.svg, or FILE.json for Perfetto."""
        if path is not None and os.fspath(path).endswith(".json"):
            _write(path, self._step.timeline_json(), ".json")
            return self._svg()
        return super().timeline(path)


class GraphPlan(Plan):
    """The plan of a graph (``ckopt.plan``)."""

    def __init__(self, graph: str, plan: str, report: str, svg: str,
                 keys: dict[int, Any] | None = None):
        self._graph_text = graph
        self._keys = keys
        self._plan_text = plan
        self._svg_text = svg
        self.json = json.loads(plan)
        super().__init__(json.loads(report), "")

    @property
    def steps(self) -> list[int]:
        """Node ids in the order of execution; one that appears again is recomputed."""
        return self.json["steps"]

    @property
    def order(self) -> list[Any]:
        """``steps`` as the graph's own nodes: NetworkX's, else names (ids where there are none)."""
        if self._keys is None:
            nodes = json.loads(self._graph_text)["nodes"]
            self._keys = {node["id"]: node.get("name", node["id"]) for node in nodes}
        return [self._keys[step] for step in self.steps]

    @property
    def cost(self) -> float:
        """The sum of the steps' costs, in the graph's unit."""
        return self.json["cost"]

    @property
    def peak(self) -> int:
        """The largest sum of live bytes."""
        return self.json["peak"]

    @property
    def arena(self) -> int | None:
        """The bytes of the arena, if the plan has offsets (``pack``)."""
        return self.json.get("arena")

    @property
    def recomputed(self) -> int:
        """The number of steps that compute something again."""
        return len(self.steps) - len(set(self.steps))

    def check(self, budget: int | str | None = None) -> None:
        """Replays the plan by a checker that shares no code with the planner.

        Raises InputError with what is wrong; ``budget`` (bytes or "2GiB") stands
        in for the plan's own.
        """
        wrong = _ckopt.verify_plan(self._graph_text, json.dumps(self.json),
                                   "" if budget is None else str(budget))
        if wrong:
            raise InputError(f"not a valid plan: {wrong}")

    def save(self, path: Path) -> None:
        """Writes the plan as ckopt-plan/1, which ``ckopt-plan --check`` reads."""
        _write(path, json.dumps(self.json), "")

    def _graph(self) -> str:
        return self._graph_text

    def _svg(self) -> str:
        return self._svg_text

    def __str__(self) -> str:
        plan = self.json
        lines = [("steps", f"{len(self.steps)}, of them recomputed {self.recomputed}"),
                 ("cost", f"{self.cost:g}"), ("peak", f"{self.peak:,} bytes")]
        if self.arena is not None:
            lines.append(("arena", f"{self.arena:,} bytes"))
        if "budget" in plan:
            lines.append(("budget", f"{plan['budget']:,} bytes"))
        if "lower_bound" in plan:
            bound = plan["lower_bound"]
            lines.append(("no plan costs less", f"{bound:g} (proven)"))
            if bound > 0:
                gain = 100 * max(0, self.cost / bound - 1)
                lines.append(("search gains at most", f"{gain:.2f} % more (proven)"))
        lines.append(("plan", f"{plan['status']}, by {plan['strategy']}"))
        width = max(len(name) for name, _ in lines) + 2
        return "\n".join(name.ljust(width) + text for name, text in lines)


class Curve:
    """Cost against budget: ``points`` by rising budget (docs/planner.md, ckopt-pareto/1)."""

    def __init__(self, report: dict[str, Any]):
        self.report = report

    @property
    def points(self) -> list[dict[str, Any]]:
        """Points with "budget" (bytes), "cost", "overhead", "peak", "recomputed", ..."""
        return self.report["points"]

    def save(self, path: Path) -> None:
        """Writes the points to FILE.json."""
        _write(path, json.dumps(self.report), ".json")

    def __str__(self) -> str:
        rows = [f"{'budget':>16}  {'overhead':>9}  {'recomputed':>10}"]
        rows += [f"{p['budget']:>16,}  {100 * p['overhead']:>7.2f} %  {p['recomputed']:>10}"
                 for p in self.points]
        return "\n".join(rows)


def _write(path, text, ending):
    path = os.fspath(path)
    if not path.endswith(ending):
        raise UsageError(f"'{path}' must end in {ending}")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"cannot write '{path}': {error.strerror}") from error


def _search(flags):
    return [(name.replace("_", "-"), "" if value is True else to_text(value))
            for name, value in flags.items() if value is not None and value is not False]


def _whole(node, name, number):
    """An attribute of a node as an integer, which it has to be."""
    try:
        whole = int(number)
    except (TypeError, ValueError, OverflowError):
        whole = None
    if whole is None or whole != number:
        raise InputError(f"node {node!r}: {name}={number!r} is no integer")
    return whole


def _plain(number):
    """Numbers of numpy, which json does not know, as Python's."""
    if isinstance(number, (numpy.integer, numpy.floating, numpy.bool_)):
        return number.item()
    raise UsageError(f"a graph holds a {type(number).__name__}, which JSON has not")


def _to_json(graph):
    try:
        return json.dumps(graph, default=_plain, allow_nan=False)
    except UsageError:
        raise
    except ValueError as error:  # not finite, or circular
        raise InputError(f"the graph cannot be written as JSON: {error}") from error


def _from_networkx(graph):
    """Nodes are operations with one output of ``bytes`` each; edges are reads of it."""
    import networkx

    if not graph.is_directed() or graph.is_multigraph():
        raise InputError("a NetworkX graph has to be a DiGraph without cycles")
    try:
        order = list(networkx.topological_sort(graph))
    except networkx.NetworkXUnfeasible as error:
        raise InputError("the graph has a cycle") from error
    number = {node: i for i, node in enumerate(order)}
    values, nodes = [], []
    for node in order:
        data = graph.nodes[node]
        if "bytes" not in data:
            raise InputError(f"node {node!r} has no attribute 'bytes' (of its result)")
        kind = data.get("kind", "temp")
        value = {"id": number[node], "name": str(node),
                 "bytes": _whole(node, "bytes", data["bytes"]), "kind": kind}
        values.append(value)
        if kind in ("input", "persistent"):  # there before the first step: nothing makes it
            maker = next(iter(graph.predecessors(node)), None)
            if maker is not None:
                raise InputError(f"node {node!r} of the kind '{kind}' is made by nothing, but has "
                                 f"an edge from {maker!r}")
            continue
        again = data.get("recompute", True)
        if not isinstance(again, (bool, numpy.bool_)):
            raise InputError(f"node {node!r}: recompute={again!r} is neither True nor False")
        nodes.append({"id": number[node], "name": str(node), "cost": data.get("cost", 1),
                      "inputs": [number[n] for n in graph.predecessors(node)],
                      "outputs": [number[node]], "workspace": _whole(node, "workspace", data.get("workspace", 0)),
                      "recompute": bool(again)})
    name = str(graph.graph.get("name", "graph")) or "graph"
    return {"format": "ckopt-graph/1", "name": name, "values": values, "nodes": nodes,
            "alignment": int(graph.graph.get("alignment", 1))}, dict(enumerate(order))


def plan(graph: Any, *, budget: int | float | str | None = None, pack: bool = False,
         **search: Any) -> GraphPlan:
    """Plans a graph of operations of any compiler under a byte budget.

    graph: a ckopt-graph/1 (docs/planner.md) as dict, JSON text or path; or a
        networkx.DiGraph whose nodes are operations with "bytes" (of the result)
        and optionally "cost" (default 1), "workspace", "recompute", "kind"
        ("temp", "output"; "input" and "persistent": no operation), whose edges
        lead from the maker to the reader, and whose topological order is the
        program order.
    budget: bytes as int, "2GiB", "min"; a float is a share of the program
        order's peak; None: no limit.
    pack: give each value an offset, and hold the arena within the budget.
    search: flags of ``ckopt-plan``: ``strategy="auto"``, ``effort=1``,
        ``time_limit=60``, ``fixed_order=True``, ``search_seed=1``, ...

    Raises BudgetError where no plan fits, InputError for graphs that are wrong.
    """
    keys: dict[int, Any] | None = None
    source = ""
    if hasattr(graph, "is_directed"):
        graph, keys = _from_networkx(graph)
    if isinstance(graph, dict):
        text = _to_json(graph)
    elif isinstance(graph, str) and graph.lstrip().startswith("{"):
        text = graph
    elif isinstance(graph, (str, os.PathLike)):
        try:
            with open(graph, encoding="utf-8") as file:
                text = file.read()
        except OSError as error:
            raise InputError(f"cannot read '{os.fspath(graph)}': {error.strerror}") from error
        source = f"{os.fspath(graph)}: "
    else:
        raise UsageError(f"a graph is a dict, JSON, a path or a networkx.DiGraph, not "
                         f"{type(graph).__name__}")
    settings = _search({"pack": pack, **search})
    if (limit := budget_setting(budget)) is not None:
        kind, value = limit
        settings.append((kind.replace("memory-", ""), value))
    try:
        made = _ckopt.plan_graph(text, settings)
    except InputError as error:
        raise InputError(f"{source}{error}") from error
    return GraphPlan(text, *made, keys)
