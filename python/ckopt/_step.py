# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled training steps."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterable, Mapping

from . import _ckopt
from ._arrays import as_array, check_cast
from .errors import InputError, UsageError, Warning
from .optim import Optimizer, Schedule, to_text
from .plan import StepPlan

_log = logging.getLogger("ckopt")


def _model_file(model):
    """The path of a model, and the temporary folder that holds it, if any."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), None
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise UsageError(f"a model is a path, an onnx.ModelProto or bytes, not "
                         f"{type(model).__name__}")
    folder = tempfile.TemporaryDirectory(prefix="ckopt-")
    path = os.path.join(folder.name, "model.onnx")
    with open(path, "wb") as file:
        file.write(model)
    return path, folder


def budget_settings(budget):
    """The driver's settings of a budget: bytes, '2GiB', 'min', or a share (float)."""
    if budget is None:
        return []
    if isinstance(budget, float):
        return [("budget-ratio", repr(budget))]
    return [("memory-budget", str(budget))]


def _flag_settings(flags):
    settings = []
    for name, value in flags.items():
        name = name.replace("_", "-")
        values = value if isinstance(value, (list, tuple)) and name in (
            "dim", "shape", "group", "save", "recompute", "auto", "checkpoint-region") else [value]
        for one in values:
            if one is None or one is False:
                continue
            settings.append((name, "" if one is True else to_text(one)))
    return settings


def _optimizer_settings(optimizer, schedule):
    settings = []
    if isinstance(optimizer, str):
        settings.append(("optimizer", optimizer))
        if optimizer == "none":
            settings.append(("lr", "0"))  # nothing is updated, and a rate has to be a number
    elif isinstance(optimizer, Optimizer):
        settings += optimizer.settings()
    elif optimizer is not None:
        raise UsageError(f"optimizer={optimizer!r} is neither a name nor one of ckopt's optimizers")
    if isinstance(schedule, Schedule):
        settings += schedule.settings()
    elif schedule is not None:
        raise UsageError(f"schedule={schedule!r} is none of ckopt's schedules")
    return settings


def compile(model, *, loss: str | None = None, optimizer: Optimizer | str | None = None,
            schedule: Schedule | None = None, budget: int | float | str | None = None,
            batch: int | None = None, last_batch: str = "skip", cast: str = "exact",
            **flags) -> CompiledStep:
    """Compiles an ONNX model to a training step that stays inside a byte budget.

    model: path, ``onnx.ModelProto`` or the bytes of a file.
    loss: as ``ckopt train --loss``: "cross_entropy", "mse", "bce_logits:head", ...;
        None: the model's own.
    optimizer: ``ckopt.AdamW(lr=1e-3)`` and others, or a name; default SGD.
    schedule: ``ckopt.Cosine(total_steps=1000)`` and others; default constant.
    budget: bytes of real peak, parameters and optimizer state included: an int,
        "2GiB", "min"; a float is a share of what the step needs without
        recomputation; None: no recomputation.
    batch: samples a batch, where the file leaves it open or says otherwise.
    last_batch: what a batch with fewer samples does: "skip" returns NaN, counts
        (``skipped``) and warns once; "error" raises.
    cast: "exact" refuses arrays whose values would change in the step's types,
        "round" rounds floats.
    flags: any other flag of ``ckopt train`` about model, loss, plan or compiler,
        with underscores: ``freeze="head.*"``, ``threads=2``, ``seed=1``,
        ``class_axis=1``, ``targets="labels"``, ``check_finite=True``, ...

    Raises BudgetError where no plan fits, UnsupportedError for operators,
    InputError for the file, UsageError for arguments.
    """
    if last_batch not in ("skip", "error"):
        raise UsageError(f"last_batch={last_batch!r} is neither 'skip' nor 'error'")
    check_cast(cast)
    path, folder = _model_file(model)
    settings = [] if loss is None else [("loss", loss)]
    settings += _optimizer_settings(optimizer, schedule)
    settings += budget_settings(budget)
    settings += [] if batch is None else [("batch", to_text(batch))]
    settings += _flag_settings(flags)
    step = CompiledStep(_ckopt.Step(path, settings), last_batch, cast)
    step._folder = folder  # goes with the step, which saves to copies of the model
    step._tell()
    return step


