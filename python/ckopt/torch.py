# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch modules as steps: ``ckopt.torch.compile_step``.

The module is exported in training form, compiled, trained by ckopt, and gets
its weights back by ``sync()``.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import logging
import os
import re
import tempfile
import warnings
from collections.abc import Mapping
from typing import Any

import torch

from ._step import CompiledStep
from ._step import compile as _compile
from .errors import Error, InputError, UnsupportedError, UsageError, Warning
from .optim import Optimizer, Schedule

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
    return functools.partial(function, **settings)


class ComparisonError(Error):
    """The compiled step computes other numbers than the module: something got lost.

    The text names the tensors. What an exporter drops or folds without a word
    shows here; ``check=False`` leaves the comparison out.
    """


class _WithLoss(torch.nn.Module):
    """A module with a loss of the caller's at its end; the last input is the targets."""

    def __init__(self, module, loss):
        super().__init__()
        self.module = module
        self.loss = loss

    def forward(self, *inputs):
        return self.loss(self.module(*inputs[:-1]), inputs[-1])


@contextlib.contextmanager
def _no_dropout(module):
    """Dropout does nothing inside: in modules, in functions, in attention."""
    names = [n for n in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                         "feature_alpha_dropout") if hasattr(_functional, n)]
    saved = {name: getattr(_functional, name) for name in names}
    torch_dropout, attention = torch.dropout, _functional.scaled_dot_product_attention

    def same(input, *_, **__):  # noqa: A002 (PyTorch's name)
        return input

    def attend(query, key, value, attn_mask=None, dropout_p=0.0, *rest, **named):
        return attention(query, key, value, attn_mask, 0.0, *rest, **named)

    recurrent = [(m, m.dropout) for m in module.modules() if isinstance(m, torch.nn.RNNBase)]
    try:
        for name in names:
            setattr(_functional, name, same)
        torch.dropout = same
        _functional.scaled_dot_product_attention = attend
        for one, _ in recurrent:
            one.dropout = 0.0
        yield
    finally:
        for name, function in saved.items():
            setattr(_functional, name, function)
        torch.dropout = torch_dropout
        _functional.scaled_dot_product_attention = attention
        for one, ratio in recurrent:
            one.dropout = ratio


def _input_names(module, count):
    """The names of forward's parameters; those after *args are numbered."""
    names = []
    for name, parameter in inspect.signature(module.forward).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            names.append(name)
    taken = {"y"} | {name for name, _ in module.named_parameters()}  # y: the targets
    taken |= {name for name, _ in module.named_buffers()}
    names = (names + [f"input_{i}" for i in range(len(names), count)])[:count]
    return [f"{name}_input" if name in taken else name for name in names]


def _evaluated_norm(norm, x):
    """A batch norm in eval() in plain arithmetic."""
    def along(value):
        return value.reshape(1, -1, *[1] * (x.ndim - 2))
    scale = torch.rsqrt(norm.running_var + norm.eps)
    x = (x - along(norm.running_mean)) * along(scale if norm.weight is None else scale * norm.weight)
    return x if norm.bias is None else x + along(norm.bias)


@contextlib.contextmanager
def _evaluated_norms(module):
    """Norms in eval() are arithmetic inside: the exporter writes norms in training as those."""
    norms = [one for one in module.modules()
             if isinstance(one, torch.nn.modules.batchnorm._BatchNorm) and not one.training and
             one.running_mean is not None]
    try:
        for norm in norms:
            norm.forward = functools.partial(_evaluated_norm, norm)
        yield
    finally:
        for norm in norms:
            del norm.forward


