# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the sections of the report share: rows of results, and the times of a
step's kernels beside what the archive knows of them."""

import json
import pathlib


def of(results, head):
    """(rest of the id, result) of all steps below a name, in the order of names:
    those that run side by side end in any order."""
    return [(name[len(head):], result) for name, result in sorted(results.items()) if name.startswith(head)]


def table(header, rows):
    if not rows:
        return []
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


class Kernel:
    """A kernel of a step: seconds of all its calls, how many calls and launches
    they are, and bytes that one call touches."""

    def __init__(self):
        self.seconds, self.calls, self.launches, self.bytes, self.library = 0.0, 0, 0, 0, False

    def one(self):
        return self.seconds / self.calls if self.calls else 0.0


def by_symbol(result):
    """A step's kernels by symbol, from its launches. A call may have several
    launches, of different code; launches of the same code may differ in their
    scalars."""
    found, codes = {}, {}
    for symbol, code, count, time, touched in result.get("launches", []):
        kernel = found.setdefault(symbol, Kernel())
        kernel.seconds += count * time
        kernel.launches += count
        kernel.bytes += count * touched
        kernel.library |= " " in code  # a description, where ours have names
        counts = codes.setdefault(symbol, {})
        counts[code] = counts.get(code, 0) + count
    for symbol, kernel in found.items():
        kernel.calls = max(codes[symbol].values())
        kernel.bytes /= kernel.calls or 1
    return found


class Work:
    """What the archive knows of a step, where pack wrote it: the work of each
    kernel and the seconds that plans expect it to take, and the rates they go
    by."""

    def __init__(self, archive, name):
        path = pathlib.Path(archive) / "steps" / name / "work.json" if archive else None
        known = json.loads(path.read_text()) if path and path.exists() else {}
        self.kernels, self.rates, self.seconds = known.get("kernels", {}), known.get("rates", {}), known.get("seconds")
        # Over whose rates others are fitted, as files of rates say it.
        self.over = {key: known[key] for key in ("device", "precision") if key in known}

    def flops(self, symbol):
        return self.kernels.get(symbol, {}).get("flops")

    def what(self, symbol):
        return self.kernels.get(symbol, {}).get("what", "")

    def predicted(self, symbol):
        return self.kernels.get(symbol, {}).get("predicted_seconds")