class CompiledStep:
    """A training step in machine code, with its weights.

    Calling it with the arrays of one batch, by the names of the model's inputs
    and of the targets (``inputs``), makes one update. A step is used by one
    thread at a time; others wait. The GIL is free while it works.
    """

    def __init__(self, step, last_batch="skip", cast="exact"):
        self._step = step
        self._last_batch = last_batch
        self._cast = cast
        self._folder = None
        self._fields = step.fields
        self.skipped = 0
        self.messages: list[str] = []

    # --- batches -----------------------------------------------------------

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """What a batch holds: for each name the type and the shape of one sample."""
        return {field["array"]: (field["dtype"], tuple(field["shape"])) for field in self._fields}

    @property
    def batch(self) -> int:
        """Samples a batch."""
        return self._step.batch

    def _arrays(self, args, kwargs, all_of_them=True):
        if len(args) == 1 and not kwargs and isinstance(args[0], Mapping):
            args, kwargs = (), dict(args[0])
        if len(args) > len(self._fields):
            raise UsageError(f"{len(args)} arrays for {len(self._fields)} inputs: "
                             f"{', '.join(self.inputs)}")
        named = {field["array"]: value for field, value in zip(self._fields, args)}
        for name, value in kwargs.items():
            if name in named:
                raise UsageError(f"'{name}' is given twice")
            named[name] = value
        known = {field["array"]: field for field in self._fields}
        for name in named:
            if name not in known:
                raise UsageError(f"the step takes no '{name}', but {', '.join(known)}")
        missing = [name for name in known if name not in named]
        if all_of_them and missing:
            raise UsageError(f"no array for '{missing[0]}'; the step takes {', '.join(known)}")
        return {name: as_array(name, value, known[name]["dtype"], self._cast)
                for name, value in named.items()}

    def _samples(self, arrays):
        for field in self._fields:
            if field["batched"] and field["array"] in arrays and arrays[field["array"]].ndim:
                return len(arrays[field["array"]])
        return self.batch

    def __call__(self, *args, **kwargs) -> float:
        """Makes one update from one batch and returns its loss.

        Arrays have the shape [batch, ...]: numpy, torch and all that speaks
        DLPack. With ``accumulate`` only every so many batches update; the loss
        is that of the batch. A batch with fewer samples than ``batch`` is
        skipped (NaN) or an InputError, as ``last_batch`` says. Raises InputError
        for shapes, types, labels out of range and values that are not finite,
        NonFiniteError where training diverges.
        """
        arrays = self._arrays(args, kwargs)
        samples = self._samples(arrays)
        if 0 < samples < self.batch and self._last_batch == "skip":
            self.skipped += 1
            if self.skipped == 1:
                warnings.warn(f"a batch of {samples} samples is skipped: the step was compiled "
                              f"for {self.batch} (counted in .skipped; last_batch='error' raises)",
                              Warning, stacklevel=2)
            return float("nan")
        loss, _ = self._step.step(arrays)
        self._tell()
        return loss

    def gradients(self, *args, **kwargs) -> tuple[float, dict]:
        """Returns the loss of one batch and its gradients by parameter; updates nothing.

        Needs ``compile(..., optimizer="none")``. Running statistics move.
        """
        loss, gradients = self._step.gradients(self._arrays(args, kwargs))
        return loss, {name.removeprefix("grad/"): value for name, value in gradients.items()}

    # --- evaluation --------------------------------------------------------

    def evaluate(self, *args, **kwargs) -> dict[str, float]:
        """Returns {"loss", "count"} and, for classes, "accuracy", of the current weights.

        Takes arrays of any number of samples, or one iterable of batches
        (mappings or tuples); the last batch is padded and masked. ``count`` is
        the number of elements that the mean is of.
        """
        batches = [(args, kwargs)]
        first = args[0] if len(args) == 1 and not kwargs else None
        if first is not None and not isinstance(first, Mapping) and not hasattr(first, "shape"):
            batches = ((item, {}) if isinstance(item, (tuple, list)) else ((item,), {})
                       for item in first)
        loss, count, correct, classes = 0.0, 0, 0, False
        for one_args, one_kwargs in batches:
            sums = self._step.evaluate(self._arrays(one_args, one_kwargs))
            loss += sums["loss"]
            count += sums["count"]
            correct += sums["correct"]
            classes = sums["classified"]
        if not count:
            raise InputError("nothing was evaluated: there were no samples")
        result = {"loss": loss / count, "count": count}
        if classes:
            result["accuracy"] = correct / count
        return result

    def predict(self, *args, **kwargs):
        """Returns the model's outputs for any number of samples.

        One array [samples, ...] where the model has one output, else a dictionary
        by name. Targets are not needed. Dropout is off, batch norms use their
        running statistics.
        """
        outputs = self._step.predict(self._arrays(args, kwargs, all_of_them=False))
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    # --- weights -----------------------------------------------------------

    def state_dict(self, *, averaged: bool = False) -> dict:
        """Returns parameters and running statistics as numpy arrays (copies) by name.

        averaged: with the averages (``ema``) in place of the parameters. Running
        variances are ONNX's (population variance).
        """
        return self._step.weights(averaged)

    def load_state_dict(self, state: Mapping, *, strict: bool = True) -> None:
        """Sets weights by name, from numpy arrays or tensors.

        strict: names that are missing or unknown are an InputError; otherwise
        they are left alone. Optimizer state stays.
        """
        arrays = {name: as_array(name, value) for name, value in state.items()}
        known = self._step.weights(False)
        unknown = [name for name in arrays if name not in known]
        missing = [name for name in known if name not in arrays]
        if strict and (unknown or missing):
            raise InputError("; ".join(
                text for text in (f"unknown: {', '.join(unknown)}" if unknown else "",
                                  f"missing: {', '.join(missing)}" if missing else "") if text)
                + " (strict=False takes what fits)")
        fitting = {name: as_array(name, arrays[name], known[name].dtype, self._cast)
                   for name in arrays if name in known}
        self._step.set_weights(fitting)

    def save(self, path, *, averaged: bool = False) -> None:
        """Writes the model with the current weights: FILE.onnx or FILE.safetensors."""
        path = os.fspath(path)
        if not path.endswith((".onnx", ".safetensors")):
            raise UsageError(f"'{path}' must end in .onnx or .safetensors")
        self._step.write_weights(path, averaged)

    def checkpoint(self, path) -> None:
        """Writes weights, optimizer state and the number of updates (safetensors)."""
        self._step.write_checkpoint(os.fspath(path))

    def resume(self, path) -> int:
        """Goes on from a checkpoint with the bits of an unbroken run.

        Returns the number of updates made so far: go on with the batch that
        followed. A checkpoint of other options (but the budget) is an InputError.
        """
        self._step.resume(os.fspath(path))
        return self.updates

    @property
    def updates(self) -> int:
        """The number of updates made, those before ``resume`` included."""
        return self._step.updates

    @property
    def learning_rate(self) -> float:
        """The rate of the next update."""
        return self._step.learning_rate

    # --- the plan ----------------------------------------------------------

    @property
    def plan(self) -> StepPlan:
        """The plan; printed it is the driver's table."""
        return StepPlan(self._step)

    @property
    def memory(self) -> dict[str, int]:
        """Bytes: of the plan by role, and the peak that was measured so far."""
        figures = self.plan.figures
        names = ("planned_peak_bytes", "budget_bytes", "parameter_bytes", "optimizer_bytes",
                 "state_bytes", "data_bytes")
        result = {name: figures[name] for name in names if name in figures}
        result["measured_peak_bytes"] = self._step.measured_peak()
        return result

    def timeline(self, path=None) -> str:
        """Returns memory over the step as SVG; writes it to FILE.svg, or as a trace to FILE.json."""
        return self.plan.timeline(path)

    def profile(self, *args, steps: int = 10, **kwargs) -> list[dict]:
        """Times each kernel call on a batch, mean of ``steps`` updates, slowest first.

        Needs ``compile(..., profile=True)``, whose code is slower. The updates
        are taken back. Rows have "kernel", "source" (the model's node),
        "primitive", "recomputed", "seconds".
        """
        rows = self._step.profile(self._arrays(args, kwargs), steps)
        return sorted(rows, key=lambda row: -row["seconds"])

    # --- messages ----------------------------------------------------------

    def _tell(self):
        for severity, text in self._step.messages():
            self.messages.append(f"{severity}: {text}")
            if severity == "warning":
                warnings.warn(text, Warning, stacklevel=3)
            else:
                _log.info("%s: %s", severity, text)

    def __repr__(self):
        takes = ", ".join(f"{name}: {dtype}[{self.batch}{''.join(f', {n}' for n in shape)}]"
                          for name, (dtype, shape) in self.inputs.items())
        return f"<ckopt.CompiledStep({takes}), {self.updates} updates>"