def _root(error):
    """The first line of what an exception goes back to, without colors."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def _export(module, inputs, names, path):
    """Writes the module as it is, in training or not; what it raises says what to do."""
    big = sum(p.nbytes for p in module.parameters()) > 1 << 30
    # It warns of each package that is not there, whether the module needs it or not.
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _evaluated_norms(module):
            warnings.simplefilter("ignore")
            torch.onnx.export(module, inputs, path, dynamo=True, optimize=False, verbose=False,
                              input_names=names, external_data=big)
    except ImportError as error:
        raise UsageError(f"PyTorch's exporter needs a package: {error} "
                         "(pip install onnx onnxscript)") from error
    except Exception as error:  # whatever the exporter raises
        raise UnsupportedError(
            f"PyTorch cannot export the module: {_root(error)}\n"
            "  forward has to be without control flow that depends on values; "
            "torch.export.export(module, inputs) shows where it stops.\n"
            "  Export it yourself (docs/from-pytorch.md) and give the file to ckopt.compile") \
            from error
    finally:
        logger.setLevel(level)


def _tensors(values, what):
    if isinstance(values, torch.Tensor):
        values = (values,)
    if isinstance(values, Mapping):
        raise UsageError(f"{what}: give a tuple of tensors in the order of forward's parameters")
    values = tuple(values)
    for value in values:
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"{what}: {type(value).__name__} is no tensor")
        if value.device.type != "cpu":
            raise InputError(f"{what} are on {value.device}; pass them after .cpu()")
    return values


def _check_module(module):
    if not isinstance(module, torch.nn.Module):
        raise UsageError(f"{type(module).__name__} is no torch.nn.Module")
    for name, value in list(module.named_parameters()) + list(module.named_buffers()):
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

    def _bind(self, module, eager, names, norms, accumulate, check):
        self._module = module
        self._eager = eager        # module and loss, for the comparison
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

    def _arrays(self, args, kwargs, all_of_them=True):
        if args and not (len(args) == 1 and isinstance(args[0], Mapping)):
            if len(args) > len(self._names):
                raise UsageError(f"{len(args)} arrays for {', '.join(self._names)}")
            named = dict(zip(self._names, args))
            twice = [name for name in named if name in kwargs]
            if twice:
                raise UsageError(f"'{twice[0]}' is given twice")
            known = self.inputs
            kwargs = {**{n: v for n, v in named.items() if n in known}, **kwargs}
            args = ()
        return super()._arrays(args, kwargs, all_of_them)

    def _first_batch(self):
        if self._check is None:
            return None

        def compare(arrays):
            self._check(self, arrays)
            self._check = self._eager = None  # its memory is free again

        return compare

    def __call__(self, *args: Any, **kwargs: Any) -> float:
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
        loss = super().__call__(*args, **kwargs)
        if self.skipped == before:
            self._pending = (self._pending + 1) % self._accumulate
        return loss

    def load_state_dict(self, state: Mapping[str, Any], *, strict: bool = True) -> None:
        """Sets weights by ckopt's names; running statistics are ONNX's."""
        super().load_state_dict(state, strict=strict)
        self._note_start(self._batches_run())

    def resume(self, path: str | os.PathLike[str]) -> int:
        """Goes on from a checkpoint; the module's running statistics of the start count."""
        updates = super().resume(path)
        self._pending = 0
        return updates

    def sync(self) -> torch.nn.Module:
        """Writes weights and running statistics into the module and returns it.

        Names and shapes are PyTorch's, running variances those that PyTorch would
        have (of samples, N/(N-1) of ONNX's). Tied weights and weights that the
        module does not use keep what they share and are. Raises InputError where
        a trained weight has no counterpart.
        """
        state = self.state_dict()
        batches = self._batches_run() - self._begin
        targets = _tensors_of(self._module)
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
                        value = self._running_variance(ours, value, batches)
                    tensor.copy_(torch.from_numpy(value).to(tensor.dtype))
                elif name.endswith("num_batches_tracked") and \
                        self._name(name[:-len("num_batches_tracked")] + "running_var") in self._norms:
                    calls = self._norms[self._name(
                        name[:-len("num_batches_tracked")] + "running_var")][2]
                    tensor.fill_(self._tracked.setdefault(name, int(tensor)) +
                                 self._batches_run() * calls)
        return self._module

    def _running_variance(self, name, value, batches):
        """ONNX averages variances of the batch, PyTorch N/(N-1) of them; both are linear.

        r(t) = (1-m)^t r(0) + sum of the variances' shares: the share of the start
        is known, the rest is N/(N-1) of ours.
        """
        count, momentum, calls = self._norms[name]
        start = self._start[name] * (1 - momentum) ** (batches * calls)
        return (start + (value.astype("f8") - start) * (count / (count - 1))).astype(value.dtype)


