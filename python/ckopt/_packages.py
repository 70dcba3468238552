# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Says which of Debian's packages the libraries of this one come from."""

from __future__ import annotations

import ctypes
import os

# Shared libraries of the module and of the runtime, and Debian 12's packages.
PACKAGES = {
    "libMLIR.so.22.1": "libmlir-22", "libLLVM.so.22.1": "libllvm22", "libdnnl.so.2": "libdnnl2",
    "libopenblas.so.0": "libopenblas0-openmp", "libgomp.so.1": "libgomp1",
    "libClp.so.1": "coinor-libclp1", "libCoinUtils.so.3": "coinor-libcoinutils3v5",
    "libonnx_proto.so.1": "libonnx1", "libprotobuf.so.32": "libprotobuf32", "libz.so.1": "zlib1g",
    "libpng16.so.16": "libpng16-16", "libjpeg.so.62": "libjpeg62-turbo",
}
_FOLDERS = ("", "/usr/lib/llvm-22/lib/", "/usr/lib/x86_64-linux-gnu/openblas-openmp/")


def _is_there(library):
    for folder in _FOLDERS:
        try:
            ctypes.CDLL(folder + library)
            return True
        except OSError:
            pass
    return False


def explain(error: ImportError) -> ImportError:
    """The same error with the packages to install, where libraries are missing."""
    text = str(error)
    named = [package for library, package in PACKAGES.items()
             if library.split(".so")[0] + ".so" in text]
    if not named:
        if os.path.dirname(__file__) not in text and "_ckopt" in text:
            return ImportError(f"{error}: ckopt's compiled module is not there; the package is "
                               "built by `pip install`, not used from its sources")
        return error
    missing = dict.fromkeys(named + [package for library, package in PACKAGES.items()
                                     if package not in named and not _is_there(library)])
    return ImportError(f"{error}: ckopt needs packages of Debian 12 that are not installed: "
                       f"apt-get install {' '.join(missing)}")
