#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A C program that trains by two processes, through libckopt.so.

check_ranks.py LIBRARY INCLUDE CC CKOPT DATA

  - its weights have the bits of `mpirun -n 2 ckopt train --parallel=dp:2`, also
    where the processes share them (fsdp:2), read them whole and set them whole;
  - processes that nobody started, or that would each train alone, are an error
    that shows the line which starts this program;
  - where one process ends early, the others get an error, and end.

Exits with 77, loudly, where there is no mpirun.
"""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none",
          "--mca", "btl_vader_single_copy_mechanism", "none"]


def run(*command, code=0, **variables):
    """Runs a command that exits with `code`, or one of them; returns what it wrote."""
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1",
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", CKOPT_CACHE_DIR="off", **variables)
    result = subprocess.run(command, env=environment, check=False, timeout=300, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode in (code if isinstance(code, tuple) else (code,)), \
        f"{command}: {result.returncode}\n{result.stdout}"
    return result.stdout


def main():
    """Builds the program and compares."""
    library, include, compiler, ckopt, data = sys.argv[1:]
    engine = os.path.join(os.path.dirname(library), "libckopt_mpi.so.1")
    if not shutil.which("mpirun") or not os.path.exists(engine):
        print("SKIPPED: a C program of several processes is NOT tested: needs mpirun "
              f"(openmpi-bin) and {engine}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ranks")
        run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", os.path.join(HERE, "ranks.c"),
            "-I", include, library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", program)
        model = os.path.join(data, "models", "digits_cnn.onnx")
        digits = os.path.join(data, "digits.npz")
        own, driver = (os.path.join(folder, name) for name in ("c.safetensors", "d.safetensors"))
        said = run(*MPIRUN, "-n", "2", program, model, digits, "dp:2", "3", own)
        assert sorted(said.split("\n")) == ["", "rank 0 of 2, batch 32",
                                            "rank 1 of 2, batch 32"], said
        run(*MPIRUN, "-n", "2", ckopt, "train", model, f"--data={digits}", "--inputs=x=images",
            "--targets=labels", "--loss=cross_entropy", "--optimizer=adamw", "--lr=0.001",
            "--threads=1", "--batch=32", "--seed=3", "--max-steps=3", "--quiet",
            "--parallel=dp:2", "-o", driver)
        assert filecmp.cmp(own, driver, shallow=False)

        # Ranks that share weights save whole ones, with the same bits.
        run(*MPIRUN, "-n", "2", program, model, digits, "fsdp:2", "3", own)
        assert filecmp.cmp(own, driver, shallow=False)

        arguments = [program, model, digits]
        said = run(*arguments, "dp:2", "3", own, code=64)
        assert f"mpirun -n 2 {program} {model}" in said, said
        said = run(*arguments, "", "3", own, code=64, RANK="0", WORLD_SIZE="2")
        assert re.search(r"RANK and WORLD_SIZE .* mpirun -n 2 ", said), said
        said = run(*MPIRUN, "-n", "2", *arguments, "", "3", own, code=64)
        assert re.search(r"each of them would train alone: mpirun -n 2 .*parallel", said), said
        said = run(*MPIRUN, "-n", "2", *arguments, "dp:4", "3", own, code=64)
        assert "mpirun started 2 processes" in said and "mpirun -n 4" in said, said

        said = run(*MPIRUN, "-n", "2", *arguments, "dp:2", "-3", own, code=(7, 20))
        assert "ranks: this one ends early" in said, said
        assert "rank 1 has left the run" in said, said
    print("a C program of two processes gives the driver's bits")


if __name__ == "__main__":
    main()
