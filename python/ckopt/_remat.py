# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pass ``remat`` on modules of other compilers (docs/remat-pass.md)."""

from __future__ import annotations

import json
import logging
import os
import pathlib
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from . import _ckopt
from .errors import InputError, UnsupportedError, UsageError, Warning
from .optim import budget_setting
from .plan import GraphPlan, _search, _to_json

_log = logging.getLogger("ckopt")
_OPS = pathlib.Path(__file__).parent / "ops"


class FunctionPlan(GraphPlan):
    """The plan of one function of a module: a GraphPlan whose costs are seconds.

    What it says in ``peak``, ``arena`` and ``check`` is about the function's own
    values; ``figures`` count the arguments of the functions beside it, too.
    """

    def __init__(self, graph: str, plan: str, timeline: str, figures: dict[str, Any]):
        super().__init__(graph, plan, json.dumps(figures["plan"]), timeline)
        self.figures = {name: value for name, value in figures.items() if name != "plan"}

    def __str__(self) -> str:
        figures = self.figures
        before, after = figures["full_arena_bytes"], figures["planned_peak_bytes"]
        lines = [("without recomputation", f"{before:,} bytes"), ("memory", f"{after:,} bytes")]
        for name, key in [("measured", "measured_bytes"), ("lowered", "lowered_bytes"),
                          ("budget", "budget_bytes")]:
            if figures.get(key) is not None:
                lines.append((name, f"{figures[key]:,} bytes"))
        lines += [("no plan needs less than", f"{figures['memory_bound_bytes']:,} bytes (proven)"),
                  ("steps", f"{figures['steps']}, of them recomputed {figures['recomputed_steps']}"),
                  ("seconds", f"{figures['seconds']:.4g} ({figures['base_seconds']:.4g} before)")]
        bound = figures["lower_bound_seconds"]
        if bound > 0:
            gain = 100 * max(0, figures["seconds"] / bound - 1)
            lines.append(("search gains at most", f"{gain:.2f} % more (proven)"))
        lines.append(("plan", f"{figures['status']}, by {figures['strategy']}"))
        width = max(len(name) for name, _ in lines) + 2
        return "\n".join(name.ljust(width) + text for name, text in lines)


class RematModule:
    """A module with every function within its budget (``ckopt.remat``)."""

    def __init__(self, text: str, bytecode: bytes, plans: dict[str, FunctionPlan], main: str,
                 messages: list[str]):
        self.text = text
        self._bytecode = bytecode
        self.plans = plans
        self.messages = messages
        self._main = main

    @property
    def bytecode(self) -> bytes:
        """The module as MLIR's bytecode.

        Raises UnsupportedError where ops are of dialects that ckopt does not have.
        """
        if not self._bytecode:
            raise UnsupportedError("tools that have dialects which ckopt does not have would read "
                                   "bytecode of their ops wrong: give them the text")
        return self._bytecode

    @property
    def plan(self) -> FunctionPlan:
        """The plan of @step, else of the first function that was planned.

        Raises InputError where none was; ``messages`` say why.
        """
        if self._main not in self.plans:
            raise InputError("no function of the module was planned" +
                             "".join(f"\n{message}" for message in self.messages))
        return self.plans[self._main]

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of ``plan``."""
        return self.plan.figures

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        functions = (f"@{name}: {plan.figures['planned_peak_bytes']:,} bytes"
                     for name, plan in self.plans.items())
        return f"<ckopt.RematModule({', '.join(functions)})>"


def _read(path, what):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InputError(f"{what}: cannot read '{os.fspath(path)}': {error.strerror}") from error


def _source(module):
    """The module's bytes, and a name for messages."""
    if hasattr(module, "compiler_ir"):  # what jax.jit(f).lower(...) returns
        module = module.compiler_ir("stablehlo")
    if hasattr(module, "operation"):  # a module of MLIR's Python
        module = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    if isinstance(module, str):
        if "\n" not in module and os.path.exists(module):
            raise UsageError(f"module='{module}' is the text of a module; its file is "
                             "pathlib.Path(...)")
        return module.encode(), "module"
    if isinstance(module, (bytes, bytearray, memoryview)):
        return bytes(module), "module"
    if isinstance(module, os.PathLike):
        return _read(module, "module"), os.fspath(module)
    raise UsageError("a module is MLIR as str (its text), bytes (bytecode), a pathlib.Path or an "
                     f"object of MLIR's Python, not {type(module).__name__}")


