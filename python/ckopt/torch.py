# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch modules as steps, ``ckopt.torch.compile_step``, and as files, ``ckopt.torch.export``.

The module is exported in training form, compiled, trained by ckopt, and gets
its weights back by ``sync()``.
"""

from __future__ import annotations

import inspect
import os
import re
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from ._compare import (
    Comparison,
    ComparisonError,
    bits,
    copy_of,
    first,
    look_at_forward,
    refuse_hooks,
    refuse_shared_memory,
    running_variance,
    some,
    warn_of_draws,
)
from ._export import Call, names_of, tensors_of
from ._export import export as _write
from ._fit import FitResult
from ._step import CompiledStep, TemporaryFolder
from ._step import compile as _compile
from ._quantize import quantize_base
from .errors import InputError, InternalError, UnsupportedError, UsageError, Warning
from .optim import Optimizer, Schedule

__all__ = ["ComparisonError", "Finetuned", "TorchStep", "compile_step", "export", "finetune",
           "partitioner", "quantize_base"]

_functional = torch.nn.functional

# Losses that the first call can compare, by the driver's names.
_LOSSES = {
    "cross_entropy": _functional.cross_entropy,
    "nll": _functional.nll_loss,
    "mse": _functional.mse_loss,
    "l1": _functional.l1_loss,
    "smooth_l1": _functional.smooth_l1_loss,
    "huber": _functional.huber_loss,
    "bce": _functional.binary_cross_entropy,
    "bce_logits": _functional.binary_cross_entropy_with_logits,
}
_LABELLED = ("cross_entropy", "nll")
# Flags of losses, PyTorch's names for them, and what they are there.
_LOSS_FLAGS = {
    "label_smoothing": ("label_smoothing", float), "ignore_index": ("ignore_index", int),
    "reduction": ("reduction", str), "beta": ("beta", float), "delta": ("delta", float),
    "class_weights": ("weight", torch.tensor), "pos_weight": ("pos_weight", torch.tensor),
}


def _loss_function(loss, flags):
    """PyTorch's loss of the driver's name and flags; None where it has none."""
    function = _LOSSES.get(loss)
    if function is None:
        return None
    known = inspect.signature(function).parameters
    settings = {}
    for flag, (name, make) in _LOSS_FLAGS.items():
        if flag not in flags:
            continue
        value = flags[flag]
        if name not in known or isinstance(value, str) != (make is str):
            return None
        settings[name] = make([float(v) for v in value] if make is torch.tensor else value)
    axis = int(flags.get("class_axis", 1)) if loss in _LABELLED else None

    def compute(outputs, targets):
        scores = first(outputs)
        return function(scores if axis is None else scores.movedim(axis, min(1, scores.dim() - 1)),
                        targets, **settings)

    return compute


class _WithLoss(torch.nn.Module):
    """A module with a loss of the caller's at its end."""

    def __init__(self, module, loss):
        super().__init__()
        self.module = module
        self.loss = loss

    def forward(self, arguments, named, y):
        return self.loss(self.module(*arguments, **named), y)


def check_module(module):
    """Refuses what cannot be exported, or trained as it is."""
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"{type(module).__name__} is no torch.nn.Module")
    for name, value in tensors_of(module).items():
        if torch.nn.parameter.is_lazy(value):
            raise UsageError(f"'{name}' has no shape yet: call the module once before")
        if value.device.type != "cpu":
            raise InputError(f"'{name}' is on {value.device}; call module.cpu() first")
    for name, one in module.named_modules():
        if isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and one.momentum is None and \
                one.track_running_stats and one.training:
            raise UnsupportedError(f"'{name}' averages its running statistics over all steps "
                                   "(momentum=None), which ONNX cannot say; give it a momentum")


