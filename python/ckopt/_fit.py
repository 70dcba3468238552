# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training by the library's loop: what its samples may be, and what it returns."""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy

from . import _ckopt
from ._arrays import as_array, is_exact
from ._sources import settings_of
from .errors import InputError, UsageError


@dataclass
class FitResult:
    """The outcome of ``CompiledStep.fit``."""

    losses: list[float]  #: one for each update of this call
    steps: int           #: updates of this call
    epochs: int          #: epochs that this step has behind it, earlier calls included
    dropped: int         #: samples of the last epoch that filled no batch
    dropped_batches: int  #: batches at the end that were too few for an update
    seconds_per_step: float
    measured_peak_bytes: int
    classes: list[str] = field(default_factory=list)  #: names of labels (``ImageFolder``)
    stopped_early: bool = False
    skipped_updates: int = 0  #: with ``precision="f16"``: their gradients overflowed
    #: of samples that did not train, after the last update: "loss", "count", "accuracy",
    #: metrics
    validation: dict[str, float] = field(default_factory=dict)
    all_ignored: bool = False  #: no sample of the validation has a label that counts
    #: the same of the averaged weights (``ema``)
    averages: dict[str, float] = field(default_factory=dict)
    #: all evaluations of this call, with the "step" that each came after
    validations: list[dict[str, float]] = field(default_factory=list)

    def __repr__(self):
        text = f"{self.steps} updates"
        if self.losses:
            text += f", loss {self.losses[0]:.6g} -> {self.losses[-1]:.6g}"
        if self.validation:
            text += ", validation " + ", ".join(
                f"{name} {value:.6g}" for name, value in self.validation.items())
        return f"<ckopt.FitResult: {text}>"


def is_one_batch(value) -> bool:
    """Whether it is a tuple of arrays, and not one of batches."""
    return isinstance(value, tuple) and bool(value) and all(hasattr(v, "shape") for v in value)


def _whole(name, value, least):
    """An option that counts something."""
    try:
        count = operator.index(value)
    except TypeError:
        raise UsageError(f"{name}={value!r} is no whole number") from None
    if count < least:
        raise UsageError(f"{name}={value!r} is no whole number from {least} on")
    return count


def metric_names(metrics) -> str:
    """Names of metrics as the library reads them: with commas between."""
    return metrics if isinstance(metrics, str) else ",".join(metrics or ())


def is_dataset(value) -> bool:
    """Whether it has a number of items, and any of them at any time."""
    return hasattr(value, "__len__") and hasattr(value, "__getitem__") and \
        not isinstance(value, (Mapping, str, bytes))


def _is_sample(step, arrays) -> bool:
    """Whether arrays by name are of one sample: they lack the batch's dimension."""
    batched = [spec for spec in step._fields if spec["batched"]]
    return bool(batched) and all(arrays[spec["array"]].ndim == len(spec["shape"])
                                 for spec in batched)


def holds_samples(step, value, convert) -> bool:
    """Whether it is a dataset whose items are single samples."""
    if not is_dataset(value) or not len(value):
        return False
    try:
        item = value[0]
    except (NotImplementedError, TypeError):  # torch gives iterables the method, too
        return False
    return _is_sample(step, convert(item))


def _items(samples):
    """The items of an iterable, or of a dataset that has them by number alone."""
    return samples if isinstance(samples, Iterable) else (samples[i] for i in range(len(samples)))


def _checked(step, arrays, place=""):
    """Arrays of a batch, whose shapes are the step's, and the number of their samples.

    A single sample becomes a batch of one.
    """
    single = _is_sample(step, arrays)
    counts, result = {}, {}
    for spec in step._fields:
        name, array = spec["array"], arrays[spec["array"]]
        shape = tuple(spec["shape"])
        found = array.shape[1:] if spec["batched"] and not single else array.shape
        if found != shape or (spec["batched"] and not single and not array.ndim):
            takes = ", ".join(["*"] * (spec["batched"] and not single) + [str(n) for n in shape])
            raise InputError(f"'{name}'{place} has shape {list(array.shape)}, the step takes "
                             f"[{takes}]" + (": samples of other lengths are padded to this one, or "
                                             "cut, before" if single else ""))
        result[name] = array[None] if single and spec["batched"] else array
        if spec["batched"]:
            counts[name] = len(result[name])
    if len(set(counts.values())) > 1:
        raise InputError(f"a batch has arrays of {counts} samples")
    return result, next(iter(counts.values()), step.batch)


