#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds the Python package on a build tree and runs its tests.

run.py --build=DIR --source=DIR [--venv=DIR] [pytest arguments]

A virtual environment in DIR/python-venv gets the package by pip, with what it
needs from PyPI; torch, onnx, numpy of the Python that runs this are seen in it.
Where PyPI cannot be reached and packages are missing, it says so and exits with
77, which ctest counts as skipped. CKOPT_NO_PYPI=1 asks for that.
"""

import argparse
import os
import subprocess
import sys
import sysconfig

NEEDED = ["nanobind", "scikit_build_core", "numpy", "pytest"]


def skip(reason):
    """Ends as skipped, loudly."""
    print(f"SKIPPED: the Python package is NOT tested: {reason}", flush=True)
    sys.exit(77)


def prepare(folder):
    """Returns the Python of a virtual environment with all that is needed."""
    python = os.path.join(folder, "bin", "python")
    if not os.path.exists(python):
        if subprocess.run([sys.executable, "-m", "venv", folder], check=False).returncode:
            skip("no virtual environment can be made (apt-get install python3-venv)")
        site = subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True)
        with open(os.path.join(site.strip(), "outer.pth"), "w", encoding="utf-8") as file:
            file.write(sysconfig.get_path("purelib") + "\n")
    program = "import importlib.util as u, sys; print(*[m for m in sys.argv[1:] if not u.find_spec(m)])"
    missing = subprocess.check_output([python, "-c", program, *NEEDED], text=True).split()
    if missing:
        if os.environ.get("CKOPT_NO_PYPI"):
            skip(f"{', '.join(missing)} missing, and CKOPT_NO_PYPI is set")
        names = [name.replace("_", "-") for name in missing]
        if subprocess.run([python, "-m", "pip", "install", "-q", *names], check=False).returncode:
            skip(f"{', '.join(names)} cannot be installed from PyPI")
    return python


def main():
    """Builds, installs, tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--venv")
    options, arguments = parser.parse_known_args()
    if sys.version_info < (3, 11):
        skip(f"Python 3.11 is needed, this is {sys.version.split()[0]}")
    python = prepare(options.venv or os.path.join(options.build, "python-venv"))
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
                    "--force-reinstall", options.source, "-C",
                    f"cmake.define.Ckopt_DIR={options.build}"], check=True)
    tests = os.path.join(options.source, "python", "tests")
    # Away from the sources, so that what is installed is what is tested.
    sys.exit(subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs", tests,
                             *arguments], cwd=options.build, check=False).returncode)


if __name__ == "__main__":
    main()
