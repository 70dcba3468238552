"""other_sizes.py BYTES BYTES: two ranks, each of which gathers messages of its own size; prints what
the runtime says of that."""
import ctypes
import os
import shutil
import sys

libraries = os.path.join(os.path.dirname(os.path.realpath(shutil.which("ckopt"))), "..", "lib")
engine = ctypes.CDLL(os.path.join(libraries, "libckopt_mpi.so.1"), ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(os.path.join(libraries, "libckopt_runtime.so.1"))
runtime.ckrt_last_error.restype = ctypes.c_char_p
assert runtime.ckrt_world_open(ctypes.c_double(0)) == 0
size = int(sys.argv[1 + runtime.ckrt_world_rank()])
own, everything = (ctypes.create_string_buffer(n * size) for n in (1, 2))
status = runtime.ckrt_world_gather(own, ctypes.c_int64(size), everything)
print(f"status {status}: {runtime.ckrt_last_error().decode()}", flush=True)
runtime.ckrt_world_close()
