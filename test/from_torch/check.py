#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Judges gradients of models that PyTorch exported, in every form there is.

usage: check.py --ckopt=BIN [--only=REGEX] [--f64] FOLDER...

A FOLDER holds NAME/FORM.onnx with NAME/data.npz (inputs, `y_target`,
`grad/<parameter>` by PyTorch in float64) and NAME/about.json (`loss`,
`inputs`, and `precision` where the reference itself is float32). Forms:

  default, folded   what torch.onnx.export(..., dynamo=True) writes: gives all
                    gradients without a warning, or stops with the diagnosis,
                    naming parameters that are in the file's signature
  raw, ts, model    complete: give all gradients; a word about the export fails

A gradient is right within 1e-3 (float32, or a float32 reference) or 1e-6
(--f64) of the largest entry of its tensor (at least 1e-3 of the largest of all:
some are zero but for rounding). Tied parameters are compared under
the name that the file keeps; of a table that constants look up, the rows that
the file holds; of one with a padding_idx, forms that do not note it may train that row. Exit code 1 where something is wrong, 77 where
there is nothing to judge (no folder, no numpy).
"""
import json
import os
import re
import subprocess
import sys
import tempfile

DIAGNOSIS = "was exported for inference"
# Forms that do not note the calls of the exported program.
NO_CALLS = ("ts", "model", "folded")


def skip(why):
    print("SKIPPED: " + why)
    sys.exit(77)


def run(command):
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, timeout=600)
    return result.returncode, result.stderr


def gradients(ckopt, folder, form, about, data, f64, extra=()):
    """What `ckopt grad` says: exit code, messages, gradients."""
    import numpy
    with tempfile.TemporaryDirectory() as temporary:
        out = temporary + "/g.npz"
        inputs = [name for name in about["inputs"]]
        command = [ckopt, "grad", f"{folder}/{form}.onnx",
                   f"--data={folder}/data.npz", "-o", out]
        command += ["--inputs=" + ",".join(inputs)] if inputs else []
        if about.get("loss"):
            command += ["--loss=" + about["loss"], "--targets=" + target(data)]
        command += [f"--batch={batch_of(about, data)}"]
        command += ["--compute-type=f64"] if f64 else []
        code, messages = run(command + list(extra))
        if code:
            return code, messages, {}
        with numpy.load(out) as arrays:
            return code, messages, {n: arrays[n] for n in arrays.files}


def target(data):
    return next(n for n in ("y_target", "y", "targets", "labels") if n in data)


def renamed(about):
    """The file's names of tied parameters, where it is known which."""
    pairs = about.get("renamed") or []
    return dict(p for p in pairs if not isinstance(p, str))


def without_padding(have, want):
    """`have` with the row for padding_idx as PyTorch has it: zero, where the
    file does not say which row that is: one alone may differ so."""
    rows = [i for i in range(len(want)) if have[i].any() and
            not want[i].any()]
    if len(rows) == 1:
        have = have.copy()
        have[rows[0]] = 0
    return have


def compare(found, data, about, form):
    """The worst error, and the parameters that are missing."""
    import numpy
    worst, missing = 0.0, []
    scale = max([float(numpy.abs(data[n]).max()) for n in data
                 if n.startswith("grad/") and data[n].size] or [1.0])
    names = renamed(about)
    for name in data:
        if not name.startswith("grad/"):
            continue
        want = data[name]
        have = found.get(name, found.get("grad/" + names.get(name[5:], "")))
        if have is None:  # tied: another name, the same numbers
            have = next((g for n, g in found.items() if g.shape == want.shape and
                         numpy.allclose(g, want, rtol=1e-2, atol=1e-4 * scale)),
                        None)
        if (have is not None and have.ndim == want.ndim > 0 and
                have.shape[1:] == want.shape[1:] and
                len(have) < len(want) and not want[len(have):].any()):
            want = want[:len(have)]  # the file holds the rows that are read
        if have is not None and have.shape != want.shape and (
                tuple(d for d in have.shape if d != 1) ==
                tuple(d for d in want.shape if d != 1)):
            have = have.reshape(want.shape)  # expanded from fewer dimensions
        if have is not None and form in NO_CALLS and want.ndim == 2 and (
                have.shape == want.shape):
            have = without_padding(have, want)
        if have is None or have.shape != want.shape:
            if want.any():
                missing.append(name[5:])
            continue
        size = max(float(numpy.abs(want).max()), 1e-3 * scale, 1e-30)
        worst = max(worst, float(numpy.abs(have - want).max()) / size)
    return worst, missing


