# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""count_threads.py COMMAND...: runs a command and prints the most threads that
it was seen to have, and the OpenMP runtimes and flavours of OpenBLAS that it
has loaded. OMP_NUM_THREADS asks for more than any step was compiled for."""
import os
import re
import subprocess
import sys
import time

environment = {**os.environ, "OMP_NUM_THREADS": "8", "OPENBLAS_NUM_THREADS": "8"}
most, libraries = 0, set()
process = subprocess.Popen(sys.argv[1:], env=environment, stdout=subprocess.DEVNULL)
while process.poll() is None:
    try:
        most = max(most, len(os.listdir(f"/proc/{process.pid}/task")))
        with open(f"/proc/{process.pid}/maps") as maps:
            libraries |= set(re.findall(r"/lib(gomp|omp|iomp5)[-.]", maps.read()))
    except (FileNotFoundError, ProcessLookupError):
        break  # it has just ended
    time.sleep(0.005)
print(f"threads {most}, OpenMP {' '.join(sorted(libraries))}")
sys.exit(process.wait())
