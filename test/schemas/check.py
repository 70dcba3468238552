#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check.py --bin=FOLDER ROOT: the JSON files that the programs write, against
the schemas in ROOT/docs/schemas.

Every schema gets at least one file. Of each file, copies with one member too
many, and with each required member of the top level missing, must be refused: a
schema that accepts everything fails here. The example of the schemas' page is run
on a report that is right, and on one that another schema refuses. Exits with 77 (skipped) where the
Python package jsonschema (Debian: python3-jsonschema) is not installed.
"""

import argparse
import glob
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

try:
    import jsonschema
except ImportError:
    print("SKIPPED: the schemas are NOT tested: install python3-jsonschema")
    sys.exit(77)
warnings.filterwarnings("ignore", category=DeprecationWarning)  # RefResolver


def run(*command, code=0):
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != code:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}, not {code}:\n{done.stderr}")


def write_files(programs, root):
    """Runs the programs in the current folder; the files by schema."""
    ckopt, plan = os.path.join(programs, "ckopt"), os.path.join(programs, "ckopt-plan")
    data = os.path.join(root, "test", "data")
    digits = os.path.join(data, "models", "digits_cnn.onnx")
    step = [digits, "--loss=cross_entropy", "--batch=8", "--quiet", "--effort=0"]
    samples = [f"--data={data}/digits.npz", "--inputs=x=images", "--targets=labels"]
    short = ["--threads=1", "-O", "0", "--max-steps=2"]

    run(ckopt, "plan", *step, "--graph-out=graph.json")
    run(ckopt, "plan", *step, "--remat=nothing_saveable", "--plan-out=stored.json",
        "--plan-report=remat.json", "--report=step.json")
    run(ckopt, "plan", *step, "--memory-budget=1KiB", "--plan-out=none.json",
        "--plan-report=remat-none.json", "--report=step-none.json", code=2)
    run(ckopt, "train", *step, *samples, *short, "--holdout=0.9", "--report=train.json")
    run(ckopt, "compare", *step, *samples, *short, "--budgets=none,0.8", "--report=compare.json")
    run(ckopt, "bench", *step, "--threads=1", "-O", "0", "--steps=2", "--profile-out=profile.json",
        "--profile", "--report=bench.json")
    run(ckopt, "inspect", *step, "--threads=1", "-O", "0", "--depth=3", "--report=inspect.json")
    run(ckopt, "plan", *step, "--parallel=dp:4", "--report=dp.json")
    run(ckopt, "compile", *step, "--target=cuda", "--report=device.json", "-o", "device")
    table = os.path.join(root, "test", "ckopt", "Inputs", "library_table.json")
    chain = os.path.join(root, "test", "ckopt-plan", "Inputs", "chain.json")
    run(plan, "graph.json", "--budget-ratio=0.7", "--pack", "-o", "packed.json",
        "--plan-report=report.json")
    run(plan, "graph.json", "--memory-budget=1KiB", "-o", "nothing.json",
        "--plan-report=report-none.json", code=2)
    run(plan, chain, "--minimum", "-o", "minimum.json")
    run(plan, chain, "--order-only", "-o", "order.json")
    run(plan, chain, "--pareto=3", "-o", "pareto.json")
    inputs = glob.glob(os.path.join(root, "test", "ckopt-plan", "Inputs", "*.json"))
    return {
        "ckopt-graph-1": ["graph.json", *inputs],
        "ckopt-plan-1": ["stored.json", "none.json", "packed.json", "nothing.json",
                         "minimum.json", "order.json"],
        "ckopt-pareto-1": ["pareto.json"],
        "ckopt-report-1": ["report.json", "report-none.json"],
        "ckopt-remat-report-1": ["remat.json", "remat-none.json"],
        "ckopt-step-report-1": ["step.json", "step-none.json", "train.json", "device.json",
                                "bench.json", "inspect.json", "dp.json"],
        "ckopt-compare-report-1": ["compare.json"],
        "ckopt-profile-1": ["profile.json"],
        "ckopt-library-table-1": [table],
        "ckopt-device-step": ["device/step.json"],
    }


def check(validator, name, file):
    """What is wrong with a file, and with a schema that accepts too much."""
    with open(file) as text:
        content = json.load(text)
    problems = [
        f"{file}: {'/'.join(map(str, error.absolute_path))}: {error.message[:200]}"
        for error in validator.iter_errors(content)
    ]
    if not problems:
        copies = {"an unknown member": {**content, "no such member": 1}}
        for member in validator.schema["required"]:
            copies["no " + member] = {k: v for k, v in content.items() if k != member}
        problems = [f"{name} accepts a file with {what}" for what, copy in copies.items()
                    if validator.is_valid(copy)]
    return problems


def check_example(root):
    """Runs the page's example beside compare.json in the current folder."""
    try:
        import referencing  # noqa: F401  jsonschema before 4.18 has none
    except ImportError:
        print("the example of docs/schemas/README.md is NOT tested: no Python package referencing")
        return []
    with open(os.path.join(root, "docs", "schemas", "README.md")) as text:
        example = re.search(r"```python\n(.*?)```", text.read(), re.DOTALL)[1]
    os.symlink(os.path.join(root, "docs"), "docs")
    exec(example, {})
    with open("compare.json") as text:
        content = json.load(text)
    content["runs"][0]["plan"]["no such member"] = 1  # refused by the other schema alone
    with open("compare.json", "w") as text:
        json.dump(content, text)
    try:
        exec(example, {})
    except jsonschema.ValidationError:
        return []
    return ["the example of docs/schemas/README.md accepts a plan with an unknown member"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("root")
    args = parser.parse_args()
    root, programs = os.path.abspath(args.root), os.path.abspath(args.bin)
    schemas = {}
    for path in sorted(glob.glob(os.path.join(root, "docs", "schemas", "*.schema.json"))):
        with open(path) as text:
            schema = json.load(text)
        jsonschema.Draft202012Validator.check_schema(schema)
        if schema["$id"] != os.path.basename(path):
            sys.exit(f"{path}: its $id is {schema['$id']}")
        schemas[schema["$id"]] = schema
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        files = write_files(programs, root)
        problems += [f"no file of {name} is checked" for name in schemas
                     if name[: -len(".schema.json")] not in files]
        for name, written in files.items():
            schema = schemas[name + ".schema.json"]
            resolver = jsonschema.RefResolver("", schema, store=schemas)
            validator = jsonschema.Draft202012Validator(schema, resolver=resolver)
            for file in written:
                problems += check(validator, name, file)
        problems += check_example(root)
        os.chdir(root)
    print("\n".join(problems) or f"{sum(map(len, files.values()))} files agree with their schemas")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
