# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""keep_inputs.py FOLDER MODEL DATA: runs commands whose result would take the place of what they
read, all in a new FOLDER. Each has to be a usage error that names both flags and the file, and has
to leave all bytes as they were."""

import os
import shutil
import subprocess
import sys


def field(number, value):
    """A field of a protobuf message: a number, or bytes (text, messages)."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    value = value.encode() if isinstance(value, str) else value
    return bytes([number << 3 | 2, len(value)]) + value


def message(*fields):
    return b"".join(field(number, value) for number, value in fields)


def external_model(location):
    """y = x + w, with the two floats of w in another file."""
    def info(name, *dims):
        shape = message(*[(1, message((1, size))) for size in dims])
        return message((1, name), (2, message((1, message((1, 1), (2, shape))))))

    where = message((1, "location"), (2, location))
    weight = message((1, 2), (2, 1), (8, "w"), (13, where), (14, 1))
    node = message((1, "x"), (1, "w"), (2, "y"), (4, "Add"))
    graph = message((1, node), (2, "g"), (5, weight), (11, info("x", 4, 2)),
                    (12, info("y", 4, 2)))
    return message((1, 8), (7, graph), (8, message((2, 17))))


folder, model, data = sys.argv[1], *map(os.path.abspath, sys.argv[2:])
shutil.rmtree(folder, ignore_errors=True)
os.makedirs(f"{folder}/fold")
os.makedirs(f"{folder}/images/cat")
os.makedirs(f"{folder}/c.st.shards")
os.chdir(folder)
shutil.copy(data, "d.npz")
os.symlink("d.npz", "link.npz")
os.link("d.npz", "hard.npz")
for name in ["v.npz", "w.safetensors", "pr.json", "p.json", "c.st",
             "c.st.shards/save1-rank0of2.safetensors", "fold/labels.npy", "fold/page.html",
             "images/cat/1.png", "t.json"]:
    with open(name, "w") as file:
        file.write("read only, I was told: " + name)
with open("rates.txt", "w") as file:
    file.write("0.1\n")
with open("e.onnx", "wb") as file:
    file.write(external_model("e.data"))
with open("e.data", "wb") as file:
    file.write(bytes(8))


def contents():
    return {os.path.join(top, name): open(os.path.join(top, name), "rb").read()
            for top, _, names in os.walk(".") for name in names}


common = [model, "--inputs=x", "--batch=10", "--loss=mse"]
train = ["train", *common, "--data=d.npz"]
# What is read, what is written, and the command without what is written.
cases = [
    ("--data", "-o=d.npz", ["grad", *common, "--data=d.npz"]),
    ("--data", "--log=link.npz", train),
    ("--data", "--report=hard.npz", train),
    ("--data", "--plan-out=./d.npz", train),
    ("--data", "--log=d.npz", ["train", *common, "--data=d.np?"]),
    ("--data", "--log=fold/labels.npy", ["train", *common, "--data=fold"]),
    ("--images", "--log=images/cat/1.png", ["train", *common, "--images=images"]),
    ("--validation", "--log=v.npz", [*train, "--validation=v.npz"]),
    ("--weights", "--log=w.safetensors", [*train, "--weights=w.safetensors"]),
    ("--weights", "--checkpoint=w.safetensors", [*train, "--weights=w.safetensors"]),
    ("--resume", "-o=w.safetensors", [*train, "--resume=w.safetensors"]),
    ("--resume", "--log=c.st.shards/save1-rank0of2.safetensors", [*train, "--resume=c.st"]),
    ("--cost-model", "--plan-out=pr.json", ["plan", *common, "--cost-model=profile=pr.json"]),
    ("--lr-schedule", "--log=rates.txt", [*train, "--lr-schedule=file:rates.txt"]),
    ("--plan", "--plan-report=p.json", ["plan", *common, "--plan=p.json"]),
    ("--plan-hint", "--plan-report=p.json", ["plan", *common, "--plan-hint=p.json"]),
    ("--library-table", "--profile-out=t.json", ["bench", *common, "--library-table=t.json"]),
    ("the model's weights", "--log=e.data",
     ["train", "e.onnx", "--data=d.npz", "--inputs=x", "--loss=mse"]),
]
before = contents()
for flag, written, command in cases:
    run = subprocess.run(["ckopt", *command, *written.replace("-o=", "-o ").split()],
                         capture_output=True, text=True, check=False)
    told = f"{written} would replace {flag}, '"
    told_of_folder = f"{written} would replace a file of {flag}, '"
    if run.returncode != 64 or not (told in run.stderr or told_of_folder in run.stderr):
        sys.exit(f"{command} {written}: {run.returncode}, {run.stderr}")
    if contents() != before:
        sys.exit(f"{command} {written}: files are others now")

# What is beside data in their folder is none.
run = subprocess.run(["ckopt", "train", *common, "--data=fold", "--log=fold/page.html"],
                     capture_output=True, text=True, check=False)
if "would replace" in run.stderr:
    sys.exit(run.stderr)
