#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs the code blocks of a Markdown page, in order, in one folder.

usage: run_blocks.py --ckopt=BIN [--clone=ROOT] PAGE.md [MODULE...]

Blocks marked ```python run in one interpreter, one after the other; blocks
marked ```sh run with `bash -e` and `ckopt` on the path; others are not run.
Each line of a block marked ```output must be in what the block before it
printed ("..." stands for any text); oneDNN runs as on a CPU with AVX2, since its
workspaces, and so planned bytes, differ by CPU. With --clone the folder looks like a clone
of ROOT whose build/bin/ckopt is BIN; what blocks write stays out of ROOT.
Exit code 1 with the block that failed; 77 where one of the modules is missing.
"""
import contextlib
import importlib.util
import io
import os
import re
import subprocess
import sys
import tempfile


def look_like_clone(root, driver):
    """Fills the current folder with links to what ROOT holds, but for its builds."""
    for name in os.listdir(root):
        if not name.startswith((".git", "build")):
            os.symlink(os.path.join(root, name), name)
    os.makedirs("build/bin")
    os.symlink(driver, "build/bin/ckopt")


def run(kind, text, names):
    """Runs a block; returns what it printed, which is also shown."""
    if kind == "sh":
        done = subprocess.run(["bash", "-e", "-c", text], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        print(done.stdout, flush=True)
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}")
        return done.stdout
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(text, "block", "exec"), names)
    finally:
        print(printed.getvalue(), flush=True)
    return printed.getvalue()


def missing_lines(shown, printed):
    """The lines of an output block that were not printed; blanks do not count."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    for line in filter(None, (" ".join(line.split()) for line in shown.splitlines())):
        pattern = re.escape(line).replace(r"\.\.\.", ".*")
        if not any(re.fullmatch(pattern, one) for one in lines):
            yield line


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
    runnable = [b for b in blocks if b[0] in ("python", "sh", "output")]
    if not runnable:
        print(f"{rest[0]} has no block to run")
        return 1
    driver = os.path.abspath(options["ckopt"])
    os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX2"
    os.environ["PATH"] = os.path.dirname(driver) + os.pathsep + os.environ["PATH"]
    names = {"__name__": "page"}
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.abspath(options.get("clone", ""))
        os.chdir(folder)
        if "clone" in options:
            look_like_clone(root, driver)
        for number, (kind, text) in enumerate(runnable, 1):
            print(f"--- block {number} of {len(runnable)} ({kind})", flush=True)
            try:
                if kind == "output":
                    missing = list(missing_lines(text, printed))
                    if missing:
                        raise ValueError("not printed: " + "\n".join(missing))
                else:
                    printed = run(kind, text, names)
            except Exception as error:
                print(f"FAILED in block {number}: {error!r}\n{text}")
                return 1
        os.chdir("/")
    print(f"{len(runnable)} blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
