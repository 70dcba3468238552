# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiled training steps."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, overload

import numpy

from . import _ckopt
from ._arrays import as_array, check_cast
from ._device import Sharing, View, is_on_cuda, may_stay
from ._fit import FitResult, grouped, is_dataset, is_one_batch, metric_names
from ._fit import run as run_fit
from ._lora import LoRA
from ._sources import settings_of
from .errors import InputError, UsageError, Warning
from .optim import Optimizer, Schedule, budget_setting, to_text
from .plan import StepPlan

_log = logging.getLogger("ckopt")

Path = str | os.PathLike[str]
State = dict[str, numpy.ndarray]


# Steps of a range that are kept loaded, with the libraries' primitives of their shapes.
_KEPT_SIZES = 64


class TemporaryFolder:
    """A folder that goes with its last reader, without the standard library's warning
    where an error was that."""

    def __init__(self):
        self.name = tempfile.mkdtemp(prefix="ckopt-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


def _model_file(model):
    """The path of a model, and the temporary folder that holds it, if any."""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model), None
    if hasattr(model, "SerializeToString"):
        model = model.SerializeToString()
    if not isinstance(model, (bytes, bytearray, memoryview)):
        hint = " (modules of PyTorch: ckopt.torch.compile_step)" if hasattr(model, "modules") else ""
        raise UsageError(f"a model is a path, an onnx.ModelProto or bytes, not "
                         f"{type(model).__name__}{hint}")
    folder = TemporaryFolder()
    path = os.path.join(folder.name, "model.onnx")
    with open(path, "wb") as file:
        file.write(model)
    return path, folder


def _flag_settings(flags):
    settings = []
    for name, value in flags.items():
        name = name.replace("_", "-")
        if name == "lora" and isinstance(value, LoRA):
            settings += value.settings()
            continue
        if isinstance(value, Mapping):  # dim={"length": 128}
            value = [f"{key}={to_text(one)}" for key, one in value.items()]
        values = value if isinstance(value, (list, tuple)) and name in (
            "dim", "shape", "group", "save", "recompute", "auto", "checkpoint-region") else [value]
        for one in values:
            if one is None or one is False:
                continue
            settings.append((name, "" if one is True else to_text(one)))
    return settings


def _check_flags(flags, given):
    """Refuses what has a keyword of its own, and what the objects given say already."""
    for flag in flags:
        name = flag.replace("_", "-")
        if name == "memory-budget":
            raise UsageError(f"{flag}: the keyword is 'budget'")
        if name in given and name != "group":
            raise UsageError(f"{flag} is given twice: here, and by a keyword or object that says it "
                             "already")


def _optimizer_settings(optimizer, schedule):
    settings = []
    if isinstance(optimizer, str):
        settings.append(("optimizer", optimizer))
    elif isinstance(optimizer, Optimizer):
        settings += optimizer.settings()
    elif optimizer is not None:
        raise UsageError(f"optimizer={optimizer!r} is neither a name nor one of ckopt's optimizers")
    if isinstance(schedule, Schedule):
        settings += schedule.settings()
    elif schedule is not None:
        raise UsageError(f"schedule={schedule!r} is none of ckopt's schedules")
    return settings


