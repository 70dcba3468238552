#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code blocks of a Markdown page, in order, in one folder.

usage: run_blocks.py --ckopt=BIN PAGE.md [MODULE...]

Blocks marked ```python run in one interpreter, one after the other; blocks
marked ```sh run with `bash -e` and `ckopt` on the path; others are not run.
Exit code 1 with the block that failed; 77 where one of the modules is missing.
"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile


def main(arguments):
    options = dict(a[2:].partition("=")[::2] for a in arguments
                   if a.startswith("--"))
    rest = [a for a in arguments if not a.startswith("--")]
    if "ckopt" not in options or not rest:
        print(__doc__)
        return 64
    for module in rest[1:]:
        if importlib.util.find_spec(module) is None:
            print(f"SKIPPED: no Python module '{module}', so no block of "
                  f"{rest[0]} was run")
            return 77
    with open(rest[0]) as page:
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", page.read(), re.M | re.S)
    runnable = [b for b in blocks if b[0] in ("python", "sh")]
    path = os.path.dirname(os.path.abspath(options["ckopt"]))
    os.environ["PATH"] = path + os.pathsep + os.environ["PATH"]
    names = {"__name__": "page"}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, (kind, text) in enumerate(runnable, 1):
            print(f"--- block {number} of {len(runnable)} ({kind})", flush=True)
            try:
                if kind == "python":
                    exec(compile(text, f"block {number}", "exec"), names)
                else:
                    subprocess.run(["bash", "-e", "-c", text], check=True)
            except Exception as error:
                print(f"FAILED in block {number}: {error!r}\n{text}")
                return 1
    print(f"{len(runnable)} blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
