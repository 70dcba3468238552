# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README and pages for users: their blocks of code run as they stand."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

TORCH = ["torch", "onnx", "onnxscript"]


@pytest.mark.parametrize("page, modules", [
    ("README.md", []),
    ("docs/it-does-not-fit.md", []),
    ("docs/from-trainers.md", TORCH),
    ("docs/fine-tune.md", TORCH),
    ("docs/language-models.md", [*TORCH, "transformers", "peft"]),
    ("docs/inside-trainers.md", [*TORCH, "lightning", "accelerate"]),
])
def test_blocks_run(page, modules, tmp_path):
    """Each block runs behind the ones before it, and prints what the page shows."""
    for module in modules:
        pytest.importorskip(module, reason=f"{page} is NOT run: it needs {', '.join(modules)}")
    driver = tmp_path / "ckopt"
    driver.write_text(f"#!/bin/sh\nexec '{sys.executable}' -m ckopt \"$@\"\n", encoding="utf-8")
    driver.chmod(0o755)
    done = subprocess.run(
        [sys.executable, os.path.join(ROOT, "test/docs/run_blocks.py"), f"--ckopt={driver}",
         f"--clone={ROOT}", os.path.join(ROOT, page)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
