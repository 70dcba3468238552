# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a device multiplies, moves bytes and computes elements, and how it counts bytes.

Problem: what is worth computing again depends on how long a product takes beside
memory, which differs by tens between devices and between types on one of them.
Method: rates of libraries' products by the operands' type, from ckopt's table of
devices by name; another device gets those of the nearest of its capability, by its
multiprocessors and clock, and its memory's bandwidth as its properties have it.
Guarantee: none, these are estimates; only their ratios decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from . import _ckopt

# The share of a data sheet's bandwidth that kernels reach (docs/benchmarks/gpu.md).
_REACHED = 0.88
# The clock in kHz at which the table's devices run, nearly all of them; its rates are at it.
_USUAL_CLOCK = 1_800_000
# The unit of PyTorch's caching allocator: every block is a multiple of it.
_CUDA_UNIT = 512

_HALVES = (torch.float16, torch.bfloat16)


@dataclass
class Speeds:
    """Operations and bytes a second."""

    products: float          #: of types that are not in `by_type`
    bandwidth: float
    elements: float          #: elementwise operations
    by_type: dict[Any, float] = field(default_factory=dict)
    convolutions: float = 0  #: of float32 operands; 0: as products

    def of(self, dtype, convolution=False):
        """Products of operands of a type."""
        if convolution and dtype == torch.float32 and self.convolutions:
            return self.convolutions
        return self.by_type.get(dtype, self.products)


CPU = Speeds(90e9, 10e9, 6e9)
# A device that is neither the CPU nor CUDA's: by its type alone, little can be said.
OTHER = Speeds(60e12, 3e12, 8e12)


def of_properties(properties, *, tf32=False, convolutions_tf32=True):
    """The speeds of a device of CUDA by ``torch.cuda.get_device_properties``.

    tf32: whether products of float32 may round their operands so.
    """
    found = _ckopt.device_speeds(properties.name, 10 * properties.major + properties.minor)
    scale, bandwidth = 1.0, found["bandwidth"]
    if not found["known"]:
        scale = properties.multi_processor_count / found["multiprocessors"]
        if clock := getattr(properties, "clock_rate", 0):
            scale *= clock / _USUAL_CLOCK
        bandwidth *= scale
        clock = getattr(properties, "memory_clock_rate", 0)
        width = getattr(properties, "memory_bus_width", 0)
        if clock and width:  # kHz and bits, two transfers a cycle
            bandwidth = 2 * clock * 1000 * width / 8 * _REACHED
    f32, rounded, halves, vector = (scale * found[name] for name in ("f32", "tf32", "halves", "vector"))
    # Data centers' devices multiply float64 at half the rate of float32, others at a 64th.
    has_f64 = (properties.major, properties.minor) in ((8, 0), (9, 0), (10, 0))
    by_type = {dtype: halves for dtype in _HALVES}
    by_type[torch.float64] = f32 / (2 if has_f64 else 64)
    by_type[torch.int8] = 2 * halves
    return Speeds(rounded if tf32 else f32, bandwidth, vector, by_type,
                  rounded if convolutions_tf32 else f32)


def of_device(device):
    """The speeds of a torch.device, as PyTorch is set now."""
    if device.type == "cpu":
        return CPU
    if device.type != "cuda" or torch.version.hip:
        return OTHER
    backends = torch.backends
    return of_properties(torch.cuda.get_device_properties(device),
                         tf32=backends.cuda.matmul.fp32_precision == "tf32",
                         convolutions_tf32=backends.cudnn.conv.fp32_precision == "tf32")


def unit_of(device):
    """Bytes of which every tensor's memory is a multiple, as its allocator counts.

    Of CUDA that is ``torch.cuda.memory_allocated``, but for the rest of a cached
    block that is too small to be cut off (at most 1 MiB of one above 1 MiB). What
    the allocator reserves beyond (segments of 2 and 20 MiB, and what lies free
    between blocks) follows from the order of all allocations of the process.
    """
    return _CUDA_UNIT if device.type == "cuda" else 1


def whole_units(size, unit):
    """The least whole number of units that holds so many bytes."""
    return -(-size // unit) * unit
