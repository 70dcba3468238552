"""Fails unless a file is a Chrome trace as Perfetto reads it: named processes,
events with times in order, counters beside them.

usage: check_trace.py TRACE.json PROCESSES
"""

import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
names = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M"}
assert len(names) == int(sys.argv[2]) and all(names.values()), names
for pid in names:
    slices = [e for e in events if e["pid"] == pid and e["ph"] == "X"]
    counters = [e for e in events if e["pid"] == pid and e["ph"] == "C"]
    assert slices and len(counters) == len(slices) + 1
    assert all(e["name"] and e["dur"] >= 0 and "tid" in e for e in slices)
    times = [e["ts"] for e in slices]
    assert times == sorted(times)
    assert all(v >= 0 for e in counters for v in e["args"].values())
