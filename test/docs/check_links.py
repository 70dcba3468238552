#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_links.py ROOT: what Markdown files name is there.

Checked in every Markdown file that git tracks: targets of relative links, and
words in backticks that begin with a folder of the repository and look like a
path (`lib/Planner/README.md`, `test/ckopt-plan`, `lib/Reference/*Models.cpp`).
Exits with 1 and a line for each name that nothing answers to.
"""

import glob
import os
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
NAMED = re.compile(r"`((?:cmake|docs|examples|fuzz|include|lib|scripts|test|tools|unittests)/[\w./*-]*)`")
FENCED = re.compile(r"^```.*?^```", re.M | re.S)


def problems(root):
    listing = subprocess.check_output(["git", "-C", root, "ls-files", "*.md"], text=True)
    for path in listing.splitlines():
        if path == "CHANGELOG.md" or not os.path.exists(os.path.join(root, path)):
            continue  # the changelog speaks of what was
        with open(os.path.join(root, path)) as file:
            text = FENCED.sub("", file.read())
        for target in LINK.findall(text):
            if "://" not in target and not target.startswith("mailto:"):
                if not os.path.exists(os.path.join(root, os.path.dirname(path), target)):
                    yield f"{path}: the link to {target} leads nowhere"
        for name in NAMED.findall(text):
            if not glob.glob(os.path.join(root, name)):
                yield f"{path}: there is no {name}"


def main():
    if not os.path.exists(os.path.join(sys.argv[1], ".git")):
        print("SKIPPED: no git checkout")
        return 77
    found = list(problems(sys.argv[1]))
    print("\n".join(found) or "all links and paths are there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