def _warn_of_eval(module):
    moody = (torch.nn.modules.batchnorm._BatchNorm, torch.nn.modules.dropout._DropoutNd)
    if not any(one.training for one in module.modules()) and \
            any(isinstance(one, moody) for one in module.modules()):
        warnings.warn("the module is in eval(): dropout is off, and batch norms use their running "
                      "statistics; call module.train() first to train as usual", Warning,
                      stacklevel=3)


class TorchStep(CompiledStep):
    """A compiled step of a module (``compile_step``)."""

    _prefix: str               # of the module's names in the step
    _tracked: dict[str, int]   # batches that norms had seen before
    _of_the_loss: set[str]     # weights that are no module's
    _fixed: dict[str, bytes]   # digests of what must not move in the first two updates

    def _bind(self, module, names, unread, norms, accumulate, check, trained):
        self._module = module
        self._unread = unread      # inputs that arrays may be given for, and that are not read
        self._trained = trained
        self._fixed = {}
        self._names = names        # of inputs, then the targets if ckopt attaches the loss
        self._norms = norms        # running variances: samples a batch and momentum
        self._accumulate = accumulate
        self._check = check        # what the first call compares, or None
        self._pending = 0
        self._start = {}
        self._note_start(0)

    @property
    def module(self) -> torch.nn.Module:
        """The module; ``sync`` writes to it."""
        return self._module

    def _name(self, torch_name):
        """ckopt's name of a tensor of the module."""
        return self._prefix + torch_name

    def _batches_run(self):
        return self.updates * self._accumulate + self._pending

    def _note_start(self, batches):
        """Remembers running variances and batches run, from which PyTorch's follow."""
        self._begin = batches
        state = self.state_dict()
        self._start = {name: state[name].astype("f8") for name in self._norms if name in state}

    def _arrays(self, args, kwargs, all_of_them=True, stay=False):
        if len(args) == 1 and not kwargs and isinstance(args[0], Mapping):
            args, kwargs = (), args[0]
        if args:
            if len(args) > len(self._names):
                raise UsageError(f"{len(args)} arrays for {', '.join(self._names)}")
            named = dict(zip(self._names, args))
            twice = [name for name in named if name in kwargs]
            if twice:
                raise UsageError(f"'{twice[0]}' is given twice")
            kwargs = {**named, **kwargs}
        kwargs = {name: value for name, value in kwargs.items()
                  if name not in self._unread or name in self.inputs}
        return super()._arrays((), kwargs, all_of_them, stay)

    def _first_batch(self):
        if self._check is None:
            return None

        def compare(arrays):
            self._check(self, arrays)
            self._check = None  # its memory is free again
            self._watch()

        return compare

    def _watch(self):
        """Notes the bits of what is not trained, for the first two updates."""
        state = self.state_dict()
        moving = self._trained | set(self._norms) | self._of_the_loss | {
            name[:-len("var")] + "mean" for name in self._norms}
        self._fixed = bits(state, [name for name in state if name not in moving])
        self._watched = self.updates + 2

    def _look(self):
        """Raises where something moved that is not trained."""
        if not self._fixed:
            return
        now = bits(self.state_dict(), self._fixed)
        moved = [name for name, was in self._fixed.items() if now[name] != was]
        if moved:
            raise InternalError(f"{some(moved)}: not trained, but moved by an update")
        if self.updates >= self._watched:
            self._fixed = {}

    def __call__(self, *args: Any, wait: bool = True, **kwargs: Any) -> Any:
        """Makes one update, as CompiledStep does; the first call compares with PyTorch.

        Inputs come in forward's order, then the targets. Raises ComparisonError
        if loss or gradients differ from those of the module.
        """
        compare = self._first_batch()
        if compare:
            self._not_in_fit()
            arrays = self._arrays(args, kwargs)
            if self._samples(arrays) == self.batch:
                compare(arrays)
        before = self.skipped
        loss = super().__call__(*args, wait=wait, **kwargs)
        if self.skipped == before:
            self._pending = (self._pending + 1) % self._accumulate
            self._look()
        return loss

    def fit(self, samples: Any, **options: Any) -> FitResult:
        """Trains as CompiledStep does; the first batch is compared with PyTorch before."""
        result = super().fit(samples, **options)
        self._look()
        return result

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Sets weights by ckopt's names; running statistics are ONNX's."""
        super().load_state_dict(state, strict=strict)
        self._fixed = {}
        self._note_start(self._batches_run())

    def resume(self, path: str | os.PathLike[str] | CompiledStep) -> int:
        """Goes on from a checkpoint or another step; the module's running statistics of the start count."""
        updates = super().resume(path)
        self._pending = 0
        self._fixed = {}
        return updates

    def save(self, path: str | os.PathLike[str], *, averaged: bool = False, trained: bool = False,
             max_shard_size: int = 5_000_000_000) -> None:
        """Writes the current weights, as CompiledStep does.

        If the module is a model of Transformers, or has one in it, a folder gets that
        model's names and its configuration: what ``from_pretrained`` loads.
        """
        folder = os.fspath(path)
        found = _published(self._module)
        whole = found and not trained and (folder.endswith(os.sep) or os.path.isdir(folder))
        if whole:
            name, model = found
            self._step.name_in_folders(self._name(f"{name}." if name else ""), [
                (self._name(other), self._name(names[0]))
                for names in names_of(self._module).values() for other in names[1:]])
        super().save(path, averaged=averaged, trained=trained, max_shard_size=max_shard_size)
        if whole:
            for config in (model.config, getattr(model, "generation_config", None)):
                if config is not None:
                    config.save_pretrained(folder)

    def sync(self) -> torch.nn.Module:
        """Writes weights and running statistics into the module and returns it.

        Names and shapes are PyTorch's, running variances those that PyTorch would
        have (of samples, N/(N-1) of ONNX's). Tied weights and weights that the
        module does not use keep what they share and are. Raises InputError where
        a trained weight has no counterpart.
        """
        state = self.state_dict()
        batches = self._batches_run() - self._begin
        targets = tensors_of(self._module)
        homeless = [name for name in state
                    if not (name.startswith(self._prefix) and name[len(self._prefix):] in targets)
                    and name not in self._of_the_loss]
        if homeless:
            raise InputError(f"the module has no {', '.join(homeless)}")
        with torch.no_grad():
            for name, tensor in targets.items():
                ours = self._name(name)
                if ours in state:
                    value = state[ours]
                    if ours in self._norms:
                        value = running_variance(value, self._start[ours], batches,
                                                 self._norms[ours])
                    if value.shape != tuple(tensor.shape):
                        raise InputError(f"'{name}' has shape {list(tensor.shape)} in the module, "
                                         f"{list(value.shape)} in the step")
                    tensor.copy_(torch.from_numpy(value).to(tensor.dtype))
                elif name.endswith("num_batches_tracked") and \
                        self._name(name[:-len("num_batches_tracked")] + "running_var") in self._norms:
                    calls = self._norms[self._name(
                        name[:-len("num_batches_tracked")] + "running_var")][2]
                    tensor.fill_(self._tracked.setdefault(name, int(tensor)) +
                                 self._batches_run() * calls)
        return self._module


