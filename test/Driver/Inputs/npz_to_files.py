"""npz_to_files.py DATA.npz FOLDER [--scale=X]: a golden network's x.npy, y.npy
and expect.safetensors, references times X."""

import array
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools" / "gpu-check"))
import arrays

npz, folder = sys.argv[1], pathlib.Path(sys.argv[2])
arrays.unpack_golden(npz, folder)
if len(sys.argv) > 3:
    scale = float(sys.argv[3].split("=")[1])
    scaled = []
    for name, data in arrays.npy_members(npz):
        if name == "loss" or name.startswith("grad/"):
            dtype, shape, raw = arrays.parse_npy(data)
            values = array.array("d" if dtype == "F64" else "f", raw)
            scaled.append((name, dtype, shape, array.array(values.typecode, [v * scale for v in values]).tobytes()))
    (folder / "expect.safetensors").write_bytes(arrays.safetensors(scaled))
