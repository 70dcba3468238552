# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From a language model and a dataset to a saved adapter: ``ckopt.torch.finetune``.

Samples become rows of one length: a causal model's tokens see nothing to their right, so
that what pads a row there changes neither their outputs nor, with labels of -100, the loss.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from ._compare import first
from ._fit import FitResult, is_dataset
from ._lora import LoRA
from ._step import CompiledStep
from .errors import InputError, UsageError
from .optim import AdamW, Optimizer
from .torch import TorchStep, compile_step, quantize_base

_IGNORED = -100  # the label that PyTorch's cross entropy leaves out
_FIT = set(inspect.signature(CompiledStep.fit).parameters) - {"self", "samples"}

Row = dict[str, numpy.ndarray]


@dataclass
class Finetuned:
    """The outcome of ``finetune``."""

    model: torch.nn.Module  #: with the trained weights; PEFT's, where it has adapters
    step: TorchStep         #: which can go on, evaluate, and show its plan
    result: FitResult       #: of ``step.fit``
    folder: str | None      #: what was written

    @property
    def losses(self) -> list[float]:
        """Mean loss in nats, one for each update."""
        return self.result.losses


class _WithLoss(torch.nn.Module):
    """A model's loss of tokens and labels, and nothing else."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss
        # A cache of keys and values is no tensor, and nobody reads it here.
        cached = getattr(getattr(model, "config", None), "use_cache", None) is not None
        self.settings = {"use_cache": False} if cached else {}

    def forward(self, input_ids, labels):
        if self.loss is not None:
            return self.loss(first(self.model(input_ids, **self.settings)), labels)
        found = self.model(input_ids=input_ids, labels=labels, **self.settings)
        return found if isinstance(found, torch.Tensor) else found.loss


def _tokens(sample, place, words) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Tokens and labels of a sample, without what its mask leaves out; ``words``: how many
    tokens there are, None: not known."""
    if not isinstance(sample, Mapping):
        sample = {"input_ids": sample}
    if "input_ids" not in sample:
        raise InputError(f"{place} has no 'input_ids', but {', '.join(map(str, sample))}: tokenize "
                         "the dataset first (dataset.map(lambda row: tokenizer(row['text'])))")
    ids = numpy.asarray(sample["input_ids"])
    labels = sample.get("labels")
    labels = ids if labels is None else numpy.asarray(labels)
    if ids.ndim != 1 or ids.dtype.kind not in "iu" or labels.shape != ids.shape:
        raise InputError(f"{place}: 'input_ids' and 'labels' are rows of as many integers, not "
                         f"{list(ids.shape)} of {ids.dtype} and {list(labels.shape)}")
    mask = sample.get("attention_mask")
    if mask is not None:
        kept = numpy.asarray(mask).astype(bool)
        ids, labels = ids[kept], labels[kept]
    if words and ids.size and not 0 <= ids.min() <= ids.max() < words:
        wrong = next(int(one) for one in ids if not 0 <= one < words)
        raise InputError(f"{place} has the token {wrong}, and the model's are 0 to {words - 1}")
    return ids.astype("i8"), labels.astype("i8")


class _Rows:
    """A dataset's samples as rows of one length; item for item."""

    def __init__(self, dataset, length, pad, words=None):
        self.dataset, self.length, self.pad, self.words = dataset, length, pad, words

    def row(self, sample, place) -> Row:
        ids, labels = _tokens(sample, place, self.words)
        if len(ids) > self.length:
            raise InputError(f"{place} has {len(ids)} tokens, more than sequence={self.length}: "
                             "give a longer sequence, cut samples (the tokenizer's truncation=True, "
                             f"max_length={self.length}), or pack=True")
        missing = self.length - len(ids)
        return {"input_ids": numpy.pad(ids, (0, missing), constant_values=self.pad),
                "labels": numpy.pad(labels, (0, missing), constant_values=_IGNORED)}

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, index) -> Row:
        return self.row(self.dataset[index], f"sample {index}")

    def stream(self) -> Iterator[Row]:
        """Of samples that come one after another."""
        for number, sample in enumerate(self.dataset):
            yield self.row(sample, f"sample {number}")


