# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckopt.remat: modules of MLIR within a budget."""

import io
import json
import os
import pathlib
import re
import subprocess
import sys
import threading

import pytest
from conftest import ROOT

import ckopt

# What JAX printed of jax.value_and_grad of a perceptron of four layers: generic StableHLO.
STABLEHLO = pathlib.Path(__file__).with_name("stablehlo_step.mlir")
UPSTREAM = """
func.func @step(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = math.exp %x : tensor<1024xf32> loc("a")
  %1 = math.sin %0 : tensor<1024xf32> loc("b")
  %2 = math.cos %1 : tensor<1024xf32> loc("c")
  %3 = math.tanh %2 : tensor<1024xf32> loc("d")
  %4 = arith.mulf %3, %2 : tensor<1024xf32> loc("e")
  %5 = arith.mulf %4, %1 : tensor<1024xf32> loc("f")
  %6 = arith.mulf %5, %0 : tensor<1024xf32> loc("g")
  return %6 : tensor<1024xf32>
}
"""


def test_text_comes_back_within_the_budget():
    free = ckopt.remat(UPSTREAM)
    before = free.figures["planned_peak_bytes"]
    assert free.figures["recomputed_steps"] == 0 and "ckopt." not in free.text
    tight = ckopt.remat(UPSTREAM, budget=before - 8192)
    figures = tight.figures
    assert figures["full_arena_bytes"] == before and figures["budget_bytes"] == before - 8192
    assert figures["measured_bytes"] <= figures["planned_peak_bytes"] <= before - 8192
    assert figures["recomputed_steps"] == tight.text.count("ckopt.clone") > 0
    assert tight.text.count("ckopt.barrier") and "ckopt.plan" not in tight.text
    assert figures["seconds"] >= figures["lower_bound_seconds"] > 0
    assert figures["status"] in str(tight.plan) and f"{before:,} bytes" in str(tight.plan)
    assert 'loc("a")' in tight.text  # names are the input's
    assert str(tight) == tight.text and "@step" in repr(tight)


def test_forms_of_a_module_are_one(tmp_path):
    """Text, bytecode, a file of either, and an object of MLIR's Python."""
    made = ckopt.remat(UPSTREAM, budget="min")
    assert made.bytecode.startswith(b"ML\xefR")
    path = tmp_path / "in.mlir"
    path.write_text(UPSTREAM)
    code = tmp_path / "in.mlirbc"
    code.write_bytes(ckopt.remat(UPSTREAM).bytecode)

    class Module:
        @property
        def operation(self):
            return self

        def get_asm(self, *, print_generic_op_form, enable_debug_info):
            assert print_generic_op_form and enable_debug_info
            return UPSTREAM

    class Lowered:
        def compiler_ir(self, dialect):
            assert dialect == "stablehlo"
            return Module()

    for form in (path, code, code.read_bytes(), bytearray(code.read_bytes()), Module(), Lowered()):
        assert strip(ckopt.remat(form, budget="min").text) == strip(made.text)
    again = ckopt.remat(made.bytecode)  # barriers are read back, and plans kept
    assert strip(again.text) == strip(made.text)


def strip(text):
    """A module without locations: lines of text are not those of bytecode."""
    lines = [line for line in text.splitlines() if not line.startswith("#loc")]
    return "\n".join(re.sub(r" loc\((\"[^\"]*\"(\([^)]*\))?|[^()]*)\)", "", line) for line in lines)


@pytest.mark.skipif(not os.path.exists("bin/ckopt-opt"), reason="run outside of a build folder")
@pytest.mark.parametrize("budget, text", [("0.8x", UPSTREAM), ("min", UPSTREAM),
                                          ("0.7x", STABLEHLO.read_text())])
