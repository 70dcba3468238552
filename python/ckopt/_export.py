# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Modules of PyTorch as files: example inputs, their names, the exporter and its errors.

The exporter takes tensors that are one object, or share memory, for one input, so that
examples are copied. It writes batch norms in eval() as it does those in training, which
are therefore arithmetic while it runs. What it raises is turned into an error that
names the operator, the line of the model, and what has an ONNX form in its place.
"""

from __future__ import annotations

import contextlib
import inspect
import linecache
import logging
import os
import re
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from .errors import InputError, UnsupportedError, UsageError

functional = torch.nn.functional


class Call:
    """The arguments of forward as tensors in a row, with their names.

    ``tensors`` are copies that share no memory, whatever the examples share. With targets
    it is the call of a module with a loss: (args, kwargs, targets).
    """

    def __init__(self, module: torch.nn.Module, values: Any, targets: Any = None,
                 named: Mapping[str, Any] | None = None, what: str = "example_inputs"):
        args: tuple[Any, ...] = ()
        if isinstance(values, Mapping):
            named = {**values, **(named or {})}
        else:
            args = (values,) if isinstance(values, torch.Tensor) else tuple(values)
        order = [*inspect.signature(module.forward).parameters]
        kwargs = dict(sorted((named or {}).items(), key=lambda item: order.index(item[0])
                             if item[0] in order else len(order)))
        self.inputs = self.names = _input_names(module, args, kwargs)
        self.tensors = _copies((args, kwargs), what)
        call: Any = (args, kwargs)
        if targets is not None:
            if isinstance(targets, (tuple, list)) and len(targets) == 1:
                targets = targets[0]
            self.names = self.inputs + names_within("y", targets)
            self.tensors = self.tensors + _copies(targets, "example_targets")
            call = ((args, kwargs, targets), {})
        leaves, self._spec = pytree.tree_flatten(call)
        self._given = [leaf is not None for leaf in leaves]

    def arguments(self, tensors: Iterable[torch.Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """args and kwargs of forward with these tensors, copied: forward may write to them."""
        left = iter(tensors)
        return pytree.tree_unflatten([next(left).clone() if given else None
                                      for given in self._given], self._spec)


def _copies(values, what):
    """Copies of all tensors in nested tuples and mappings."""
    leaves = [leaf for leaf in pytree.tree_leaves(values) if leaf is not None]
    for leaf in leaves:
        if not isinstance(leaf, torch.Tensor):
            raise UsageError(f"{what}: {type(leaf).__name__} is no tensor")
        if leaf.device.type != "cpu":
            raise InputError(f"{what} are on {leaf.device}; pass them after .cpu()")
    return [leaf.detach().clone() for leaf in leaves]


def names_within(name: str, value: Any) -> list[str]:
    """Names of the tensors in a value by their places and keys."""
    return [name + re.sub(r"\W+", "_", pytree.keystr(path)).rstrip("_")
            for path, leaf in pytree.tree_flatten_with_path(value)[0] if leaf is not None]


def _input_names(module, args, kwargs):
    """Names of tensors by forward's parameters, and by place or key within them."""
    kinds = inspect.signature(module.forward).parameters.values()
    named = [one.name for one in kinds
             if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    named = (named + [f"input_{i}" for i in range(len(named), len(args))])[:len(args)]
    taken = {"y"} | set(tensors_of(module))  # y: the targets
    names = [one for name, value in [*zip(named, args), *kwargs.items()]
             for one in names_within(name, value)]
    return [f"{name}_input" if name in taken else name for name in names]


def tensors_of(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name; tied ones by each of their names."""
    return {**dict(module.named_parameters(remove_duplicate=False)),
            **dict(module.named_buffers(remove_duplicate=False))}


def names_of(module: torch.nn.Module) -> dict[torch.nn.Parameter, list[str]]:
    """All names of each parameter, the one that PyTorch lists first."""
    names: dict[torch.nn.Parameter, list[str]] = {}
    for name, p in module.named_parameters(remove_duplicate=False):
        names.setdefault(p, []).append(name)
    return names


@contextlib.contextmanager
def no_dropout(module: torch.nn.Module) -> Iterator[None]:
    """Dropout does nothing inside: in modules, in functions, in attention."""
    names = [n for n in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout",
                         "feature_alpha_dropout") if hasattr(functional, n)]
    saved = {name: getattr(functional, name) for name in names}
    torch_dropout, attention = torch.dropout, functional.scaled_dot_product_attention

    def same(input, *_, **__):  # noqa: A002 (PyTorch's name)
        return input

    def attend(query, key, value, attn_mask=None, dropout_p=0.0, *rest, **named):
        return attention(query, key, value, attn_mask, 0.0, *rest, **named)

    recurrent = [(m, m.dropout) for m in module.modules() if isinstance(m, torch.nn.RNNBase)]
    try:
        for name in names:
            setattr(functional, name, same)
        torch.dropout = same
        functional.scaled_dot_product_attention = attend
        for one, _ in recurrent:
            one.dropout = 0.0
        yield
    finally:
        for name, function in saved.items():
            setattr(functional, name, function)
        torch.dropout = torch_dropout
        functional.scaled_dot_product_attention = attention
        for one, ratio in recurrent:
            one.dropout = ratio


@contextlib.contextmanager
def _evaluated_norms():
    """Batch norms of fixed statistics are arithmetic inside, whoever calls the function."""
    written = torch.batch_norm

    def batch_norm(x, weight, bias, mean, variance, training, momentum, eps, cudnn):
        if training or mean is None:
            return written(x, weight, bias, mean, variance, training, momentum, eps, cudnn)

        def along(value):
            return value.reshape(1, -1, *[1] * (x.ndim - 2))
        scale = torch.rsqrt(variance + eps)
        x = (x - along(mean)) * along(scale if weight is None else scale * weight)
        return x if bias is None else x + along(bias)

    torch.batch_norm = batch_norm
    try:
        yield
    finally:
        torch.batch_norm = written


# What works in the place of operators without ONNX form, by a pattern of their names.
_HINTS = {
    r"_?cdist(_forward)?": "write the distances out: ((x.unsqueeze(-2) - y.unsqueeze(-3)) ** 2).sum(-1)"
                ".clamp_min(1e-12).sqrt()",
    r"_?(grouped_mm|grouped_mm_fallback)":
        "experts of Transformers: model.set_experts_implementation(\"batched_mm\")",
    r"clamp(_min|_max)?": "give bounds of one type: clamp(1e-7, 1.0), not clamp(1e-7, 1)",
    r"_?(cudnn_|use_cudnn_)?ctc_loss": "write the loss out by logsumexp over the states, or train "
                                       "with another loss",
    r"_?(pack_padded_sequence|pad_packed_sequence)":
        "run over the padded sequences and mask the loss",
    r"(nonzero|masked_select|_?unique2?|unique_dim|unique_consecutive)":
        "its result's size depends on values: keep the size and mask (torch.where)",
    r"_?linalg_.*|cholesky.*": "ONNX has no such decomposition: compute it outside of forward",
    r"_?local_scalar_dense|item|is_nonzero":
        "forward has to be without control flow that depends on values: use torch.where",
}


def _chain(error):
    """An exception and those that it goes back to, the root first."""
    chain = []
    while error is not None and error not in chain:
        chain.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return chain[::-1]


def _plain(error):
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).strip()


def _operator(chain):
    """The operator at which exporting stopped, as "aten.cdist"; None: it is not known."""
    for error in chain:
        found = re.search(r"OpOverload\(op='([\w.]+)'|\b(aten\.\w+)|torch\.ops\.(\w+\.\w+)",
                          _plain(error))
        if found:
            return next(group for group in found.groups() if group)
    return None


def _line(chain):
    """The line of the model at which exporting stopped; "": it is not known."""
    ours = (os.path.dirname(torch.__file__), os.path.dirname(__file__))
    place = None
    for error in chain:
        for frame, number in traceback.walk_tb(error.__traceback__):
            nodes = [v for v in frame.f_locals.values()
                     if isinstance(v, torch.fx.Node) and v.stack_trace]
            calls = [(file, int(at)) for node in nodes for file, at in
                     re.findall(r'File "(.+?)", line (\d+)', node.stack_trace)]
            calls += [(frame.f_code.co_filename, number)]
            calls = [one for one in calls if not one[0].startswith(ours) and
                     os.path.exists(one[0]) and "onnxscript" not in one[0]]
            if nodes and calls:
                return _shown(calls[-1])
            place = calls[-1] if calls else place
        if place:
            return _shown(place)
    return ""


def _shown(place):
    text = linecache.getline(*place).strip()
    return f"  {os.path.basename(place[0])}:{place[1]}: {text}\n"


def _cache_hint(module):
    """What to do about a cache of keys and values among the outputs."""
    cached = [one for one in module.modules() if getattr(getattr(one, "config", None), "use_cache",
                                                         False)]
    if not cached:
        return ("the module returns a cache of keys and values: leave it out of what forward "
                "returns (use_cache=False)")
    name = type(cached[0]).__name__
    return (f"{name} returns a cache of keys and values, since its config.use_cache is True: set "
            f"model.config.use_cache = False on the {name} before; with labels among its inputs it "
            "returns the loss")


def _refusal(error, module):
    """The exporter's exception as one that says where, why, and what to do."""
    chain = _chain(error)
    root = _plain(chain[0]).splitlines() or [""]
    operator = _operator(chain)
    depends = re.search(r"[Dd]ata.?[Dd]ependent|Could not guard", "".join(
        type(one).__name__ + _plain(one) for one in chain))
    text = f"PyTorch cannot export the module: {type(chain[0]).__name__}: {root[0]}\n"
    text += f"  operator {operator}\n" if operator else ""
    text += _line(chain)
    hint = next((hint for pattern, hint in _HINTS.items()
                 if operator and re.fullmatch(pattern, operator.split(".")[1])), None)
    if not hint and re.search(r"(Dynamic|Static|EncoderDecoder)Cache", "".join(map(_plain, chain))):
        hint = _cache_hint(module)
    if not hint and depends:
        hint = ("forward has to be without control flow that depends on values; "
                "torch.export.export(module, inputs) shows where it stops")
    if not hint and operator:
        hint = f"{operator} has no ONNX form here: write it by other operators, or leave it out"
    return UnsupportedError(text + "  " + (hint or "see the exporter's error, from which this one "
                                           "comes"))


def _reached(graph):
    """The values that outputs of a graph depend on."""
    reached, left = set(), list(graph.outputs)
    while left:
        value = left.pop()
        if value is None or value in reached:
            continue
        reached.add(value)
        node = value.producer()
        if node is not None:
            left += node.inputs
            for attribute in node.attributes.values():
                graphs = [attribute.value] if attribute.type.name == "GRAPH" else []
                left += [v for body in graphs for inner in body.all_nodes() for v in inner.inputs]
    return reached


def export(module: torch.nn.Module, arguments: tuple[tuple[Any, ...], dict[str, Any]],
           names: list[str], path: str, unread: tuple[str, ...] = (),
           notes: Mapping[str, str] | None = None, **settings: Any) -> set[str]:
    """Writes the module as it is, in training or not, without the inputs of ``unread``.

    notes: metadata of the graph. settings: others of the exporter's. Returns the names of
    inputs and weights that its outputs depend on. What it raises says what to do.
    """
    big = sum(p.nbytes for p in module.parameters()) > 1 << 30
    args, kwargs = arguments
    if args and isinstance(args[-1], Mapping) and not kwargs:  # the exporter takes it for kwargs
        last = [*inspect.signature(module.forward).parameters.values()][:len(args)][-1]
        if last.kind == last.POSITIONAL_OR_KEYWORD:
            args, kwargs = args[:-1], {last.name: args[-1]}
    # It warns of each package that is not there, whether the module needs it or not.
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _evaluated_norms():
            warnings.simplefilter("ignore")
            settings = dict(settings, kwargs=kwargs, dynamo=True, optimize=False, verbose=False,
                            input_names=names)
            try:
                program = torch.onnx.export(module, args, **settings)
            except Exception as error:  # whatever the exporter raises
                if "Cannot view a tensor" not in "".join(map(_plain, _chain(error))):
                    raise
                # A kernel of attention leaves its result in an order of its own, by which
                # contiguous() is no copy; decomposed, it has another. What was traced is known.
                FakeTensorMode.cache_clear()
                with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                    program = torch.onnx.export(module, args, **settings)
    except ImportError as error:
        raise UsageError(f"PyTorch's exporter needs a package: {error} "
                         "(pip install onnx onnxscript)") from error
    except Exception as error:  # whatever the exporter raises
        raise _refusal(error, module) from error
    finally:
        logger.setLevel(level)
    assert program is not None
    graph = program.model.graph
    for one in [i for i in graph.inputs if i.name in unread and not i.uses()]:
        graph.inputs.remove(one)
    graph.metadata_props.update(notes or {})
    program.save(path, external_data=big)
    return {value.name for value in _reached(graph)}


def without_dropouts(path: str, quiet: str) -> str | None:
    """Returns a file that computes as this one without its dropouts, and draws nothing.

    That is the file itself, or ``quiet``, which is written into the same folder. None: random
    numbers are left, as where dropout of channels is several nodes.
    """
    import onnx_ir

    def is_random() -> bool:
        return any(node.op_type.startswith("Random") or
                   node.op_type in ("Dropout", "Bernoulli", "Multinomial")
                   for node in model.graph.all_nodes())

    model: Any = onnx_ir.load(path)
    if not is_random():
        return path
    for node in list(model.graph.all_nodes()):
        kept, *masks = node.outputs
        if node.op_type != "Dropout" or kept.is_graph_output() or \
                any(mask.uses() or mask.is_graph_output() for mask in masks):
            continue
        onnx_ir.convenience.replace_all_uses_with(kept, node.inputs[0])
        node.graph.remove(node, safe=True)
    if is_random():
        return None
    onnx_ir.save(model, quiet)
    return quiet
