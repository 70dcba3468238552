#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pages that show parts of an example show what it says.

check_examples.py ROOT PAGE...

A sentence that begins with "From [examples/..." names the source of the next
block of code: the block's lines must be lines of that file, in that order (lines
in between, and indentation, may differ). Examples are compiled and run by install.package. A
page without such a block is an error.
"""

import os
import re
import sys


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
    print("\n".join(found))
    sys.exit(bool(found))
