#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes report.md from the results of a visit.

report.py STATE [ARCHIVE]: STATE has results.jsonl; ARCHIVE is the folder that
was packed, whose work.json files have the operations of each kernel."""

import json
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import visit


def mib(count):
    return "%.1f MiB" % (count / 2**20) if count is not None else ""


def of(results, head):
    """(rest of the id, result) of all steps below a name."""
    return [(name[len(head):], result) for name, result in results.items() if name.startswith(head)]


def table(header, rows):
    if not rows:
        return []
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    return lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows] + [""]


def bits(results):
    rows = []
    for name, result in of(results, "golden/"):
        network, precision = name.split("/")
        if precision == "f32":
            same = "-" if not result.get("hash") else "yes" if result.get("same_bits") else "NO"
            rows.append([network, same, result.get("largest", "")])
    if not rows:
        return []
    equal = sum(row[1] == "yes" for row in rows)
    return (["## f32: bits of the same kernels as CPU code", "",
             "%d of %d networks have the same gradients to the bit." % (equal, len(rows)), ""] +
            table(["network", "same bits as the CPU code", "largest error against PyTorch in f64"], rows))


def rounded(results):
    rows = []
    for name, r in of(results, "golden/"):
        network, precision = name.split("/")
        if precision != "f32":
            rows.append([network, precision, r.get("together", "failed"), "%s (%s to %s)" % (r.get("cpu"), r.get("least"), r.get("most")),
                         r.get("largest", "")])
    if not rows:
        return []
    return (["## Rounded operands (--matmul-precision) and tensors (stored-: --precision): gradients against PyTorch in f64", ""] +
            table(["network", "operands", "error of all gradients together", "of the same kernels as CPU code (bounds from it)",
                   "largest error of a tensor"], rows))


def budgets(results):
    rows = {}
    for name, r in of(results, "budget/"):
        network, kind, budget = name.split("/")
        row = rows.setdefault((network, kind), [network, kind, [], "yes", "yes"])
        row[2].append(str(r.get("planned")))
        if not r.get("same_bits"):
            row[3] = "NO"
        if r["status"] != "ok":
            row[4] = "NO"
    rows = [[row[0], row[1], ", ".join(row[2]), row[3], row[4]] for row in rows.values()]
    if not rows:
        return []
    return (["## Budgets: bits, and highest byte written", ""] +
            table(["network", "step", "planned bytes", "same bits", "as planned"], rows))


def seconds(value):
    return "%.6f s" % value if value is not None else ""


KINDS = {"0": "f32", "1": "f32, --activation-ratio=0.5", "min": "f32, --memory-budget=min"}


def large(results):
    rows = []
    for name, r in of(results, "large/"):
        network, libraries, kind = name.split("/")
        what = "ckopt, %s, --cuda-libs=%s" % (KINDS.get(kind, kind), libraries)
        peak = results.get("peak/%s" % name, {}).get("measured")
        kernels = sum(l[2] * l[3] for l in r.get("launches", []))
        rows.append((network, [network, what, seconds(r.get("best")) or r["status"], seconds(r.get("median")),
                               seconds(kernels) if kernels else "", mib(r.get("planned")), mib(peak)]))
    for name, r in of(results, "torch/"):
        network, mode, precision = name.split("/")
        rows.append((network, [network, "PyTorch, %s, %s" % (mode.replace("+", " "), precision), seconds(r.get("best")) or r["status"],
                               seconds(r.get("median")), "", "", mib(r.get("peak"))]))
    if not rows:
        return []
    order = list(dict.fromkeys(row[0] for row in rows))
    rows.sort(key=lambda row: order.index(row[0]))
    return (["## Large networks: a step of SGD with momentum, weights and data from a seed", ""] +
            table(["network", "with", "best", "median", "its kernels one by one", "planned", "measured peak"], [row[1] for row in rows]))


def work_of(archive, name):
    """Flops of each kernel symbol of a step, where pack wrote them."""
    path = pathlib.Path(archive) / "steps" / name / "work.json" if archive else None
    return json.loads(path.read_text()) if path and path.exists() else {}


def rate(flops, time):
    return "%.1f" % (flops / time / 1e12) if flops and time else ""


def by_symbol(result):
    """Seconds and number of a step's calls, and bytes of one, by kernel symbol.
    A call may have several launches, of different code; launches of the same
    code may differ in their scalars."""
    found = {}
    for kernel, code, count, time, touched in result.get("launches", []):
        entry = found.setdefault(kernel, [0.0, {}, 0])
        entry[0] += count * time
        entry[1][code] = entry[1].get(code, 0) + count
        entry[2] += count * touched
    calls = {kernel: max(entry[1].values()) for kernel, entry in found.items()}
    return {kernel: (entry[0], calls[kernel], entry[2] / calls[kernel]) for kernel, entry in found.items()}


def kernels(results, archive):
    lines = []
    for name, r in of(results, "large/"):
        found = by_symbol(r)
        if not found:
            continue
        flops = work_of(archive, name)
        total = sum(entry[0] for entry in found.values())
        rows = []
        for symbol, (time, count, touched) in sorted(found.items(), key=lambda item: -item[1][0])[:12]:
            one = time / count
            known = flops.get(symbol, {})
            rows.append([symbol, count, "%.1f" % (time * 1e6), "%.1f %%" % (100 * time / total), "%.2f" % (one * 1e6),
                         rate(known.get("flops"), one), "%.0f" % (touched / one / 1e9), known.get("what", "")])
        lines += ["### Kernels of " + name, ""]
        lines += table(["kernel", "calls", "us a step", "share", "us a call", "TFLOP/s", "GB/s", "what"], rows)
    return ["## Kernels by time", ""] + lines if lines else []


def libraries(results, archive):
    """Our own kernel beside the library's, for each call that a library ran."""
    lines = []
    for name, theirs in of(results, "large/"):
        network, which, kind = name.split("/")
        ours = results.get("large/%s/none/%s" % (network, kind), {})
        if which != "auto" or not ours.get("launches") or not theirs.get("launches"):
            continue
        by_library = {l[0] for l in theirs["launches"] if " " in l[1]}
        flops, own, other = work_of(archive, name), by_symbol(ours), by_symbol(theirs)
        rows = []
        for symbol in sorted(by_library & set(own), key=lambda s: -own[s][0])[:20]:
            mine, its = own[symbol][0] / own[symbol][1], other[symbol][0] / other[symbol][1]
            known = flops.get(symbol, {})
            rows.append([symbol, own[symbol][1], "%.2f" % (mine * 1e6), "%.2f" % (its * 1e6), "%.2f" % (its / mine if mine else 0),
                         rate(known.get("flops"), mine), rate(known.get("flops"), its), known.get("what", "")])
        lines += ["### %s, %s" % (network, KINDS.get(kind, kind)), ""]
        lines += ["- our own kernel runs %s: %s" % tuple(one) for one in theirs.get("own", [])[:20]] + [""] * bool(theirs.get("own"))
        lines += table(["kernel", "calls", "ours us", "library us", "library / ours", "ours TFLOP/s", "library TFLOP/s", "what"], rows)
    return ["## Our kernels beside the libraries'", ""] + lines if lines else []


