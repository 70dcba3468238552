# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver: ``python -m ckopt train model.onnx --data=train.npz``; and the other programs."""

import os
import signal
import sys

from . import _ckopt


def _run(tool):
    """Runs a tool of the module on the command line and returns its exit code."""
    # Python would hear of Ctrl-C when the tool is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _ckopt.tool([tool, *sys.argv[1:]])


def main():
    """Runs the driver."""
    return _run("ckopt")


def opt():
    """Runs ckopt-opt."""
    return _run("ckopt-opt")


def plan():
    """Runs ckopt-plan."""
    return _run("ckopt-plan")


def run():
    """Becomes ckopt-run, which needs no Python."""
    program = os.path.join(os.path.dirname(__file__), "ckopt-run")
    os.execv(program, ["ckopt-run", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