def _published(module):
    """The one model of Transformers in a module, with its name there, or None.

    PEFT's models are none: of these, adapters are published.
    """
    found = [(name, one) for name, one in module.named_modules()
             if hasattr(one, "save_pretrained") and hasattr(one, "config")]
    outer = [(name, one) for name, one in found
             if not any(name.startswith(f"{other}." if other else "") and name != other
                        for other, _ in found)]
    return outer[0] if len(outer) == 1 and not hasattr(outer[0][1], "peft_config") else None


def norms_stay(module, trained):
    """Whether frozen batch norms are in eval(), PyTorch's own way to keep their statistics."""
    norms = {name: one for name, one in module.named_modules()
             if isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and not any(
                 f"{name}.{key}".lstrip(".") in trained for key, _ in one.named_parameters())}
    moving = [name for name, one in norms.items() if one.training]
    if moving:
        raise UsageError(f"freeze_norms: in the module {some(moving)} use the batch's statistics. "
                         "Call eval() on these norms before compile_step, and they use their "
                         "running statistics there and in the step")
    return bool(norms)


def refuse_changes(names, check):
    """Says that forward changes tensors, which the step would leave as they are."""
    if not names:
        return
    text = (f"forward changes {some(names)}, which an ONNX file cannot say: in the step they stay "
            "as they are")
    if check:
        raise UnsupportedError(f"{text}. Only running statistics of batch norms are followed; "
                               "move the change out of forward, between steps, or check=False, "
                               "which trains with the others as constants")
    warnings.warn(text, Warning, stacklevel=3)


