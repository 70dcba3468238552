#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes report.md from the results of a visit.

report.py STATE [ARCHIVE]: STATE has results.jsonl; ARCHIVE is the folder that
was packed, whose work.json files have the operations of each kernel and what
plans expect of it. With it, rates-PRECISION.json are written, too: rates that
the times show, for --device-rates."""

import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import predictions
import steps
import tables
import visit
from tables import of, table


def mib(count):
    return "%.1f MiB" % (count / 2**20) if count is not None else ""


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


# Ours by our own kernels and with libraries, and PyTorch's of the same precision.
BESIDE = (("f32", "0", "f32"), ("tf32", "tf32", "tf32"), ("bf16", "stored-bf16", "bf16"))


def beside(results):
    """Best step times and their ratios to PyTorch's, eager in its faster layout
    of tensors."""
    rows = []
    for network in dict.fromkeys(name.split("/")[0] for head in ("large/", "torch/") for name, _ in of(results, head)):
        for precision, kind, theirs in BESIDE:
            torch = {}
            for name, r in of(results, "torch/%s/" % network):
                mode, found = name.split("/")
                if found == theirs and r.get("best"):
                    mode = mode.split("+")[0]
                    torch[mode] = min(r["best"], torch.get(mode, r["best"]))
            runs = {libraries: results.get("large/%s/%s/%s" % (network, libraries, kind), {}) for libraries in ("none", "auto")}
            # Where all libraries refuse, a step has no library.
            ours = {libraries: run.get("best") for libraries, run in runs.items() if run.get("status") == "ok"}
            if not torch and not any(ours.values()):
                continue

            def ratio(libraries, mode):
                return "%.2f" % (ours[libraries] / torch[mode]) if ours.get(libraries) and torch.get(mode) else ""

            rows.append([network, precision] + ["%.2f" % (1e3 * time) if time else "" for time in
                                                (ours.get("none"), ours.get("auto"), torch.get("eager"), torch.get("compile"))] +
                        [ratio("none", "eager"), ratio("none", "compile"), ratio("auto", "compile")])
    if not rows:
        return []
    return (["## Steps beside PyTorch's", "",
             "Milliseconds, best of the timed steps. bf16: ours with tensors stored in bf16, PyTorch's by autocast.", ""] +
            table(["network", "precision", "ours", "with libraries", "eager", "compiled", "ours / eager", "ours / compiled",
                   "with libraries / compiled"], rows))


def rate(flops, time):
    return "%.1f" % (flops / time / 1e12) if flops and time else ""


def kernels(results, archive):
    lines = []
    for name, r in of(results, "large/"):
        found = tables.by_symbol(r)
        if not found:
            continue
        work = tables.Work(archive, name)
        total = sum(kernel.seconds for kernel in found.values()) or 1
        rows = []
        for symbol, kernel in sorted(found.items(), key=lambda item: -item[1].seconds)[:12]:
            one = kernel.one()
            rows.append([symbol, kernel.calls, "%.1f" % (kernel.seconds * 1e6), "%.1f %%" % (100 * kernel.seconds / total),
                         "%.2f" % (one * 1e6), rate(work.flops(symbol), one), "%.0f" % (kernel.bytes / one / 1e9) if one else "",
                         work.what(symbol)])
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
        work, own, other = tables.Work(archive, name), tables.by_symbol(ours), tables.by_symbol(theirs)
        rows = []
        for symbol in sorted((s for s in other if other[s].library and s in own), key=lambda s: -own[s].seconds)[:20]:
            mine, its = own[symbol].one(), other[symbol].one()
            rows.append([symbol, own[symbol].calls, "%.2f" % (mine * 1e6), "%.2f" % (its * 1e6), "%.2f" % (its / mine if mine else 0),
                         rate(work.flops(symbol), mine), rate(work.flops(symbol), its), work.what(symbol)])
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
            networks.setdefault(network, {})[variant] = tables.by_symbol(r)
    for network, found in networks.items():
        chosen = results.get("large/%s/none/tf32" % network, {})
        if not chosen.get("launches"):
            continue
        ours = tables.by_symbol(chosen)
        total = best = sum(kernel.seconds for kernel in ours.values())
        rows = []
        for symbol, kernel in sorted(ours.items(), key=lambda item: -item[1].seconds):
            times = {variant: known[symbol].seconds for variant, known in found.items() if symbol in known}
            fastest = min(times, key=times.get) if times else None
            if fastest and times[fastest] < 0.97 * kernel.seconds:
                best -= kernel.seconds - times[fastest]
                rows.append([symbol, kernel.calls, "%.2f" % (kernel.one() * 1e6), fastest,
                             "%.2f" % (times[fastest] / kernel.calls * 1e6)])
        lines += ["### %s, tf32" % network, "", "%.2f ms of kernels; %.2f ms with the fastest variant of each." % (total * 1e3, best * 1e3), ""]
        lines += table(["variant", "ms of kernels"], [[variant, "%.2f" % (sum(kernel.seconds for kernel in known.values()) * 1e3)]
                                                      for variant, known in sorted(found.items())])
        lines += table(["kernel", "calls", "by shape us", "fastest", "us"], rows[:30])
    return ["## Variants of contractions", ""] + lines if lines else []


def tools(results):
    rows = {}
    # Side by side they end in any order.
    for name, r in sorted(of(results, "sanitizer/"), key=lambda one: steps.TOOLS.index(one[0].rsplit("/", 1)[1])):
        step, tool = name.rsplit("/", 1)
        rows.setdefault(step, []).append(tool + (": clean" if r["status"] == "ok" else ": " + r["status"]))
    return (["## compute-sanitizer", ""] + table(["step", "tools"], [[step, ", ".join(found)] for step, found in rows.items()])
            if rows else [])


def facts(results):
    device = results.get("inventory/device", {})
    lines = ["# ckopt on %s" % device.get("device", "an unknown device"), ""]
    found = [["driver", device.get("driver")], ["made by", device.get("producer")]]
    for key, value in sorted(results.get("inventory/programs", {}).items()):
        if key not in ("id", "part", "status", "why", "seconds"):
            found.append([key, value])
    for _, result in of(results, "large/"):
        found += [fact for fact in map(list, sorted(result.get("versions", {}).items())) if fact not in found]
    found.append(["PyTorch, CUDA, cuDNN", results.get("inventory/torch", {}).get("torch")])
    return lines + table(["", ""], [fact for fact in found if fact[1]])


def verdict(results, left, why=""):
    """`why`: for what reason no step can run here."""
    lines = []
    skips = [(name, r["why"]) for name, r in sorted(results.items()) if r["status"] == "skipped"]
    fails = [(name, r["why"]) for name, r in sorted(results.items()) if r["status"] == "failed"]
    if skips:
        lines += ["## Skipped", ""] + ["- %s: %s" % one for one in skips] + [""]
    if left:
        title = "## Not done: %s" % why if why else "## Not done before the deadline"
        lines += [title, ""] + ["- " + name for name in left] + [""]
    if fails:
        lines += ["## Failed (%d)" % len(fails), ""] + ["- %s: %s" % one for one in fails]
    elif all(r["status"] == "skipped" for r in results.values()):
        lines.append("Nothing was checked.")
    else:
        lines.append("All checks passed." if not left else "No check failed so far.")
    return lines


def text(results, archive, left, why=""):
    lines = facts(results)
    for section in (bits(results), rounded(results), budgets(results), beside(results), large(results), libraries(results, archive),
                    variants(results), predictions.kinds_section(results, archive), predictions.section(results, archive),
                    predictions.rates_section(predictions.fitted_rates(results, archive)), kernels(results, archive), tools(results)):
        lines += section
    return "\n".join(lines + verdict(results, left, why)) + "\n"


def brief(results, left, why=""):
    """What a terminal shows at the end: of a rented machine's output only the
    last lines may come back."""
    return "\n".join(facts(results) + bits(results) + beside(results) + verdict(results, left, why)) + "\n"


def write(state, archive=None, left=(), why=""):
    state = pathlib.Path(state)
    words = text(visit.read_results(state / "results.jsonl"), archive, left, why)
    partial = state / "report.md.tmp"
    partial.write_text(words, encoding="utf-8")
    partial.replace(state / "report.md")
    return words


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        print(__doc__, file=sys.stderr)
        sys.exit(64)
    for folder in sys.argv[1:]:
        if not os.path.isdir(folder):
            sys.exit("report.py: there is no folder %s" % folder)
    print(write(*sys.argv[1:]))
    if len(sys.argv) == 3:
        state = pathlib.Path(sys.argv[1])
        results = visit.read_results(state / "results.jsonl")
        predictions.write_rates(state, predictions.fitted_rates(results, sys.argv[2]))
        predictions.write_kinds(state, results, sys.argv[2])
