# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The processes that train together: ``compile(..., parallel="dp:2")`` under mpirun."""

from __future__ import annotations

import atexit

from . import _ckopt

# Before mpi4py ends MPI, where it was there first: the others hear that this
# process makes no more calls, whether it ends well or by an exception.
atexit.register(_ckopt.leave_ranks)


def rank() -> int:
    """This process's number among those that train together, from 0; alone: 0.

    Before ``compile`` it is what the launcher says: mpirun, or RANK in the environment.
    """
    return _ckopt.rank()


def ranks() -> int:
    """How many processes train together; alone: 1.

    Before ``compile`` it is what the launcher says: mpirun, or WORLD_SIZE in the environment.
    """
    return _ckopt.ranks()