def _packed(samples: Iterable[Any], length: int, words: int | None = None) -> Iterator[Row]:
    """Samples one behind another, in pieces; what is left at the end fills no piece."""
    ids, labels = numpy.zeros(0, "i8"), numpy.zeros(0, "i8")
    for number, sample in enumerate(samples):
        more = _tokens(sample, f"sample {number}", words)
        ids, labels = numpy.append(ids, more[0]), numpy.append(labels, more[1])
        while len(ids) >= length:
            yield {"input_ids": ids[:length], "labels": labels[:length]}
            ids, labels = ids[length:], labels[length:]


def _rows(dataset, sequence, pack, pad, words):
    """What ``fit`` takes: rows of a dataset, packed arrays, or an iterator of rows."""
    if pack:
        if not is_dataset(dataset):
            return _again(dataset, lambda samples: _packed(samples, sequence, words))
        rows = [*_packed((dataset[i] for i in range(len(dataset))), sequence, words)]
        if not rows:
            raise InputError(f"all samples together do not fill one row of {sequence} tokens")
        return {name: numpy.stack([row[name] for row in rows]) for name in rows[0]}
    if is_dataset(dataset):
        return _Rows(dataset, sequence, pad, words)
    return _again(dataset, lambda samples: _Rows(samples, sequence, pad, words).stream())


def _again(dataset, rows):
    """Rows of samples that come one after another, from their begin for each epoch."""
    if isinstance(dataset, Iterable):
        return rows(dataset) if iter(dataset) is dataset else lambda: rows(dataset)
    if callable(dataset):
        return lambda: rows(dataset())
    raise UsageError("a dataset is a list, a datasets.Dataset, a torch Dataset, an iterable or a "
                     f"function that returns an iterator, not {type(dataset).__name__}")


def _with_adapters(model, lora):
    """PEFT's model with these adapters."""
    try:
        import peft
    except ImportError as error:
        raise UsageError("lora= needs PEFT, whose adapters these are: pip install peft") from error
    if isinstance(model, peft.PeftModel):
        raise UsageError("the model has PEFT's adapters already: leave lora= out")
    transformers = hasattr(model, "save_pretrained")
    if not lora.targets and not transformers:
        raise UsageError("LoRA(targets=...): which layers of a module that is none of "
                         "Transformers' get adapters? (a regular expression, \"q_proj|v_proj\")")
    return peft.get_peft_model(model, peft.LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, use_dora=lora.dora,
        target_modules=rf"(.*\.)?({lora.targets})" if lora.targets else "all-linear",
        task_type="CAUSAL_LM" if transformers else None))


def _store_base(model, base):
    """Stores what is frozen in fewer bits."""
    if base != "bf16":
        quantize_base(model, base)
        return
    frozen = [p for p in model.parameters() if not p.requires_grad and p.is_floating_point()]
    if not frozen:
        raise InputError("base='bf16': nothing is frozen (lora=, or requires_grad_(False))")
    for p in frozen:
        p.data = p.data.to(torch.bfloat16)


def _save(model, step, folder):
    """Writes an adapter as PEFT does, a model of Transformers as it does, others' weights."""
    if hasattr(model, "save_pretrained"):
        model.save_pretrained(folder)
    else:
        step.save(os.path.join(folder, "model.safetensors"))


