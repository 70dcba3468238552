# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Arrays, weights and streams that a step shares with others on its device (the stand-in)."""

import ctypes
import os

import numpy
import pytest

import ckopt

from conftest import compile_digits
from test_device import run

TOGETHER = f"""
import gc, sys, types
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
import others
from others import Array, Read
others.open_device()
def place(batch, stream=1):
    return dict(x=Array(batch["x"], stream), y=Array(batch["y"], stream))
"""

ORDERS = pytest.mark.parametrize("order", ["late", "early"])


@ORDERS
def test_batches_of_the_device_give_the_bits_of_those_of_the_host(order, tmp_path):
    """They are copied within it, but for labels, which the host looks at."""
    log = tmp_path / "log"
    run(TOGETHER + """
host, shared, late = make(**device), make(**device), make(**device)
want = [host(**batch) for batch in batches]
assert [shared(**place(batch)) for batch in batches] == want
given = place(batches[0])
found = [late(**given, wait=False)]
for following in batches[1:]:  # the same memory, while a step may still read it
    given["x"].fill(following["x"]), given["y"].fill(following["y"])
    found.append(late(**given, wait=False))
assert [float(loss) for loss in found] == want
for name, value in host.state_dict().items():
    numpy.testing.assert_array_equal(shared.state_dict()[name], value)
    numpy.testing.assert_array_equal(late.state_dict()[name], value)
assert Array.alive == 0, Array.alive  # every capsule was given back
""", CKOPT_STANDIN_LOG=str(log), CKOPT_STANDIN_ORDER=order)
    lines = log.read_text().splitlines()
    assert not [line for line in lines if line.startswith("VIOLATION")]
    # Twelve batches of x, of 96 bytes, within the device; six from pinned memory of the
    # host, those of the step that had them there.
    copies = [line for line in lines if line.startswith("cuMemcpy") and " 96 " in line]
    assert len([line for line in copies if line.startswith("cuMemcpyDtoDAsync")]) == 12
    assert len([line for line in copies if line.startswith("cuMemcpyHtoDAsync") and
                " H" in line]) == 6


@pytest.mark.parametrize("reads", [False, True])
def test_a_step_is_started_while_the_last_one_works(reads, tmp_path):
    """Its batch is looked at meanwhile, unless weights are read in the same stream."""
    log = tmp_path / "log"
    run(TOGETHER + f"""
step = make(**device)
if {reads}:
    step.views()["a"].__dlpack__()
for batch in batches:
    late = step(**place(batch), wait=False)
float(late)  # and what it holds goes before Python does
""", CKOPT_STANDIN_LOG=str(log))
    lines = [line.split()[0] for line in log.read_text().splitlines()
             if line.startswith("cuGraphLaunch") or
             line.startswith("execute ") and "ckopt_runtime" not in line]
    launches = [i for i, line in enumerate(lines) if line == "cuGraphLaunch"]
    each = (len(lines) - len(launches)) // len(launches)
    done = lines[:launches[4]].count("execute") // each  # when the fifth step is started
    assert done == (4 if reads else 3)


@ORDERS
def test_views_show_weights_after_updates(order):
    run(TOGETHER + """
step = make(**device)
views = step.views()
assert list(views) == list(step.state_dict()) and repr(views["a"]) == \\
    "<ckopt.View of 'a': f32[6, 8] on cuda:0>"
a = Read(views["a"], max_version=(1, 0))
assert a.device == (2, 0) and a.shape == (6, 8) and a.type == (2, 32) and a.read_only
assert not Read(views["d"]).read_only  # DLPack before 1.0 has no flag
start = a.values()
numpy.testing.assert_array_equal(start, step.state_dict()["a"])
step(**batches[0], wait=False)
after = a.start()          # in the order of the stream: behind the update,
step(**batches[1], wait=False)   # and before the next one
one = after()
other = make(**device)
other(**batches[0])
numpy.testing.assert_array_equal(one, other.state_dict()["a"])
assert (one != start).any() and (a.values() != one).any()
step.load_state_dict({"a": start}, strict=False)
numpy.testing.assert_array_equal(a.values(), start)

# What holds the memory holds the step.
del step, views
gc.collect()
numpy.testing.assert_array_equal(a.values(), start)
a.close()
""", CKOPT_STANDIN_ORDER=order)


@ORDERS
def test_the_step_works_in_the_order_of_a_stream(order):
    run(TOGETHER + """
class Stream:  # as torch.cuda.Stream
    def __init__(self): self.cuda_stream = others.make_stream()
step, plain, stream = make(**device), make(**device), Stream()
assert step.stream == 1
step.stream = stream
assert step.stream == stream.cuda_stream
view = step.views()["a"]
given = place(batches[0], stream.cuda_stream)
late = step(**given, wait=False)
given["x"].fill(batches[1]["x"]), given["y"].fill(batches[1]["y"])
first = Read(view, stream.cuda_stream).start()
second = step(**given, wait=False)
want = plain(**batches[0])
numpy.testing.assert_array_equal(first(), plain.state_dict()["a"])
assert [float(late), float(second)] == [want, plain(**batches[1])]

for asked in (None, 1, 2):
    try:
        view.__dlpack__(stream=asked)
        raise SystemExit("no error")
    except BufferError as error:
        assert "set step.stream" in str(error)
try:
    view.__dlpack__(stream=0)
    raise SystemExit("no error")
except BufferError as error:
    assert "could be two streams" in str(error)
view.__dlpack__(stream=-1)
step.stream = None
view.__dlpack__(stream=1), view.__dlpack__()
for wrong in ("main", -5, 1.5):
    try:
        step.stream = wrong
        raise SystemExit("no error")
    except ckopt.UsageError as error:
        assert "is no stream" in str(error)
""", CKOPT_STANDIN_ORDER=order)


