#!/usr/bin/env python3
"""Checks that a curve drawn under rules recomputes, and names the graph's own nodes.

check_ruled.py GRAPH RULED_GRAPH CURVE
"""
import json
import sys

plain, ruled, curve = (json.load(open(path)) for path in sys.argv[1:4])
# Copies that the rules ask for are nodes of the graph under rules.
assert len(ruled["nodes"]) > len(plain["nodes"]), "the rules added no node"
assert curve["points"], "no points"
for point in curve["points"]:
    steps = point["plan"]["steps"]
    assert max(steps) < len(plain["nodes"]), "a step is no node of the step's graph"
    assert len(steps) > len(plain["nodes"]), "nothing is recomputed"
    assert point["recomputed"] == len(steps) - len(plain["nodes"])
    assert point["overhead"] > 0
    assert point["plan"]["restricted_to"] == "policy"
budgets = [point["budget"] for point in curve["points"]]
costs = [point["cost"] for point in curve["points"]]
assert budgets == sorted(set(budgets)), budgets
assert costs == sorted(costs, reverse=True), costs
