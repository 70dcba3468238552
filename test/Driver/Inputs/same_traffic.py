# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""same_traffic.py PLAN.json RUN.json: the messages that a plan's report predicts
against those that a run's report counts: collectives in their order, messages,
bytes, and bytes of memory of every rank."""
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)["cluster"]
with open(sys.argv[2]) as file:
    run = json.load(file)["training"]["communication"]
wanted = [(c["kind"], c["bytes"]) for c in plan["collectives"]]
found = [(c["kind"], c["bytes"]) for c in run["collectives"]]
pairs = {"collectives": (wanted, found), "messages": (plan["messages"], run["messages"]),
         "sent bytes": (plan["sent_bytes"], run["sent_bytes"]),
         "peaks": ([plan["planned_peak"]] * run["ranks"], run["peaks"])}
for what, (predicted, counted) in pairs.items():
    if predicted != counted:
        sys.exit(f"{what} differ: predicted {predicted}, counted {counted}")
assert wanted and all(plan["messages"])
print(f"{run['ranks']} ranks: {len(wanted)} collectives, {sum(plan['messages'])} messages, "
      f"{sum(plan['sent_bytes'])} bytes as predicted")
