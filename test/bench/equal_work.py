#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plans graphs at equal work and compares the tables of two planners.

equal_work.py GRAPH.json... [options]     one row a graph, budget and mode
  --ratios=0.9,0.7,0.5,0.3   budgets, as shares of what the program order needs
  --work=60000000            units of work a plan
  --pack                     with offsets, so that the arena counts
  --strategy=auto --effort=1
  --against=FILE             an earlier table: adds its column, and exits with 1
                             where a row is worse by more than --slack points
  --slack=0.1
CKOPT_PLAN is the tool (build/bin/ckopt-plan).

Plans are made with one thread and a limit on work alone, so a table is the same
on any machine. Columns: extra cost in percent of the cost without recomputation
(`x`: proven that nothing fits, `-`: none found), bytes of load or arena, seconds
of processor time.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile


def plan(graph, ratio, options, pack):
    """Extra cost in percent or a mark, bytes, seconds of processor time."""
    tool = os.environ.get("CKOPT_PLAN", "build/bin/ckopt-plan")
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [tool, graph, f"--budget-ratio={ratio}", "--search-threads=1", "--time-limit=0"]
        command += [f"--{key}={options[key]}" for key in ("strategy", "effort")]
        command += [f"--work-limit={options['work']}", "-o", out.name]
        command += ["--pack"] if pack else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        code = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        if code in (2, 3):
            return {2: "x", 3: "-"}[code], 0, seconds
        if code != 0:
            return f"error {code}", 0, seconds
        with open(out.name, encoding="utf-8") as file:
            result = json.load(file)
    with open(graph, encoding="utf-8") as file:
        base = sum(node["cost"] for node in json.load(file)["nodes"])
    extra = 100 * (result["cost"] / base - 1)
    return f"{extra:.3f}", result["arena" if pack else "peak"], seconds


def read_table(path):
    rows = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) >= 4 and cells[0] not in ("graph", "---"):
                rows[(cells[0], cells[1])] = cells[2]
    return rows


def is_worse(now, before, slack):
    try:
        return float(now) > float(before) + slack
    except ValueError:  # A mark: a plan is better than none.
        return now != before and not (before == "-" and now != "-")


def main():
    options = {"ratios": "0.9,0.7,0.5,0.3", "work": "60000000", "strategy": "auto"}
    options |= {"effort": "1", "against": "", "slack": "0.1"}
    graphs, pack = [], False
    for argument in sys.argv[1:]:
        key, _, value = argument.removeprefix("--").partition("=")
        if not argument.startswith("--"):
            graphs.append(argument)
        elif key == "pack":
            pack = True
        elif key in options and value:
            options[key] = value
        else:
            print(__doc__)
            return 64
    before = read_table(options["against"]) if options["against"] else {}
    worse = 0
    print("| graph | budget | extra | bytes | seconds |" + (" before |" if before else ""))
    print("| --- | ---: | ---: | ---: | ---: |" + (" ---: |" if before else ""))
    for graph in graphs:
        name = os.path.basename(graph).removesuffix(".json")
        for ratio in options["ratios"].split(","):
            label = ratio + (" packed" if pack else "")
            extra, size, seconds = plan(graph, ratio, options, pack)
            row = f"| {name} | {label} | {extra} | {size} | {seconds:.1f} |"
            if (name, label) in before:
                old = before[(name, label)]
                bad = is_worse(extra, old, float(options["slack"]))
                worse += bad
                row += f" {old}{' worse' if bad else ''} |"
            print(row, flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
