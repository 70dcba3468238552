#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the wheels that scripts/wheel has built.

check.py --build=DIR --source=DIR [--roots]

What is inside; that one, installed where PATH has no linker, trains and compiles the bits of the
build's own ckopt, beside PyTorch, onnx and triton in any order. --roots: the same in root file
systems of Debian with python3 and pip alone, which debootstrap makes, within a container's limits.

What cannot be checked here is said, and 77 (skipped) returned where there is no wheel, or with
--roots no such file system.
"""

import argparse
import glob
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

SIZES = {"ckopt": 80 << 20, "ckopt_runtime": 5 << 20}
# Suites of Debian, and whether their Python and C library are new enough.
SUITES = {"bookworm": True, "trixie": True, "bullseye": False}
COMPILE = ["--loss=cross_entropy", "--optimizer=adamw", "--lr=1e-3", "--batch=64", "--threads=2",
           "--memory-budget=3MiB", "--quiet"]
TRAIN = [*COMPILE, "--inputs=x=images", "--targets=labels", "--epochs=2", "--holdout=0.2"]

# Imports the modules in the order of the arguments and uses each of them.
BESIDE = """
import sys
for name in sys.argv[3:]:
    __import__(name)
import ckopt, numpy, onnx, torch, triton
with numpy.load(sys.argv[2]) as data:
    x, y = data["images"][:32].astype("f4"), data["labels"][:32]
step = ckopt.compile(sys.argv[1], loss="cross_entropy", optimizer=ckopt.AdamW(lr=1e-3), batch=32,
                     threads=2, effort=0)
losses = [step(x, y)]
onnx.checker.check_model(onnx.load(sys.argv[1]))
ones = torch.ones(64, 64)
assert (ones @ ones == 64).all() and triton.cdiv(5, 2) == 3
losses.append(step(x, y))
with open("/proc/self/maps") as maps:
    teams = {line.split()[-1] for line in maps if "libgomp" in line}
assert len(teams) == 1, teams
print(*map(float.hex, losses))
"""

# What runs in a bare root; the wheels are in /wheels, the digits in /data.
BARE = """
set -e
export HOME=/nonexistent PATH=/site/bin:$PATH PYTHONPATH=/site
pip3 install -q --no-index --find-links=/wheels --target=/site ckopt
mount -t tmpfs none /tmp
rm -rf /dev/shm
mount -o remount,ro,bind /
! touch /written 2>/dev/null
cd /tmp
ulimit -u 40; ulimit -n 48; ulimit -v 3000000
python3 -c 'import time
began = time.time()
import ckopt
print("import: %.2f s" % (time.time() - began))'
ckopt train /data/models/digits_cnn.onnx --data=/data/digits.npz $TRAIN -o t.onnx
ckopt compile /data/models/digits_cnn.onnx $COMPILE -o step.so
ckopt-run step.so --random=x:-1:1 --random=target:0:10
ckopt-opt --version
ckopt-plan --version
sha256sum t.onnx step.so
"""


def run(*command, code=0, **more):
    """Runs a command; what it prints. Another exit code ends the test."""
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False, **more)
    if done.returncode != code:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def digest(path):
    """The hash of a file's bytes."""
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def check_files(wheel, work, auditwheel):
    """Size, licences, and what the loader is told."""
    name = wheel.name.split("-")[0]
    assert wheel.stat().st_size <= SIZES[name], f"{wheel}: {wheel.stat().st_size} bytes"
    folder = work / wheel.stem
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
        names = packed.namelist()
    assert name != "ckopt" or {"ckopt/ops/stablehlo.json", "ckopt/ops/torch.json"} <= set(names)
    inside = [file for file in names if "/licenses/" in file]
    for part in ("LICENSE", "libgomp1.txt"):
        assert any(file.endswith(part) for file in inside), f"{wheel}: no {part}"
    for file in names:
        if ".so" not in file and not file.endswith("ckopt-run"):
            continue
        text = run("readelf", "-d", folder / file)
        for path in re.findall(r"R(?:UN)?PATH.*\[(.*)\]", text):
            assert all(part.startswith("$ORIGIN") for part in path.split(":")), (file, path)
        old = re.findall(r"GLIBC_2\.(\d+)", run("objdump", "-T", folder / file))
        assert max(map(int, old)) <= 34, (file, max(map(int, old)))
        if os.path.basename(file).startswith("_ckopt"):
            shown = run("nm", "-D", "--defined-only", folder / file).split()[2::3]
            assert shown == ["PyInit__ckopt"], shown[:9]
    if name == "ckopt_runtime":
        pass  # needs oneDNN, which is in another wheel
    elif auditwheel.exists():
        said = " ".join(run(auditwheel, "show", wheel).split())
        assert '"manylinux_2_34_x86_64"' in said, said
    else:
        print("NOT checked: what auditwheel says, which is not there")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB")


