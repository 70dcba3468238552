# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""damage_each.py FOLDER COPY COMMAND...: runs the command once for each image of a folder, with
a copy of the folder in which the pixels of that image cannot be read. Says how many runs ended
well: those that had no use for the image. COMMAND writes COPY.out, which must be the same then."""
import pathlib
import shutil
import subprocess
import sys

folder, copy = map(pathlib.Path, sys.argv[1:3])
out = pathlib.Path(f"{copy}.out.safetensors")
images, well, weights = sorted(folder.rglob("*.png")), 0, set()
for image in images:
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    damaged = copy / image.relative_to(folder)
    data = bytearray(damaged.read_bytes())
    data[41:-12] = bytes(len(data) - 53)  # behind the heads of the file and of its pixels
    damaged.write_bytes(data)
    done = subprocess.run(sys.argv[3:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode == 0:
        well += 1
        weights.add(out.read_bytes())
    elif damaged.name not in done.stdout:
        sys.exit(done.stdout)
print(f"{well} of {len(images)} are not read; {len(weights)} result")