def _is_running(norm):
    """Whether a module is a batch norm that moves its running statistics."""
    return isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) and norm.training and \
        norm.track_running_stats


def _tensors_of(module):
    """Parameters and buffers by name; tied ones by each of their names."""
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def _look_at_forward(module, inputs):
    """Runs a copy of a module: what its norms see, and which other tensors forward changes.

    Returns, by running variance, elements a channel, momentum and calls of each batch norm in
    training; and the names of parameters and buffers that forward changes and no file says so.
    """
    # Modules without buffers rarely change anything, but embeddings with max_norm do.
    if not any(True for _ in module.buffers()) and \
            all(getattr(one, "max_norm", None) is None for one in module.modules()):
        return {}, []
    module = copy.deepcopy(module)
    norms = {(name + "." if name else "") + kind
             for name, norm in module.named_modules(remove_duplicate=False) if _is_running(norm)
             for kind in ("running_mean", "running_var", "num_batches_tracked")}
    before = {name: tensor.detach().clone() for name, tensor in _tensors_of(module).items()
              if name not in norms and tensor.device.type == "cpu"}
    with torch.random.fork_rng(devices=[]):
        found = _count_norms(module, inputs)
    after = _tensors_of(module)
    return found, [name for name, was in before.items()
                   if name not in after or not _same(was, after[name])]


def _same(was, now):
    return was.shape == now.shape and bool(((was == now) | ((was != was) & (now != now))).all())


def _count_norms(module, inputs):
    """Elements a channel and momentum of each batch norm in training, by its running variance."""
    found, hooks = {}, []

    def note(name, norm):
        def hook(_, args):
            count = args[0].numel() // args[0].shape[1]
            was = found.get(name)
            if was is not None and was[0] != count:
                raise UnsupportedError(f"'{name}' sees batches of {was[0]} and {count} elements a "
                                       "channel: its running variance cannot be put into "
                                       "PyTorch's convention")
            found[name] = (count, norm.momentum, 1 + (was[2] if was else 0))
        return hook

    for name, norm in module.named_modules():
        if _is_running(norm):
            key = (name + "." if name else "") + "running_var"
            hooks.append(norm.register_forward_pre_hook(note(key, norm)))
    with torch.no_grad():
        module(*inputs)
    for hook in hooks:
        hook.remove()
    return found


def _some(names):
    """The first four of many names."""
    return ", ".join(f"'{name}'" for name in names[:4]) + \
        (f" and {len(names) - 4} more" if names[4:] else "")


def _refuse_changes(names, check):
    """Says that forward changes tensors, which the step would leave as they are."""
    if not names:
        return
    text = f"forward changes {_some(names)}, which an ONNX file cannot say: in the step they stay as they are"
    if check:
        raise UnsupportedError(f"{text}. Only running statistics of batch norms are followed; "
                               "check=False trains with the others as constants")
    warnings.warn(text, Warning, stacklevel=3)


def _refuse_hooks(module):
    """Refuses functions that change gradients: neither an ONNX file nor a copy has them."""
    hooked = [name for name, tensor in _tensors_of(module).items()
              if getattr(tensor, "_backward_hooks", None)
              or getattr(tensor, "_post_accumulate_grad_hooks", None)]
    hooked += [name or "the module" for name, one in module.named_modules()
               if one._backward_hooks or one._backward_pre_hooks]
    if hooked:
        raise UnsupportedError(
            f"hooks of the backward pass (register_hook and the like) on {_some(hooked)}: the step "
            "computes gradients by itself and never calls them; remove them, or write what they do "
            "into the loss or the optimizer's settings")


def _first(outputs):
    if isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        outputs = tuple(outputs.values())
    return _first(outputs[0])