def draws_numbers(path):
    """Whether the graph has random operators (dropout without training_mode
    is none: exporters write it for models that drop nothing)."""
    with open(path, "rb") as file:
        content = file.read()
    return any(name in content for name in (
        b"RandomUniform", b"RandomNormal", b"Bernoulli", b"Multinomial"))


def load(folder):
    """What about.json and data.npz say."""
    import numpy
    with open(folder + "/about.json") as file:
        about = json.load(file)
    with numpy.load(folder + "/data.npz") as arrays:
        data = {n: arrays[n] for n in arrays.files}
    about.setdefault("inputs", [n for n in data if not n.startswith("grad/")
                                and n in ("x",)])
    return about, data


def batch_of(about, data):
    first = data[about["inputs"][0]] if about["inputs"] else None
    return first.shape[0] if first is not None and first.ndim else 1


def judge(ckopt, folder, form, f64):
    """Whether the form is right, and a line that says how it went."""
    about, data = load(folder)
    bound = 1e-6 if f64 and not about.get("precision") else 1e-3
    try:
        code, messages, found = gradients(ckopt, folder, form, about, data, f64)
    except subprocess.TimeoutExpired:
        return False, "takes more than 10 minutes"
    inference = form in ("default", "folded")
    first = next((l for l in messages.splitlines() if "error" in l), messages)
    if code == 1 and inference and DIAGNOSIS in messages:
        lost = re.findall(r"lost: '([^']*)'", messages)
        return bool(lost), "diagnosis: lost " + ", ".join(lost[:3]) + (
            f" and {len(lost) - 3} more" if len(lost) > 3 else "")
    if code == 4:
        ops = re.findall(r"unsupported operator (\w+)", messages)
        return False, "unsupported: " + (", ".join(sorted(set(ops))) or first)
    if code:
        return False, f"exit {code}: {first[:160]}"
    # A head that the loss does not read is the model's own affair.
    warnings = [l for l in messages.splitlines()
                if "warning" in l and "the loss does not depend on" not in l]
    if warnings:
        return False, "warns: " + warnings[0][:120]
    if draws_numbers(f"{folder}/{form}.onnx") or not any(
            n.startswith("grad/") for n in data):
        return True, "runs (it draws random numbers: no reference)"
    worst, missing = compare(found, data, about, form)
    if missing:
        return False, f"lacks {', '.join(missing[:4])} ({len(missing)})"
    return worst <= bound, f"largest error {worst:.1e}"


def judge_all(arguments, usage, judge_form):
    """Judges every form of every folder by judge_form(options, folder, form),
    prints a line for each, and returns the exit code."""
    options = dict(a[2:].partition("=")[::2] for a in arguments
                   if a.startswith("--"))
    folders = [a for a in arguments if not a.startswith("--")]
    if "ckopt" not in options or not folders:
        print(usage)
        return 64
    present = [f for f in folders if os.path.isdir(f)]
    if not present:
        skip("no folder " + ", ".join(folders))
    failed = total = 0
    for top in present:
        for name in sorted(os.listdir(top)):
            folder = os.path.join(top, name)
            if not os.path.exists(folder + "/about.json") or not re.search(
                    options.get("only", ""), name):
                continue
            for form in ("default", "folded", "raw", "model", "ts"):
                if not os.path.exists(f"{folder}/{form}.onnx"):
                    continue
                good, text = judge_form(options, folder, form)
                total += 1
                failed += not good
                print(f"{'ok   ' if good else 'WRONG'} {name:24} {form:8} "
                      f"{text}", flush=True)
    print(f"{total - failed} of {total} right")
    return 1 if failed else 0


def main(arguments):
    try:
        import numpy  # noqa: F401
    except ImportError:
        skip("no numpy: python3 -m pip install numpy")
    return judge_all(arguments, __doc__,
                     lambda options, folder, form: judge(
                         options["ckopt"], folder, form, "f64" in options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
