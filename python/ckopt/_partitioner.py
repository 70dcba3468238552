# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A byte budget inside ``torch.compile``: ``ckopt.torch.partitioner``.

Problem: torch.compile's own budget is a share of the saved values, which does
not say how many bytes a step will take. Method: its partitioner stays (what is
tagged, random, effectful, mutated or a collective is treated as it treats them);
only the saved set that it asks for is chosen here, for bytes: by the planner on
a model of both modules (_saved.py), checked on Inductor's own schedule, and
chosen again for less where that exceeds the budget.
"""

from __future__ import annotations

import inspect
import logging
import threading
import time
import unittest.mock
import warnings

import torch
from torch._functorch import partitioners as _aot
from torch._inductor.custom_graph_pass import CustomPartitionerFn, get_hash_for_files

from . import _joint, _saved, _schedule, _speeds
from .errors import BudgetError, UnsupportedError, UsageError, Warning as CkoptWarning

_log = logging.getLogger("ckopt")
_lock = threading.Lock()
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "K": 2**10,
          "M": 2**20, "G": 2**30, "T": 2**40, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30,
          "TIB": 2**40}


def _bytes(text, what):
    """Bytes of 4096, "2GiB", "1.5 GB"."""
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise UsageError(f"{what} is a number of bytes or a text such as '2GiB', not {text!r}")
    if isinstance(text, int):
        if text < 0:
            raise UsageError(f"{what} is negative: {text}")
        return text
    cut = len(text.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"))
    unit = _UNITS.get(text[cut:].strip().upper())
    try:
        number = float(text[:cut])
    except ValueError:
        number = -1.0
    if unit is None or not 0 <= number < 2**60:
        raise UsageError(f"{what} is a number of bytes or a text such as '2GiB', not {text!r}")
    return int(number * unit)


def _mib(number):
    return f"{number:,} bytes ({number / 2**20:.1f} MiB)"


class _Optimizer:
    """What an optimizer holds and needs, from one of its steps on two small parameters."""

    def __init__(self, optimizer):
        self.name, self.per_byte, self.temporary, self.all = "none", 0.0, 2, False
        if optimizer is None:
            return
        if isinstance(optimizer, torch.optim.Optimizer):
            cls, settings = type(optimizer), dict(optimizer.defaults)
        elif isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer):
            cls, settings = optimizer, {}
        else:
            raise UsageError("optimizer is an instance or a class of torch.optim.Optimizer, not "
                             f"{optimizer!r}")
        probe = torch.nn.Parameter(torch.zeros(64, 64))
        probe.grad = torch.zeros(64, 64)
        # What is for tensors on other devices says nothing of the state's size.
        known = set(inspect.signature(cls).parameters) - {"capturable", "fused", "foreach"}
        settings = {k: v for k, v in settings.items() if k in known}
        try:
            made = cls([probe], **settings)
            made.step()
            state = sum(v.numel() * v.element_size() for v in made.state[probe].values()
                        if isinstance(v, torch.Tensor))
        except Exception as error:
            raise UnsupportedError(f"{cls.__name__} cannot be tried on a small parameter "
                                   f"({error}); give its bytes by reserve=") from error
        self.name = cls.__name__
        self.per_byte = state / (probe.numel() * probe.element_size())
        self.all = bool(getattr(optimizer, "defaults", {}).get("foreach"))

    def state(self, sizes):
        return round(self.per_byte * sum(sizes))

    def peak(self, sizes):
        """Temporaries of step(): of all parameters together, or of the largest."""
        if self.name == "none" or not sizes:
            return 0
        return self.temporary * (sum(sizes) if self.all else max(sizes))


class Figures(dict):
    """What was chosen for a graph, in bytes; ``print`` gives a table."""

    def __str__(self):
        width = max(len(name) for name in self) + 2
        return "\n".join(name.replace("_", " ").ljust(width) +
                         (f"{value:,}" if isinstance(value, int) else f"{value}")
                         for name, value in self.items())


class Partitioner(CustomPartitionerFn):
    """The hook of ``partitioner``."""

    def __init__(self, budget, optimizer, reserve, check):
        self._budget = _bytes(budget, "budget")
        self._optimizer = _Optimizer(optimizer)
        self._reserve = _bytes(reserve, "reserve")
        self._check = check
        self.figures = None
        self._hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]
        self._taken = None

    def uuid(self):
        """Budget, options and the version: what is cached for another is not taken."""
        from . import __version__
        files = (__file__, _joint.__file__, _saved.__file__, _schedule.__file__, _speeds.__file__)
        return ("ckopt.partitioner", __version__, self._budget, self._reserve,
                self._optimizer.name, self._optimizer.per_byte, self._optimizer.all, self._check,
                get_hash_for_files(files).hex())

    def reset(self):
        """Forgets the graph that has the budget, for a program that drops its model."""
        self._taken, self.figures = None, None

    def _refuse_others(self, gm):
        if self._taken is not None:
            raise BudgetError(
                f"a second graph to train came to a partitioner whose budget of "
                f"{_mib(self._budget)} the first one has, with {_mib(self._taken)}: after a graph "
                "break, a recompilation, or in another model. Make it one graph "
                "(torch.compile(fullgraph=True, dynamic=False)), give each its own partitioner "
                "and a share of the bytes, or call reset() when the first is gone")
        hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]
        if hits > self._hits:
            warnings.warn(f"{hits - self._hits} graph(s) came from PyTorch's cache before this "
                          f"one: if they are trained, too, the budget of {_mib(self._budget)} "
                          "does not hold for all of them together", CkoptWarning, stacklevel=2)
        for node in gm.graph.nodes:
            value = node.meta.get("val")
            sizes = [value] if isinstance(value, (torch.SymInt, torch.SymFloat)) else \
                list(value.shape) if isinstance(value, torch.Tensor) else []
            if any(isinstance(s, (torch.SymInt, torch.SymFloat)) for s in sizes):
                raise UnsupportedError(
                    f"'{node.name}' has a symbolic size ({value if sizes == [value] else sizes}): a "
                    f"budget of {_mib(self._budget)} needs static shapes; compile with "
                    "dynamic=False, and give every batch one size")

    def __call__(self, gm, joint_inputs, **kwargs):
        self._refuse_others(gm)
        outputs = kwargs["num_fwd_outputs"]
        theirs = _aot.choose_saved_values_set
        state = {}

        def choose(joint_graph, info, memory_budget=1.0):
            if "search" not in state:
                begin = time.perf_counter()
                joint = _joint.Joint(joint_graph, info, outputs)

                def saves(ratio):
                    return {joint.at[n] for n in theirs(joint_graph, info, memory_budget=ratio)}
                state["search"] = _saved.Search(joint, saves)
                state["resident"] = self._resident(joint)
                state["model_seconds"] = time.perf_counter() - begin
            search = state["search"]
            choice = state["pick"](search)
            state["choice"] = choice
            # Each call makes the graph anew by elimination of common subexpressions.
            named = {n.name: n for n in joint_graph.nodes}
            return [named[search.joint.nodes[i].name] for i in sorted(choice.saved)]

        def split(pick):
            """Both modules for the choice that ``pick`` makes; the joint graph stays usable."""
            state["pick"] = pick
            with unittest.mock.patch.object(_aot, "choose_saved_values_set", choose):
                return _aot.min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)

        with _lock:
            return self._fit(split, state)

    def _resident(self, joint):
        """Bytes that are there throughout, and what step() needs beside gradients."""
        nodes, seen, held = joint.nodes, set(), 0
        for i in joint.primals:
            value = nodes[i].meta.get("val")
            if isinstance(value, torch.Tensor):
                key = value.untyped_storage()._cdata
                if key not in seen:
                    seen.add(key)
                    held += _joint.nbytes(value)
        flat = joint.gradients
        sizes = [joint.bytes[p] for p, g in flat if g is not None and p in joint.static]
        return {"held": held, "state": self._optimizer.state(sizes), "gradients": sum(sizes),
                "step": self._optimizer.peak(sizes)}

    def _fit(self, split, state):
        """Chooses, lowers, and chooses again for less until Inductor's schedule fits."""
        target = best = None
        for tries in range(8):
            def pick(search):
                nonlocal target
                if target is None:
                    target = self._activations(state)
                choice = search.find(target)
                return choice if choice is not None else self._give_up(search, state, target)
            try:
                modules = split(pick)
            except BudgetError:
                if best is not None:
                    break
                raise
            if "choice" not in state:
                return modules  # there is no backward part to speak of
            choice, allowed = state["choice"], self._activations(state)
            measured = choice.peak
            if self._check:
                begin = time.perf_counter()
                measured, _ = _schedule.peak(*modules)
                state["check_seconds"] = state.get("check_seconds", 0) + time.perf_counter() - begin
            _log.info("partitioner: model %d, schedule %d, of %d", choice.peak, measured, allowed)
            state["gap"] = max(state.get("gap", 0), measured - choice.peak)
            state["least"] = min(state.get("least", measured), measured)
            search, gap = state["search"], measured - choice.peak
            if measured <= allowed:
                if best is None or choice.seconds < best[1].seconds:
                    best = (modules, choice, measured)
                # Room that the model did not see: once more, for so much more.
                if choice is search.default or measured > 0.97 * allowed or tries >= 3 or \
                        allowed - gap <= 1.01 * target:
                    break
            elif best is not None:
                break
            else:
                gap += choice.peak // 200
            target = allowed - gap
            if target <= 0:
                self._give_up(search, state, 0, measured)
        if best is None:
            self._give_up(state["search"], state, target, measured)
        modules, choice, measured = best
        resident = state["resident"]
        self._taken = resident["held"] + resident["state"] + self._reserve + \
            max(measured, resident["gradients"] + resident["step"])
        self._hits = torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]
        search = state["search"]
        self.figures = Figures(
            budget=self._budget, peak=self._taken, parameters_and_inputs=resident["held"],
            optimizer_state=resident["state"], reserve=self._reserve,
            activations_and_gradients=measured, by_the_model=choice.peak,
            optimizer_step=resident["gradients"] + resident["step"], saved=choice.saved_bytes,
            recomputed_ops=len(choice.recomputed),
            slower_by_the_model=round(choice.seconds / search.default.seconds - 1, 4),
            default_peak_by_the_model=self._taken - measured + search.default.peak
            if measured > resident["gradients"] + resident["step"] else search.default.peak,
            nodes=len(search.joint.nodes),
            planning_seconds=round(search.seconds + state["model_seconds"], 2),
            checking_seconds=round(state.get("check_seconds", 0.0), 2))
        _log.info("partitioner:\n%s", self.figures)
        return modules

    def _activations(self, state):
        """Bytes of the budget that are left for what the modules make."""
        r = state["resident"]
        left = self._budget - r["held"] - r["state"] - self._reserve
        if left < r["gradients"] + r["step"]:
            raise BudgetError(
                f"the budget is {_mib(self._budget)}; parameters and inputs ({r['held']:,}), "
                f"optimizer state ({r['state']:,}), reserve ({self._reserve:,}), gradients "
                f"({r['gradients']:,}) and temporaries of step() ({r['step']:,}) alone need "
                f"{_mib(self._budget - left + r['gradients'] + r['step'])}")
        return left

    def _give_up(self, search, state, target, measured=None):
        smallest = search.smallest()
        if measured is None and smallest.peak <= target:
            return smallest
        beside = self._budget - self._activations(state)
        # What Inductor's schedules took beyond the model they will take again.
        least = smallest.peak + state.get("gap", 0)
        least = min(least, state.get("least", least))
        names = ", ".join(f"{n} {b:,}" for n, b in
                          (smallest.second if smallest.peaks[1] >= smallest.peaks[0]
                           else smallest.first).alive_at_peak(3))
        raise BudgetError(
            f"no choice of saved values fits the budget of {_mib(self._budget)}: the smallest found "
            f"needs {_mib(beside + least)}, of them parameters, inputs, "
            f"optimizer state and reserve {beside:,}; the largest at its peak: {names}")


def partitioner(budget, *, optimizer=None, reserve=0, check: bool = True) -> Partitioner:
    """A partitioner for torch.compile that holds a step within ``budget`` bytes.

        torch._inductor.config.custom_partitioner_fn = ckopt.torch.partitioner("2GiB",
                                                                               optimizer=optimizer)

    budget: bytes or a text such as "2GiB" for all of a training step: parameters
        and inputs of the compiled graph, gradients, optimizer state, activations,
        temporaries of ``optimizer.step()``.
    optimizer: the instance or class of torch.optim, for its state; None: it has none.
    reserve: further bytes that lie there meanwhile.
    check: the peak is taken from Inductor's own schedule, and values are chosen
        again where it exceeds the budget; costs one or a few lowerings of both
        modules. False: the model's word is taken.

    One graph with static shapes: a second one is refused (BudgetError), as are
    symbolic sizes (UnsupportedError); a budget that nothing fits is a
    BudgetError that names the bytes. torch.compile wraps exceptions in its
    BackendCompilerFailed, whose text has theirs. ``figures`` of the returned
    hook says what was chosen.
    """
    return Partitioner(budget, optimizer, reserve, check)
