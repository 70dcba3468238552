# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as files that train: ``ckopt.torch.export``.

The file is written beside, compared with the module, and then put in its place. No file
has a loss that sees all outputs, so that the comparison is of a copy with one more
output: a sum of all others with random weights, which gives each of them a gradient.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

from ._compare import (
    Comparison,
    ComparisonError,
    copy_of,
    look_at_forward,
    refuse_hooks,
    refuse_shared_memory,
    warn_of_draws,
)
from ._export import Call, names_within
from ._export import export as _write
from ._step import TemporaryFolder
from ._step import compile as _compile
from .errors import InputError, UsageError, Warning
from .torch import check_module, check_read, refuse_changes, unread_names

_LOSS = "ckopt_compared"


def _outputs_of(module, call):
    """What forward returns."""
    args, kwargs = call.arguments(call.tensors)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        return module(*args, **kwargs)


def _tensors(outputs):
    return [one for one in pytree.tree_leaves(outputs) if isinstance(one, torch.Tensor)]


def _output_names(outputs, taken):
    """Names by the outputs' places and keys; None: the exporter's own."""
    if not all(isinstance(one, torch.Tensor) for one in pytree.tree_leaves(outputs)):
        return None
    single = isinstance(outputs, torch.Tensor)
    names = ["output"] if single else [
        name.removeprefix("output_") if isinstance(outputs, Mapping) else name
        for name in names_within("output", outputs)]
    return [f"{name}_output" if name in taken else name for name in names]


