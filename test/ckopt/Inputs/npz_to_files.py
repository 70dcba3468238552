"""npz_to_files.py DATA.npz FOLDER: a golden network's x.npy, y.npy, and references in expect/."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "gpu"))
import arrays

arrays.unpack_golden(sys.argv[1], pathlib.Path(sys.argv[2]))
