# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The planner on graphs of other compilers."""

import json
import os
import subprocess

import numpy
import pytest
from conftest import ROOT

import ckopt


def chain(length=8, size=100):
    """Forward and backward of a chain: each value is read by the next node, and on the way back."""
    values, nodes = [], []
    for i in range(2 * length):
        values.append({"id": i, "bytes": size, "kind": "temp" if i < 2 * length - 1 else "output",
                       "name": f"v{i}"})
        inputs = [i - 1] if i else []
        if i >= length:
            inputs.append(2 * length - 1 - i)
        nodes.append({"id": i, "name": f"n{i}", "cost": 1, "inputs": sorted(set(inputs)),
                      "outputs": [i], "workspace": 0, "recompute": True})
    return {"format": "ckopt-graph/1", "name": "chain", "alignment": 1, "values": values,
            "nodes": nodes}


def test_plan_fits_its_budget():
    free = ckopt.plan(chain())
    assert free.recomputed == 0
    tight = ckopt.plan(chain(), budget=free.peak - 200)
    assert tight.peak <= free.peak - 200 and tight.recomputed > 0
    tight.check()
    assert "recomputed" in str(tight) and "<svg" in tight._repr_html_()
    fates = {entry["name"]: entry["fate"] for entry in tight.values}
    again = next(name for name, fate in fates.items() if fate == "recomputed")
    assert "recomputed" in tight.explain(again)


def test_forms_of_a_graph_are_one(tmp_path):
    graph = chain()
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph))
    budget = ckopt.plan(graph).peak - 100
    plans = [ckopt.plan(form, budget=budget).json for form in (graph, json.dumps(graph), path,
                                                               str(path))]
    assert plans[0] == plans[1] == plans[2] == plans[3]


def test_networkx():
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    last = None
    length = 8
    for i in range(2 * length):
        graph.add_node(f"n{i}", bytes=100, cost=1, kind="temp" if i < 2 * length - 1 else "output")
        if last is not None:
            graph.add_edge(last, f"n{i}")
        if i >= length:
            graph.add_edge(f"n{2 * length - 1 - i}", f"n{i}")
        last = f"n{i}"
    assert ckopt.plan(graph, budget="min").peak == ckopt.plan(chain(), budget="min").peak
    made = ckopt.plan(graph)
    assert made.order == [list(networkx.topological_sort(graph))[i] for i in made.steps]
    graph.add_edge("n3", "n1")
    with pytest.raises(ckopt.InputError, match="cycle"):
        ckopt.plan(graph)


def test_wrong_plans_do_not_pass_the_check():
    plan = ckopt.plan(chain(), budget=ckopt.plan(chain()).peak - 200)
    plan.json["steps"] = plan.json["steps"][1:]
    with pytest.raises(ckopt.InputError):
        plan.check()
    plan = ckopt.plan(chain())
    with pytest.raises(ckopt.InputError, match="budget|bytes|peak"):
        plan.check(budget=10)
    # Steps that people edited need not state a peak; a node that reads what was never made is named.
    plan = ckopt.plan(chain())
    del plan.json["peak"]
    plan.check()
    plan.json["steps"] = plan.json["steps"][::-1]
    with pytest.raises(ckopt.InputError, match="never made"):
        plan.check()
    plan.json |= {"steps": [], "status": "infeasible"}
    with pytest.raises(ckopt.InputError, match="no plan"):
        plan.check()


def test_restricted_plans_say_so():
    free = ckopt.plan(chain(), budget="min")
    plan = ckopt.plan(chain(), budget="min", order_only=True)
    assert free.json["budget"] < plan.json["proven_minimum"]
    assert plan.json["restricted_to"] == "order_only" and "restricted_to" not in free.json
    plan.check()
    curve = ckopt.plan(chain()).pareto(3, order_only=True)
    assert curve.report["restricted_to"] == "order_only"
    with pytest.raises(ckopt.BudgetError, match="no plan that recomputes nothing"):
        ckopt.plan(chain(), budget=plan.json["proven_minimum"] - 1, order_only=True)


