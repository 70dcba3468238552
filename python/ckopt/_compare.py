# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The comparison of a compiled module with PyTorch, and what cannot be compiled at all.

Exporters drop things without a word, and a file knows tensors by names, where PyTorch
knows them by memory. So memory decides here: which tensors are trained, which stay, and
which are refused since an update of one would move another. The comparison is of the
file that trains, over two steps of one batch: the second has moved weights, so that it
shows what an update or a changed buffer does. Tensors that are not trained have to keep
their bits.
"""

from __future__ import annotations

import copy
import hashlib
import os
import re
import warnings
from collections.abc import Mapping

import numpy
import torch
from torch.utils import _pytree as pytree

from ._export import names_of, no_dropout, tensors_of, without_dropouts
from ._step import compile as _compile
from .errors import Error, UnsupportedError, Warning


class ComparisonError(Error):
    """The compiled step computes other numbers than the module: something got lost.

    The text names the tensors. What an exporter drops or folds without a word
    shows here; ``check=False`` leaves the comparison out.
    """


# Settings that do not decide which function a step is; the export is judged in f32.
_NO_FUNCTION = {
    "optimizer", "schedule", "budget", "memory_budget", "budget_ratio", "activation_ratio",
    "minimum", "plan", "plan_hint", "remat", "save", "recompute", "auto", "checkpoint_region",
    "effort", "time_limit", "profile", "last_batch", "precision", "keep_f32", "matmul_precision",
    "loss_scale", "loss_scale_init", "loss_scale_growth_interval", "param_type", "state_type",
}


def some(names):
    """The first four of many names."""
    return ", ".join(f"'{name}'" for name in names[:4]) + \
        (f" and {len(names) - 4} more" if names[4:] else "")


def copy_of(module):
    """A copy that shares nothing; PyTorch copies no tensors that were computed."""
    try:
        return copy.deepcopy(module)
    except RuntimeError as error:
        computed = [f"{name}.{key}".lstrip(".") for name, one in module.named_modules()
                    for key, value in vars(one).items()
                    if isinstance(value, torch.Tensor) and not value.is_leaf]
        raise UnsupportedError(
            f"the module holds computed tensors ({some(computed) or error}), which PyTorch cannot "
            "copy: compute them in forward (weight_norm: torch.nn.utils.parametrizations)") \
            from error


# --- memory ------------------------------------------------------------------

def _held(module):
    """Names and tensors of all that a module holds: registered, or plain attributes."""
    yield from tensors_of(module).items()
    for name, one in module.named_modules():
        plain = {key: value for key, value in vars(one).items()
                 if key not in ("_parameters", "_buffers", "_modules")}
        for path, value in pytree.tree_flatten_with_path(plain)[0]:
            if isinstance(value, torch.Tensor):
                key = re.sub(r"^\['(\w+)'\]", r".\1", pytree.keystr(path))
                yield f"{name}{key}".lstrip("."), value


def _overlap(one, other):
    """Whether two tensors of one storage have a byte in common."""
    def extent(tensor):
        begin = tensor.storage_offset()
        end = begin + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride())) + 1
        return begin * tensor.element_size(), end * tensor.element_size()

    def bytes_of(tensor):
        size = tensor.element_size()
        return marks.as_strided((*tensor.shape, size), (*[n * size for n in tensor.stride()], 1),
                                tensor.storage_offset() * size - low)

    (low, high), (begin, end) = extent(one), extent(other)
    if begin >= high or low >= end:
        return False
    low, high = min(low, begin), max(high, end)
    marks = torch.zeros(high - low, dtype=torch.bool)  # columns of one matrix lie in turns
    bytes_of(one).fill_(True)
    return bool(bytes_of(other).any())


def refuse_shared_memory(module):
    """Refuses trained parameters whose memory other tensors see: a file has each by itself."""
    storages = {}
    for name, tensor in _held(module):
        if tensor.layout == torch.strided and tensor.numel():
            storages.setdefault(tensor.untyped_storage().data_ptr(), []).append((name, tensor))
    for holders in storages.values():
        for name, trained in holders:
            if not (isinstance(trained, torch.nn.Parameter) and trained.requires_grad):
                continue
            for other, tensor in holders:
                if tensor is not trained and _overlap(trained, tensor):
                    raise UnsupportedError(
                        f"'{other}' shares memory with the trained '{name}', so that an update of "
                        "one moves the other, which a file cannot say: tie modules by one "
                        "Parameter (a.weight = b.weight), or make a view in forward")


def refuse_hooks(module):
    """Refuses functions that change gradients: neither an ONNX file nor a copy has them."""
    hooked = [name for name, tensor in tensors_of(module).items()
              if getattr(tensor, "_backward_hooks", None)
              or getattr(tensor, "_post_accumulate_grad_hooks", None)]
    hooked += [name or "the module" for name, one in module.named_modules()
               if one._backward_hooks or one._backward_pre_hooks]
    if hooked:
        raise UnsupportedError(
            f"hooks of the backward pass (register_hook and the like) on {some(hooked)}: the step "
            "computes gradients by itself and never calls them; remove them, or write what they do "
            "into the loss or the optimizer's settings")


# --- what forward changes ----------------------------------------------------

def _is_running(norm):
    """Whether a module is a batch norm that moves its running statistics."""
    return isinstance(norm, torch.nn.modules.batchnorm._BatchNorm) and norm.training and \
        norm.track_running_stats


def _statistics(module):
    """Names of the tensors that batch norms in training change."""
    return {(name + "." if name else "") + kind
            for name, norm in module.named_modules(remove_duplicate=False) if _is_running(norm)
            for kind in ("running_mean", "running_var", "num_batches_tracked")}


def _snapshot(tensors):
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


def _moved(before, module):
    """Names of tensors whose bits are others than before."""
    after = tensors_of(module)
    return [name for name, was in before.items()
            if name not in after or not _same(was, after[name])]


def look_at_forward(module, call):
    """Runs a copy of a module: what its norms see, and which other tensors forward changes.

    Returns, by running variance, elements a channel, momentum and calls of each batch norm in
    training; and the names of parameters and buffers that forward changes and no file says so.
    """
    module = copy_of(module)
    norms = _statistics(module)
    before = _snapshot({name: tensor for name, tensor in tensors_of(module).items()
                        if name not in norms})
    with torch.random.fork_rng(devices=[]):
        found = _count_norms(module, call.arguments(call.tensors))
    return found, _moved(before, module)


def warn_of_draws(module, call):
    """Says that dropout which is on in eval(), too, is off where a step evaluates."""
    module = copy_of(module).eval()
    args, kwargs = call.arguments(call.tensors)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        before = torch.get_rng_state()
        module(*args, **kwargs)
        if torch.equal(before, torch.get_rng_state()):
            return
    warnings.warn("forward draws random numbers in eval(), too: if it is dropout (training=True), "
                  "evaluations of the step are without it; noise stays", Warning, stacklevel=3)


def _same(was, now):
    return was.shape == now.shape and bool(((was == now) | ((was != was) & (now != now))).all())


def _count_norms(module, arguments):
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
        module(*arguments[0], **arguments[1])
    for hook in hooks:
        hook.remove()
    return found


def running_variance(value, start, batches, norm):
    """ONNX averages variances of the batch, PyTorch N/(N-1) of them; both are linear.

    r(t) = (1-m)^t r(0) + sum of the variances' shares: the share of the start
    is known, the rest is N/(N-1) of ours.
    """
    count, momentum, calls = norm
    start = start * (1 - momentum) ** (batches * calls)
    return (start + (value.astype("f8") - start) * (count / (count - 1))).astype(value.dtype)


# --- the comparison ----------------------------------------------------------

def first(outputs):
    """The first tensor of a module's outputs."""
    if isinstance(outputs, torch.Tensor):
        return outputs
    if isinstance(outputs, Mapping):
        outputs = tuple(outputs.values())
    return first(outputs[0])


