# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""near.py MADE EXPECTED: how far the arrays that `ckopt-run --outputs` wrote are from the
references of a folder."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "gpu"))
import arrays

largest, together = arrays.errors(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
print("largest %.3g, gradients together %.3g" % (largest, together))
sys.exit(largest > 1e-5)
