#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains models for a few steps and runs what was written in onnxruntime.

usage: roundtrip.py --ckopt=BIN [--only=REGEX] [--external] FOLDER...

A FOLDER is laid out as check.py has it. Each form is trained for three steps
with `-o trained.onnx` and a checkpoint, and right is:

  weights   every parameter of PyTorch that the original file holds, under
            whatever name, is in the trained file by PyTorch's name or the
            file's own, with the bits of the checkpoint, and they have moved;
  outputs   onnxruntime on the trained file gives what `ckopt run` gives on it,
            to 1e-5 of the largest number of each output, both for inference:
            batch norms use running statistics, dropouts do nothing.

A form that `ckopt train` refuses with the diagnosis of its export is none to
judge. `--external` moves the original's weights to a file beside it first.
Exit code 1 where something is wrong, 77 where there is nothing to judge: no
folder, no onnxruntime.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

import check

BOUND = 1e-5


def for_inference(model):
    """The model as `ckopt run` takes it: exporters write training forms."""
    for node in model.graph.node:
        if node.op_type == "BatchNormalization":
            kept = [a for a in node.attribute if a.name != "training_mode"]
            del node.attribute[:]
            node.attribute.extend(kept)
            del node.output[1:]
        if node.op_type == "Dropout":
            del node.input[1:]
    return model


def outputs_of(path, data, names):
    """What onnxruntime computes, by output."""
    import onnx
    import onnxruntime
    model = for_inference(onnx.load(path))
    produced = {o for node in model.graph.node for o in node.output}
    produced |= {t.name for t in model.graph.initializer}
    kept = [o for o in model.graph.output if o.name in produced]
    del model.graph.output[:]
    model.graph.output.extend(kept)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"])
    known = {i.name for i in session.get_inputs()}
    feeds = {n: data[n] for n in names if n in known}
    found = [o.name for o in session.get_outputs()]
    return dict(zip(found, session.run(found, feeds)))


def compare_outputs(path, ckopt, command, data, names):
    """None, or what differs."""
    import numpy
    with tempfile.TemporaryDirectory() as temporary:
        out = temporary + "/o.npz"
        code, messages = check.run(
            [ckopt, "run", path, "-o", out] + command)
        if code:
            return f"run: exit {code}: {messages.strip()[:200]}"
        with numpy.load(out) as arrays:
            have = {n: arrays[n] for n in arrays.files}
    try:
        want = outputs_of(path, data, names)
    except Exception as error:  # whatever it says, the file is not valid
        return f"onnxruntime: {str(error)[:300]}"
    worst = 0.0
    for name, value in want.items():
        if name not in have:
            return f"run gives no output '{name}'"
        other = have[name]
        if other.shape != value.shape:
            return f"'{name}' is {other.shape}, not {value.shape}"
        if value.dtype.kind != "f":
            if (other != value).any():
                return f"'{name}' differs"
            continue
        finite = numpy.isfinite(value)
        if (finite != numpy.isfinite(other)).any():
            return f"'{name}' is finite in one only"
        if finite.any():
            size = max(float(numpy.abs(value[finite]).max()), 1e-6)
            worst = max(worst, float(
                numpy.abs(other - value)[finite].max()) / size)
    return None if worst <= BOUND else f"outputs differ by {worst:.1e}"


def initializers(path):
    import onnx
    model = onnx.load(path)
    return {t.name: onnx.numpy_helper.to_array(t)
            for t in model.graph.initializer}


def compare_weights(before, trained, checkpoint, about, data):
    """None, or what is wrong with the trained file's weights."""
    from safetensors.numpy import load_file
    import numpy
    old, new = initializers(before), initializers(trained)
    state = load_file(checkpoint)
    moved = 0
    for name, value in new.items():
        for prefix in ("", "param/", "parameter/"):
            if prefix + name in state:
                if (state[prefix + name].tobytes() !=
                        numpy.ascontiguousarray(value).tobytes()):
                    return f"'{name}' is not the checkpoint's"
                moved += name not in old or old[name].shape != value.shape \
                    or (old[name] != value).any()
    if not moved:
        return "no weight has moved"
    renamed = check.renamed(about)
    for key in data:
        name = key[5:]
        if (key.startswith("grad/") and name in old and
                renamed.get(name, name) not in new and
                name not in (about.get("renamed") or [])):
            return f"'{name}' is gone"
    return None


def make_external(path, to):
    import onnx
    onnx.save_model(onnx.load(path), to, save_as_external_data=True,
                    location=os.path.basename(to) + ".data",
                    size_threshold=0)


def judge(ckopt, folder, form, external):
    """Whether the form is right, and a line that says how it went."""
    import numpy
    about, data = check.load(folder)
    names = list(about["inputs"])
    batch = check.batch_of(about, data)
    command = ["--inputs=" + ",".join(names)] if names else []
    command += [f"--data={folder}/data.npz", f"--batch={batch}"]
    loss = []
    if about.get("loss"):
        loss = ["--loss=" + about["loss"], "--targets=" + check.target(data)]
    with tempfile.TemporaryDirectory() as temporary:
        source = f"{folder}/{form}.onnx"
        if external:  # in a folder that the trained file does not lie in
            os.mkdir(temporary + "/in")
            source = temporary + "/in/model.onnx"
            make_external(f"{folder}/{form}.onnx", source)
        trained, state = temporary + "/t.onnx", temporary + "/c.safetensors"
        try:
            code, messages = check.run(
                [ckopt, "train", source, "--optimizer=sgd", "--lr=1e-2",
                 "--epochs=3", "--max-steps=3", "--quiet", "-o", trained,
                 "--checkpoint=" + state] + command + loss)
            if code == 1 and check.DIAGNOSIS in messages:
                return True, "diagnosis"
            if code:
                return False, f"train: exit {code}: {messages.strip()[:200]}"
            problem = compare_weights(source, trained, state, about, data)
            if not problem and check.draws_numbers(trained):
                return True, "weights (its outputs are drawn)"
            problem = problem or compare_outputs(
                trained, ckopt, command, data, names)
        except subprocess.TimeoutExpired:
            return False, "takes more than 10 minutes"
    return not problem, problem or "the same in onnxruntime"


def main(arguments):
    try:
        import numpy, onnx, onnxruntime, safetensors  # noqa: F401,E401
    except ImportError as error:
        check.skip(f"{error}")
    return check.judge_all(
        arguments, __doc__,
        lambda options, folder, form: judge(options["ckopt"], folder, form,
                                            "external" in options))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
