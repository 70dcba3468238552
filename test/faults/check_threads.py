# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_threads.py BINARIES CC SOURCE: what happens where a thread cannot be made.

Whichever thread is the first that there is none for: a program goes on without it, with the same
bits, or ends with a message that says so. It never aborts, and leaves no file."""

import os
import pathlib
import subprocess
import sys
import tempfile

binaries, compiler, source = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
work = pathlib.Path(tempfile.mkdtemp(prefix="ckopt-threads-"))
preload, out = work / "no_threads.so", work / "out.safetensors"
subprocess.run([compiler, "-shared", "-fPIC", "-o", preload,
                source / "test/faults/no_threads.c", "-ldl"], check=True)


def run(line, first):
    """Runs a command whose `first` thread is not made; returns exit code, text and the file."""
    out.unlink(missing_ok=True)
    env = dict(os.environ, LD_PRELOAD=str(preload), CKOPT_NO_THREAD=str(first),
               CKOPT_CACHE_DIR="off")
    done = subprocess.run([binaries / line[0], *line[1:], "-o", out], env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300,
                          check=False)
    return done.returncode, done.stdout, out.read_bytes() if out.exists() else None


def check(line, may_fail):
    """Returns how many of the runs went on without a thread."""
    code, text, wanted = run(line, first=1000)
    assert code == 0 and wanted, text
    went_on = 0
    for first in range(1, 6):
        code, text, made = run(line, first)
        if code == 0:
            assert made == wanted, f"{line} without thread {first}: other bytes"
            went_on += 1
        else:
            said = "cannot be made (Resource temporarily unavailable)" in text or \
                "libgomp: Thread creation failed" in text  # between the question and the team
            assert may_fail and code == 1 and said and made is None, (line, first, code, text)
    return went_on


train = ["ckopt", "train", source / "test/data/models/digits_cnn.onnx",
         f"--data={source}/test/data/digits.npz", "--inputs=x=images", "--targets=labels",
         "--loss=cross_entropy", "--batch=64", "--max-steps=3", "--quiet", "--effort=0"]
assert check([*train, "--threads=1"], may_fail=False) == 5
assert check([*train, "--threads=2"], may_fail=True) < 5
chain = source / "test/ckopt-plan/Inputs/chain.json"
assert check(["ckopt-plan", chain, "--minimum", "--search-threads=4"], may_fail=False) == 5
remat = source / "test/Remat/restricted.mlir"
assert check(["ckopt-opt", remat, "--remat=budget=min"], may_fail=False) == 5