def _functions_of(value):
    """Names of torch.autograd.Functions that a value was computed by."""
    names, seen, left = set(), set(), [value.grad_fn]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            names.add(type(node).__name__.removesuffix("Backward"))
        left += [after for after, _ in node.next_functions]
    return sorted(names)


def _differences(eager, own_names, eager_loss, loss, gradients):
    """Lines that name what differs by more than sums in another order do.

    Beside weights of f16 or bf16 activations are rounded to these types, in PyTorch after
    each operation, in the step where it stores them.
    """
    lines = []
    rounding = max((torch.finfo(p.dtype).eps for p in eager.parameters()
                    if p.is_floating_point()), default=0.0)
    if not abs(loss - eager_loss) <= max(1e-4, rounding) * max(1.0, abs(eager_loss)):
        lines.append(f"loss: {loss:.7g}, PyTorch {eager_loss:.7g}")
    expected = {name: p.grad for name, p in eager.named_parameters()
                if p.requires_grad and p.grad is not None}
    largest = max((float(g.abs().max()) for g in expected.values() if g.numel()), default=0.0)
    left = dict(gradients)
    for name, parameter in eager.named_parameters():
        ours = next((left.pop(n) for n in own_names[name] if n in left), None)
        if not parameter.requires_grad:
            if ours is not None:
                lines.append(f"'{name}' is trained, but does not require a gradient")
            continue
        grad = expected.get(name)
        if ours is None:
            if grad is not None and grad.numel() and float(grad.abs().max()) > 0:
                lines.append(f"gradient of '{name}': none, PyTorch has one")
            continue
        got = torch.from_numpy(ours)
        if grad is None:
            if float(got.abs().max()) > 0:
                lines.append(f"gradient of '{name}': PyTorch has none")
            continue
        if got.numel() != grad.numel():
            lines.append(f"gradient of '{name}': shape {list(got.shape)}, PyTorch's "
                         f"{list(grad.shape)}")
            continue
        got = got.reshape(grad.shape)
        error = float((got - grad).abs().max()) if grad.numel() else 0.0
        scale = float(grad.abs().max()) if grad.numel() else 0.0
        if not error <= max(2e-3, 8 * rounding) * scale + 1e-5 * largest:
            lines.append(f"gradient of '{name}': off by {error:.3g}, the largest is {scale:.3g}")
    lines += [f"'{name}' is trained, but is no parameter of the module" for name in left]
    return lines


