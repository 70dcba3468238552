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

import mmap as _mmap
import os as _os

# OpenBLAS, ours and numpy's, asks for 128 MiB of addresses while it is loaded, and where a
# limit (ulimit -v) does not give them it asks for ever.
try:
    _mmap.mmap(-1, 544 << 20, _mmap.MAP_PRIVATE | _mmap.MAP_ANONYMOUS).close()
except OSError as _error:
    raise ImportError(f"ckopt needs 544 MiB of address space ({_error.strerror}); ulimit -v "
                      "says what the limit is") from _error

# libgomp reads this when it is loaded: threads that wait go to sleep after tens
# of microseconds, not milliseconds, as in the driver. It stays the user's
# choice, and the environment as it was.
_spin = "GOMP_SPINCOUNT" not in _os.environ and "OMP_WAIT_POLICY" not in _os.environ
if _spin:
    _os.environ["GOMP_SPINCOUNT"] = "20000"
try:
    from . import _ckopt
except ImportError as _error:
    from ._packages import explain as _explain
    raise _explain(_error) from _error
finally:
    if _spin:
        del _os.environ["GOMP_SPINCOUNT"]

from ._device import View
from ._fit import FitResult
from ._lora import LoRA
from ._ranks import rank, ranks
from ._remat import FunctionPlan, RematModule, remat
from ._sources import ImageFolder, Tokens
from ._step import CompiledStep, Loss, batches, compile
from .errors import (BudgetError, DeviceError, Error, InputError, InternalError, NonFiniteError,
                     NoPlanFoundError, OutputError, RankError, UnsupportedError, UsageError,
                     Warning)
from .optim import (SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Constant, Cosine, Exponential,
                    Group, Linear, Lion, MultiStep, NAdam, OneCycle, Optimizer, RAdam, RMSprop,
                    Schedule, StepDecay)
from .plan import Curve, GraphPlan, Plan, StepPlan, plan

__version__ = _ckopt.version_line().split()[1]

__all__ = [
    "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "BudgetError", "CompiledStep", "Constant",
    "Cosine", "Curve", "DeviceError", "Error", "Exponential", "FitResult", "FunctionPlan",
    "GraphPlan", "Group", "ImageFolder", "InputError", "InternalError", "Linear", "Lion",
    "LoRA", "Loss", "MultiStep", "NAdam", "NoPlanFoundError", "NonFiniteError", "OneCycle", "Optimizer",
    "OutputError", "Plan", "RAdam", "RMSprop", "RankError", "RematModule", "SGD", "Schedule",
    "StepDecay", "StepPlan", "Tokens", "UnsupportedError", "UsageError", "View", "Warning", "batches",
    "compile", "plan", "rank", "ranks", "remat",
]
