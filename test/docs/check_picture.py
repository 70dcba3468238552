#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""README's picture, and the numbers beside it, are those of the command that it names.

check_picture.py CKOPT ROOT [--write]

Runs the line of README.md that draws memory.svg. docs/memory.svg has to be what it
drew, but for the names of calls that viewers show under the pointer: pages show
pictures without them, and they are half of the file. Each number in bold in the rows
of README that name this command has to be in the picture or in what was printed.
--write writes docs/memory.svg instead of comparing.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile


def without_hovers(text):
    """The picture without the transparent boxes that have titles."""
    return re.sub(r'<g fill="#000" fill-opacity="0">\n.*?</g>\n', "", text, flags=re.S)


def draw(ckopt, root, command):
    """Runs the command at the root of a clone; returns its output and its picture."""
    words = shlex.split(command)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "memory.svg")
        words = [ckopt] + [f"--timeline={path}" if w.startswith("--timeline=") else w
                           for w in words[1:]]
        # oneDNN's workspaces, and so planned bytes, differ by CPU.
        done = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False,
                              env=dict(os.environ, ONEDNN_MAX_CPU_ISA="AVX2"))
        if done.returncode:
            sys.exit(f"{command}\nexit code {done.returncode}\n{done.stderr}")
        with open(path, encoding="utf-8") as file:
            return done.stdout, without_hovers(file.read())


def main():
    """Draws, and compares."""
    ckopt, root = (os.path.abspath(path) for path in sys.argv[1:3])
    committed = os.path.join(root, "docs", "memory.svg")
    with open(os.path.join(root, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    commands = re.findall(r"^ckopt plan .*--timeline=memory\.svg$", readme, re.M)
    if len(commands) != 1:
        sys.exit("README.md has no line, or several, that draw memory.svg")
    printed, picture = draw(ckopt, root, commands[0])
    if "--write" in sys.argv:
        with open(committed, "w", encoding="utf-8") as file:
            file.write(picture)
    rows = [row for row in readme.splitlines()
            if row.startswith("| **") and ("`ckopt plan`" in row or "the same line" in row)]
    numbers = [n for row in rows for n in re.findall(r"\*\*(.*?)\*\*", row)]
    if len(numbers) < 4:
        sys.exit("README.md has lost its numbers beside the picture")
    wrong = [f"README says {n}, which `ckopt plan` does not print" for n in numbers
             if n not in printed and f">{n}<" not in picture]
    with open(committed, encoding="utf-8") as file:
        if file.read() != picture:
            wrong.append("docs/memory.svg is not what README's command draws; "
                         "test/docs/check_picture.py CKOPT ROOT --write writes it")
    print("\n".join(wrong) or "picture and numbers are those of README's command")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
