"""scan_ptx.py [--allow-f64] [--approximates] ARTIFACT...: fails if the PTX of an artifact holds
what a step must not: calls, local memory, allocations, dynamic shared memory, arithmetic without a
rounding mode, approximations, or f64 that nobody asked for. With --approximates it has to have
two approximations, and may have no other one. Assembles it with ptxas where that is installed."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FORBIDDEN = {
    "an external function": r"\.extern\s+\.func",
    "a call": r"^\s*(@%\w+\s+)?call\b",
    "local memory": r"\.local\b",
    "an allocation": r"\bmalloc\b",
    "dynamic shared memory": r"__dynamic_shmem__",
    "an approximation": r"\.approx",
    "a float atomic": r"\b(atom|red)\.[\w.]*f(16|32|64)",
    # add, sub, mul and fma of floats: `.rn` is written out, or the assembler
    # may contract them.
    "arithmetic without rounding mode": r"^\s*(@%\w+\s+)?(add|sub|mul|fma|div|sqrt|rcp)(?!\.rn)(\.\w+)*\.f(16|32|64)(x2)?\b",
}


APPROXIMATIONS = ["ex2.approx.ftz.f32", "rcp.approx.ftz.f32"]


def ptxas():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which("ptxas") or shutil.which(os.path.join(home, "bin", "ptxas"))


def scan(folder, allow_f64, approximates):
    text = (folder / "kernels.ptx").read_text()
    step = json.loads((folder / "step.json").read_text())
    patterns = dict(FORBIDDEN)
    if not allow_f64:
        patterns["f64"] = r"\.f64\b"
    failures = []
    scanned = text
    for instruction in APPROXIMATIONS if approximates else []:
        if instruction not in text:
            failures.append("%s: no %s" % (folder, instruction))
        scanned = scanned.replace(instruction, "allowed")
    if ".target sm_%d" % step["sm"] not in text or ".version " + step["ptx"] not in text:
        failures.append("%s: its target or PTX version is not what step.json says" % folder)
    for number, line in enumerate(scanned.splitlines(), 1):
        code = line.split("//")[0]
        for what, pattern in patterns.items():
            if re.search(pattern, code):
                failures.append("%s:%d: %s: %s" % (folder / "kernels.ptx", number, what, code.strip()))
    entries = set(re.findall(r"\.entry\s+(\w+)", text))
    missing = [kernel["symbol"] for kernel in step["kernels"] if kernel["symbol"] not in entries]
    failures += ["%s: no kernel %s" % (folder, symbol) for symbol in missing]
    assembler = ptxas()
    if assembler:
        with tempfile.NamedTemporaryFile() as out:
            done = subprocess.run(
                [assembler, "-O1", "-arch=sm_%d" % step["sm"], "-o", out.name, str(folder / "kernels.ptx")],
                capture_output=True, text=True)
        if done.returncode:
            failures.append("%s: ptxas: %s" % (folder, done.stderr.strip()[:500]))
    return failures, len(entries)


failures = []
flags = [word for word in sys.argv[1:] if word.startswith("--")]
for name in sys.argv[1 + len(flags) :]:
    found, kernels = scan(pathlib.Path(name), "--allow-f64" in flags, "--approximates" in flags)
    failures += found
    print("%s: %d kernels" % (pathlib.Path(name).name, kernels))
print("assembled by ptxas" if ptxas() else "ptxas is not installed: NOT assembled")
for failure in failures[:20]:
    print(failure)
sys.exit(bool(failures))
