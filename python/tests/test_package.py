# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The package itself: types, missing libraries, the notebook."""

import ast
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy
import pytest
from conftest import ROOT, compile_digits

import ckopt
from ckopt import _arrays

PACKAGE = pathlib.Path(ckopt.__file__).parent
# One that runs on any Linux brings its libraries.
WHOLE = (PACKAGE / "libgomp.so.1").exists()


def functions():
    """All public functions and methods by name."""
    owners = [(name, getattr(ckopt, name)) for name in ckopt.__all__]
    for name, owner in owners:
        if inspect.isfunction(owner):
            yield name, owner
        elif inspect.isclass(owner) and owner.__module__.startswith("ckopt"):
            for key, value in vars(owner).items():
                value = value.fget if isinstance(value, property) else value
                if inspect.isfunction(value) and (key == "__call__" or not key.startswith("_")):
                    yield f"{name}.{key}", value


def test_public_names_are_typed_and_described():
    untyped = []
    for name, function in functions():
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.name != "self"]
        if signature.return_annotation is signature.empty or \
                any(p.annotation is p.empty for p in parameters) or not function.__doc__:
            untyped.append(name)
    assert not untyped
    assert (PACKAGE / "py.typed").exists()


USER = """
from typing import assert_type
import ckopt
step = ckopt.compile("model.onnx", loss="cross_entropy", optimizer=ckopt.AdamW(lr=1e-3), batch=64)
assert_type(step, ckopt.CompiledStep)
assert_type(step(x=1, y=2), float)
assert_type(step.fit({"x": 1}, epochs=2), ckopt.FitResult)
assert_type(step.fit([]).losses, list[float])
assert_type(step.plan, ckopt.StepPlan)
assert_type(step.plan.pareto(3), ckopt.Curve)
assert_type(step.evaluate(x=1, y=2, metrics=["top5"]), dict[str, float])
assert_type(step.fit(ckopt.Tokens("t.bin", sequence=4), validation="v.npz"), ckopt.FitResult)
assert_type(step.evaluate(ckopt.ImageFolder("f", augment=["flip"])), dict[str, float])
assert_type(ckopt.plan({}, budget="1GiB").peak, int)
assert_type(ckopt.remat("module {}", budget="1GiB").bytecode, bytes)
"""
WRONG = USER + "step.fit({}, epochs='two')\nckopt.compile('m', optimizer=3)\nstep.trian()\n"


def test_a_type_checker_reads_the_types(tmp_path):
    pytest.importorskip("mypy")

    def check(*arguments):
        return subprocess.run([sys.executable, "-m", *arguments], cwd=tmp_path, text=True,
                              capture_output=True, check=False)

    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    result = check("mypy", "--strict", "user.py")
    assert result.returncode == 0, result.stdout + result.stderr
    result = check("mypy", "--strict", "wrong.py")
    assert result.stdout.count(": error:") == 3, result.stdout
    result = check("mypy", "-p", "ckopt", "--ignore-missing-imports")
    assert result.returncode == 0, result.stdout + result.stderr


def test_stubs_have_what_the_module_has():
    from ckopt import _ckopt

    tree = ast.parse((PACKAGE / "_ckopt.pyi").read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert functions | set(classes) == {name for name in dir(_ckopt) if not name.startswith("_")}
    for name, node in classes.items():
        assert {n.name for n in node.body if isinstance(n, ast.FunctionDef) and
                not n.name.startswith("_")} == \
            {name for name in dir(getattr(_ckopt, name)) if not name.startswith("_")}


@pytest.mark.skipif(WHOLE, reason="the package needs none of Debian's")
def test_import_names_the_missing_package(tmp_path):
    """With a library of another name: what the loader does not find, apt-get has."""
    shutil.copytree(PACKAGE, tmp_path / "ckopt")
    runtime = tmp_path / "ckopt" / "libckopt_runtime.so.1"
    raw = runtime.read_bytes()
    assert b"libopenblas.so.0\0" in raw
    runtime.unlink()
    runtime.write_bytes(raw.replace(b"libopenblas.so.0\0", b"libopenblas.so.x\0"))
    result = subprocess.run([sys.executable, "-c", "import ckopt"], capture_output=True, text=True,
                            cwd=tmp_path, env=dict(os.environ, PYTHONPATH=str(tmp_path)),
                            check=False)
    assert "libopenblas.so.x" in result.stderr and "apt-get install libopenblas0-openmp\n" in result.stderr


def test_import_needs_address_space():
    """OpenBLAS would ask for ever."""
    program = ("import resource; resource.setrlimit(resource.RLIMIT_AS, (300 << 20, 300 << 20))\n"
               "import ckopt")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          check=False, timeout=60)
    assert "ImportError: ckopt needs 544 MiB of address space" in done.stderr