def _as_numpy(tensor):
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def bits(state, names):
    """A digest of each tensor of these names, by which changes show."""
    return {name: hashlib.blake2b(numpy.ascontiguousarray(state[name]).tobytes()).digest()
            for name in names}


class Comparison:
    """Two steps in PyTorch and of the file that trains, compiled without budget.

    eager: a copy of module and loss. attached: PyTorch's form, of (outputs, targets), of a
    loss that the module does not return, or None. norms: as ``look_at_forward`` counts them.
    write: writes a module again as the file is written.
    """

    def __init__(self, eager, attached, call, names, path, settings, norms, write):
        self._eager, self._attached, self._call, self._names = eager, attached, call, names
        self._path, self._norms, self._write = path, norms, write
        self._settings = {k: v for k, v in settings.items() if k not in _NO_FUNCTION}
        self._stores_otherwise = "param_type" in settings

    def __call__(self, step, arrays):
        # Two inputs may read one array (inputs="input_ids=tokens,labels=tokens").
        given = {**arrays, **{spec["name"]: arrays[spec["array"]] for spec in step._fields}}
        tensors = [torch.from_numpy(given[name]).to(value.dtype) if name in given else value
                   for name, value in zip(self._names, self._call.tensors)]
        targets = torch.from_numpy(given[self._names[-1]]) \
            if len(self._names) > len(tensors) else None
        eager = self._eager
        with no_dropout(eager), torch.enable_grad():
            reference = self._reference(step)
            weights = step.state_dict()  # those of now: maybe loaded, or resumed
            reference.load_state_dict(weights)
            with torch.no_grad():
                for name, tensor in tensors_of(eager).items():
                    if name in weights:
                        tensor.copy_(torch.from_numpy(weights[name]).to(tensor.dtype))
            trained = {name for name, p in eager.named_parameters(remove_duplicate=False)
                       if p.requires_grad}
            fixed = _snapshot({n: t for n, t in tensors_of(eager).items()
                               if n not in trained and n not in _statistics(eager)})
            for number in (1, 2):
                lines = self._step(reference, arrays, tensors, targets)
                lines += [f"'{name}': forward changes it, and a file cannot say so"
                          for name in _moved(fixed, eager)]
                if lines:
                    self._raise(lines, number, tensors, targets)
                self._move()
                reference.load_state_dict({name: _as_numpy(tensor) for name, tensor in
                                           tensors_of(eager).items()
                                           if name in trained and name in weights}, strict=False)
            lines = self._states(reference.state_dict(), weights, fixed)
            if lines:
                self._raise(lines, 2, tensors, targets)
            eager.zero_grad(set_to_none=True)

    def _reference(self, step):
        """The file of the step with gradients as results, dropout off."""
        quiet = os.path.join(os.path.dirname(self._path), "quiet.onnx")
        path = without_dropouts(self._path, quiet)
        if path is None:
            # The same module and examples are written again, with dropouts that do nothing.
            path = quiet
            self._write(copy_of(self._eager), path)
        reference = _compile(path, optimizer="none", **self._settings)
        wanted, found = step._step.weight_types(), reference._step.weight_types()
        # With param_type the step's weights have other types.
        if set(found) != set(wanted) or not self._stores_otherwise and found != wanted:
            raise ComparisonError("the module without dropout has other weights")
        return reference

    def _loss(self, tensors, targets):
        args, kwargs = self._call.arguments(tensors)
        value = self._eager(*args, **kwargs)
        return first(self._attached(value, targets) if self._attached else value)

    def _step(self, reference, arrays, tensors, targets):
        """Losses and gradients of both; returns lines of what differs."""
        self._eager.zero_grad(set_to_none=True)
        try:
            value = self._loss(tensors, targets)
        except (IndexError, RuntimeError):
            # Of a label out of range the step names array and sample.
            reference.gradients({n: arrays[n] for n in reference.inputs})
            raise
        self._value, self._functions = float(value.detach()), _functions_of(value)
        if numpy.isnan(self._value):
            raise ComparisonError("PyTorch's own loss of this batch is NaN, so that nothing can be "
                                  "compared: are all of its labels ignored? Give another first "
                                  "batch; check=False compares nothing")
        if value.grad_fn is not None:
            value.backward()
        loss, gradients = reference.gradients({n: arrays[n] for n in reference.inputs})
        names = {aliases[0]: aliases for aliases in names_of(self._eager).values()}
        return _differences(self._eager, names, self._value, loss, gradients)

    def _move(self):
        """Updates the weights in PyTorch, by a hundredth of their size in all."""
        pairs = [(p, p.grad) for p in self._eager.parameters()
                 if p.requires_grad and p.grad is not None]
        size = sum(float(p.detach().double().square().sum()) for p, _ in pairs) ** 0.5
        slope = sum(float(g.double().square().sum()) for _, g in pairs) ** 0.5
        with torch.no_grad():
            for p, g in pairs if slope else ():
                p.sub_(g, alpha=0.01 * size / slope)

    def _states(self, after, before, fixed):
        """What the two steps made of running statistics and of tensors that stay."""
        lines = []
        for name, tensor in tensors_of(self._eager).items():
            if name not in after:
                continue
            if name in fixed:
                if not numpy.array_equal(after[name], before[name], equal_nan=True):
                    lines.append(f"'{name}' is not trained, but moves")
            elif name in _statistics(self._eager):
                value = after[name]
                if name in self._norms:
                    value = running_variance(value, before[name].astype("f8"), 2,
                                             self._norms[name])
                error = float((torch.from_numpy(value) - tensor).abs().max())
                if not error <= 2e-3 * float(tensor.abs().max()) + 1e-5:
                    lines.append(f"'{name}': off by {error:.3g} after two steps")
        return lines

    def _raise(self, lines, number, tensors, targets):
        with torch.no_grad():
            one, two = (float(self._loss(tensors, targets)) for _ in range(2))
        noisy = number == 1 and one != two and abs(one - two) > 1e-6 * abs(one)
        if noisy and not any("forward changes" in line for line in lines):
            raise ComparisonError(
                "the module draws random numbers beside dropout, or changes from call to call: two "
                f"runs of PyTorch on this batch give {one:.7g} and {two:.7g}, so that nothing can "
                "be compared. check=False takes what the file has.")
        shown = "\n  ".join(lines[:8] + ([f"and {len(lines) - 8} more"] if lines[8:] else []))
        text = "the compiled step is not the module's (dropout off in both" + \
            (", in the second of two steps" if number == 2 else "") + "):\n  " + shown
        if self._functions:
            text += (f"\n  forward calls {some(self._functions)} (torch.autograd.Function), of "
                     "which a file has forward alone: write its derivative by detach(), as in "
                     "x + (f(x) - x).detach()")
        elif number == 2:
            text += ("\n  The first step agrees: forward depends on something that changes between "
                     "steps and that the file has as a constant")
        raise ComparisonError(text + "\n  What the exporter lost is not in the file; "
                              "docs/from-pytorch.md lists such cases. check=False takes what is "
                              "there.")
