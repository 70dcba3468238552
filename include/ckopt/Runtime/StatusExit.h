//===- StatusExit.h - exit codes of the runtime's statuses ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_STATUSEXIT_H
#define CKOPT_RUNTIME_STATUSEXIT_H

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Runtime/ckrt.h"

namespace ckopt {

/// Returns the exit code of a tool whose call of the runtime returned `status`.
inline ExitCode exitCodeOf(ckrt_status status) {
  switch (status) {
  case CKRT_OK:
    return ExitOk;
  case CKRT_NON_FINITE:
    return ExitNonFinite;
  case CKRT_IO:
    return ExitIoError;
  case CKRT_NO_DEVICE:
    return ExitNoDevice;
  case CKRT_DEVICE_TOO_OLD:
    return ExitDeviceTooOld;
  case CKRT_DEVICE_MEMORY:
    return ExitDeviceMemory;
  case CKRT_DEVICE_CODE:
    return ExitDeviceCode;
  case CKRT_DEVICE_LOST:
    return ExitDeviceLost;
  case CKRT_KERNEL:
    return ExitKernelFailed;
  case CKRT_NO_LIBRARY:
    return ExitNoLibrary;
  case CKRT_LOCK:
    return ExitLock;
  case CKRT_RANK:
    return ExitRank;
  case CKRT_INVALID_ARGUMENT:
  case CKRT_EXECUTION:
  case CKRT_VERIFY:
    return ExitInternal;
  case CKRT_BAD_ARTIFACT:
  case CKRT_WRONG_MACHINE:
  case CKRT_OUT_OF_MEMORY:
  case CKRT_NOT_FOUND:
  case CKRT_MISMATCH:
  case CKRT_UNSUPPORTED:
    return ExitInputError;
  }
  return ExitInputError;
}

} // namespace ckopt

#endif // CKOPT_RUNTIME_STATUSEXIT_H