def variants(results):
    """Kernels by tiles, slices and buffers other than those that shapes decide:
    where one is faster by more than 3 %, and what all such choices would give."""
    lines, networks = [], {}
    for name, r in of(results, "variant/"):
        network, _, variant = name.split("/")
        if r.get("launches"):
            networks.setdefault(network, {})[variant] = by_symbol(r)
    for network, found in networks.items():
        chosen = results.get("large/%s/none/tf32" % network, {})
        if not chosen.get("launches"):
            continue
        ours = by_symbol(chosen)
        total = best = sum(time for time, _, _ in ours.values())
        rows = []
        for symbol, (time, count, _) in sorted(ours.items(), key=lambda item: -item[1][0]):
            times = {variant: known[symbol][0] for variant, known in found.items() if symbol in known}
            fastest = min(times, key=times.get) if times else None
            if fastest and times[fastest] < 0.97 * time:
                best -= time - times[fastest]
                rows.append([symbol, count, "%.2f" % (time / count * 1e6), fastest, "%.2f" % (times[fastest] / count * 1e6)])
        lines += ["### %s, tf32" % network, "", "%.2f ms of kernels; %.2f ms with the fastest variant of each." % (total * 1e3, best * 1e3), ""]
        lines += table(["variant", "ms of kernels"], [[variant, "%.2f" % (sum(time for time, _, _ in known.values()) * 1e3)]
                                                      for variant, known in sorted(found.items())])
        lines += table(["kernel", "calls", "by shape us", "fastest", "us"], rows[:30])
    return ["## Variants of contractions", ""] + lines if lines else []


def tools(results):
    rows = {}
    for name, r in of(results, "sanitizer/"):
        step, tool = name.rsplit("/", 1)
        rows.setdefault(step, []).append(tool + (": clean" if r["status"] == "ok" else ": " + r["status"]))
    return (["## compute-sanitizer", ""] + table(["step", "tools"], [[step, ", ".join(found)] for step, found in rows.items()])
            if rows else [])


def text(results, archive, left):
    device = results.get("inventory/device", {})
    lines = ["# ckopt on %s" % device.get("device", "an unknown device"), ""]
    facts = [["driver", device.get("driver")], ["made by", device.get("producer")]]
    for key, value in sorted(results.get("inventory/programs", {}).items()):
        if key not in ("id", "part", "status", "why", "seconds"):
            facts.append([key, value])
    for _, result in of(results, "large/"):
        facts += [fact for fact in map(list, sorted(result.get("versions", {}).items())) if fact not in facts]
    facts.append(["PyTorch, CUDA, cuDNN", results.get("inventory/torch", {}).get("torch")])
    lines += table(["", ""], [fact for fact in facts if fact[1]])
    for section in (bits(results), rounded(results), budgets(results), large(results), libraries(results, archive),
                    variants(results), kernels(results, archive), tools(results)):
        lines += section
    skips = [(name, r["why"]) for name, r in results.items() if r["status"] == "skipped"]
    fails = [(name, r["why"]) for name, r in results.items() if r["status"] == "failed"]
    if skips:
        lines += ["## Skipped", ""] + ["- %s: %s" % one for one in skips] + [""]
    if left:
        lines += ["## Not done before the deadline", ""] + ["- " + name for name in left] + [""]
    if fails:
        lines += ["## Failed (%d)" % len(fails), ""] + ["- %s: %s" % one for one in fails]
    else:
        lines.append("All checks passed." if not left else "No check failed so far.")
    return "\n".join(lines) + "\n"


def write(state, archive, left=()):
    state = pathlib.Path(state)
    words = text(visit.read_results(state / "results.jsonl"), archive, left)
    partial = state / "report.md.tmp"
    partial.write_text(words, encoding="utf-8")
    partial.replace(state / "report.md")
    return words


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    print(write(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else None))
