# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Another library on the device, as small as it can be: memory, streams and DLPack's capsules.

The driver is the stand-in, whose addresses are those of the host.
"""

import ctypes as c
import os

import numpy

cuda = c.CDLL(os.environ["CKOPT_CUDA_DRIVER"])
_py = c.pythonapi
_py.PyCapsule_New.restype = c.py_object
_py.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
_py.PyCapsule_GetPointer.restype = c.c_void_p
_py.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
_py.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]

NAME, USED = b"dltensor", b"used_dltensor"
VERSIONED, USED_VERSIONED = b"dltensor_versioned", b"used_dltensor_versioned"
_CODES = {"i": 0, "u": 1, "f": 2}


class _Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32), ("number", c.c_int32),
                ("ndim", c.c_int32), ("code", c.c_uint8), ("bits", c.c_uint8),
                ("lanes", c.c_uint16), ("shape", c.POINTER(c.c_int64)),
                ("strides", c.POINTER(c.c_int64)), ("offset", c.c_uint64)]


class _Managed(c.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c.c_void_p), ("deleter", c.c_void_p)]


class _Versioned(c.Structure):
    _fields_ = [("version", c.c_uint32 * 2), ("context", c.c_void_p), ("deleter", c.c_void_p),
                ("flags", c.c_uint64), ("tensor", _Tensor)]


def call(name, *arguments):
    """Calls the driver."""
    assert getattr(cuda, name)(*arguments) == 0, name


def open_device():
    """Makes the primary context current."""
    context, device = c.c_void_p(), c.c_int()
    call("cuInit", 0)
    call("cuDeviceGet", c.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", c.byref(context), device)
    call("cuCtxPushCurrent_v2", context)


def make_stream():
    """The number of a new stream."""
    stream = c.c_void_p()
    call("cuStreamCreate", c.byref(stream), 1)
    return stream.value


class Array:
    """An array on the device, filled in a stream: by work that waits there, and may come late."""

    alive = 0  # capsules that were taken, and that nobody gave back

    def __init__(self, values, stream=1, strides=None, number=0):
        self.dtype, self.number, self.stream = values.dtype, number, stream
        self.shape = values.shape
        self.strides = strides or [s // values.itemsize for s in
                                   numpy.empty(values.shape, values.dtype).strides]
        self._pinned = []
        self.memory = c.c_uint64()
        self.bytes = max(values.nbytes, 1) * 4
        call("cuMemAlloc_v2", c.byref(self.memory), self.bytes)
        self.fill(values)

    def fill(self, values):
        """Puts into the stream: the array has these values."""
        pinned = c.c_void_p()
        call("cuMemHostAlloc", c.byref(pinned), self.bytes, 0)
        held = numpy.frombuffer((c.c_char * self.bytes).from_address(pinned.value), values.dtype)
        numpy.lib.stride_tricks.as_strided(
            held, values.shape, [s * values.itemsize for s in self.strides])[...] = values
        call("cuMemcpyHtoDAsync_v2", self.memory, pinned, c.c_size_t(self.bytes),
             c.c_void_p(self.stream))

    def interface(self):
        """The same array for who knows the older protocol alone."""
        said = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.memory.value, False),
                "strides": tuple(s * self.dtype.itemsize for s in self.strides), "version": 3,
                "stream": self.stream}
        return type("Older", (), {"__cuda_array_interface__": said, "kept": self})()

    def __dlpack_device__(self):
        return 2, self.number

    def __dlpack__(self, *, stream=None):
        if stream not in (self.stream, -1):
            event = c.c_void_p()
            call("cuEventCreate", c.byref(event), 2)
            call("cuEventRecord", event, c.c_void_p(self.stream))
            call("cuStreamWaitEvent", c.c_void_p(stream or 1), event, 0)
        ndim = len(self.shape)
        made = _Managed()
        made.tensor = _Tensor(self.memory.value, 2, self.number, ndim, _CODES[self.dtype.kind],
                              self.dtype.itemsize * 8, 1, (c.c_int64 * ndim)(*self.shape),
                              (c.c_int64 * ndim)(*self.strides), 0)
        _held[c.addressof(made)] = made, self
        made.deleter = c.cast(_give_back, c.c_void_p)
        Array.alive += 1
        return _py.PyCapsule_New(c.addressof(made), NAME, None)


_held = {}


@c.CFUNCTYPE(None, c.c_void_p)
def _give_back(address):
    Array.alive -= 1
    del _held[address]


class Read:
    """What a capsule of the device says, and its values in the order of a stream."""

    def __init__(self, view, stream=1, **how):
        capsule = view.__dlpack__(stream=stream, **how)
        name = VERSIONED if "max_version" in how else NAME
        self.kind = _Versioned if "max_version" in how else _Managed
        self.at = _py.PyCapsule_GetPointer(capsule, name)
        self.made = self.kind.from_address(self.at)
        _py.PyCapsule_SetName(capsule, USED_VERSIONED if name == VERSIONED else USED)
        self._name = USED_VERSIONED if name == VERSIONED else USED
        self.read_only = bool(getattr(self.made, "flags", 0) & 1)
        self.stream = stream
        t = self.made.tensor
        self.device, self.shape = (t.device, t.number), tuple(t.shape[:t.ndim])
        self.strides = tuple(t.strides[:t.ndim])
        self.type = (t.code, t.bits)

    def start(self):
        """Puts a copy of float32 values into the stream; returns what gives them later."""
        count = int(numpy.prod(self.shape))
        pinned = c.c_void_p()
        call("cuMemHostAlloc", c.byref(pinned), 4 * count, 0)
        call("cuMemcpyDtoHAsync_v2", pinned, c.c_uint64(self.made.tensor.data),
             c.c_size_t(4 * count), c.c_void_p(self.stream))

        def values():
            call("cuStreamSynchronize", c.c_void_p(self.stream))
            held = numpy.frombuffer((c.c_char * (4 * count)).from_address(pinned.value), "f4")
            return numpy.lib.stride_tricks.as_strided(held, self.shape,
                                                      [4 * s for s in self.strides]).copy()
        return values

    def values(self):
        """The values as the stream reads them now."""
        return self.start()()

    def close(self):
        """Gives the memory back."""
        c.CFUNCTYPE(None, c.c_void_p)(self.made.deleter)(self.at)