def batches(batch: int, *, epochs: int = 1, seed: int = 0, **arrays):
    """Yields batches of arrays [samples, ...] as ``ckopt train`` draws them.

    Each epoch has the samples in a new order, a function of (seed, epoch); those
    that do not fill the last batch are left out. With the same seed a step gets
    the bits that it gets from the driver.
    """
    arrays = {name: as_array(name, value) for name, value in arrays.items()}
    counts = {name: len(value) for name, value in arrays.items()}
    if len(set(counts.values())) != 1:
        raise UsageError(f"arrays of as many samples are needed, not {counts}")
    samples = next(iter(counts.values()))
    if samples < batch:
        raise InputError(f"{samples} samples do not fill one batch of {batch}")
    for epoch in range(epochs):
        order = _ckopt.epoch_order(samples, seed, epoch)
        for start in range(0, samples - batch + 1, batch):
            chosen = order[start:start + batch]
            yield {name: value[chosen] for name, value in arrays.items()}


def train(step: CompiledStep, batches: Iterable, *, epochs: int = 1) -> list[float]:
    """Calls ``step`` with each of ``batches``, ``epochs`` times, and returns the losses.

    ``batches`` is an iterable of mappings or tuples (a torch DataLoader), begun
    anew for each epoch.
    """
    losses = []
    for _ in range(epochs):
        for item in batches:
            losses.append(step(*item) if isinstance(item, (tuple, list)) else step(item))
    return losses
