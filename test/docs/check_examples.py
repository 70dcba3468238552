#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages that show parts of an example show what it says.

check_examples.py ROOT PAGE...

A sentence that begins with "From [examples/..." names the source of the next
block of code: the block's lines must be lines of that file, in that order (lines
in between, and indentation, may differ). A page without such a block is an error. So
is a folder of examples/ that none of the tests in RUNNERS names: they compile and run
them.
"""

import os
import re
import sys


# install.package, python.tests, which runs what is in Python, and tests of their own.
RUNNERS = ["test/install/Check.cmake", "python/tests/test_package.py", "python/tests/test_remat.py",
           "test/CMakeLists.txt"]


def not_run(root):
    """A line for each folder of examples/ that no test runs."""
    tests = ""
    for path in RUNNERS:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            tests += file.read()
    for name in sorted(os.listdir(os.path.join(root, "examples"))):
        words = (f"/examples/{name}", f'"examples", "{name}"')
        if not any(re.search(re.escape(word) + r"(?![\w-])", tests) for word in words):
            yield f"examples/{name}: no test runs it"


def check(root, page):
    with open(os.path.join(root, page), encoding="utf-8") as file:
        text = file.read()
    blocks = re.findall(r"\bFrom\s\[(examples/[^]]+)\].*?^```\w*\n(.*?)^```$", text, re.M | re.S)
    if not blocks:
        return [f"{page}: no block that is from an example"]
    errors = []
    for source, block in blocks:
        with open(os.path.join(root, source), encoding="utf-8") as file:
            rest = iter([line.strip() for line in file])
        for line in block.splitlines():
            if line.strip() and line.strip() not in rest:  # goes on behind what it found
                errors.append(f"{page}: {source} does not go on with: {line.strip()}")
                break
    return errors


if __name__ == "__main__":
    found = [error for page in sys.argv[2:] for error in check(sys.argv[1], page)]
    found += not_run(sys.argv[1])
    print("\n".join(found))
    sys.exit(bool(found))