def _weights(outputs):
    """A weight for each element of each output that may have a gradient."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(one.shape, generator=generator) / max(one.numel(), 1) ** 0.5
            if one.is_floating_point() else None for one in _tensors(outputs)]


def _weighted_sum(outputs, weights):
    return sum((one.float() * weight).sum()
               for one, weight in zip(_tensors(outputs), weights) if weight is not None)


def _add_sum(path, to, weights):
    """Writes a file with the weighted sum as its last output ``_LOSS``."""
    import onnx_ir

    model = onnx_ir.load(path)
    graph, terms = model.graph, []
    for output, weight in zip(list(graph.outputs), weights):
        if weight is None:
            continue
        held = onnx_ir.node("Constant", [], {"value": onnx_ir.tensor(weight.numpy())})
        graph.append(held)
        last = output
        for op, inputs, attributes in (("Cast", [], {"to": 1}), ("Mul", held.outputs, {}),
                                       ("ReduceSum", [], {"keepdims": 0})):
            node = onnx_ir.node(op, [last, *inputs], attributes)
            graph.append(node)
            last = node.outputs[0]
        terms.append(last)
    node = onnx_ir.node("Sum", terms)
    graph.append(node)
    loss = node.outputs[0]
    loss.name, loss.shape = _LOSS, onnx_ir.Shape([])
    loss.type = onnx_ir.TensorType(onnx_ir.DataType.FLOAT)
    graph.outputs.append(loss)
    onnx_ir.save(model, to)


def _compare_outputs(step, module, call, names, arrays):
    """Compares all outputs in evaluation mode."""
    eager = copy_of(module).eval()
    expected, again = (_tensors(_outputs_of(eager, call)) for _ in range(2))
    if not all(torch.equal(one, two) for one, two in zip(expected, again)):
        return  # it draws random numbers
    outputs = step.predict(arrays)
    for name, want in zip(names, expected):
        if name not in outputs:
            continue
        got = torch.from_numpy(numpy.asarray(outputs[name])).double()
        want = want.double()
        error = float((got.reshape(want.shape) - want).abs().max()) if want.numel() else 0.0
        if not error <= 1e-4 * max(1.0, float(want.abs().max()) if want.numel() else 0.0):
            raise ComparisonError(f"output '{name}' in eval() is not the module's: off by "
                                  f"{error:.3g}. What the exporter lost is not in the file; "
                                  "check=False takes what is there.")


def export(module: torch.nn.Module, args: Any, path: str | os.PathLike[str], *,
           kwargs: Mapping[str, Any] | None = None, output_names: Iterable[str] | None = None,
           dynamic_shapes: Any = None, check: bool = True,
           unused_inputs: str | Iterable[str] = ()) -> None:
    """Writes a module as an ONNX file that trains: for ``ckopt train`` and ``ckopt.compile``.

    Nothing is folded or merged, and the file says which parameters require no gradient: they
    are frozen, unless --train names one in full.

    module: on the CPU. Parts in ``eval()`` stay so; if all of it is, it is written as after
        ``module.train()``, with a warning.
    args, kwargs: examples of forward's arguments: a tensor or a tuple, and a mapping; of
        tensors, tuples and mappings of tensors. Inputs are called as forward calls them, and
        outputs by their keys, or "output", "output_0", or as ``output_names`` says.
    dynamic_shapes: as in ``torch.onnx.export``. A batch that is fixed is none for good:
        ``ckopt train --batch=N`` changes it.
    check: compares the file with the module as ``compile_step`` does: all gradients over two
        steps, of all outputs, dropout off, and the outputs in ``eval()``. Costs two
        compilations. Without it, a file is written that may be another function.
    unused_inputs: names of inputs that nothing reads, which otherwise is an error.

    Raises UnsupportedError, with what to do, where the exporter fails or the module does what
    no file says; ComparisonError, which names the tensors, where they differ. The file that
    was there then stays.
    """
    check_module(module)
    call = Call(module, args, named=kwargs, what="args")
    if not call.tensors:
        raise UsageError("args: forward takes no tensor, so that there is nothing to train on")
    unread = unread_names(unused_inputs, call.names)
    trains = any(one.training for one in module.modules())
    module = copy_of(module)
    if not trains:
        module.train()
        warnings.warn("the module is in eval(); the file is that of module.train(). Parts that "
                      "shall evaluate: module.train(), then part.eval()", Warning, stacklevel=2)
    refuse_hooks(module)
    refuse_shared_memory(module)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    frozen = sorted(name for name, p in parameters.items() if not p.requires_grad)
    if len(frozen) == len(parameters):
        raise InputError("no parameter of the module requires a gradient: nothing would train")
    norms, changed = look_at_forward(module, call)
    warn_of_draws(module, call)
    refuse_changes(changed, check)
    outputs = _outputs_of(copy_of(module), call)
    names = list(output_names) if output_names else \
        _output_names(outputs, {*call.names, *parameters, *dict(module.named_buffers())})
    settings = {"output_names": names, "dynamic_shapes": dynamic_shapes}

    def write(one, to):
        return _write(copy_of(one), call.arguments(call.tensors), call.names, to, unread,
                      {"ckopt.frozen": "\n".join(frozen)}, **settings)

    folder = TemporaryFolder()
    path = os.fspath(path)
    written = os.path.join(folder.name, os.path.basename(path))
    read = write(module, written)
    check_read(read, call.names, unread)
    if check:
        _check_file(module, call, written, read, write, outputs, names, norms)
    for name in sorted(os.listdir(folder.name)):
        if name.startswith(os.path.basename(path)):  # large numbers lie in a second file
            shutil.move(os.path.join(folder.name, name),
                        os.path.join(os.path.dirname(path) or ".", name))


def _check_file(module, call, path, read, write, outputs, names, norms):
    """Raises where the file is not the module."""
    weights = _weights(outputs)
    if not any(weight is not None for weight in weights):
        raise InputError("forward returns no floats, of which there could be gradients")
    compared = TemporaryFolder()
    copied = os.path.join(compared.name, "compared.onnx")

    def write_sum(one, to):
        write(one, to)
        _add_sum(to, to, weights)

    _add_sum(path, copied, weights)
    eager = copy_of(module)
    settings = {
        "loss": f"output:{_LOSS}",
        "shape": [f"{name}={'x'.join(map(str, one.shape))}"
                  for name, one in zip(call.names, call.tensors) if one.ndim and name in read]}
    with warnings.catch_warnings():
        # These are compared here; what else the exporter may have dropped is said, once.
        for known in ("without a note", "has not compared", "of no module"):
            warnings.filterwarnings("ignore", f".*{known}", Warning)
        step = _compile(copied, optimizer="none", **settings)
        warnings.simplefilter("ignore", Warning)
        arrays = {name: value.numpy() for name, value in zip(call.names, call.tensors)
                  if name in step.inputs}
        compare = Comparison(eager, lambda found, _: _weighted_sum(found, weights), call,
                             call.names, copied, settings, norms, write_sum)
        compare(step, arrays)
        if names:
            _compare_outputs(step, module, call, names, arrays)