def test_it_is_the_pass(budget, text, tmp_path):
    """The same bytes as ckopt-opt writes, but for the attribute with figures."""
    path = tmp_path / "in.mlir"
    path.write_text(text)
    table = os.path.join(ROOT, "share/ckopt/ops/stablehlo.json")
    done = subprocess.run(["bin/ckopt-opt", path, "--allow-unregistered-dialect",
                           f"--remat=budget={budget} apart=attribute remat-ops={table}"],
                          capture_output=True, text=True, check=True)
    made = ckopt.remat(text, budget=budget, ops="stablehlo", apart="attribute")
    assert strip(made.text).split() == re.sub(r"(, )?ckopt\.plan = \{.*?\}(?=[,}])", "",
                                              done.stdout).replace(" attributes {}", "").split()


def test_stablehlo():
    """Ops by a table: named, as a file, as a dict, in a list; the result needs no ckopt."""
    made = ckopt.remat(STABLEHLO, budget="0.7x", ops="stablehlo", apart="attribute")
    figures = made.plan.figures
    assert figures["name"] == "main" and list(made.plans) == ["main", "relu"]
    assert figures["planned_peak_bytes"] <= 0.7 * figures["full_arena_bytes"]
    assert made.text.count("ckopt.clone") == figures["recomputed_steps"] > 0
    assert set(re.findall(r"\bckopt\.\w+", made.text)) == {"ckopt.clone", "ckopt.node"}
    path = os.path.join(ROOT, "share/ckopt/ops/stablehlo.json")
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    for ops in (path, pathlib.Path(path), table, [table], ["torch", "stablehlo"]):
        other = ckopt.remat(STABLEHLO, budget="0.7x", ops=ops, apart="attribute")
        assert other.text == made.text
    with pytest.raises(ckopt.UnsupportedError, match="give them the text"):
        made.bytecode  # noqa: B018
    own = ckopt.remat(STABLEHLO, budget=0.7, ops="stablehlo",
                      apart="stablehlo.optimization_barrier")
    assert own.text.count("stablehlo.optimization_barrier") == own.figures["recomputed_steps"]
    assert own.figures["measured_bytes"] <= own.figures["planned_peak_bytes"]


def test_the_text_is_planned_already():
    """Measured bytes are those of the text: they come out again where it goes in again."""
    made = ckopt.remat(STABLEHLO, budget="0.7x", ops="stablehlo", apart="attribute")
    again = ckopt.remat(made.text, ops="stablehlo", canonicalize=False, functions="main",
                        fixed_order=True)
    assert again.figures["load_bytes"] == made.figures["measured_bytes"]
    before = ckopt.remat(STABLEHLO, ops="stablehlo", functions="main", canonicalize=False)
    assert made.figures["measured_bytes"] < before.figures["measured_bytes"]


def test_plans_go_in_again(tmp_path):
    made = ckopt.remat(UPSTREAM, budget="min")
    made.plan.check()
    path = tmp_path / "plan.json"
    made.plan.save(path)
    for plan in (made.plan, made.plan.json, path, str(path)):
        assert ckopt.remat(UPSTREAM, plan=plan).text == made.text
        hinted = ckopt.remat(UPSTREAM, budget="min", plan_hint=plan)
        assert hinted.figures["planned_peak_bytes"] <= made.figures["planned_peak_bytes"]
    fates = {value["name"]: value["fate"] for value in made.plan.values}
    again = next(name for name, fate in fates.items() if fate == "recomputed")
    assert "recomputed" in made.plan.explain(again)
    assert "<svg" in made.plan._repr_html_() and made.plan.pareto(3).points


def test_settings_are_the_pass_options():
    order = ckopt.remat(UPSTREAM, budget="0.9x", order_only=True, skip_unsupported=True)
    assert order.figures["recomputed_steps"] == 0
    kept = ckopt.remat(UPSTREAM, budget="min", save=["a", "op:math.sin"], compare="off",
                       cost_model="analytic", effort=0, search_seed=3, search_threads=1)
    assert "ckopt.clone" not in "".join(line for line in kept.text.splitlines()
                                        if "math.exp" in line or "math.sin" in line)
    half = ckopt.remat(UPSTREAM, activation_ratio=0.8).figures
    fixed, full = half["argument_bytes"], half["full_arena_bytes"]
    assert half["budget_bytes"] == fixed + int(0.8 * (full - fixed))
    two = UPSTREAM + UPSTREAM.replace("@step", "@other")
    assert list(ckopt.remat(two, functions=["other"]).plans) == ["other"]
    assert ckopt.remat(two).plan.figures["name"] == "step"


