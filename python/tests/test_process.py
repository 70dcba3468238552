# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckopt and torch in one process: either order, threads, forked workers, Ctrl-C."""

import subprocess
import sys

import pytest
from conftest import DATA, MODEL

TRAIN = f"""
import numpy
def run():
    with numpy.load({DATA!r}) as data:
        x, y = data["images"], data["labels"]
    step = ckopt.compile({MODEL!r}, loss="cross_entropy", batch=32, threads=2, effort=0)
    return [step(batch).hex() for batch, _ in zip(ckopt.batches(32, x=x, y=y), range(5))]
"""


def run(program):
    """Runs a program in a process of its own; a hang fails."""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                            timeout=300, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def alone():
    return run("import ckopt" + TRAIN + "print(run())")


@pytest.mark.parametrize("order", ["import ckopt, torch", "import torch, ckopt",
                                   "import torch; torch.set_num_threads(1); "
                                   "torch.ones(300, 300) @ torch.ones(300, 300); import ckopt",
                                   "import ckopt, torch; torch.set_num_threads(1)"])
def test_order_and_threads_change_no_bit(alone, order):
    pytest.importorskip("torch")
    assert run(order + TRAIN + "print(run())") == alone


def test_forked_workers(alone):
    pytest.importorskip("torch")
    program = f"""
import ckopt, torch, numpy
{TRAIN}
first = run()  # threads exist before the fork
with numpy.load({DATA!r}) as data:
    set_ = torch.utils.data.TensorDataset(torch.from_numpy(data["images"]),
                                          torch.from_numpy(data["labels"]))
loader = torch.utils.data.DataLoader(set_, batch_size=32, num_workers=2,
                                     multiprocessing_context="fork")
step = ckopt.compile({MODEL!r}, loss="cross_entropy", batch=32, threads=2, effort=0)
losses = [step(x, y) for x, y in loader]
assert len(losses) == len(loader) and step.skipped == 1 and step.updates == len(loader) - 1
print(run() if run() == first else "other bits")
"""
    assert run(program) == alone


@pytest.mark.parametrize("first", ["", "import torch; torch.ones(500, 500) @ torch.ones(500, 500)"])
def test_forked_processes_train(alone, first):
    """A child of a process that trained has none of its threads, and trains with its own."""
    if first:
        pytest.importorskip("torch")
    program = f"""
{first}
import ckopt, multiprocessing, os
{TRAIN}
with numpy.load({DATA!r}) as data:
    x, y = data["images"], data["labels"]
losses = run()
inherited = ckopt.compile({MODEL!r}, loss="cross_entropy", batch=32, threads=2, effort=0)
inherited(x[:32], y[:32])
def child(queue):
    inherited.fit({{"x": x[:96], "y": y[:96]}}, report=lambda e: inherited.evaluate(x[:9], y[:9]))
    queue.put(run() if inherited.updates == 4 else "not trained")
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
result = queue.get(timeout=200)
process.join(60)
assert process.exitcode == 0 and inherited.updates == 1
print(run() if result == losses else result)
"""
    assert run(program) == alone


def test_interrupt_of_the_driver(tmp_path):
    """Ctrl-C ends `python -m ckopt` at once."""
    import os
    import signal
    import time

    process = subprocess.Popen([sys.executable, "-m", "ckopt", "train", MODEL, f"--data={DATA}",
                                "--inputs=x=images", "--targets=labels", "--loss=cross_entropy",
                                "--batch=8", "--epochs=100000", "--quiet",
                                f"--log={tmp_path / 'run.csv'}"], stderr=subprocess.DEVNULL)
    for _ in range(1200):
        if (tmp_path / "run.csv").exists():
            break
        time.sleep(0.1)
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=120) == -signal.SIGINT


def test_interrupt_between_steps():
    program = TRAIN.split("def run")[0] + f"""
import ckopt, os, signal, threading
with numpy.load({DATA!r}) as data:
    x, y = data["images"][:32], data["labels"][:32]
step = ckopt.compile({MODEL!r}, loss="cross_entropy", batch=32, threads=2, effort=0)
step(x, y)
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        step(x, y)
except KeyboardInterrupt:
    made = step.updates
    step(x, y)
    print("went on" if step.updates == made + 1 else "broken")
"""
    assert run(program) == "went on"