def _trained(module, flags):
    """The names of trained parameters, each under all its names.

    What a pattern says of one name holds for the parameter: PyTorch lists the first name of
    a tied weight, a file has any of them.
    """
    def fits(flag, aliases):
        return any(re.fullmatch(flags[flag], name) for name in aliases)

    return {name for p, aliases in names_of(module).items() for name in aliases
            if p.requires_grad and
            not ("freeze" in flags and fits("freeze", aliases)) and
            ("train" not in flags or fits("train", aliases))}


def _pattern(given, names):
    """A pattern that matches what another does, and these names."""
    return "|".join(([given] if given else []) +
                    [re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name) for name in names])


def unread_names(given, names):
    """The inputs that the user says nothing reads."""
    unread = tuple(given.split(",") if isinstance(given, str) else given)
    unread = tuple(name for name in unread if name)
    unknown = [name for name in unread if name not in names]
    if unknown:
        raise UsageError(f"unused_inputs: no input is called {some(unknown)}, but "
                         f"{', '.join(names)}")
    return unread


def check_read(read, names, unread):
    """An input that nothing reads is an error, unless the user says that he knows."""
    silent = [name for name in names if name not in read and name not in unread]
    if silent:
        raise InputError(
            f"nothing in the exported module reads {some(silent)}: no value given for it has an "
            "effect on the loss. If that is meant, say so: "
            f"unused_inputs={silent[0] if len(silent) == 1 else silent!r}")
    wrong = [name for name in unread if name in read]
    if wrong:
        raise UsageError(f"unused_inputs: {some(wrong)} has an effect on the loss")