def grouped(step, samples, convert) -> Iterator[dict[str, Any]]:
    """Batches by name of an iterable or dataset; of single samples, as many as a step takes."""
    waiting: list[dict[str, Any]] = []

    def together():
        return {spec["array"]: numpy.concatenate([one[spec["array"]] for one in waiting])
                if spec["batched"] else waiting[0][spec["array"]] for spec in step._fields}

    for number, item in enumerate(_items(samples)):
        arrays = convert(item)
        if not _is_sample(step, arrays):
            yield arrays
            continue
        waiting.append(_checked(step, arrays, f" of sample {number}")[0])
        if len(waiting) == step.batch:
            yield together()
            waiting = []
    if waiting:
        yield together()


class Batches:
    """Batches of an iterable, in pieces of the size that the step asks for.

    The extension module calls ``seek`` where an epoch begins and ``next`` for
    the samples that follow. Samples of a dataset come in the order that the
    library gives to those of arrays, and are found again.
    """

    count: int | None = None  # samples of an epoch, where they are known
    can_seek = False

    def __init__(self, step, batches, convert, *, strict, first=None, shuffled=False):
        self._step = step
        self._make = batches if callable(batches) and not isinstance(batches, Iterable) else None
        self._batches = batches
        self._place = ""
        self._shuffled = shuffled
        self._chosen = self._held = None  # numbers of the samples, and what they leave out
        if holds_samples(step, batches, convert):
            self.count, self.can_seek = len(batches), True
        self._convert = convert  # an item of the iterable as arrays by name
        self._strict = strict
        self._first = first      # called with the first batch, once
        self._begun = False
        self._iterator = iter(())
        self._arrays: dict = {}
        self._at = self._left = 0

    def hold_out(self, train, held):
        """Keeps the samples of the first numbers; returns the others, in their order."""
        self._held = Batches(self._step, self._batches, self._convert, strict=False)
        self._chosen, self._held._chosen = train, held
        return self._held

    def _dataset(self, seed, epoch, position):
        """The samples of an epoch from a position on."""
        chosen = range(self.count) if self._chosen is None else self._chosen
        order = _ckopt.epoch_order(len(chosen), seed, epoch) if self._shuffled else \
            range(len(chosen))
        for place in order[position:]:
            number = int(chosen[place])
            self._place = f" of sample {number}"
            yield self._batches[number]

    def seek(self, seed, epoch, position):
        """Goes to a place in an epoch: its begin, where samples cannot be found again."""
        if self.can_seek:
            self._iterator, self._left = self._dataset(seed, epoch, position), 0
            return
        source = self._make() if self._make else _items(self._batches)
        iterator = iter(source)
        if self._begun and iterator is self._batches:
            raise InputError(
                f"the batches can be read but once, and epoch {epoch + 1} reads them again: give a "
                "list, a DataLoader, or a function that returns an iterator")
        self._begun = True
        self._iterator, self._arrays, self._left = iterator, {}, 0

    def _pull(self):
        """Takes the next batch; false: there is none."""
        while True:
            try:
                item = next(self._iterator)
            except StopIteration:
                if not self._arrays and not self.can_seek:
                    raise InputError("the batches are empty: they gave no samples") from None
                return False
            self._arrays, self._left = _checked(self._step, self._convert(item), self._place)
            self._at = 0
            if self._left:
                return True

    def next(self, buffers):
        """Writes the samples that follow to the buffers; returns their number."""
        specs = self._step._fields
        count = next((len(b) for b, s in zip(buffers, specs) if s["batched"]), self._step.batch)
        filled = 0
        while filled < count and (self._left or self._pull()):
            taken = min(count - filled, self._left)
            for buffer, spec in zip(buffers, specs):
                array = self._arrays[spec["array"]]
                if spec["batched"]:
                    buffer[filled:filled + taken] = array[self._at:self._at + taken]
                else:
                    buffer[...] = array
            filled += taken
            self._at += taken
            self._left -= taken
        least = self._step._step.least_batch
        if 0 < filled < least and self._strict:
            sizes = count if least == count else f"{least} to {count}"
            raise InputError(f"the last batch of an epoch has {filled} samples, the step was "
                             f"compiled for {sizes}")
        if self._first and filled == count:
            first, self._first = self._first, None
            first({spec["array"]: buffer for buffer, spec in zip(buffers, specs)})
        return filled