def test_all_calls_take_arrays_of_the_device():
    """What is not a batch's array of the right type goes over the host, with its checks."""
    run(TOGETHER + """
step, plain = make(**device), make(**device)
all_of = dict(x=Array(x), y=Array(y))
assert step.evaluate(**all_of) == plain.evaluate(x=x, y=y)
numpy.testing.assert_array_equal(step.predict(x=all_of["x"]), plain.predict(x=x))
step.load_state_dict({"a": Array(2 * w[0]), "d": Array(w[1])})
numpy.testing.assert_array_equal(step.state_dict()["a"], 2 * w[0])
step.load_state_dict({"a": w[0], "d": w[1]})
assert step.fit(all_of, epochs=2).losses == plain.fit(dict(x=x, y=y), epochs=2).losses
batch = batches[0]
assert step(x=Array(batch["x"].astype("f8")), y=Array(batch["y"].astype("i4"))) == plain(**batch)
turned = Array(batch["x"], strides=[1, 4])
assert step(x=turned, y=batch["y"]) == plain(**batch)
apart = Array(batch["x"], strides=[12, 2])
assert step(x=apart, y=batch["y"]) == plain(**batch)
own = others.make_stream()  # which an older protocol names, and the step's order is another
older = Array(batch["x"], own)
assert step(x=older.interface(), y=Array(batch["y"], own).interface()) == plain(**batch)
one, two = (make("none", **device) for _ in range(2))
(loss, found), (other, want) = one.gradients(**place(batch)), two.gradients(**batch)
assert loss == other and all((found[name] == want[name]).all() for name in want)
""")


def test_what_is_wrong_with_an_array_is_said():
    run(TOGETHER + """
step, batch = make(**device), batches[0]
before = step.state_dict()["a"]
labels, gap = batch["y"].copy(), batch["x"].copy()
labels[2], gap[1, 3] = 7, numpy.nan
far = Array(batch["x"], number=1)
for arrays, text in (
        (dict(x=far, y=batch["y"]),
         "'x' is on cuda:1, and the step runs on cuda:0: move it there, or pass it after .cpu()"),
        (dict(x=batch["x"], y=Array(labels)), "label 7"),
        (dict(x=Array(gap), y=batch["y"]), "array 'x' on the device has numbers that are not finite"),
        (dict(x=Array(batch["x"][:, :5].copy()), y=batch["y"]), "samples of shape [5]"),
        (dict(x=Array(batch["x"] * 1e-9 + numpy.float64(1)), y=batch["y"]), "would be another number"),
        (dict(x=Array(numpy.concatenate([batch["x"]] * 2)), y=batch["y"]), "8 samples")):
    try:
        step(**arrays)
        raise SystemExit("no error: " + text)
    except ckopt.InputError as error:
        assert text in str(error), error
numpy.testing.assert_array_equal(step.state_dict()["a"], before)
assert step(**place(batch)) == make(**device)(**batch)  # it goes on
for array, where in ((Array(batch["x"]), "cuda:0"), (Array(batch["x"]).interface(), "a GPU")):
    try:
        make(threads=1)(x=array, y=batch["y"])
        raise SystemExit("no error")
    except ckopt.InputError as error:
        assert str(error) == f"'x' is on {where}, and the step runs on the CPU: pass it after .cpu()"
host = types.SimpleNamespace(__cuda_array_interface__=dict(
    shape=(4, 6), typestr="<f4", data=(batch["x"].ctypes.data, False), strides=None, version=3))
try:
    step(x=host, y=batch["y"])
    raise SystemExit("no error")
except ckopt.InputError as error:
    assert "cuda:0 (Stand-in 0): the caller's array is not in this device's memory" in str(error)
""")


def test_views_on_the_cpu_are_arrays_of_the_arena(digits):
    images, labels = digits
    step = compile_digits()
    views = step.views()
    weights = {name: numpy.from_dlpack(view) for name, view in views.items()}
    for _ in range(2):
        for name, value in step.state_dict().items():
            numpy.testing.assert_array_equal(weights[name], value)
            assert not weights[name].flags.writeable
        step(images[:32], labels[:32])
    with pytest.raises(BufferError, match="where there are no streams"):
        next(iter(views.values())).__dlpack__(stream=1)
    with pytest.raises(ckopt.UsageError, match="runs on the CPU"):
        step.stream = 1
    copies = {name: value.copy() for name, value in weights.items()}
    del step, views  # what is held holds the arena
    for name, value in weights.items():
        numpy.testing.assert_array_equal(value, copies[name])


class Pinned:
    """As PyTorch's pin_memory() makes them: memory of the host that CUDA knows."""

    def __init__(self, values):
        self.values = values

    def __dlpack_device__(self):
        return 3, 0

    def __dlpack__(self, **how):
        capsule = self.values.__dlpack__(**{**how, "dl_device": None})
        versioned = "versioned" in repr(capsule)
        place = ctypes.pythonapi.PyCapsule_GetPointer
        place.restype, place.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        at = place(capsule, b"dltensor_versioned" if versioned else b"dltensor")
        ctypes.c_int32.from_address(at + (40 if versioned else 8)).value = 3
        return capsule


def test_pinned_memory_is_the_hosts(digits):
    images, labels = digits
    plain, pinned = compile_digits(), compile_digits()
    assert pinned(Pinned(images[:32].copy()), Pinned(labels[:32].copy())) == \
        plain(images[:32], labels[:32])
