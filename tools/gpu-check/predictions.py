# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How far plans are from what was measured, and rates that bring them nearer.

Plans weigh kernels by the rates of a device (docs/cuda.md, "Rates"). Here the
times of kernels stand beside what plans expect, and the rates that the times
show are written as files of ckopt-profile/1 for --device-rates, one for each
precision of products, as `ckopt bench --calibrate` fits them
(lib/Analysis/RateFit.cpp): each kernel belongs to the rate that takes most of
its predicted time; a rate is the work of its kernels over their time, less the
time to start them, until nothing changes."""

import json

import tables

PRECISIONS = {"0": "f32", "tf32": "tf32", "bf16": "bf16", "stored-bf16": "stored-bf16"}
KINDS = ("matmul", "conv", "depthwise_conv", "vector")
# A prediction that is further off is worth a look.
NEAR = 0.3


def own(results, archive):
    """(network, precision, kernels, work) of each step whose kernels were timed
    without libraries and without recomputation."""
    for name, result in tables.of(results, "large/"):
        network, libraries, kind = name.split("/")
        if libraries == "none" and kind in PRECISIONS:
            kernels, work = tables.by_symbol(result), tables.Work(archive, name)
            if kernels and work.kernels:
                yield network, PRECISIONS[kind], kernels, work


def kind_of(symbol, what):
    """What a kernel is, as its symbol says it (k_KIND_NUMBER)."""
    if what.startswith("attention"):
        return "attention"
    name = symbol.split("_")[1] if symbol.startswith("k_") else "other"
    return {"library": "products", "cast": "elementwise", "reduction": "reductions", "row": "rows", "joined": "updates"}.get(name, name)


def by_kind(kernels, work):
    """{kind: [predicted, measured] seconds of a step}."""
    found = {}
    for symbol, kernel in kernels.items():
        expected = work.predicted(symbol)
        if expected:
            sums = found.setdefault(kind_of(symbol, work.what(symbol)), [0.0, 0.0])
            sums[0] += kernel.calls * expected
            sums[1] += kernel.seconds
    return found


def kinds_section(results, archive):
    rows = []
    for network, precision, kernels, work in own(results, archive):
        for kind, (expected, measured) in sorted(by_kind(kernels, work).items(), key=lambda item: -item[1][1]):
            if measured:
                rows.append([network, precision, kind, "%.3f" % (expected * 1e3), "%.3f" % (measured * 1e3),
                             "%+.0f %%" % (100 * (expected / measured - 1))])
    if not rows:
        return []
    return (["## Predicted and measured, by kind of kernel", "",
             "Milliseconds of a step. Measured ones are in kinds.json, as test/Driver/Inputs/measured.json has them.", ""] +
            tables.table(["network", "products", "kind", "predicted ms", "measured ms", "error"], rows))


def write_kinds(state, results, archive):
    """Writes kinds.json, whole or not at all."""
    found = {}
    for network, precision, kernels, work in own(results, archive):
        found.setdefault(network, {})[precision] = {
            kind: float("%.3f" % (measured * 1e3)) for kind, (_, measured) in by_kind(kernels, work).items()}
    if found:
        partial = state / "kinds.json.tmp"
        partial.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")
        partial.replace(state / "kinds.json")


def section(results, archive):
    rows, lines = [], []
    for network, precision, kernels, work in own(results, archive):
        known = {symbol: work.predicted(symbol) for symbol in kernels if work.predicted(symbol)}
        measured = sum(kernels[symbol].seconds for symbol in known)
        if not measured:
            continue
        expected = sum(kernels[symbol].calls * seconds for symbol, seconds in known.items())
        near = sum(kernels[symbol].seconds for symbol, seconds in known.items()
                   if abs(seconds / kernels[symbol].one() - 1) <= NEAR)
        rows.append([network, precision, "%.2f" % (expected * 1e3), "%.2f" % (measured * 1e3),
                     "%+.0f %%" % (100 * (expected / measured - 1)), "%.0f %%" % (100 * near / measured)])
        lines += ["### %s, %s: the largest differences" % (network, precision), ""]
        worst = sorted(known, key=lambda symbol: -abs(kernels[symbol].calls * known[symbol] - kernels[symbol].seconds))
        lines += tables.table(
            ["kernel", "calls", "predicted us", "measured us", "error", "what"],
            [[symbol, kernels[symbol].calls, "%.2f" % (known[symbol] * 1e6), "%.2f" % (kernels[symbol].one() * 1e6),
              "%+.0f %%" % (100 * (known[symbol] / kernels[symbol].one() - 1)), work.what(symbol)]
             for symbol in worst[:12] if kernels[symbol].one()])
    if not rows:
        return []
    return (["## Predicted and measured kernels", "",
             "Error: of what plans expect, beside what the kernels take one by one. Near: share of the time in kernels "
             "whose prediction is within %.0f %%." % (100 * NEAR), ""] +
            tables.table(["network", "products", "predicted ms", "measured ms", "error", "near"], rows) + lines)


def limit(work, rates):
    """The rate that takes most of a kernel's time; None: the cache, which files
    of rates do not tell."""
    size = work.get("bandwidth", 0)
    cached = size < rates.get("cache_bytes", 0)
    memory = size / rates["cache_bandwidth" if cached else "bandwidth"]
    by_kind = {kind: work.get(kind, 0) / rates[kind] for kind in KINDS}
    arithmetic = sum(by_kind.values())
    if max(memory, arithmetic) < rates["overhead"]:
        return "overhead"
    if memory >= arithmetic:
        return None if cached else "bandwidth"
    return max(by_kind, key=by_kind.get)


def fit(timed, start):
    """Rates from [(work, kernel)]: {rate: (value, kernels, seconds)}."""
    rates, fitted, before = dict(start), {}, None
    for _ in range(10):
        limits = [limit(work, rates) for work, _ in timed]
        if (limits, rates) == before:
            break
        before, fitted = (limits, rates), {}
        for rate in sorted(set(limits) - {None}):
            chosen = [(work, kernel) for (work, kernel), found in zip(timed, limits) if found == rate]
            seconds = sum(kernel.seconds for _, kernel in chosen)
            if rate == "overhead":
                starts = sorted(kernel.seconds / kernel.launches for _, kernel in chosen)
                value = starts[len(starts) // 2]
            else:
                running = seconds - sum(rates["overhead"] * kernel.launches for _, kernel in chosen)
                amount = sum(work[rate] * kernel.calls for work, kernel in chosen)
                value = amount / running if running > 0 else 0
            if value > 0:
                fitted[rate] = (value, len(chosen), seconds)
        rates = dict(start, **{rate: found[0] for rate, found in fitted.items()})
    return fitted


def fitted_rates(results, archive):
    """{precision: (rates to start from, fitted ones, whose rates and precision
    they start from)}, of all networks that were timed."""
    timed, start, over = {}, {}, {}
    for _, precision, kernels, work in own(results, archive):
        if work.rates:
            start[precision], over[precision] = work.rates, work.over
            timed.setdefault(precision, []).extend(
                (work.kernels[symbol]["work"], kernel) for symbol, kernel in kernels.items()
                if symbol in work.kernels and kernel.seconds > 0)
    return {precision: (start[precision], fit(found, start[precision]), over[precision]) for precision, found in timed.items() if found}


def rates_section(found):
    rows = []
    for precision, (start, fitted, _) in found.items():
        for rate, (value, count, seconds) in fitted.items():
            unit, scale = ("us", 1e6) if rate == "overhead" else ("GB/s", 1e-9) if rate == "bandwidth" else ("TFLOP/s", 1e-12)
            rows.append([precision, rate, "%.4g" % (start[rate] * scale), "%.4g" % (value * scale), unit, count, "%.2f" % (seconds * 1e3)])
    if not rows:
        return []
    return (["## Rates that the times show", "",
             "In rates-PRECISION.json, for --device-rates with the same precision. Kernels whose operands fit into the "
             "cache are left out of the bandwidth.", ""] +
            tables.table(["products", "rate", "plans went by", "measured", "unit", "kernels", "ms of them"], rows))


def write_rates(state, found):
    """Writes rates-PRECISION.json, whole or not at all."""
    for precision, (_, fitted, over) in found.items():
        if not fitted:
            continue
        path = state / ("rates-%s.json" % precision)
        partial = path.with_name(path.name + ".tmp")
        rates = {rate: float("%.6g" % value) for rate, (value, _, _) in sorted(fitted.items())}
        partial.write_text(json.dumps(dict(over, format="ckopt-profile/1", rates=rates), indent=2, sort_keys=True) + "\n")
        partial.replace(path)