def _differences(names, eager_loss, eager, loss, gradients):
    """Lines that name what differs by more than f32 sums in another order do."""
    lines = []
    if not abs(loss - eager_loss) <= 1e-4 * max(1.0, abs(eager_loss)):
        lines.append(f"loss: {loss:.7g}, PyTorch {eager_loss:.7g}")
    largest = max((float(g.abs().max()) for g in eager.values() if g.numel()), default=0.0)
    for name, expected in eager.items():
        ours = gradients.get(names(name))
        if ours is None:
            if float(expected.abs().max()) > 0:
                lines.append(f"gradient of '{name}': none, PyTorch has one")
            continue
        got = torch.from_numpy(ours).reshape(expected.shape)
        error = float((got - expected).abs().max()) if expected.numel() else 0.0
        scale = float(expected.abs().max()) if expected.numel() else 0.0
        if not error <= 2e-3 * scale + 1e-5 * largest:
            lines.append(f"gradient of '{name}': off by {error:.3g}, the largest is {scale:.3g}")
    return lines


def _make_check(eager, attached, inputs, names, settings, frozen):
    """The comparison of the first call: one eager step, one compiled without budget."""

    def check(step, arrays):
        tensors = tuple(torch.from_numpy(arrays[name]) if name in arrays else value
                        for name, value in zip(names, inputs))
        with _no_dropout(eager), torch.enable_grad():
            with tempfile.TemporaryDirectory(prefix="ckopt-") as folder:
                path = os.path.join(folder, "check.onnx")
                exported = tensors[:len(tensors) - bool(attached)]
                _export(eager, exported, names[:len(exported)], path)
                plain = {k: v for k, v in settings.items() if k not in (
                    "optimizer", "schedule", "budget", "profile", "last_batch",
                    "precision", "keep_f32", "matmul_precision", "loss_scale", "loss_scale_init",
                    "loss_scale_growth_interval")}  # the export is judged in f32
                reference = _compile(path, optimizer="none", **plain)
                weights = step.state_dict()  # those of now: maybe loaded, or resumed
                reference.load_state_dict(weights, strict=False)
                loss, gradients = reference.gradients(
                    {n: arrays[n] for n in reference.inputs})
            eager.zero_grad(set_to_none=True)
            with torch.no_grad():
                for name, tensor in _tensors_of(eager).items():
                    if name in weights:
                        tensor.copy_(torch.from_numpy(weights[name]).to(tensor.dtype))

            def loss_of():
                value = eager(*exported)
                return _first(attached(_first(value), tensors[-1]) if attached else value)

            value = loss_of()
            value.backward()
            with torch.no_grad():
                again = loss_of()
        grads = {name: p.grad for name, p in eager.named_parameters()
                 if p.grad is not None and name not in frozen}
        tied = {id(p): name for name, p in eager.named_parameters()}
        aliases = {}
        for name, p in eager.named_parameters(remove_duplicate=False):
            aliases.setdefault(tied[id(p)], []).append(name)

        def ours(name):
            return next((a for a in aliases[name] if a in gradients), name)

        lines = _differences(ours, float(value.detach()), grads, loss, gradients)
        eager.zero_grad(set_to_none=True)
        if lines and not _same(value, again):
            raise ComparisonError(
                "the module draws random numbers beside dropout: two runs of PyTorch on this batch "
                f"give {float(value.detach()):.7g} and {float(again):.7g}, so that nothing can be "
                "compared. check=False trains it; each step draws anew.")
        if lines:
            shown = "\n  ".join(lines[:8] + ([f"and {len(lines) - 8} more"] if lines[8:] else []))
            raise ComparisonError(
                "the compiled step is not the module's (dropout off in both):\n  " + shown +
                "\n  What the exporter lost is not in the file; docs/from-pytorch.md lists such "
                "cases. check=False trains what is there.")

    return check


