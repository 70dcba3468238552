# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The driver: ``python -m ckopt train model.onnx --data=train.npz``."""

import signal
import sys

from . import _ckopt


def main():
    """Runs the driver on the command line and returns its exit code."""
    # Python would hear of Ctrl-C when the driver is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _ckopt.driver(["ckopt", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
