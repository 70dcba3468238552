# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# The lit suites: each folder of this one mirrors a part of lib/ or a tool.
#
# Substitutions: %data (test/data), %shared (the optional folder of large test
# data beside the source), %python. Tools are on the PATH.
# Feature `shared-data`: that folder is there. `no-cudnn`: the loader finds no
# cuDNN. `cpu-bf16`: the CPU multiplies bf16. `long-tests`: scripts/test --long.
# `mlir-22` or `mlir-19`: the MLIR that it is built with.
# `landing`: what ctest's lit.landing runs, whose label .ci/run asks for. `compiler`:
# CKOPT_COMPONENTS=all; else ckopt-remat-opt takes the place of ckopt-opt.
# CKOPT_VERIFY_ROUNDTRIP=1 in the environment makes every ckopt-opt of every
# test also check that its IR survives printing and parsing.

import ctypes
import os
import subprocess
import sys

import lit.formats
import lit.util

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(__file__))
import cpu
import fresh

config.name = "ckopt"
config.test_format = fresh.FreshShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["data", "layers", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.ckopt_binary_dir, "test")

config.environment["PATH"] = os.path.pathsep.join(
    [
        config.ckopt_tools_dir,
        config.llvm_tools_dir,
        config.lit_tools_dir,
        config.environment["PATH"],
    ]
)
for name in ["HOME", "TMPDIR", "OMP_NUM_THREADS", "LD_LIBRARY_PATH"]:
    if name in os.environ:
        config.environment[name] = os.environ[name]
if "address" in config.sanitizers:
    # LLVM's headers poison arena memory that the uninstrumented MLIR uses again.
    config.environment["ASAN_OPTIONS"] = "allow_user_poisoning=0:detect_leaks=0"
if "undefined" in config.sanitizers:
    config.environment["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"

config.available_features.add("mlir-" + config.llvm_major)
config.substitutions.append(("%llvm_version", config.llvm_major + " " + config.llvm_minor))
config.substitutions.append(("%cc", config.cc))
if config.compiler.upper() in ("1", "TRUE", "YES", "ON"):
    config.available_features.add("compiler")
else:
    config.substitutions.append((r"(?<![\w./-])ckopt-opt(?![\w./-])", "ckopt-remat-opt"))
shared = os.path.join(config.ckopt_source_dir, os.pardir, "shared")
if os.path.isdir(shared):
    config.available_features.add("shared-data")
if config.sanitizers:
    config.available_features.add("sanitizers")
if config.images.upper() in ("1", "TRUE", "YES", "ON"):
    config.available_features.add("images")
if os.path.exists(os.path.join(config.ckopt_source_dir, ".git")):
    config.available_features.add("git-checkout")
onnx_testdata = "/usr/share/libonnx-testdata/data"
if os.path.isdir(onnx_testdata):
    config.available_features.add("onnx-testdata")
if not subprocess.run([config.python, "-c", "import numpy, onnx"], stderr=subprocess.DEVNULL).returncode:
    config.available_features.add("python-onnx")
config.substitutions.append(("%onnx_testdata", onnx_testdata))

if os.environ.get("CKOPT_LIT_LANDING"):
    config.available_features.add("landing")
    config.limit_to_features = {"landing"}
if os.environ.get("CKOPT_LONG_TESTS"):
    config.available_features.add("long-tests")
else:
    lit_config.note("long tests are left to scripts/test --long: they do NOT run")
if cpu.multiplies_bf16():
    config.available_features.add("cpu-bf16")
else:
    lit_config.note("this CPU has no products of bf16: their tests do NOT run")

# Stock MLIR tools beside the plugin: what the tests of test/Plugin need.
plugin = os.path.join(config.ckopt_binary_dir, "lib", "CkoptRematPlugin.so")
llvm_lib = os.path.join(os.path.dirname(config.llvm_tools_dir), "lib")
runner = lit.util.which("mlir-runner", config.environment["PATH"])
if not runner:  # its name in MLIR 19
    runner = lit.util.which("mlir-cpu-runner", config.environment["PATH"])
    config.substitutions.append((r"(?<![\w./-])mlir-runner(?![\w./-])", "mlir-cpu-runner"))
stock = [lit.util.which("mlir-opt", config.environment["PATH"]), runner]
if all(stock) and os.path.exists(plugin):
    config.available_features.add("mlir-tools")
else:
    lit_config.warning(
        "the plugin is NOT tested: needs mlir-opt and mlir-runner (mlir-22-tools) and " + plugin
    )
config.substitutions.append(("%plugin", plugin))
config.substitutions.append(("%load_remat", "--load-pass-plugin=" + plugin))
config.substitutions.append(
    (
        "%to_llvm",
        "one-shot-bufferize{bufferize-function-boundaries},buffer-deallocation-pipeline,"
        "convert-linalg-to-loops,convert-scf-to-cf,expand-strided-metadata,lower-affine,"
        "convert-math-to-libm,convert-to-llvm,reconcile-unrealized-casts",
    )
)
config.substitutions.append(
    (
        "%runner_libs",
        ",".join(
            os.path.join(llvm_lib, name)
            for name in ["libmlir_c_runner_utils.so", "libmlir_runner_utils.so"]
        ),
    )
)

# One cache of compiled kernels for all: its files are named by all that decides
# their bytes (KernelCache.h). ctest, which says where it is, empties it first.
config.environment["CKOPT_CACHE_DIR"] = os.environ.get(
    "CKOPT_CACHE_DIR", os.path.join(config.ckopt_binary_dir, "Testing", "kernels")
)

# Several processes, on this machine: as root in CI, on fewer cores than ranks.
engine = os.path.join(config.ckopt_binary_dir, "lib", "libckopt_mpi.so.1")
mpirun = lit.util.which("mpirun", config.environment["PATH"])
if mpirun and os.path.exists(engine) and not config.sanitizers:
    config.available_features.add("mpi")
else:
    lit_config.warning(
        "training by several processes is NOT tested: needs mpirun (openmpi-bin) and " + engine
    )
# Tests share the cores: threads that wait sleep soon.
config.environment["GOMP_SPINCOUNT"] = "2000"
config.environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
config.environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
config.substitutions.append(
    ("%mpirun", "mpirun --oversubscribe --bind-to none --mca btl_vader_single_copy_mechanism none")
)

# A CUDA driver for machines without a GPU: test/lib/CudaStandin/Machine.h says what
# else its environment sets.
standin = os.path.join(config.ckopt_binary_dir, "cuda-standin", "libcuda.so.1")
config.substitutions.append(
    (
        "%on_standin",
        "env CKOPT_CUDA_DRIVER={0} CKOPT_CUBLASLT={0} CKOPT_CUDNN={0} CKOPT_NCCL={0}".format(
            standin
        ),
    )
)
config.substitutions.append(("%standin", standin))
config.substitutions.append(
    (
        "%check_standin_log",
        os.path.join(config.ckopt_binary_dir, "cuda-standin", "check-standin-log"),
    )
)
# Where the loader has none, what looks further can be tested.
try:
    ctypes.CDLL("libcudnn.so.9")
except OSError:
    config.available_features.add("no-cudnn")
config.substitutions.append(("%data", os.path.join(config.test_source_root, "data")))
config.substitutions.append(("%shared", shared))
config.substitutions.append(("%python", config.python))
if os.environ.get("CKOPT_VERIFY_ROUNDTRIP", "0") not in ("", "0"):
    config.substitutions.append(
        (r"(?<![\w./-])ckopt-opt(?![\w./-])", "ckopt-opt --verify-roundtrip")
    )