def test_all_libraries_have_a_package():
    """Each library that the module and the runtime need is one that import can name."""
    from ckopt._packages import PACKAGES

    system = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "libstdc++.so.6", "ld-linux-x86-64.so.2",
              "libckopt_runtime.so.1", "libdnnl.so.3"]  # the last two are in the package
    files = [PACKAGE / "libckopt_runtime.so.1", next(PACKAGE.glob("_ckopt*.so"))]
    if WHOLE:
        inside = list((PACKAGE.parent / "ckopt.libs").iterdir())
        files += inside
        system += [file.name for file in inside] + ["libpthread.so.0", "libdl.so.2"]
    if not shutil.which("readelf"):
        pytest.skip("readelf is not there")
    for file in files:
        text = subprocess.check_output(["readelf", "-d", file], text=True)
        needed = [line.split("[")[1].rstrip("]") for line in text.splitlines() if "(NEEDED)" in line]
        assert needed and not [n for n in needed if n not in PACKAGES and n not in system]


def test_arrays_are_not_copied(digits):
    """What has the step's type and layout goes in as it is; what comes out is its own."""
    images = digits[0][:32].astype("f4")
    assert _arrays.as_array("x", images, "float32") is images
    readonly = images.copy()
    readonly.setflags(write=False)
    assert numpy.shares_memory(_arrays.as_array("x", readonly, "float32"), readonly)
    turned = numpy.asfortranarray(images)
    assert not numpy.shares_memory(_arrays.as_array("x", turned, "float32"), turned)
    step = compile_digits()
    scores, state = step.predict(images), step.state_dict()
    assert scores.__dlpack_device__() == (1, 0)
    through = numpy.from_dlpack(scores)
    assert numpy.shares_memory(through, scores)
    before = state["o.bias"].copy()
    state["o.bias"] += 1
    assert (step.state_dict()["o.bias"] == before).all()
    assert (step.predict(images) == scores).all()


def test_tensors_are_not_copied(digits):
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(digits[0][:32].astype("f4"))
    for given in (tensor, tensor.clone().requires_grad_()):
        assert _arrays.as_array("x", given, "float32").ctypes.data == given.data_ptr()
    step = compile_digits()
    scores = step.predict(tensor)
    assert torch.from_dlpack(scores).data_ptr() == scores.ctypes.data
    labels = torch.from_numpy(digits[1][:32])
    halves = compile_digits()
    assert compile_digits()(tensor, labels) == halves(tensor.bfloat16(), labels.int())
    for wrong, text in [(tensor.to("meta"), "not in memory"), (tensor.to_sparse(), "dense array"),
                        (tensor.to(torch.complex64), "complex64"),
                        (tensor.double() + 1e-9, "float64")]:
        with pytest.raises(ckopt.InputError, match=f"'x'.*{text}"):
            halves(wrong, labels)


def run_cell(source, names):
    """Runs a cell as a notebook does; returns what its last line shows, as HTML or text."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), names)  # noqa: S102
    if last is None:
        return None
    value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)  # noqa: S307
    return value._repr_html_() if hasattr(value, "_repr_html_") else repr(value)


def test_notebook_runs(tmp_path, monkeypatch):
    """All cells of the notebook in examples/, from the folder that it lies in."""
    path = os.path.join(ROOT, "examples", "python", "digits.ipynb")
    with open(path, encoding="utf-8") as file:
        notebook = json.load(file)
    assert notebook["nbformat"] == 4
    monkeypatch.chdir(os.path.dirname(path))
    monkeypatch.setenv("CKOPT_EXAMPLE_OUT", str(tmp_path))
    names: dict = {"__name__": "__main__"}
    shown = [run_cell("".join(cell["source"]), names) for cell in notebook["cells"]
             if cell["cell_type"] == "code"]
    assert names["result"].validation["accuracy"] > 0.9
    assert sum("<svg" in text for text in shown if text) >= 2
    assert (tmp_path / "trained.onnx").exists()
    assert names["tight"].memory["planned_peak_bytes"] < names["free"].memory["planned_peak_bytes"]
