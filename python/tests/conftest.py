# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tests share: the digits network, its data, a small step."""

import os
import subprocess
import sys

import numpy
import pytest

import ckopt

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "test/data/models/digits_cnn.onnx")
DATA = os.path.join(ROOT, "test/data/digits.npz")


@pytest.fixture(scope="session")
def digits():
    """Images [1797, 1, 8, 8] of uint8 and labels [1797] of int64."""
    with numpy.load(DATA) as data:
        return data["images"], data["labels"]


def compile_digits(**settings):
    """A step of the digits network, two threads, quickly planned."""
    merged = dict(loss="cross_entropy", optimizer=ckopt.AdamW(lr=1e-3), batch=32, threads=2,
                  effort=0)
    merged.update(settings)
    return ckopt.compile(MODEL, **merged)


def run_driver(*arguments, code=0):
    """Runs `python -m ckopt` and returns its standard output and error."""
    result = subprocess.run([sys.executable, "-m", "ckopt", *map(str, arguments)],
                            capture_output=True, text=True, check=False)
    assert result.returncode == code, result.stderr
    return result.stdout, result.stderr
