# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Frozen weights of PyTorch modules in 8 or 4 bits: ``ckopt.torch.quantize_base``.

Numbers of a group share a scale. What is stored are buffers of bytes; the forward pass makes
weights of them by elementwise operations, which ckopt reads where products need them.
"""

from __future__ import annotations

import torch
from torch import nn

from .errors import InputError, UsageError

# The levels of QLoRA's NormalFloat with four bits.
_LEVELS = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
           -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725,
           0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941,
           0.7229568362236023, 1.0)
_LARGEST = {"int8": 127.0, "int4": 7.0, "nf4": 1.0}


class QuantizedMatrix(nn.Module):
    """A matrix [rows, columns] in groups along its rows, which `rows` makes wide."""

    def __init__(self, weight: torch.Tensor, kind: str, group: int):
        super().__init__()
        self.kind, self.dtype, self.shape = kind, weight.dtype, tuple(weight.shape)
        values = weight.detach().to(torch.float32).reshape(self.shape[0], -1, group)
        scale = values.abs().amax(dim=2, keepdim=True) / _LARGEST[kind]
        scale = torch.where(scale < torch.finfo(torch.float32).tiny, torch.ones_like(scale), scale)
        if not bool(torch.isfinite(scale).all()):
            raise InputError("a weight has a number that is not finite")
        numbers = (values / scale).clamp(-_LARGEST[kind], _LARGEST[kind])
        if kind == "int8":
            self.register_buffer("quantized", numbers.round().to(torch.int8))
        else:
            if kind == "nf4":
                levels = torch.tensor(_LEVELS)
                codes = torch.bucketize(numbers, (levels[1:] + levels[:-1]) / 2, right=True)
                self.register_buffer("levels", levels.to(weight.device))
            else:
                codes = numbers.round() + 8
            codes = codes.to(torch.uint8)
            self.register_buffer("quantized", codes[..., 0::2] | (codes[..., 1::2] << 4))
            scale = scale.unsqueeze(-1)
        self.register_buffer("scale", scale.contiguous())
        self.quantized: torch.Tensor
        self.scale: torch.Tensor
        self.levels: torch.Tensor

    def _wide(self, numbers, scale):
        numbers = numbers.to(torch.float32)
        if self.kind != "int8":
            # Both halves of a byte; exporters do not agree on the types of shifts.
            high = torch.floor(numbers * 0.0625)
            numbers = torch.stack((numbers - 16.0 * high, high), dim=-1)
        if self.kind == "nf4":
            numbers = self.levels[numbers.to(torch.int64)]
        elif self.kind == "int4":
            numbers = numbers - 8.0
        return (numbers * scale).to(self.dtype)

    def forward(self) -> torch.Tensor:
        return self._wide(self.quantized, self.scale).reshape(self.shape)

    def rows(self, indices: torch.Tensor) -> torch.Tensor:
        wide = self._wide(self.quantized[indices], self.scale[indices])
        return wide.reshape(*indices.shape, self.shape[1])


class QuantizedLinear(nn.Module):
    """A linear layer with a frozen weight in few bits."""

    def __init__(self, matrix: QuantizedMatrix, bias: nn.Parameter | None):
        super().__init__()
        self.matrix, self.bias = matrix, bias
        self.out_features, self.in_features = matrix.shape

    @property
    def weight(self) -> torch.Tensor:
        return self.matrix()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(x, self.matrix(), self.bias)


class QuantizedEmbedding(nn.Module):
    """An embedding with a frozen table in few bits."""

    def __init__(self, matrix: QuantizedMatrix):
        super().__init__()
        self.matrix = matrix
        self.num_embeddings, self.embedding_dim = matrix.shape

    @property
    def weight(self) -> torch.Tensor:
        return self.matrix()

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.matrix.rows(indices)


def _is_base(child: nn.Module, group: int) -> bool:
    if not isinstance(child, (nn.Linear, nn.Embedding)) or \
            type(child) not in (nn.Linear, nn.Embedding) or \
            getattr(child, "max_norm", None) is not None:
        return False
    weight = child.weight
    return (not weight.requires_grad and weight.is_floating_point() and weight.dtype != torch.float64
            and min(weight.shape) >= group and weight.shape[1] % group == 0)


def quantize_base(module: nn.Module, kind: str = "int4", *, group: int = 64) -> list[str]:
    """Replaces frozen linear layers and embeddings by quantized ones, in place.

    What is trained (``requires_grad``), has fewer than ``group`` rows or columns, or rows that are
    no multiple of it, stays. Layers that share a weight go on sharing it.

    Returns the names of the layers that were replaced.
    """
    if kind not in _LARGEST:
        raise UsageError(f"quantize_base: '{kind}' is not int8, int4 or nf4")
    if group not in (32, 64, 128):
        raise UsageError(f"quantize_base: groups are of 32, 64 or 128 numbers, not {group}")
    matrices: dict[int, QuantizedMatrix] = {}
    replaced: dict[nn.Module, nn.Module] = {}
    names = []
    for name, parent in list(module.named_modules()):
        for key, child in list(parent.named_children()):
            if child not in replaced:
                if not _is_base(child, group):
                    continue
                weight = child.weight
                if id(weight) not in matrices:
                    matrices[id(weight)] = QuantizedMatrix(weight, kind, group)
                matrix = matrices[id(weight)]
                made = QuantizedLinear(matrix, child.bias) if isinstance(child, nn.Linear) else QuantizedEmbedding(matrix)
                replaced[child] = made.train(child.training)
            setattr(parent, key, replaced[child])
            names.append(f"{name}.{key}" if name else key)
    if not names:
        raise InputError("quantize_base: no frozen linear layer or embedding of at least "
                         f"{group} rows and columns; freeze the base first (requires_grad_(False))")
    return names