def compile_step(module: torch.nn.Module, example_inputs: Any, *, example_targets: Any = None,
                 loss: Any = None, optimizer: Optimizer | str | None = None,
                 schedule: Schedule | None = None, budget: int | float | str | None = None,
                 check: bool = True, unused_inputs: str | Iterable[str] = (),
                 **flags: Any) -> TorchStep:
    """Exports a module in training form and compiles it to a step.

    module: on the CPU, in training mode as it shall be trained (parts in
        ``eval()`` stay so); parameters without ``requires_grad`` are frozen,
        under all their names.
    example_inputs: a tensor, a tuple in forward's order, or a mapping by forward's
        names; of tensors, tuples and mappings of tensors. The first dimension of the
        first is the batch, which is fixed. They are copied: what they share among
        each other means nothing.
    loss: None where forward returns the loss; a name ("cross_entropy", "mse", ...:
        classes along dimension 1, as in PyTorch), whose targets are ``y``; or a
        function or module of (outputs, targets), exported with the module, which
        needs ``example_targets``.
    optimizer, schedule, budget, flags: as in ``ckopt.compile``.
    check: the first call computes loss and every gradient in PyTorch too, over two
        steps on its batch, dropout off, and raises ComparisonError where they differ.
        Costs, once, a copy of the module with gradients, two steps of PyTorch, and a
        compilation of the exported file without budget.
    unused_inputs: names of inputs that nothing reads, which otherwise is an error
        (with commas between, or a list).

    Raises UnsupportedError, with what to do, where the exporter fails.
    """
    check_module(module)
    call = Call(module, example_inputs)
    if not call.tensors or not call.tensors[0].ndim:
        raise UsageError("example_inputs: the first input's first dimension is the batch")
    _warn_of_eval(module)
    unread = unread_names(unused_inputs, call.names)
    if callable(loss):
        if example_targets is None:
            raise UsageError("a loss function is exported with the module: give example_targets")
        whole: torch.nn.Module = _WithLoss(module, loss)
        whole.training = module.training
        prefix, attached, loss_name = "module.", None, None
        call = Call(module, example_inputs, example_targets)
        names = call.names
    else:
        whole, prefix, loss_name = module, "", loss
        attached = _loss_function(loss, flags) if loss else None
        if loss and check and attached is None:
            raise UsageError(f"loss='{loss}' with these settings cannot be compared with PyTorch: "
                             "give a function, or check=False")
        names = call.names + ([flags.get("targets", "y")] if loss else [])
        if loss in _LABELLED:
            flags.setdefault("class_axis", 1)
    if flags.get("lora"):
        raise UsageError("lora: a module gets adapters by PEFT, and is compiled with them; lora= is "
                         "for ckopt.compile, which has no module to write them to")
    refuse_hooks(whole)
    refuse_shared_memory(whole)
    parameters = {name for name, _ in whole.named_parameters(remove_duplicate=False)}
    trained = _trained(whole, flags)
    if flags.get("freeze_norms") and norms_stay(whole, trained):
        del flags["freeze_norms"]  # the file has them as they are
    norms, changed = look_at_forward(whole, call)
    warn_of_draws(whole, call)
    refuse_changes(changed, check)
    if changed:  # which a warning has said
        flags = {"allow_inference_export": True, **flags}
    settings = dict(flags, loss=loss_name, optimizer=optimizer, schedule=schedule, budget=budget)
    settings = {name: value for name, value in settings.items() if value is not None}
    folder = TemporaryFolder()
    path = os.path.join(folder.name, "model.onnx")
    # The exporter runs the module; buffers of a copy may move.
    read = _write(copy_of(whole), call.arguments(call.tensors), call.names, path, unread)
    check_read(read, call.names, unread)
    frozen = sorted(parameters & read - trained)
    if frozen:
        settings["freeze"] = _pattern(flags.get("freeze"), frozen)
    if "train" in flags:
        settings["train"] = _pattern(flags["train"], sorted(trained & read))
    plain = _compile(path, **settings)
    if plain._open:
        raise UsageError("a module's step is for one size, at which it is compared with the module: "
                         "for a range ckopt.torch.export it with a dynamic dimension, and "
                         "ckopt.compile the file")
    step = TorchStep.__new__(TorchStep)
    step.__dict__.update(plain.__dict__)
    step._folder = folder
    step._prefix = prefix
    step._tracked = {name: int(value) for name, value in module.named_buffers()
                     if name.endswith("num_batches_tracked")}
    step._of_the_loss = {name for name in step._step.weight_types() if prefix and
                         name.startswith("loss.")}
    accumulate = getattr(optimizer, "_values", {}).get("accumulate") or \
        int(flags.get("accumulate", 1))
    compare = None
    if check:
        # A copy: gradients of the comparison leave the module as it is.
        eager = copy_of(whole)
        for name, p in eager.named_parameters(remove_duplicate=False):
            p.requires_grad_(name in trained)
        compare = Comparison(eager, attached, call, names, path, settings, norms,
                             lambda one, to: _write(one, call.arguments(call.tensors),
                                                    call.names, to))
    step._bind(module, names, unread, norms, accumulate, compare, trained)
    return step


from ._finetune import Finetuned, finetune  # noqa: E402 (as ckopt.torch.finetune)
from ._partitioner import partitioner  # noqa: E402 (as ckopt.torch.partitioner)
from ._written import export  # noqa: E402 (as ckopt.torch.export)
