# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""same_traffic.py PLAN.json RUN.json: the bytes that a run's ranks sent are those of its
sums, and all ranks reach the peak that was planned.

In a sum of B bytes over N ranks, each number goes once from every rank that does not add
it to the one that does, and its sum back: 2 (N - 1) B bytes in all."""
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)["plan"]
with open(sys.argv[2]) as file:
    run = json.load(file)["training"]["communication"]
ranks, sums = run["ranks"], run["collectives"]
assert sums and all(one["kind"] == "all_reduce" for one in sums), sums
sent = 2 * (ranks - 1) * sum(one["bytes"] for one in sums)
assert sum(run["sent_bytes"]) == sent, (run["sent_bytes"], sent)
assert len(run["messages"]) == ranks and all(run["messages"]), run["messages"]
assert run["peaks"] == [plan["planned_peak_bytes"]] * ranks, (run["peaks"], plan["planned_peak_bytes"])
print(f"{ranks} ranks: {len(sums)} sums, {sent} bytes")