@pytest.mark.skipif(not os.path.exists("bin/ckopt-plan"), reason="run outside of a build folder")
def test_restricted_plans_are_those_of_the_shell(tmp_path):
    """Files of ckopt-plan are compared with exhaustive search (FrontsTest); these are the same."""
    graph, plan = tmp_path / "graph.json", tmp_path / "plan.json"
    graph.write_text(json.dumps(chain(length=5)))
    for restriction in ("", "fixed-order", "order-only"):
        flags = [f"--{restriction}"] if restriction else []
        settings = {restriction.replace("-", "_"): True} if restriction else {}
        bound = ckopt.plan(graph, budget="min", **settings).json["proven_minimum"]
        for budget in ("min", bound - 1, 2 * bound):
            run = subprocess.run(["bin/ckopt-plan", graph, f"--memory-budget={budget}", "-o", plan,
                                  *flags], capture_output=True, text=True, check=False)
            if run.returncode:
                with pytest.raises(ckopt.BudgetError) as error:
                    ckopt.plan(graph, budget=budget, **settings)
                assert str(error.value) in run.stderr
            else:
                assert ckopt.plan(graph, budget=budget, **settings).json == json.loads(
                    plan.read_text())


def test_curve_falls():
    curve = ckopt.plan(chain()).pareto(5)
    costs = [point["cost"] for point in curve.points]
    assert len(costs) > 2 and costs == sorted(costs, reverse=True)
    assert "recomputed" in str(curve)


def test_order_names_nodes_and_errors_files(tmp_path):
    graph = chain()
    names = {node["id"]: node.get("name", node["id"]) for node in graph["nodes"]}
    made = ckopt.plan(graph)
    assert made.order == [names[step] for step in made.steps]
    graph["nodes"][1]["inputs"] = [99]
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(graph))
    with pytest.raises(ckopt.InputError, match="bad.json: .*99"):
        ckopt.plan(path)


def test_graphs_hold_numbers_of_numpy_and_nothing_else():
    graph = chain()
    for value in graph["values"]:
        value["bytes"] = numpy.int64(value["bytes"])
    assert ckopt.plan(graph).peak == ckopt.plan(chain()).peak
    graph["nodes"][1]["cost"] = float("nan")
    with pytest.raises(ckopt.InputError, match="JSON"):
        ckopt.plan(graph)
    graph["nodes"][1]["cost"] = {1}
    with pytest.raises(ckopt.UsageError, match="set"):
        ckopt.plan(graph)


@pytest.mark.parametrize("change, text", [
    ({"bytes": 10.5}, "bytes=10.5 is no integer"),
    ({"recompute": "no"}, "recompute='no'"),
    ({"kind": "input"}, "made by nothing, but has an edge from 'a'")])
def test_attributes_of_networkx(change, text):
    """What would be read as something else, or not at all, is refused."""
    networkx = pytest.importorskip("networkx")
    graph = networkx.DiGraph()
    graph.add_node("a", bytes=10)
    graph.add_node("b", bytes=numpy.int32(10), recompute=numpy.bool_(True))
    graph.add_edge("a", "b")
    assert ckopt.plan(graph).peak == 20
    graph.nodes["b"].update(change)
    with pytest.raises(ckopt.InputError, match=text):
        ckopt.plan(graph)


def test_errors():
    with pytest.raises(ckopt.UsageError, match="name of a value"):
        ckopt.plan(chain()).explain(3)
    with pytest.raises(ckopt.BudgetError) as info:
        ckopt.plan(chain(), budget=1)
    assert info.value.exit_code == 2
    graph = chain()
    graph["nodes"][1]["inputs"] = [99]
    with pytest.raises(ckopt.InputError, match="99"):
        ckopt.plan(graph)
    with pytest.raises(ckopt.UsageError, match="unknown setting 'nonsense'$"):
        ckopt.plan(chain(), nonsense=1)
    with pytest.raises(ckopt.UsageError, match="0 bytes hold nothing"):
        ckopt.plan(chain(), budget=0)
    with pytest.raises(ckopt.BudgetError):
        ckopt.plan(chain(), budget=1e-9)
    with pytest.raises(ckopt.UsageError, match="two ends"):
        ckopt.plan(chain()).pareto(1)
    with pytest.raises(ckopt.UsageError, match="all budgets"):
        ckopt.plan(chain()).pareto(3, budget=100)
    with pytest.raises(ckopt.InputError, match="cannot read"):
        ckopt.plan("/no/such/file.json")


def test_the_page_lists_what_plans_have():
    with open(os.path.join(ROOT, "docs/python.md"), encoding="utf-8") as file:
        page = file.read().split("| of a `GraphPlan`")[1].split("\n\n")[0]
    for name in dir(ckopt.GraphPlan):
        assert name.startswith("_") or f"`{name}" in page, name