def compile(model: Any, *, loss: str | None = None, optimizer: Optimizer | str | None = None,
            schedule: Schedule | None = None, budget: int | float | str | None = None,
            batch: int | None = None, last_batch: str = "skip", cast: str = "exact",
            **flags: Any) -> CompiledStep:
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
        ``lora=ckopt.LoRA(8, alpha=16)`` or ``lora="8:16"``: adapters, and
        nothing else is trained; ``save`` then writes them alone.
        ``parallel="dp:2"``: the processes that mpirun started train together,
        each on its part of every batch; all make the same calls with the same
        whole batches (``batch`` is that of all), and rank 0 writes files. With
        ``"fsdp:2"`` they share the weights, which come and go whole: all ranks
        also call ``state_dict``, ``evaluate``, ``predict``, ``save`` and
        ``checkpoint`` together.

    Raises BudgetError where no plan fits, UnsupportedError for operators,
    InputError for the file, UsageError for arguments.
    """
    if last_batch not in ("skip", "error"):
        raise UsageError(f"last_batch={last_batch!r} is neither 'skip' nor 'error'")
    check_cast(cast)
    if not isinstance(loss, (str, type(None))):
        raise UsageError(f"loss={loss!r} is no name of a loss"
                         " (functions: ckopt.torch.compile_step)")
    path, folder = _model_file(model)
    settings = [] if loss is None else [("loss", loss)]
    settings += _optimizer_settings(optimizer, schedule)
    limit = budget_setting(budget)
    settings += [limit] if limit else []
    settings += [] if batch is None else [("batch", to_text(batch))]
    _check_flags(flags, {name for name, _ in settings})
    settings += _flag_settings(flags)
    step = CompiledStep(_ckopt.Step(path, settings, folder is not None), last_batch, cast)
    step._made = path, settings
    fields = [field["array"] for field in step._fields]
    twice = [name for name in fields if fields.count(name) > 1]
    if twice and not {"inputs", "targets"} & set(flags):
        raise UsageError(f"an input of the model and the targets are both called '{twice[0]}'; "
                         "give targets='NAME'")
    step._folder = folder  # goes with the step, which saves to copies of the model
    step._tell()
    return step


class Loss:
    """The loss of a batch that a device may still work on; ``float()`` waits for it."""

    def __init__(self, step: CompiledStep, arrays: Any = None):
        self._step: CompiledStep | None = step
        self._value = float("nan")
        self._arrays = arrays  # which a device may still read

    def __float__(self) -> float:
        if self._step is not None:
            self._step._settle(self)
        return self._value

    def __repr__(self) -> str:
        return "a loss that was not waited for" if self._step else repr(self._value)


class CompiledStep:
    """A training step in machine code, with its weights.

    Calling it with the arrays of one batch, by the names of the model's inputs
    and of the targets (``inputs``), makes one update. A step is used by one
    thread at a time; others wait. The GIL is free while it works.
    """

    def __init__(self, step: _ckopt.Step, last_batch: str = "skip", cast: str = "exact"):
        self._step = step
        self._last_batch = last_batch
        self._cast = cast
        self._folder: Any = None  # holds a model that came as bytes
        self._made: Any = None  # path and settings
        self._first: CompiledStep | None = None  # whose arena this one uses
        self._fitting: list[bool] = []  # of all steps of one arena: inside of fit
        self._fields = step.fields
        self._sharing = Sharing(step)
        self._open: tuple[str, int, int] | None = step.open_size
        self._sizes: dict[int, CompiledStep] = {}  # of the open dimension, last used last
        self._lock = threading.RLock()  # of the list of sizes
        self._axes: dict[str, int] | None = None  # of arrays: where the open dimension is
        self.skipped = 0
        self._late: list[Loss] = []  # of batches that were started, in their order
        self.messages: list[str] = []

    def _settle(self, late: Loss) -> None:
        """Waits for all batches that were started."""
        try:
            self._step.settle()
        except BaseException:
            self._drop_late()
            raise
        self._take_losses()
        if late in self._late:
            self._drop_late()
        self._tell()

    def _take_losses(self) -> None:
        values = self._step.take_losses()
        for one, value in zip(self._late, values):
            one._value, one._step, one._arrays = value, None, None
        del self._late[:len(values)]

    def _drop_late(self) -> None:
        """Gives batches that failed, and what was started behind them, no loss."""
        self._take_losses()
        for one in self._late:
            one._step = one._arrays = None
        self._late.clear()

    def at(self, *, batch: int | None = None, dim: Mapping[str, int] | None = None) -> CompiledStep:
        """Compiles the step of the same model for other shapes, in this step's arena.

        batch, dim: what differs; the rest is as this step was made, but the budget,
        which is the arena's bytes. Weights, optimizer state and the number of updates
        are those of both: each batch is trained by the step of its shape, and the
        memory is that of the largest, which is made first. On the CPU.

        Nothing is compiled where the step has a range that holds the size
        (``dim={"seq": "1..512"}``): batches then find their step by their shape, and
        ``at`` returns one of them.

        Raises what ``compile`` raises, BudgetError where no plan fits into the arena,
        and UsageError for a size above the step's range.
        """
        path, settings = self._made
        if not isinstance(dim, (Mapping, type(None))):
            raise UsageError(f"dim={dim!r} is no mapping of names to sizes, like {{'seq': 64}}")
        dims = dict(dim or {})
        given = dims if batch is None else {"batch": batch, **dims}
        if self._open and list(given) == [self._open[0]]:
            (size,) = given.values()
            if self._open[1] <= size <= self._open[2]:
                return self._at_size(size)
            if size > self._open[2]:
                raise UsageError(f"the step was compiled for sizes of '{self._open[0]}' from "
                                 f"{self._open[1]} to {self._open[2]}, not for {size}")
        kept = [(name, value) for name, value in settings
                if not (name == "batch" and batch is not None)
                and not (name == "dim" and value.partition("=")[0] in dims)]
        kept += [] if batch is None else [("batch", to_text(batch))]
        kept += [("dim", f"{name}={size}") for name, size in dims.items()]
        self._not_in_fit()
        first = self._first or self
        other = CompiledStep(_ckopt.Step(path, kept, self._folder is not None, first._step),
                             self._last_batch, self._cast)
        other._made, other._folder, other._first = (path, kept), self._folder, first
        other._fitting = self._fitting
        other._tell()
        return other

    def _at_size(self, size):
        """The step at a size of the dimension that is left open."""
        first = self._first or self
        if size == first._open[2]:
            return first
        with first._lock:
            step = first._sizes.pop(size, None)
            if step is None:
                step = CompiledStep(_ckopt.Step(first._step, size), first._last_batch, first._cast)
                step._made, step._folder, step._first = first._made, first._folder, first
                step._fitting = first._fitting
            first._sizes[size] = step
            if len(first._sizes) > _KEPT_SIZES:
                del first._sizes[next(iter(first._sizes))]
            return step

    def _sized(self, arrays, any_batch=False):
        """The step that takes a batch's shapes: this one, or where it has a range that of a size.

        any_batch: any number of samples, which this one pads.
        """
        if self._open is None or self._first is not None or \
                (any_batch and self._open[0] == "batch"):
            return self
        name, low, high = self._open
        if self._axes is None:
            found = {}
            for one, other in zip(self._fields, self._at_size(low)._fields):
                axes = [0] if name == "batch" and one["batched"] else []
                axes += [axis + one["batched"] for axis, sizes in
                         enumerate(zip(one["shape"], other["shape"])) if sizes[0] != sizes[1]]
                if axes:
                    found[one["array"]] = axes[0]
            self._axes = found  # whole: other threads may look
        for array, axis in self._axes.items():
            if array in arrays and arrays[array].ndim > axis:
                size = arrays[array].shape[axis]
                if not low <= size <= high:
                    raise InputError(f"'{array}' has {size} along '{name}': the step was compiled "
                                     f"for {low} to {high}")
                return self._at_size(size)
        return self

    # --- batches -----------------------------------------------------------

    @property
    def inputs(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """What a batch holds: for each name the type and the shape of one sample."""
        return {field["array"]: (field["dtype"], tuple(field["shape"])) for field in self._fields}

    @property
    def batch(self) -> int:
        """Samples a batch, of all ranks."""
        return self._step.batch

    def _arrays(self, args, kwargs, all_of_them=True, stay=False):
        """Arrays by name, on the host; with ``stay`` those that a device copies stay there."""
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
        return {name: self._array(name, value, known[name], stay) for name, value in named.items()}

    def _array(self, name, value, field, stay):
        if stay and is_on_cuda(value):
            value = value.detach() if hasattr(value, "detach") else value
            array = self._sharing.take(name, value)
            if may_stay(array, field):
                return array
            value = self._sharing.to_host(array)
        return as_array(name, value, field["dtype"], self._cast, self._sharing)

    def _samples(self, arrays):
        for field in self._fields:
            if field["batched"] and field["array"] in arrays and arrays[field["array"]].ndim:
                return len(arrays[field["array"]])
        return self.batch

    @overload
    def __call__(self, *args: Any, wait: Literal[True] = True, **kwargs: Any) -> float: ...
    @overload
    def __call__(self, *args: Any, wait: bool, **kwargs: Any) -> float | Loss: ...
    def __call__(self, *args: Any, wait: bool = True, **kwargs: Any) -> float | Loss:
        """Makes one update from one batch and returns its loss, a float.

        Arrays have the shape [batch, ...]: numpy, torch and all that speaks
        DLPack. With ``accumulate`` only every so many batches update; the loss
        is that of the batch. A batch with fewer samples than ``batch`` is
        skipped (NaN) or an InputError, as ``last_batch`` says. Raises InputError
        for shapes, types, labels out of range and values that are not finite,
        NonFiniteError where training diverges.

        wait: False: on a device the call returns while it works, and the caller makes
            the next batch meanwhile. What is returned then is a ``Loss``, whose
            ``float()`` waits; that training diverges is told by the next call. (An
            array that is called "wait" goes into a mapping.)
        """
        self._not_in_fit()
        arrays = self._arrays(args, kwargs, stay=True)
        step = self._sized(arrays)
        samples = step._samples(arrays)
        if 0 < samples < step.batch and self._last_batch == "skip":
            self.skipped += 1
            if self.skipped == 1 and not _ckopt.rank():
                warnings.warn(f"a batch of {samples} samples is skipped: the step was compiled "
                              f"for {step.batch} (counted in .skipped; last_batch='error' raises)",
                              Warning, stacklevel=2)
            return float("nan")
        if not wait:
            late = Loss(step, arrays)
            step._late.append(late)
            try:
                step._step.step_later(arrays)
            except BaseException:
                step._late.remove(late)
                late._step = late._arrays = None
                if step._step.has_started():  # the batch was refused: an earlier one goes on
                    step._take_losses()
                else:
                    step._drop_late()
                raise
            step._take_losses()
            self._tell()
            return late
        loss, _ = step._step.step(arrays)
        self._tell()
        return loss

    def fit(self, samples: Any, *, validation: Any = None, epochs: int = 1,
            max_steps: int | None = None, holdout: float | None = None,
            validate_every: int | None = None, log: Path | None = None,
            metrics: str | Iterable[str] | None = None, best_by: str | None = None,
            keep_best: Path | None = None, early_stop: int | None = None,
            checkpoint: Path | None = None, checkpoint_every: int | None = None,
            resume: Path | None = None, samples_per_epoch: int | None = None,
            report: Callable[[dict[str, Any]], object] | None = None,
            progress: bool = False) -> FitResult:
        """Trains for ``epochs`` more epochs by the library's loop, that of ``ckopt train``.

        samples: a mapping of arrays [samples, ...] (``{"x": x, "y": y}``), a path
            as ``--data`` takes it, ``ckopt.Tokens`` or ``ckopt.ImageFolder``: each
            epoch in a new order, a function of (seed, epoch), with the bits of the
            driver. A dataset of single samples, mappings or tuples of arrays without
            the batch's dimension (a list, a ``datasets.Dataset``, a torch Dataset): in
            the order that arrays have. Or batches of any sizes, in their
            order: an iterable (a DataLoader) of mappings or tuples, or a function
            that returns an iterator, begun anew for each epoch; single samples that
            come so are put together. Their number is not known before, so that one
            batch is drawn ahead. With ``accumulate`` updates go on over the end of an
            epoch; batches that are too few for one at the end of the last change no
            weight and are counted (``dropped_batches``), with all kinds of samples.
        validation: samples that do not train, in any of these forms; or
            ``holdout``: a share of the arrays or of the dataset. Evaluated at the end, and after every
            ``validate_every`` updates, by loss, accuracy and ``metrics`` ("top5",
            "perplexity", "mse"). ``keep_best``: a file that gets the state of the best
            one (.safetensors: a checkpoint; .onnx: weights), judged by ``best_by``
            (default "loss"); ``early_stop``: ends after so many without a better one.
        max_steps: stops after so many updates.
        log: FILE.csv or FILE.jsonl, which gets a line for each update.
        checkpoint: a file, written at the end of each epoch or after every
            ``checkpoint_every`` updates.
        resume: such a file, or one of the driver: goes on where it stood, with the
            bits of an unbroken run, and ``epochs`` counts from the run's begin.
            Batches of an iterable cannot be resumed: they cannot be found again.
            Samples of a dataset can, if they are the same each time.
        report: called after each update with a dictionary ("step", "epoch", "loss",
            "learning_rate", "seconds", "validation"; with ``precision="f16"``
            "loss_scale", "skipped"). It may look at the step, save
            it, and raise an exception, which ends the run.
        progress: writes a line an epoch to the standard error of the process.

        Samples that do not fill the last batch of an epoch train as they are if the
        step has a range of batches that holds their number; else they are skipped,
        counted and said, or an InputError, as ``last_batch`` says. Ctrl-C is heard between
        updates; the step then stands after the last one.
        """
        self._not_in_fit()
        self._fitting.append(True)
        try:
            result, skipped = run_fit(
                self, samples, validation=validation, convert=self._item_arrays, cast=self._cast,
                strict=self._last_batch == "error", first=self._first_batch(), report=report,
                count=samples_per_epoch, epochs=epochs, max_steps=max_steps, holdout=holdout,
                validate_every=validate_every, metrics=metrics, best_by=best_by,
                keep_best=keep_best, early_stop=early_stop, log=log,
                checkpoint=checkpoint, checkpoint_every=checkpoint_every, resume=resume,
                progress=progress)
        finally:
            self._fitting.clear()
            self._tell()
        if validation is not None and not result.validation and not _ckopt.rank():
            warnings.warn("the validation samples were not evaluated: " +
                          ("all of their labels are ignored" if result.all_ignored else
                           "the step computes its loss itself, from whole batches"),
                          Warning, stacklevel=2)
        if skipped and not self.skipped and not _ckopt.rank():
            warnings.warn(f"{result.dropped} samples of each epoch's last batch are skipped: the "
                          f"step was compiled for {self.batch} (counted in .skipped; "
                          "last_batch='error' raises)", Warning, stacklevel=2)
        self.skipped += skipped
        return result

    def _not_in_fit(self):
        if self._fitting:
            raise UsageError("the step is being trained by fit()")

    def _first_batch(self):
        """What has to see the first batch before it trains, or None."""
        return None

    def _item_arrays(self, item):
        """The arrays by name of an item of an iterable of batches."""
        return self._arrays(item, {}) if isinstance(item, (tuple, list)) else \
            self._arrays((item,), {})

    def gradients(self, *args: Any, **kwargs: Any) -> tuple[float, State]:
        """Returns the loss of one batch and its gradients by parameter; updates nothing.

        Needs ``compile(..., optimizer="none")``. Running statistics move. A loss or
        gradient that is not finite raises NonFiniteError.
        """
        self._not_in_fit()
        arrays = self._arrays(args, kwargs, stay=True)
        loss, gradients = self._sized(arrays)._step.gradients(arrays)
        return loss, {name.removeprefix("grad/"): value for name, value in gradients.items()}

    # --- evaluation --------------------------------------------------------

    def evaluate(self, *args: Any, metrics: str | Iterable[str] | None = None,
                 **kwargs: Any) -> dict[str, float]:
        """Returns {"loss", "count"} and, for classes, "accuracy", of the current weights.

        Takes arrays of any number of samples, one iterable of batches or of single samples
        (mappings or tuples), a dataset, or what the library reads itself: a path as ``--data`` takes it,
        ``ckopt.Tokens``, ``ckopt.ImageFolder``. The last batch is padded and masked.
        ``count`` is the number of elements that the mean is of.

        metrics: names of further numbers: "top5" (any k), "perplexity", "mse",
            ``["top5", "perplexity"]`` or with commas between. (An array that is
            called "metrics" goes into a mapping.)
        """
        names = metric_names(metrics)
        first = args[0] if len(args) == 1 and not kwargs else None
        settings = settings_of(first)
        if settings is not None:
            total = self._step.evaluate_named(settings, names)
            self._tell()
            return total.numbers()
        batches: Iterable[tuple[Any, dict[str, Any]]] = [(args, kwargs)]
        if is_one_batch(first):
            batches = [(first, {})]
        elif first is not None and not isinstance(first, Mapping) and not hasattr(first, "shape"):
            if not isinstance(first, Iterable) and not is_dataset(first):
                raise UsageError(f"samples are arrays, a dataset or an iterable of batches, not "
                                 f"{type(first).__name__}")
            batches = (((arrays,), {}) for arrays in grouped(self, first, self._item_arrays))
        found = None
        for one_args, one_kwargs in batches:
            arrays = self._arrays(one_args, one_kwargs)
            part = self._sized(arrays, any_batch=True)._step.evaluate(arrays, names)
            if found is None:
                found = part
            else:
                found.add(part)
            self._tell()
        if found is None or not found.numbers():
            raise InputError("nothing was evaluated: there were no samples")
        return found.numbers()

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the model's outputs for any number of samples.

        One array [samples, ...] where the model has one output, else a dictionary
        by name. Targets are not needed. Dropout is off, batch norms use their
        running statistics.
        """
        arrays = self._arrays(args, kwargs, all_of_them=False)
        outputs = self._sized(arrays, any_batch=True)._step.predict(arrays)
        return next(iter(outputs.values())) if len(outputs) == 1 else outputs

    # --- weights -----------------------------------------------------------

    def state_dict(self, *, averaged: bool = False) -> State:
        """Returns parameters and running statistics as numpy arrays (copies) by name.

        averaged: with the averages (``ema``) in place of the parameters. Running
        variances are ONNX's (population variance).
        """
        return self._step.weights(averaged)

    def views(self) -> dict[str, View]:
        """Returns parameters and running statistics by name where they lie, without a copy.

        For ``torch.from_dlpack``, or ``numpy.from_dlpack`` on the CPU. Every update
        changes what a view, and a tensor made of it, shows; both can only be read.
        They lie at the same place as long as they are held, and hold the step. On a
        device what is read is in order with the step if it is read in ``stream``.
        """
        return {name: View(self._sharing, name, array, dtype, tuple(shape))
                for name, (array, dtype, shape) in self._step.views().items()}

    @property
    def stream(self) -> int:
        """The stream of the device in whose order the step works, as DLPack numbers it.

        It may be set to ``torch.cuda.current_stream()``, a stream of CuPy, one with
        ``__cuda_stream__``, a CUstream's number, or None: the default stream (1).
        Arrays of the device are copied behind what the stream has by then, and before
        what it is given afterwards; once a view was handed out, so is all of a call.
        """
        return self._sharing.stream

    @stream.setter
    def stream(self, stream: Any) -> None:
        self._sharing.use(stream)

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Sets weights by name, from numpy arrays or tensors.

        strict: names that are missing or unknown are an InputError; otherwise
        they are left alone. Optimizer state stays.
        """
        arrays = {name: as_array(name, value, home=self._sharing) for name, value in state.items()}
        known = self._step.weight_types()
        unknown = [name for name in arrays if name not in known]
        missing = [name for name in known if name not in arrays]
        if strict and (unknown or missing):
            raise InputError("; ".join(
                text for text in (f"unknown: {', '.join(unknown)}" if unknown else "",
                                  f"missing: {', '.join(missing)}" if missing else "") if text)
                + " (strict=False takes what fits)")
        fitting = {name: as_array(name, arrays[name], numpy.dtype(known[name]), self._cast)
                   for name in arrays if name in known}
        self._step.set_weights(fitting)

    def save(self, path: Path, *, averaged: bool = False, trained: bool = False,
             max_shard_size: int = 5_000_000_000) -> None:
        """Writes the current weights.

        path: FILE.onnx (the model with them), FILE.safetensors, or a folder ("NAME/",
            or one that exists), which Transformers' ``from_pretrained`` loads: in files
            of at most ``max_shard_size`` bytes, by the names that ``weights=`` had.
        averaged: with the averages (``ema``) in place of the parameters.
        trained: what was trained alone; PEFT's adapters by the names of its files.
        """
        self._step.write_weights(os.fspath(path), averaged, trained, max_shard_size)

    def checkpoint(self, path: Path) -> None:
        """Writes trained weights, optimizer state and the number of updates (safetensors).

        Frozen weights are not in it: ``resume`` compares those of the step with theirs.
        ``save`` writes all weights.
        """
        self._step.write_checkpoint(os.fspath(path))

    def resume(self, path: Path | "CompiledStep") -> int:
        """Goes on from a checkpoint with the bits of an unbroken run, or from another step.

        path: a checkpoint; of other options (but the budget) or with other frozen
            weights it is an InputError. Or
            a step of the same model for another ``batch`` or ``dim``, whose weights,
            optimizer state and number of updates are taken: so steps of several
            lengths train one model, each batch by the step of its length.
        Returns the number of updates made so far: go on with the batch that followed.
        """
        self._not_in_fit()
        if isinstance(path, CompiledStep):
            path._not_in_fit()
            self._step.resume_from(path._step)
        else:
            self._step.resume(os.fspath(path))
        return self.updates

    @property
    def updates(self) -> int:
        """The number of updates made, those before ``resume`` included."""
        return self._step.updates

    @property
    def loss_scale(self) -> float | None:
        """The factor of the next loss with ``precision="f16"``, else None."""
        state = self._step.loss_scale
        return state and state[0]

    @property
    def skipped_updates(self) -> int:
        """The number of updates that were not made, since their gradients overflowed."""
        state = self._step.loss_scale
        return state[1] if state else 0

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
        """Bytes: of the plan by role, and the peak that was measured so far.

        ``at`` a size of a range: the plan's peak is that of the size, in the arena of
        the largest; what was measured is all that ran in it.
        """
        figures = self.plan.figures
        names = ("planned_peak_bytes", "budget_bytes", "parameter_bytes", "optimizer_bytes",
                 "state_bytes", "data_bytes")
        result = {name: figures[name] for name in names if name in figures}
        if self._first is not None and self._open:
            result["planned_peak_bytes"] = self._step.planned_bytes
        result["measured_peak_bytes"] = self._step.measured_peak()
        return result

    def timeline(self, path: Path | None = None) -> str:
        """Returns memory over the step as SVG; writes it to FILE.svg, or as a trace to FILE.json."""
        return self.plan.timeline(path)

    def profile(self, *args: Any, steps: int = 10, **kwargs: Any) -> list[dict[str, Any]]:
        """Times each kernel call on a batch, mean of ``steps`` updates, slowest first.

        Needs ``compile(..., profile=True)``, whose code is slower. The updates
        are taken back. Rows have "kernel", "source" (the model's node),
        "primitive", "recomputed", "seconds".
        """
        self._not_in_fit()
        rows = self._step.profile(self._arrays(args, kwargs), steps)
        return sorted(rows, key=lambda row: -row["seconds"])

    def __reduce__(self):
        raise TypeError("a CompiledStep is code in this process and can be neither pickled nor "
                        "copied: write a checkpoint, or compile it again and load_state_dict()")

    # --- messages ----------------------------------------------------------

    def _tell(self):
        for severity, text in self._step.messages():
            self.messages.append(f"{severity}: {text}")
            if _ckopt.rank():  # rank 0 says the same
                continue
            if severity == "warning":
                warnings.warn(text, Warning, stacklevel=3)
            else:
                _log.info("%s: %s", severity, text)

    def __repr__(self) -> str:
        takes = ", ".join(f"{name}: {dtype}[{self.batch}{''.join(f', {n}' for n in shape)}]"
                          for name, (dtype, shape) in self.inputs.items())
        return f"<ckopt.CompiledStep({takes}), {self.updates} updates>"


def batches(batch: int, *, epochs: int = 1, seed: int = 0, rest: bool = False,
            **arrays: Any) -> Iterator[State]:
    """Yields batches of arrays [samples, ...] as ``ckopt train`` draws them.

    Each epoch has the samples in a new order, a function of (seed, epoch); those
    that do not fill the last batch are left out or, with ``rest``, make a smaller
    one, for a step with a range of batches. With the same seed a step gets the
    bits that it gets from the driver.
    """
    if batch < 1 or epochs < 0:
        raise UsageError(f"batch={batch} and epochs={epochs} are no numbers of samples and epochs")
    arrays = {name: as_array(name, value) for name, value in arrays.items()}
    counts = {name: len(value) if value.ndim else 0 for name, value in arrays.items()}
    if len(set(counts.values())) != 1:
        raise UsageError(f"arrays of as many samples are needed, not {counts}")
    samples = next(iter(counts.values()))
    if samples < batch and not rest:
        raise InputError(f"{samples} samples do not fill one batch of {batch}")
    for epoch in range(epochs):
        order = _ckopt.epoch_order(samples, seed, epoch)
        for start in range(0, samples if rest else samples - batch + 1, batch):
            chosen = order[start:start + batch]
            yield {name: value[chosen] for name, value in arrays.items()}