def whole_arrays(step, arrays, cast):
    """Arrays of all samples by name, in their own types where those are exact in the step's."""
    result = {}
    for name, value in arrays.items():
        if name not in step.inputs:
            raise UsageError(f"the step takes no '{name}', but {', '.join(step.inputs)}")
        dtype = numpy.dtype(step.inputs[name][0])
        array = as_array(name, value, home=step._sharing)
        result[name] = array if is_exact(array.dtype, dtype) else as_array(name, array, dtype, cast)
    missing = [name for name in step.inputs if name not in result]
    if missing:
        raise UsageError(f"no array for '{missing[0]}'; the step takes {', '.join(step.inputs)}")
    return result


def samples_of(step, samples, convert, cast, *, strict=False, first=None, shuffled=False):
    """What the extension module takes: settings, a dictionary of arrays, or Batches."""
    if samples is None:
        return None
    settings = settings_of(samples)
    if settings is not None:
        if first:
            some = step._step.read_batch(settings)
            if some:
                first(convert(some))
        return settings
    if is_one_batch(samples):
        samples = convert(samples)
    if isinstance(samples, Mapping):
        arrays = whole_arrays(step, samples, cast)
        if first:
            some = {spec["array"]: arrays[spec["array"]][:step.batch] if spec["batched"] else
                    arrays[spec["array"]] for spec in step._fields}
            if all(len(some[s["array"]]) == step.batch for s in step._fields if s["batched"]):
                first(convert(some))
        return arrays
    if isinstance(samples, Iterable) or callable(samples) or is_dataset(samples):
        return Batches(step, samples, convert, strict=strict, first=first, shuffled=shuffled)
    raise UsageError(f"samples are a path, a mapping of arrays, a dataset, an iterable of batches, "
                     f"ckopt.Tokens or ckopt.ImageFolder, not {type(samples).__name__}")


def run(step, samples, *, validation, convert, cast, strict, first, report: Callable | None,
        count, **options) -> tuple[FitResult, int]:
    """Trains; returns the result and the number of batches that were skipped."""
    if samples is None:
        raise UsageError("fit needs samples: arrays by name, a path, or batches")
    options = {name: os.fspath(value) if isinstance(value, os.PathLike) else value
               for name, value in options.items() if value is not None}
    if "metrics" in options:
        options["metrics"] = metric_names(options["metrics"])
    for name, least in (("epochs", 0), ("max_steps", 0), ("validate_every", 1),
                        ("checkpoint_every", 1), ("early_stop", 1)):
        if name in options:
            options[name] = _whole(name, options[name], least)
    count = None if count is None else _whole("samples_per_epoch", count, 1)
    before = step._step.epochs
    samples = samples_of(step, samples, convert, cast, strict=strict, first=first, shuffled=True)
    known = samples.count if isinstance(samples, Batches) else 0
    if count is not None and known is not None:
        raise UsageError("samples_per_epoch is for batches that are iterated: the samples given "
                         "have a number of their own")
    count = count if known is None else known or None
    made = step._step.fit(
        samples,
        samples_of(step, validation, convert, cast), count, report, dict(options, strict=strict))
    result = FitResult(**made)
    return result, max(result.epochs - before, 0) if result.dropped else 0
