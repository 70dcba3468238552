# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Exceptions, one class for each class of the driver's exit codes.

Each carries the text that the driver would print, with settings as keywords, and
``exit_code``, the code that it would exit with.
"""


class Error(Exception):
    """Base of all exceptions that ckopt raises for its own reasons."""

    exit_code = 1


class InputError(Error, ValueError):
    """A bad file, array, shape, type or label (exit code 1)."""


class BudgetError(Error):
    """No plan fits the budget (exit code 2).

    The text names the smallest budget that was found and the bytes that no
    plan can do without.
    """

    exit_code = 2


class NoPlanFoundError(BudgetError):
    """No plan was found in the time limit; none is ruled out (exit code 3)."""

    exit_code = 3


class UnsupportedError(Error, NotImplementedError):
    """An operator, opset or type that ckopt does not know (exit code 4)."""

    exit_code = 4


class NonFiniteError(Error, ArithmeticError):
    """A loss, weight or gradient that is not finite (exit code 5)."""

    exit_code = 5


class DeviceError(Error, RuntimeError):
    """A device, its driver, its memory or its libraries (exit codes 10 to 17)."""

    exit_code = 10


class RankError(Error, RuntimeError):
    """Another rank does not answer, has left, or differs (exit code 20)."""

    exit_code = 20


class UsageError(Error, ValueError):
    """Arguments that do not exist or do not fit together (exit code 64)."""

    exit_code = 64


class InternalError(Error, RuntimeError):
    """A defect of ckopt (exit code 70): please report it."""

    exit_code = 70


class OutputError(Error, OSError):
    """A file cannot be written (exit code 74)."""

    exit_code = 74


class Warning(UserWarning):  # noqa: A001 (read as ckopt.Warning)
    """What ckopt warns of: a diverging loss, batches that were skipped."""


_CLASSES = {
    cls.exit_code: cls
    for cls in (InputError, BudgetError, NoPlanFoundError, UnsupportedError, NonFiniteError,
                RankError, UsageError, InternalError, OutputError)
}


def from_exit_code(code, text):
    """Returns the exception of an exit code (an int) with its text."""
    cls = DeviceError if 10 <= code <= 17 else _CLASSES.get(code, Error)
    error = cls(text.rstrip("\n"))
    error.exit_code = code
    return error
