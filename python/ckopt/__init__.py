# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ckopt: training steps that never use more memory than you allow.

    import ckopt
    step = ckopt.compile("model.onnx", loss="cross_entropy",
                         optimizer=ckopt.AdamW(lr=1e-3), budget="2GiB", batch=64)
    print(step.plan)
    for x, y in batches:
        loss = step(x=x, y=y)
    step.save("trained.onnx")

docs/python.md has the rest.
"""

import os as _os

# libgomp reads this when it is loaded: threads that wait go to sleep after tens
# of microseconds, not milliseconds, as in the driver. It stays the user's
# choice, and the environment as it was.
_spin = "GOMP_SPINCOUNT" not in _os.environ and "OMP_WAIT_POLICY" not in _os.environ
if _spin:
    _os.environ["GOMP_SPINCOUNT"] = "20000"
try:
    from . import _ckopt
except ImportError as _error:
    _packages = {
        "libMLIR": "libmlir-22", "libLLVM": "libllvm22", "libdnnl": "libdnnl2", "libpng": "libpng16-16",
        "libjpeg": "libjpeg62-turbo",
        "libopenblas": "libopenblas0-openmp", "libgomp": "libgomp1", "libClp": "coinor-libclp1",
        "libCoinUtils": "coinor-libcoinutils3v5", "libonnx_proto": "libonnx-dev",
        "libprotobuf": "libprotobuf32", "libz": "zlib1g",
    }
    _missing = [package for library, package in _packages.items() if library in str(_error)]
    if not _missing:
        raise
    raise ImportError(f"{_error}: ckopt needs the Debian package {_missing[0]} "
                      f"(apt-get install {_missing[0]})") from _error
finally:
    if _spin:
        del _os.environ["GOMP_SPINCOUNT"]

from ._step import CompiledStep, batches, compile, train
from .errors import (BudgetError, DeviceError, Error, InputError, InternalError, NonFiniteError,
                     NoPlanFoundError, OutputError, UnsupportedError, UsageError, Warning)
from .optim import (SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Constant, Cosine, Exponential,
                    Group, Linear, Lion, MultiStep, NAdam, OneCycle, Optimizer, RAdam, RMSprop,
                    Schedule, StepDecay)
from .plan import Curve, GraphPlan, Plan, StepPlan, plan

__version__ = _ckopt.version_line().split()[1]

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "BudgetError", "CompiledStep",
    "Constant", "Cosine", "Curve", "DeviceError", "Error", "Exponential", "GraphPlan", "Group",
    "InputError", "InternalError", "Linear", "Lion", "MultiStep", "NAdam", "NoPlanFoundError",
    "NonFiniteError", "OneCycle", "Optimizer", "OutputError", "Plan", "RAdam", "RMSprop",
    "Schedule", "StepDecay", "StepPlan", "UnsupportedError", "UsageError", "Warning", "batches",
    "compile", "plan", "train",
]