def finetune(model: torch.nn.Module, dataset: Any, folder: str | os.PathLike[str] | None = None, *,
             sequence: int | None = None, pack: bool = False, batch: int = 1,
             lora: LoRA | None = None, base: str | None = None,
             loss: Callable[[Any, Any], Any] | None = None, optimizer: Optimizer | str | None = None,
             epochs: int = 1, **options: Any) -> Finetuned:
    """Trains a language model on tokens and writes the adapter, or the model.

    model: a causal language model of Transformers, or any module whose ``forward`` takes
        ``input_ids`` and ``labels`` [batch, sequence] of int64 and returns the loss, as a
        tensor or as ``.loss``; with ``loss`` one that takes the tokens and returns what
        ``loss(outputs, labels)`` makes a loss of. On the CPU. It is changed in place:
        adapters (their first values are a function of ``seed``), a base in few bits,
        trained weights.
    dataset: samples that are mappings with ``input_ids`` [tokens] and optionally ``labels``
        (default: the tokens; -100 is left out) and ``attention_mask`` (tokens at 0 are left
        out); other columns are not read. A list, a ``datasets.Dataset`` or a torch Dataset is
        shuffled by ``seed`` and epoch; an iterable, or a function that returns an iterator,
        comes in its order.
    folder: gets ``adapter_model.safetensors`` and ``adapter_config.json``, which
        ``PeftModel.from_pretrained`` reads; without adapters the model's ``save_pretrained``
        writes, or ``model.safetensors``. None: nothing is written.
    sequence: tokens of a row, default: of the longest sample. Shorter samples are padded at
        the right, where causal models do not look. pack: samples one behind another in rows
        that are full; tokens see the samples before them in their row.
    batch: rows of a step.
    lora: adapters, put in by PEFT; None: the model's ``requires_grad`` says what is trained,
        as with a model that has PEFT's adapters already.
    base: what is frozen as "bf16", "int8", "int4" or "nf4" (``quantize_base``).
    optimizer: default ``AdamW(lr=2e-4)``.
    options: of ``TorchStep.fit`` (``max_steps``, ``checkpoint``, ``resume``, ``validation``: a
        dataset in the same form, ``log``, ...), and of ``compile_step`` (``budget``, in bytes
        or "2GiB"; ``schedule``, ``precision``, ``seed``, ``check``, ...).

    Raises InputError for samples that are longer than ``sequence`` or no tokens, UsageError for
    arguments, BudgetError where no plan fits, and what ``compile_step`` raises.
    """
    of_fit = {name: options.pop(name) for name in [*options] if name in _FIT}
    validation = of_fit.pop("validation", None)
    datasets = [one for one in (dataset, validation) if one is not None]
    for one in datasets:
        if isinstance(one, (str, os.PathLike)):
            raise UsageError(f"a dataset is samples of tokens, not the name '{os.fspath(one)}' of a "
                             "file")
        if is_dataset(one) and not len(one):
            raise InputError("the dataset has no samples")
    if sequence is None:
        if pack or not all(is_dataset(one) for one in datasets):
            raise UsageError("sequence=: how many tokens has a row? (the longest sample is known of "
                             "datasets with a length alone)")
        sequence = max(len(_tokens(one[i], f"sample {i}", None)[0]) for one in datasets
                       for i in range(len(one)))
    pad = getattr(getattr(model, "config", None), "pad_token_id", None) or 0
    embedding = getattr(model, "get_input_embeddings", lambda: None)()
    words = getattr(embedding, "num_embeddings", None)
    rows = _rows(dataset, sequence, pack, pad, words)
    if validation is not None:
        of_fit["validation"] = _rows(validation, sequence, pack, pad, words)
    if folder is not None:
        folder = os.fspath(folder)
        os.makedirs(folder, exist_ok=True)
    mode = model.training
    if lora is not None:
        with torch.random.fork_rng(devices=[]):  # PEFT draws first values
            torch.manual_seed(int(options.get("seed") or 0))
            model = _with_adapters(model, lora)
    if base is not None:
        _store_base(model, base)
    example = torch.zeros(batch, sequence, dtype=torch.int64)
    step = compile_step(_WithLoss(model.train(), loss).train(),
                        {"input_ids": example, "labels": example},
                        optimizer=AdamW(lr=2e-4) if optimizer is None else optimizer, **options)
    result = step.fit(rows, epochs=epochs, **of_fit)
    step.sync()
    if folder is not None:
        _save(model, step, folder)
    return Finetuned(model.train(mode), step, result, folder)
