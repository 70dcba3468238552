# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command N times at once: at_once.py N COMMAND...; "N" in its last
argument is the number of the run. Fails if one of them does."""
import subprocess
import sys

count, command = int(sys.argv[1]), sys.argv[2:]
runs = [
    subprocess.Popen(command[:-1] + [command[-1].replace("N", str(i))])
    for i in range(count)
]
sys.exit(any([run.wait() for run in runs]))
