# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""aligned.py BYTES PLANNED.mlir: all offsets of a planned module, of results,
arguments and workspaces, are multiples of so many bytes."""

import re
import sys

step, text = int(sys.argv[1]), open(sys.argv[2]).read()
offsets = [int(word) for group in re.findall(r"offsets = array<i64: ([0-9, ]+)>", text) for word in group.split(",")]
offsets += [int(word) for word in re.findall(r"(?:ckopt\.offset|workspace_offset) = ([0-9]+)", text)]
if len(offsets) < 10 or any(offset % step for offset in offsets):
    sys.exit("%d offsets, not multiples of %d: %s" % (len(offsets), step, [o for o in offsets if o % step][:5]))
