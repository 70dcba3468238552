# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a step shares with other libraries on its device: arrays, weights, a stream.

Problem: PyTorch, CuPy and JAX put work into streams of their own, and know nothing
of a step's. Method: a step copies arrays as if that were work of one stream, the
caller's: behind what the stream has so far, and before what it gets afterwards;
once it handed out a view of a weight, all of its work is. DLPack's ``stream=`` says
on both sides which stream that is. Guarantee: a step that shares nothing is in
nobody's order, and waits for nobody.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import _ckopt
from .errors import InputError, UsageError

# Of DLPack: kinds of memory that the host reads (pinned memory as well), and CUDA's.
HOST, _CUDA = (1, 3), 2
_DEFAULT = 1  # DLPack's number of the default stream, which torch and CuPy use


def _number(stream: Any) -> int:
    """The number of a stream as DLPack has it."""
    if hasattr(stream, "__cuda_stream__"):
        stream = stream.__cuda_stream__()[1]
    for attribute in ("cuda_stream", "ptr"):  # of torch, of CuPy
        stream = getattr(stream, attribute, stream)
    # Beyond those of DLPack's defaults, numbers are addresses.
    if stream is not None and not (isinstance(stream, int) and
                                   (0 <= stream <= 2 or stream >= 4096)):
        raise UsageError(f"{stream!r} is no stream: give torch.cuda.current_stream(), one of CuPy, "
                         "or the number of a CUstream")
    return stream or _DEFAULT


class Sharing:
    """The device of a step, and in which order it works there."""

    def __init__(self, step: _ckopt.Step):
        self._step = step
        self.device: int | None = step.device  #: its number; None: the CPU
        self.stream = _DEFAULT
        self._kept: Any = None  # the stream's object

    def __str__(self) -> str:
        return "the CPU" if self.device is None else f"cuda:{self.device}"

    def use(self, stream: Any) -> None:
        """Works in the order of another stream from now on."""
        if self.device is None:
            raise UsageError("the step runs on the CPU, where there are no streams")
        self.stream = _number(stream)
        self._step.set_stream(self.stream)
        self._kept = stream

    def take(self, name: str, value: Any) -> _ckopt.DeviceArray:
        """An array of CUDA's memory, ready in the order of the stream."""
        speaks = hasattr(value, "__dlpack_device__")
        device = int(value.__dlpack_device__()[1]) if speaks else self.device
        if device != self.device or device is None:
            where = "move it there, or " if self.device is not None else ""
            there = "a GPU" if device is None else f"cuda:{device}"
            raise InputError(f"'{name}' is on {there}, and the step runs on {self}: {where}"
                             "pass it after .cpu()")
        try:
            if not speaks:
                return _by_interface(value, device)
            return _ckopt.DeviceArray(value.__dlpack__(stream=self.stream))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InputError(f"'{name}' on {self} cannot be taken as it is: {error}") from error

    def to_host(self, array: _ckopt.DeviceArray) -> Any:
        """A copy on the host; bfloat16 becomes float32."""
        return self._step.to_host(array)

    def hand_over(self, name: str, stream: int | None) -> None:
        """Puts what ``stream`` gets from now on behind the step, as DLPack has it."""
        if stream == -1:  # the caller sees to it
            return
        if self.device is None:
            if stream is not None:
                raise BufferError(f"'{name}' is on the CPU, where there are no streams")
            return
        if stream == 0:
            raise BufferError("stream=0 could be two streams: 1 is the default one, 2 the thread's")
        if (stream or _DEFAULT) != self.stream:
            raise BufferError(f"'{name}' was asked for in stream {stream or _DEFAULT}, and the step "
                              f"works in the order of stream {self.stream}: set step.stream, for "
                              "PyTorch to torch.cuda.current_stream()")
        self._step.let_stream_wait()


_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}  # DLPack's of numpy's kinds


def _by_interface(value: Any, device: int | None) -> _ckopt.DeviceArray:
    """An array that has ``__cuda_array_interface__`` alone; it does not say where it is."""
    said = value.__cuda_array_interface__
    dtype = numpy.dtype(said["typestr"])
    shape = tuple(said["shape"])
    strides = said.get("strides")
    if strides is None:
        strides = [int(numpy.prod(shape[d + 1:])) * dtype.itemsize for d in range(len(shape))]
    if said.get("mask") is not None or dtype.kind not in _CODES or not dtype.isnative or \
            any(stride % dtype.itemsize for stride in strides):
        raise ValueError("it is no dense array of numbers")
    return _ckopt.DeviceArray.at(value, said["data"][0], shape,
                                 [stride // dtype.itemsize for stride in strides],
                                 (_CODES[dtype.kind], 8 * dtype.itemsize), device or 0,
                                 said.get("stream") or 0)


def is_on_cuda(value: Any) -> bool:
    """Whether ``value`` says that it is in CUDA's memory."""
    if isinstance(value, numpy.ndarray):
        return False
    if not hasattr(value, "__dlpack_device__"):
        return hasattr(value, "__cuda_array_interface__")
    try:
        return int(value.__dlpack_device__()[0]) == _CUDA
    except (BufferError, RuntimeError, TypeError, ValueError):
        return False


def may_stay(array: _ckopt.DeviceArray, field: dict[str, Any]) -> bool:
    """Whether it is copied within the device as it is, and not by the host."""
    dense = 1
    for size, stride in sorted(zip(array.shape, array.strides), key=lambda pair: pair[::-1]):
        if size != 1:
            if stride != dense:
                return False
            dense *= size
    shape = tuple(array.shape[1:] if field["batched"] else array.shape)
    return bool(field["on_device"]) and array.dtype == field["dtype"] and \
        tuple(field["shape"]) == shape


class View:
    """A weight where it lies: ``torch.from_dlpack(view)`` makes a tensor of it, without a copy.

    Every update changes it. It is read-only: DLPack's flag says so where the
    version that is asked for has one. Tensors of it keep the step.
    """

    def __init__(self, sharing: Sharing, name: str, array: Any, dtype: str,
                 shape: tuple[int, ...]):
        self._sharing, self._array = sharing, array
        self.name, self.dtype, self.shape = name, dtype, shape

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None, **how: Any) -> Any:
        self._sharing.hand_over(self.name, stream)
        return self._array.__dlpack__(**how)

    def __repr__(self) -> str:
        return f"<ckopt.View of '{self.name}': {self.dtype}{list(self.shape)} on {self._sharing}>"