def install(wheel, folder):
    """Returns the Python of an environment with the wheel, which sees this one's packages."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    began = time.time()
    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", wheel)
    print(f"installed in {time.time() - began:.1f} s")
    own, outer = (run(each, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
                  for each in (python, sys.executable))
    pathlib.Path(own, "outer.pth").write_text(outer + "\n", encoding="utf-8")
    if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode and \
            subprocess.run([python, "-m", "pip", "install", "-q", "numpy"], check=False).returncode:
        print("SKIPPED: wheels are NOT tested: numpy is not here, and PyPI cannot be reached")
        sys.exit(77)
    return python


def results(ckopt, data, work, **more):
    """Hashes of a trained model and of a compiled step."""
    work.mkdir()
    model = data / "models" / "digits_cnn.onnx"
    run(*ckopt, "train", model, f"--data={data}/digits.npz", *TRAIN, "-o", work / "t.onnx", **more)
    run(*ckopt, "compile", model, *COMPILE, "-o", work / "step.so", **more)
    return digest(work / "t.onnx"), digest(work / "step.so")


def check_beside(python, data):
    """PyTorch, onnx and triton in many orders, with the same losses and one team of threads."""
    others = ["torch", "onnx", "triton"]
    found = [module for module in others if not subprocess.run(
        [python, "-c", f"import {module}"], capture_output=True, check=False).returncode]
    if found != others:
        print(f"NOT checked: the package beside {', '.join(others)}: only {found} here")
        return
    names = ["ckopt", *others]
    orders = [each[i:] + each[:i] for each in (names, names[::-1]) for i in range(len(names))]
    said = {run(python, "-c", BESIDE, data / "models" / "digits_cnn.onnx", data / "digits.npz", *order)
            for order in orders}
    assert len(said) == 1, said


def check_root(suite, fits, wheels, data, work, wanted):
    """Installs and runs in a root of that suite; false where it cannot be made."""
    root = work / suite
    made = subprocess.run(["debootstrap", "--variant=minbase", "--include=python3,python3-pip", suite,
                           root, os.environ.get("CKOPT_DEBIAN_MIRROR", "http://deb.debian.org/debian")],
                          stdout=subprocess.DEVNULL, check=False)
    if made.returncode:
        print(f"NOT checked: {suite}, which the mirror does not give")
        return False
    for tool in glob.glob(f"{root}/usr/bin/apt*"):
        os.remove(tool)
    version = run("chroot", root, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    if fits:
        run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", wheels,
            "--python-version", version.strip(), "--platform", "manylinux_2_28_x86_64",
            "--platform", "manylinux_2_27_x86_64", "numpy>=1.26")
    script = f"TRAIN='{' '.join(TRAIN)}' COMPILE='{' '.join(COMPILE)}'\n{BARE}"
    mounts = " && ".join([f"mkdir -p {root}/wheels {root}/data", f"mount --bind {root} {root}",
                          f"mount --bind {wheels} {root}/wheels", f"mount --bind {data} {root}/data",
                          f"mount -t proc none {root}/proc", f"exec chroot {root} bash -c \"$0\""])
    said = run("unshare", "-m", "bash", "-c", mounts, script, code=0 if fits else 1)
    if not fits:
        assert "No matching distribution found for ckopt" in said, said
    else:
        assert all(part in said for part in wanted), f"{suite}: other bits than {wanted}\n{said}"
    print(f"{suite}, Python {version.strip()}: {'the same bits' if fits else 'refused by pip'}")
    return True


def check_runtime(wheel, folder, step):
    """The small package runs a step, with oneDNN out of PyPI."""
    run(sys.executable, "-m", "venv", folder)
    got = subprocess.run([folder / "bin" / "pip", "install", "-q", wheel], stderr=subprocess.PIPE,
                         text=True, check=False)
    if got.returncode:
        print(f"NOT checked: {wheel.name}, whose oneDNN is not to be had: {got.stderr}")
        return
    run(folder / "bin" / "ckopt-run", step, "--random=x:-1:1", "--random=target:0:10")
    print(f"{wheel.name} runs a step")


def main():
    """Checks all wheels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--roots", action="store_true")
    options = parser.parse_args()
    wheels = sorted((options.build / "wheels").glob("*.whl"))
    if not wheels:
        print("SKIPPED: wheels are NOT tested: scripts/wheel has built none")
        sys.exit(77)
    data = options.source / "test" / "data"
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        os.environ["CKOPT_CACHE_DIR"] = str(work / "kernels")
        wanted = results([options.build / "bin" / "ckopt"], data, work / "tree")
        os.environ["CKOPT_CACHE_DIR"] = str(work / "other-kernels")
        if options.roots:
            if os.getuid() or not shutil.which("debootstrap"):
                print("SKIPPED: bare root file systems are NOT tested: that takes root and debootstrap")
                sys.exit(77)
            near = work / "wheels"
            near.mkdir()
            for wheel in wheels:
                shutil.copy(wheel, near)
            made = [check_root(suite, fits, near, data, work, wanted) for suite, fits in SUITES.items()]
            sys.exit(0 if any(made) else 77)
        for wheel in wheels:
            check_files(wheel, work, options.build / "wheel-venv" / "bin" / "auditwheel")
        tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
        own = [wheel for wheel in wheels if wheel.name.startswith("ckopt-") and
               ("abi3" in wheel.name) == (sys.version_info >= (3, 12)) and
               (tag in wheel.name or "abi3" in wheel.name)]
        python = install(own[0], work / "venv")
        nowhere = {**os.environ, "PATH": str(work / "nowhere")}
        got = results([python, work / "venv" / "bin" / "ckopt"], data, work / "wheel", env=nowhere)
        assert got == wanted, "the wheel has other bits than the build"
        check_beside(python, data)
        for wheel in wheels:
            if wheel.name.startswith("ckopt_runtime-"):
                check_runtime(wheel, work / "runtime", work / "wheel" / "step.so")


if __name__ == "__main__":
    main()
