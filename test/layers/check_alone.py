#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compiles each file of a unity build by itself.

A unity build gives a file the includes and the names of those before it, so a
missing include shows only where somebody builds plainly. This reads the build's
compile_commands.json, takes the command of each unity source for each file that
the source includes, and parses that file alone, with the build's own flags.
Files that the build compiles alone are not parsed again. O(files).

Usage: check_alone.py BUILD [--jobs=N] [TEXT...]   (TEXT: files whose path has it)
"""
import argparse
import concurrent.futures
import json
import os
import re
import shlex
import subprocess
import sys


def files_alone(build):
    """Yields (file, command, folder) for each file that a unity source includes."""
    with open(os.path.join(build, "compile_commands.json")) as text:
        entries = json.load(text)
    for entry in entries:
        source = os.path.join(entry["directory"], entry["file"])
        if not re.search(r"/unity_\d+_\w+\.\w+$", source):
            continue
        words = shlex.split(entry["command"])
        while not re.search(r"(clang|g)\+\+[^/]*$|/(cc|c\+\+)$", words[0]):
            words.pop(0)  # ccache and its environment
        # Of what plain files include nothing may come from elsewhere.
        words = shlex.split(re.sub(
            r"-Xclang -include(-pch)? -Xclang \S*ckopt-pch-(Standard|PlainTest)\S*", "",
            shlex.join(words)))
        command = []
        skip = False
        for word in words:
            if skip or word in ("-c", entry["file"]):
                skip = False
            elif word == "-o":
                skip = True
            else:
                command.append(word)
        with open(source) as text:
            for file in re.findall(r'^#include "(/[^"]+)"', text.read(), re.M):
                yield file, [*command, "-fsyntax-only", file], entry["directory"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("text", nargs="*")
    args = parser.parse_args()
    files = [entry for entry in files_alone(args.build)
             if not args.text or any(text in entry[0] for text in args.text)]
    if not files:
        print("no unity build: every file was compiled alone")
        return 0

    def compiles(entry):
        file, command, folder = entry
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        return file, run.returncode == 0, run.stderr

    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for file, is_good, text in pool.map(compiles, files):
            if not is_good:
                failed += 1
                print(f"{file} does not compile alone:\n{text}")
    print(f"{len(files) - failed} of {len(files)} files compile alone")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