def test_messages():
    made = ckopt.remat(UPSTREAM, budget="min", remarks=True)
    assert any("recomputed: " in message for message in made.messages)
    assert all(message.startswith("remark: ") for message in made.messages)
    assert not ckopt.remat(UPSTREAM, budget="min").messages
    with pytest.warns(ckopt.Warning, match="there is no function 'nope'"):
        none = ckopt.remat(UPSTREAM, functions="nope")
    assert not none.plans
    with pytest.raises(ckopt.InputError, match="no function .* planned\n.*'nope'"):
        none.plan  # noqa: B018


CUSTOM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
GENERIC = CUSTOM.replace("stablehlo.tanh %x : tensor<8xf32>",
                         '"stablehlo.tanh"(%x) : (tensor<8xf32>) -> tensor<8xf32>')


@pytest.mark.parametrize("module, settings, error, text", [
    # The text.
    ("func.func @f(", {}, ckopt.InputError, r"^module:1:13: expected"),
    (CUSTOM, {}, ckopt.InputError,
     r"module:3:8: Dialect `stablehlo' not found for custom op 'stablehlo.tanh'.*\n.*generic form.*"
     r"get_asm\(print_generic_op_form=True\)"),
    (b"ML\xefR\x06nonsense", {}, ckopt.InputError, "bytecode"),
    (b"\xff\xfe", {}, ckopt.InputError, "module:1:1"),
    ("func.func @f() { return %0 }", {}, ckopt.InputError, "module:1:"),
    (3, {}, ckopt.UsageError, "not int"),
    (pathlib.Path("/no/such.mlir"), {}, ckopt.InputError, "module: cannot read '/no/such.mlir'"),
    # What cannot be planned.
    (GENERIC, {"budget": "min"}, ckopt.InputError,
     r"module:3:8: @main cannot be held to a budget.*'stablehlo.tanh'.* with 'allow_uncounted'"
     r"\n'ops' says what such ops are"),
    (UPSTREAM.replace("1024", "?"), {}, ckopt.InputError, "dynamic|static"),
    # Budgets.
    (UPSTREAM, {"budget": 4096}, ckopt.BudgetError,
     r"no plan of @step fits the budget of 4.00 KiB.*smallest budget found"),
    (UPSTREAM, {"budget": 0}, ckopt.UsageError, "'budget': 0 bytes hold nothing"),
    (UPSTREAM, {"budget": "12 Mib of"}, ckopt.UsageError, "^'budget': '12 Mib of' is not a byte"),
    (UPSTREAM, {"budget": "1.5x"}, ckopt.UsageError, "'budget': '1.5' is not a ratio"),
    (UPSTREAM, {"budget": 1.5}, ckopt.UsageError, "budget=1.5 is no share"),
    (UPSTREAM, {"budget": "1MiB", "activation_ratio": 0.5}, ckopt.UsageError,
     "give one of 'budget' and 'activation_ratio'"),
    # Tables.
    (GENERIC, {"ops": "stablehol"}, ckopt.InputError,
     "ops: 'stablehol' is no file, and none of the tables 'stablehlo', 'torch'"),
    (GENERIC, {"ops": {"format": "ckopt-ops/1", "opps": []}}, ckopt.InputError, "^ops: .*'opps'"),
    (GENERIC, {"ops": 3}, ckopt.UsageError, "ops=3"),
    # Plans.
    (UPSTREAM, {"plan": "/no/such.json"}, ckopt.InputError, "plan: cannot read '/no/such.json'"),
    (UPSTREAM, {"plan": {"format": "no"}}, ckopt.InputError, "plan file 'plan': "),
    (UPSTREAM, {"plan_hint": 3}, ckopt.UsageError, "plan_hint=3"),
    # Other settings.
    (UPSTREAM, {"nonsense": 1}, ckopt.UsageError, "unknown setting 'nonsense'"),
    (UPSTREAM, {"time_limt": 1}, ckopt.UsageError, "did you mean 'time_limit'"),
    (UPSTREAM, {"effort": -1}, ckopt.UsageError, "effort"),
    (UPSTREAM, {"order_only": True, "fixed_order": True}, ckopt.UsageError,
     "'order_only' and 'fixed_order'"),
    (UPSTREAM, {"apart": "nothing"}, ckopt.UsageError, "apart: 'nothing' is not one of"),
    (UPSTREAM, {"policy": "blocks"}, ckopt.UsageError, "policy: .*'blocks' is none of"),
    (UPSTREAM, {"cost_model": "magic"}, ckopt.UsageError, "unknown cost model 'magic'"),
    (UPSTREAM, {"cost_model": "profile=/no/such"}, ckopt.InputError, "/no/such"),
    (UPSTREAM, {"save": "("}, ckopt.UsageError, "save: .* no regular expression"),
    (UPSTREAM, {"save": "zzz"}, ckopt.InputError, "save 'zzz' matches nothing"),
])
def test_errors(module, settings, error, text):
    with pytest.raises(error, match=re.compile(text, re.S)):
        ckopt.remat(module, **settings)


