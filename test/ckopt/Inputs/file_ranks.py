# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a command as N ranks that RANK and WORLD_SIZE number, as a script without
MPI would, and prints what each has said and its exit code, rank by rank.

file_ranks.py N [--only=R,...] [--env=R:NAME=VALUE ...]
              [--lose=R:SIGNAL:FILE:TEXT] COMMAND...

--only starts these ranks alone; --lose sends rank R a signal (KILL, STOP) once
the file has the text.
"""

import os
import signal
import subprocess
import sys
import time

ranks = int(sys.argv[1])
started = range(ranks)
lose = None
extra = {}
words = sys.argv[2:]
while words[0].startswith("--"):
    name, value = words.pop(0).split("=", 1)
    if name == "--only":
        started = [int(rank) for rank in value.split(",")]
    elif name == "--env":
        rank, setting = value.split(":", 1)
        extra.setdefault(int(rank), {}).update([setting.split("=", 1)])
    else:
        rank, which, path, text = value.split(":", 3)
        lose = (int(rank), getattr(signal, "SIG" + which), path, text)

processes = {}
for rank in started:
    environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks))
    environment.update(extra.get(rank, {}))
    processes[rank] = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )

if lose:
    rank, number, path, text = lose
    while processes[rank].poll() is None:
        if os.path.exists(path) and text in open(path, errors="replace").read():
            processes[rank].send_signal(number)
            break
        time.sleep(0.01)

for rank, process in processes.items():
    # One that was stopped is ended when all others have.
    if lose and lose[1] == signal.SIGSTOP and rank == lose[0]:
        continue
    output = process.communicate()[0]
    for line in output.splitlines():
        if not line.startswith("remark:"):
            print("[%d] %s" % (rank, line))
    print("[%d] exit %d" % (rank, process.returncode))
if lose and lose[1] == signal.SIGSTOP:
    processes[lose[0]].kill()
