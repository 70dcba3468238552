#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""No text of a library names a flag: it names a Setting.

check_flags.py ROOT        checks include/ckopt, lib and python/src under ROOT
check_flags.py --self-test shows that flags are found, and nothing else

A text "--batch" reaches Python and C as a shell's flag, which their users do
not have (ckopt/Base/MessageText.h). Found are string literals, adjacent ones
joined, with two dashes before a letter or at the end ("--" + name). O(bytes).
"""

import os
import re
import sys
import tempfile

# Files that write settings as flags.
EXEMPT = {
    "include/ckopt/Base/MessageText.h",
    "lib/Base/MessageText.cpp",
}

# Comments and characters, so that no quote in them opens a string; strings,
# with those that follow.
TOKEN = re.compile(r"""//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])+'|"""
                   r'''((?:"(?:\\.|[^"\\\n])*"\s*)+)''', re.S)
FLAG = re.compile(r'(?<!-)--([A-Za-z]|"$)')


def flags_in(text):
    """Yields the line and the text of each string that has a flag."""
    for token in TOKEN.finditer(text):
        joined = re.sub(r'"\s*"', "", token.group(1) or "").strip()
        if FLAG.search(joined):
            yield text.count("\n", 0, token.start()) + 1, joined


def check(root):
    errors, used = [], set()
    for top in ("include/ckopt", "lib", "python/src"):
        for folder, _, files in os.walk(os.path.join(root, top)):
            for name in sorted(files):
                full = os.path.join(folder, name)
                path = os.path.relpath(full, root)
                if not name.endswith((".h", ".cpp", ".inc", ".def")):
                    continue
                with open(full, encoding="utf-8") as file:
                    found = list(flags_in(file.read()))
                if path in EXEMPT and found:
                    used.add(path)
                elif found:
                    errors += [f"{path}:{line}: {text} names a flag: use Setting"
                               for line, text in found]
    return errors, used


def self_test():
    good = ("a - b", "x--;", "// \"--no\"\n", "'\"' /* \"--no\" */", '"---"', '"a -- b"', '1\'000; "-"')
    bad = ('"--batch"', 'f("give --lr=1")', '"-" "-batch"', '"give --"\n  "lr"', '"\\"--x"', '"--" + name', '"-" "-"')
    failures = [f"{text}: found" for text in good if list(flags_in(text))]
    failures += [f"{text}: not found" for text in bad if not list(flags_in(text))]
    with tempfile.TemporaryDirectory() as root:
        os.makedirs(os.path.join(root, "lib/Base"))
        for name in ("MessageText.cpp", "Other.cpp"):
            with open(os.path.join(root, "lib/Base", name), "w", encoding="utf-8") as file:
                file.write('"--batch"\n')
        errors, used = check(root)
        if len(errors) != 1 or used != {"lib/Base/MessageText.cpp"}:
            failures.append(f"exemptions: {errors}, {used}")
    return failures


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 64
    if sys.argv[1] == "--self-test":
        errors, done = self_test(), "flags are found, and nothing else"
    else:
        errors, used = check(sys.argv[1])
        errors += [f"{path} names no flag: it needs no exemption" for path in sorted(EXEMPT - used)]
        done = "no text of a library names a flag"
    print("\n".join(errors) if errors else done)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