def test_calls_share_nothing():
    """Threads plan at once, let others run, and get the same bytes."""
    expected = ckopt.remat(STABLEHLO, budget="0.7x", ops="stablehlo").text
    texts, ticks, done = [], 0, threading.Event()

    def work():
        texts.append(ckopt.remat(STABLEHLO, budget="0.7x", ops="stablehlo").text)

    def tick():
        nonlocal ticks
        while not done.wait(0.001):
            ticks += 1

    ticker = threading.Thread(target=tick)
    ticker.start()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    ticker.join()
    assert texts == [expected] * 4
    assert ticks > 50  # with the GIL held there are one or two a call


def test_the_page_runs(tmp_path, monkeypatch):
    """Blocks of docs/remat-pass.md behind "In Python"."""
    with open(os.path.join(ROOT, "docs/remat-pass.md"), encoding="utf-8") as file:
        section = file.read().split("\n## In Python\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.S | re.M)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step.mlir").write_text(UPSTREAM)
    assert blocks
    exec(blocks[0], {})  # noqa: S102 (the next one is in examples/stablehlo)


def test_the_pages_list_what_there_is():
    with open(os.path.join(ROOT, "docs/python.md"), encoding="utf-8") as file:
        page = file.read().split("| of a `RematModule`")[1].split("\n\n")[0]
    made = ckopt.remat(UPSTREAM)
    for name in dir(made):
        assert name.startswith("_") or f"`{name}" in page, name
    for name in made.figures:
        assert name == "name" or f"`{name}`" in page or name in (
            "cost_sources", "may_be_recomputed", "run_once", "not_counted", "cost_model"), name


def test_jax_takes_it_back():
    jax = pytest.importorskip("jax", reason="examples/stablehlo is NOT run: it needs jax")
    lowered = jax.jit(lambda x: jax.numpy.sin(jax.numpy.exp(x) @ x)).lower(
        jax.ShapeDtypeStruct((64, 64), "float32"))
    made = ckopt.remat(lowered, budget="1x", ops="stablehlo", apart="attribute")
    assert any("sin" in value["name"] for value in made.plan.values)  # JAX's names
    bytecode = io.BytesIO()
    lowered.compiler_ir("stablehlo").operation.write_bytecode(bytecode)
    with pytest.raises(ckopt.InputError, match="does not have cannot be read: give its generic text"):
        ckopt.remat(bytecode.getvalue(), ops="stablehlo")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "examples", "stablehlo", "gradients.py")],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("results are equal") == 2
