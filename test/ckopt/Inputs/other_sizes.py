"""other_sizes.py FOLDER BYTES BYTES: two ranks, each of which gathers messages of its own size;
writes what the runtime says of that to FOLDER/RANK."""
import ctypes
import os
import shutil
import sys

libraries = os.path.join(os.path.dirname(os.path.realpath(shutil.which("ckopt"))), "..", "lib")
engine = ctypes.CDLL(os.path.join(libraries, "libckopt_mpi.so.1"), ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(os.path.join(libraries, "libckopt_runtime.so.1"))
runtime.ckrt_last_error.restype = ctypes.c_char_p
assert runtime.ckrt_world_open(ctypes.c_double(0)) == 0
rank = runtime.ckrt_world_rank()
size = int(sys.argv[2 + rank])
own, everything = (ctypes.create_string_buffer(n * size) for n in (1, 2))
status = runtime.ckrt_world_gather(own, ctypes.c_int64(size), everything)
with open(os.path.join(sys.argv[1], str(rank)), "w", encoding="utf-8") as file:
    file.write(f"status {status}: {runtime.ckrt_last_error().decode()}\n")
runtime.ckrt_world_close()
