# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays of any library as contiguous numpy arrays of a step's types.

Nothing is copied where type and layout fit. Values are converted where that is
exact; what would be rounded is refused by name unless it was asked for.
"""

from __future__ import annotations

import numpy

from ._device import HOST, is_on_cuda
from .errors import InputError, UsageError


def _from_dlpack(name, value):
    try:
        kind = int(value.__dlpack_device__()[0])
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"'{name}' is not in memory: {error}") from error
    if kind not in HOST:
        raise InputError(f"'{name}' is not in the CPU's memory; pass it after .cpu()")
    if str(getattr(value, "dtype", "")) in ("torch.bfloat16", "torch.float8_e4m3fn",
                                            "torch.float8_e5m2"):
        value = value.float()  # exact; numpy has none of them
    try:
        array = numpy.from_dlpack(value)
        # Of pinned memory numpy's array says so, too, and few take that for the host's.
        return array if kind == HOST[0] else numpy.asarray(memoryview(array))
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"'{name}' ({getattr(value, 'dtype', type(value).__name__)}) cannot be "
                         f"read as a dense array of numbers: {error}") from error


def _view(name, value, home):
    """The array behind `value`, without a copy where it is the host's and has one."""
    if isinstance(value, numpy.ma.MaskedArray):
        if numpy.ma.getmaskarray(value).any():
            raise InputError(f"'{name}' has masked elements, which a step cannot leave out")
        return value.data
    if isinstance(value, numpy.ndarray):
        return value
    if hasattr(value, "detach"):  # torch: gradients do not flow through ckopt
        value = value.detach()
    if home is not None and is_on_cuda(value):
        return home.to_host(home.take(name, value))
    if hasattr(value, "__dlpack_device__"):
        return _from_dlpack(name, value)
    try:
        return numpy.asarray(value)
    except ValueError as error:
        raise InputError(f"'{name}' is no array: {error}") from error


def _first_difference(array, back, converted):
    differs = ~((array == back) | ((array != array) & (back != back)))
    # Integers that wrap come back as they were, with the other sign on the way.
    differs |= (array < 0) != (converted < 0)
    if not differs.any():
        return None
    place = tuple(int(i) for i in numpy.argwhere(differs)[0])
    return place, array[place]


def is_exact(dtype, to):
    """Whether every value of `dtype` is one of `to`."""
    wide = dtype.kind in "iu" and dtype.itemsize == 8 and to.kind == "f"  # numpy calls it safe
    return numpy.can_cast(dtype, to, "safe") and not wide


def _convert(name, array, dtype, cast):
    if array.dtype.kind not in "fiub":
        raise InputError(f"'{name}' has elements of {array.dtype}; the step takes {dtype}")
    if is_exact(array.dtype, dtype):
        return array.astype(dtype)
    with numpy.errstate(all="ignore"):
        converted = array.astype(dtype)
        back = converted.astype(array.dtype)
    floats = array.dtype.kind == "f" and dtype.kind == "f"
    if floats and cast == "round":
        return converted
    if different := _first_difference(array, back, converted):
        place, value = different
        help_text = (f"pass it as numpy.{dtype}, or compile with cast='round'" if floats else
                     f"pass it as numpy.{dtype}")
        raise InputError(f"'{name}' is {array.dtype} and the step takes {dtype}, in which its "
                         f"element {list(place)} = {value!s} would be another number; {help_text}")
    return converted


def check_cast(cast):
    """Raises UsageError for a `cast` that is neither 'exact' nor 'round'."""
    if cast not in ("exact", "round"):
        raise UsageError(f"cast={cast!r} is neither 'exact' nor 'round'")


def as_array(name, value, dtype=None, cast="exact", home=None):
    """Returns `value` as a C-contiguous array of `dtype` (None: its own) on the host.

    Raises InputError, with `name`, where values would change (`cast='round'`
    lets floats round), for other kinds of elements and other devices than
    `home` (_device.Sharing; None: the host's memory alone).
    """
    array = _view(name, value, home)
    if dtype is not None and array.dtype != numpy.dtype(dtype):
        array = _convert(name, array, numpy.dtype(dtype), cast)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # ascontiguousarray would make [1] of a number.
    return array if array.flags.c_contiguous else array.copy(order="C")