def _tables(ops):
    """Name and text of each table."""
    if ops is None:
        return
    for table in ops if isinstance(ops, (list, tuple)) else [ops]:
        if isinstance(table, Mapping):
            yield "ops", _to_json(dict(table))
        elif isinstance(table, str) and (known := _OPS / f"{table}.json").is_file():
            yield table, known.read_text(encoding="utf-8")
        elif isinstance(table, (str, os.PathLike)):
            if not os.path.exists(table):
                known = ", ".join(f"'{file.stem}'" for file in sorted(_OPS.glob("*.json")))
                raise InputError(f"ops: '{os.fspath(table)}' is no file, and none of the tables "
                                 f"{known}")
            yield os.fspath(table), _read(table, "ops").decode(errors="replace")
        else:
            raise UsageError(f"ops={table!r} is no name of a table, path or dict (ckopt-ops/1)")


def _stored(name, plan):
    """Name and text of a plan: a file, an object of JSON, or what ``remat`` returned."""
    plan = getattr(plan, "json", plan)
    if isinstance(plan, Mapping):
        return name, json.dumps(plan)
    if isinstance(plan, (str, os.PathLike)):
        return os.fspath(plan), _read(plan, name).decode(errors="replace")
    raise UsageError(f"{name}={plan!r} is no path, dict (ckopt-plan/1) or plan of ckopt.remat")


def _rules(rules):
    """A rule, or several, as the pass takes them."""
    rules = [rules] if isinstance(rules, str) else rules
    return ";".join(rule.replace(";", "\\;") for rule in rules)


def remat(module: Any, *, budget: int | float | str | None = None, ops: Any = None,
          functions: str | Iterable[str] = (), plan: Any = None, plan_hint: Any = None,
          save: str | Iterable[str] = (), recompute: str | Iterable[str] = (),
          auto: str | Iterable[str] = (), checkpoint: str | Iterable[str] = (),
          canonicalize: bool = True, **settings: Any) -> RematModule:
    """Reorders ops of an MLIR module and computes values again to fit a byte budget.

    It is the pass ``remat`` on the module: values do not change by a bit. Docs:
    docs/remat-pass.md.

    module: MLIR as text (str), bytecode (bytes), a pathlib.Path of either, or an
        object: a module of MLIR's Python or what ``jax.jit(f).lower(...)``
        returns. Ops of dialects that ckopt does not have must be in generic form
        (objects give it by themselves).
    budget: bytes as int, "64MiB", a share of the peak without recomputation
        ("0.6x", or a float), "min"; None: no limit. All functions share it.
    ops: what ops of other dialects are: a table of the package ("stablehlo",
        "torch"), a path, a dict (ckopt-ops/1), or a list of these.
    functions: names of the functions to plan; none: all.
    plan, plan_hint: a plan of ``ckopt.remat``, its ``json``, or a file of
        ``save``, to take or to start from.
    save, recompute, auto, checkpoint: rules of a policy (docs/checkpointing.md).
    canonicalize: canonicalize functions first, so that it does not undo the plan.
    settings: other options of the pass: ``apart="attribute"``, ``cost_model=``,
        ``policy="per-block"``, ``compare=``, ``activation_ratio=``,
        ``allow_uncounted=True``, ``skip_unsupported=True``, ``remarks=True``, and
        of the search as ``ckopt.plan`` has them: ``effort=0``, ``time_limit=5``,
        ``order_only=True``, ``search_seed=1``, ...

    Returns the module as text and bytecode, the plan and figures of each
    function, and messages. Raises BudgetError where no plan fits (with what
    would), InputError for modules, tables and plans that are wrong (with line
    and column) or cannot be planned, UsageError for arguments. The GIL is free
    while it plans, and calls share nothing.
    """
    source, name = _source(module)
    given = [(option, _rules(rules)) for option, rules in
             [("save", save), ("recompute", recompute), ("auto", auto), ("checkpoint", checkpoint)]
             if rules]
    given += [("functions", f) for f in ([functions] if isinstance(functions, str) else functions)]
    given += [] if canonicalize else [("no-canonicalize", "")]
    if (limit := budget_setting(budget)) is not None:
        kind, value = limit
        given.append(("budget", f"{value}x" if kind == "budget-ratio" else value))
    given += _search(settings)
    files = [("ops", *table) for table in _tables(ops)]
    for option, value in [("plan", plan), ("plan_hint", plan_hint)]:
        if value is not None:
            files.append((option, *_stored(option, value)))
    text, bytecode, report, main, planned, told = _ckopt.remat(source, name, given, files)
    figures = {entry["name"]: entry for entry in json.loads(report)["functions"]}
    plans = {}
    for function, graph, stored, timeline, measured in planned:
        if measured >= 0:
            figures[function]["measured_bytes"] = measured
        plans[function] = FunctionPlan(graph, stored, timeline, figures[function])
    for is_warning, message in told:
        if is_warning:
            warnings.warn(message.removeprefix("warning: "), Warning, stacklevel=2)
        else:
            _log.info("%s", message)
    return RematModule(text, bytecode, plans, main, [message for _, message in told])