def compile_step(module: torch.nn.Module, example_inputs: Any, *, example_targets: Any = None,
                 loss: Any = None, optimizer: Optimizer | str | None = None,
                 schedule: Schedule | None = None, budget: int | float | str | None = None,
                 check: bool = True, **flags: Any) -> TorchStep:
    """Exports a module in training form and compiles it to a step.

    module: on the CPU, in training mode as it shall be trained (parts in
        ``eval()`` stay so); parameters without ``requires_grad`` are frozen.
    example_inputs: a tensor or a tuple of them, in forward's order; the first
        dimension of the first is the batch, which is fixed.
    loss: None where forward returns the loss; a name ("cross_entropy", "mse", ...:
        classes along dimension 1, as in PyTorch), whose targets are ``y``; or a
        function or module of (outputs, targets), exported with the module, which
        needs ``example_targets``.
    optimizer, schedule, budget, flags: as in ``ckopt.compile``.
    check: the first call computes loss and every gradient in PyTorch too, dropout
        off, and raises ComparisonError where they differ. Costs, once, a copy of
        the module with gradients, a step of PyTorch, and one more export and
        compilation without budget.

    Raises UnsupportedError, with what to do, where the exporter fails.
    """
    inputs = _tensors(example_inputs, "example_inputs")
    if not inputs or not inputs[0].ndim:
        raise UsageError("example_inputs: the first input's first dimension is the batch")
    _check_module(module)
    _warn_of_eval(module)
    if callable(loss):
        if example_targets is None:
            raise UsageError("a loss function is exported with the module: give example_targets")
        targets = _tensors(example_targets, "example_targets")
        whole: torch.nn.Module = _WithLoss(module, loss)
        whole.training = module.training
        prefix, attached = "module.", None
        names = _input_names(module, len(inputs)) + ["y"]
        all_inputs = inputs + targets
        loss_name = None
    else:
        whole, prefix, loss_name = module, "", loss
        attached = _loss_function(loss, flags) if loss else None
        if loss and check and attached is None:
            raise UsageError(f"loss='{loss}' with these settings cannot be compared with PyTorch: "
                             "give a function, or check=False")
        names = _input_names(module, len(inputs))
        all_inputs = inputs
        if loss in _LABELLED:
            flags.setdefault("class_axis", 1)
    _refuse_hooks(whole)
    # A copy: hooks and gradients of the comparison leave the module as it is.
    eager = copy.deepcopy(whole)
    norms, changed = _look_at_forward(whole, all_inputs)
    _refuse_changes(changed, check)
    frozen = [name for name, p in whole.named_parameters() if not p.requires_grad]
    if frozen:
        pattern = "|".join(re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name) for name in frozen)
        flags["freeze"] = f"{flags['freeze']}|{pattern}" if "freeze" in flags else pattern
    settings = dict(flags, loss=loss_name, optimizer=optimizer, schedule=schedule, budget=budget)
    settings = {name: value for name, value in settings.items() if value is not None}
    folder = tempfile.TemporaryDirectory(prefix="ckopt-")
    path = os.path.join(folder.name, "model.onnx")
    # The exporter runs the module; buffers of a copy may move.
    _export(copy.deepcopy(whole), all_inputs, names, path)
    plain = _compile(path, **settings)
    step = TorchStep.__new__(TorchStep)
    step.__dict__.update(plain.__dict__)
    step._folder = folder
    step._prefix = prefix
    step._tracked = {name: int(value) for name, value in module.named_buffers()
                     if name.endswith("num_batches_tracked")}
    step._of_the_loss = {name for name in step._step.weight_types() if prefix and
                         name.startswith("loss.")}
    known = names + ["y"] if loss_name else names
    batch = all_inputs + ((None,) if loss_name else ())
    accumulate = getattr(optimizer, "_values", {}).get("accumulate") or \
        int(flags.get("accumulate", 1))
    compare = _make_check(eager, attached, batch, known, settings, set(frozen)) \
        if check else None
    step._bind(module, eager if check else None, known, norms, accumulate, compare)
    return step



from ._partitioner import partitioner  # noqa: E402 (as ckopt.torch.partitioner)
