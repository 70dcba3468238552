#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a process sees that opens libckopt.so.

check_library.py LIBRARY HEADER [CC...]

  - its symbols are the functions of the header and those beside it, each with a
    version, and no other: neither ckopt's own nor LLVM's, which a process may have twice;
  - it is opened, called and closed by a process that was linked without it;
  - with compilers: the header is C11 and C++ without warnings.
"""

import ctypes
import os
import re
import subprocess
import sys
import tempfile


def declared(header):
    """The functions of the header and of those beside it (mlir.h)."""
    found = set()
    folder = os.path.dirname(header)
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        found.update(re.findall(r"CKOPT_API\b[^;(]*?\b(ckopt_\w+)\s*\(", text))
    return found


def exported(library):
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    symbols = {}
    for line in lines:
        name, _, version = line.split()[-1].partition("@@")
        if line.split()[-2] != "A":  # the versions themselves
            symbols[name] = version
    return symbols


def check_symbols(library, header):
    functions, symbols = declared(header), exported(library)
    assert len(functions) > 40, functions
    assert functions == set(symbols), functions ^ set(symbols)
    unversioned = [name for name, version in symbols.items()
                   if not re.fullmatch(r"CKOPT_\d+(_\d+)*", version)]
    assert not unversioned, unversioned
    dynamic = subprocess.run(["readelf", "-d", library], check=True, capture_output=True,
                             text=True).stdout
    assert re.search(r"SONAME.*\[libckopt\.so\.1\]", dynamic), dynamic
    for shared in ("libMLIR", "libLLVM", "libckopt_runtime"):
        assert re.search(rf"NEEDED.*\[{shared}\.so", dynamic), dynamic


def check_opening(library):
    opened = ctypes.CDLL(library, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    opened.ckopt_version.restype = opened.ckopt_last_error.restype = ctypes.c_char_p
    assert re.fullmatch(rb"\d+\.\d+\.\d+", opened.ckopt_version())
    options = ctypes.c_void_p()
    assert opened.ckopt_options_create(ctypes.byref(options)) == 0
    assert opened.ckopt_options_set(options, b"los", b"mse") == 64
    assert b"los" in opened.ckopt_last_error()
    opened.ckopt_options_destroy(options)
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]
    assert close(opened._handle) == 0


def check_header(header, compilers):
    include = os.path.dirname(os.path.dirname(os.path.abspath(header)))
    for compiler in compilers:
        for language, standard in (("c", "c11"), ("c++", "c++11")):
            with tempfile.TemporaryDirectory() as folder:
                source = os.path.join(folder, "use.c")
                with open(source, "w", encoding="utf-8") as file:
                    file.write("#include <ckopt-c/ckopt.h>\n"
                               "ckopt_memory memory;\n")
                subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                                "-Wpedantic", "-Werror", f"-I{include}", "-fsyntax-only", source],
                               check=True)


if __name__ == "__main__":
    check_symbols(sys.argv[1], sys.argv[2])
    check_header(sys.argv[2], sys.argv[3:])
    check_opening(sys.argv[1])
