# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Steps on a CUDA device, which the stand-in driver plays; a process of its own each, since the
driver is opened once."""

import os
import subprocess
import sys

import pytest

STANDIN = os.path.abspath(os.path.join("cuda-standin", "libcuda.so.1"))

# A perceptron, as a file and as the CPU's step of it.
START = """
import io, numpy, ckopt, onnx
from onnx import helper as h, numpy_helper as n, TensorProto as t
r = numpy.random.default_rng(0)
w = [r.normal(size=s).astype("f4") / 2 for s in ((6, 8), (8, 3))]
graph = h.make_graph(
    [h.make_node("MatMul", ["x", "a"], ["b"]), h.make_node("Relu", ["b"], ["c"]),
     h.make_node("MatMul", ["c", "d"], ["scores"])], "g",
    [h.make_tensor_value_info("x", t.FLOAT, ["batch", 6])],
    [h.make_tensor_value_info("scores", t.FLOAT, ["batch", 3])],
    [n.from_array(w[0], "a"), n.from_array(w[1], "d")])
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)]).SerializeToString()
x, y = r.normal(size=(12, 6)).astype("f4"), r.integers(0, 3, 12)
common = dict(loss="cross_entropy", batch=4, seed=2)
batches = [dict(x=x[i:i + 4], y=y[i:i + 4]) for i in (0, 4, 8)] * 2
def make(optimizer=None, **more):
    return ckopt.compile(model, optimizer=optimizer or ckopt.AdamW(lr=0.05), **common, **more)
device = dict(device="cuda:0", cuda_libs="none")
"""


def run(text, **environment):
    pytest.importorskip("onnx")
    if not os.path.exists(STANDIN):
        pytest.skip(f"steps on devices are NOT tested: there is no {STANDIN}")
    result = subprocess.run(
        [sys.executable, "-c", START + text], capture_output=True, text=True, check=False,
        env={**os.environ, "CKOPT_CUDA_DRIVER": STANDIN, "CKOPT_STANDIN_KERNELS": "ptx",
             **environment})
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_all_calls_run_on_a_device():
    run("""
cpu, gpu = make(threads=1), make(**device)
for batch in batches:
    numpy.testing.assert_allclose(gpu(**batch), cpu(**batch), rtol=1e-5)
numpy.testing.assert_allclose(gpu.evaluate(x=x, y=y)["loss"], cpu.evaluate(x=x, y=y)["loss"], rtol=1e-5)
numpy.testing.assert_allclose(gpu.predict(x=x), cpu.predict(x=x), rtol=1e-4, atol=1e-6)
for name, value in cpu.state_dict().items():
    numpy.testing.assert_allclose(gpu.state_dict()[name], value, rtol=1e-4, atol=1e-6)
gpu.checkpoint("device.safetensors")
other = make(**device)
assert other.resume("device.safetensors") == 6
assert other(**batches[0]) == gpu(**batches[0])
one, two = make(**device), make(**device)
assert one.fit(dict(x=x, y=y), epochs=2).losses == two.fit(dict(x=x, y=y), epochs=2).losses
""")


def test_a_loss_need_not_be_waited_for():
    run("""
plain, late = make(**device), make(**device)
want = [plain(**batch) for batch in batches]
found = [late(**batch, wait=False) for batch in batches]
assert isinstance(found[0], ckopt.Loss) and late.updates == 6
assert [float(loss) for loss in found] == want
for name, value in plain.state_dict().items():
    numpy.testing.assert_array_equal(late.state_dict()[name], value)
assert float(late(batches[0], wait=False)) == plain(batches[0])
third = late(**batches[1], wait=False)
assert late.evaluate(x=x, y=y) and float(third) == plain(**batches[1])  # behind it

added, apart = (make(ckopt.SGD(lr=0.1, accumulate=2), **device) for _ in range(2))
assert [float(l) for l in [added(**b, wait=False) for b in batches]] == [apart(**b) for b in batches]
assert added.updates == 3
cpu, same = make(threads=1), make(threads=1)
assert float(cpu(**batches[0], wait=False)) == same(**batches[0])
""")


@pytest.mark.parametrize("wait", [True, False])
def test_the_next_step_starts_before_the_last_loss_is_read(wait, tmp_path):
    """The stand-in executes what was launched when the host waits for it."""
    log = tmp_path / "log"
    run(f"""
step = make(**device)
for batch in batches:
    step(**batch, wait={wait})
""", CKOPT_STANDIN_LOG=str(log))
    lines = [line for line in log.read_text().splitlines()
             if "cuGraphLaunch" in line or "execute" in line]
    # Behind the first step the arena's end is looked at.
    second, third = [i for i, line in enumerate(lines) if "cuGraphLaunch" in line][1:3]
    assert (third - second > 1) == wait


def test_a_batch_that_is_refused_leaves_the_others_their_losses():
    run("""
for where in (device, {}):
    step, other = make(**where), make(**where)
    want = [other(**batch) for batch in batches]
    losses = []
    for i, batch in enumerate(batches):
        losses.append(step(**batch, wait=False))
        if i in (0, 1, 3):
            try:
                step(x=batch["x"][:, :-1], y=batch["y"], wait=False)
                raise SystemExit("no error")
            except ckopt.InputError:
                pass
    assert [float(loss) for loss in losses] == want, (list(map(float, losses)), want)
""")


def test_what_went_wrong_is_told_by_the_next_call():
    run("""
step = make(ckopt.SGD(lr=1e30), **device)
losses = []
try:
    for batch in batches * 3:
        losses.append(step(**batch, wait=False))
    step.state_dict()
    raise SystemExit("no error")
except ckopt.NonFiniteError as error:
    assert "step" in str(error)
finite = [loss for loss in map(float, losses) if numpy.isfinite(loss)]
assert finite and len(finite) < len(losses)
""")
