# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""damage.py FILE...: cuts a byte off the first file, empties the next, changes the next, and so on."""
import os
import sys

for number, path in enumerate(sorted(sys.argv[1:])):
    if number % 3 == 0:
        os.truncate(path, os.path.getsize(path) - 1)
    elif number % 3 == 1:
        os.truncate(path, 0)
    else:
        with open(path, "r+b") as file:
            data = bytearray(file.read())
            data[100] ^= 1
            file.seek(0)
            file.write(data)
