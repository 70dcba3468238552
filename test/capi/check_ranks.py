#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A C program that trains by two processes, through libckopt.so.

check_ranks.py LIBRARY INCLUDE CC CKOPT DATA STANDIN

  - its weights have the bits of `mpirun -n 2 ckopt train --parallel=dp:2`, also
    where the processes share them (fsdp:2), read them whole and set them whole;
  - processes that nobody started, or that would each train alone, are an error
    that shows the line which starts this program;
  - where one process ends early, the others get an error, and end;
  - on GPUs (the stand-in plays them) processes that nobody started meet by a
    file, and their weights have the bits of ckopt train that meets so; they may
    exit without an end of their step.

Exits with 77, loudly, where there is no mpirun; the last point needs none.
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
                       OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **variables)
    result = subprocess.run(command, env=environment, check=False, timeout=300, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode in (code if isinstance(code, tuple) else (code,)), \
        f"{command}: {result.returncode}\n{result.stdout}"
    return result.stdout


def check_devices(folder, program, ckopt, standin, model, digits):
    """Compares two ranks on devices, without mpirun, with the driver's."""
    shared = dict(os.environ, WORLD_SIZE="2", CKOPT_CUDA_DRIVER=standin,
                  CKOPT_NCCL=standin, CKOPT_STANDIN_DEVICES="2", CKOPT_STANDIN_KERNELS="ptx")
    meeting = os.path.join(folder, "id")
    own, driver = (os.path.join(folder, name) for name in ("g.safetensors", "h.safetensors"))

    def both(*command, codes=(0, 0)):
        ranks = [subprocess.Popen(command, env=dict(shared, RANK=rank), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                 for rank in "01"]
        said = [rank.communicate(timeout=300)[0] for rank in ranks]
        ended = tuple(rank.returncode for rank in ranks)
        assert ended == codes, (ended, said)
        return said

    for parallel in ("dp:2", "fsdp:2"):
        said = both(program, model, digits, parallel, "2", own, "batch=4", "target=cuda",
                    "cuda-libs=none", f"nccl-id={meeting}")
        assert said == [f"rank {rank} of 2, batch 4\n" for rank in (0, 1)], said
        both(ckopt, "train", model, f"--data={digits}", "--inputs=x=images", "--targets=labels",
             "--loss=cross_entropy", "--optimizer=adamw", "--lr=0.001", "--batch=4", "--seed=3",
             "--max-steps=2", "--quiet", "--target=cuda", "--cuda-libs=none",
             f"--parallel={parallel}", f"--nccl-id={meeting}", "-o", driver)
        assert filecmp.cmp(own, driver, shallow=False)
        assert not os.path.exists(meeting)

    # A program may exit with its step alive: the run is then closed after main.
    said = both(program, model, digits, "fsdp:2", "1", os.path.join(folder, "g.bin"), "batch=4",
                "target=cuda", "cuda-libs=none", f"nccl-id={meeting}", codes=(64, 64))
    assert all(line.startswith("ranks: a file of weights must end in") and line.count("\n") == 1
               for line in said), said


def main():
    """Builds the program and compares."""
    library, include, compiler, ckopt, data, standin = sys.argv[1:]
    engine = os.path.join(os.path.dirname(library), "libckopt_mpi.so.1")
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "ranks")
        run(compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", os.path.join(HERE, "ranks.c"),
            "-I", include, library, f"-Wl,-rpath,{os.path.dirname(library)}", "-o", program)
        model = os.path.join(data, "models", "digits_cnn.onnx")
        digits = os.path.join(data, "digits.npz")
        check_devices(folder, program, ckopt, standin, model, digits)
        if not shutil.which("mpirun") or not os.path.exists(engine):
            print("SKIPPED: a C program of several processes is NOT tested without GPUs: needs "
                  f"mpirun (openmpi-bin) and {engine}")
            sys.exit(77)
        own, driver = (os.path.join(folder, name) for name in ("c.safetensors", "d.safetensors"))
        said = run(*MPIRUN, "-n", "2", program, model, digits, "dp:2", "3", own,
                   "threads=1")
        assert sorted(said.split("\n")) == ["", "rank 0 of 2, batch 32",
                                            "rank 1 of 2, batch 32"], said
        run(*MPIRUN, "-n", "2", ckopt, "train", model, f"--data={digits}", "--inputs=x=images",
            "--targets=labels", "--loss=cross_entropy", "--optimizer=adamw", "--lr=0.001",
            "--threads=1", "--batch=32", "--seed=3", "--max-steps=3", "--quiet",
            "--parallel=dp:2", "-o", driver)
        assert filecmp.cmp(own, driver, shallow=False)

        # Ranks that share weights save whole ones, with the same bits.
        run(*MPIRUN, "-n", "2", program, model, digits, "fsdp:2", "3", own, "threads=1")
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
