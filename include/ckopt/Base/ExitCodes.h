//===- ExitCodes.h - one table of exit codes for all tools ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Scripts and tests rely on these numbers; README.md lists them for users.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_BASE_EXITCODES_H
#define CKOPT_BASE_EXITCODES_H

namespace ckopt {

enum ExitCode : int {
  ExitOk = 0,
  ExitInputError = 1,    ///< bad file, shape, type or data
  ExitInfeasible = 2,    ///< no plan fits the budget
  ExitNoPlanFound = 3,   ///< none found within the time limit
  ExitUnsupported = 4,   ///< operator or opset that ckopt does not know
  ExitNonFinite = 5,     ///< a loss or value that is not finite
  ExitNoDevice = 10,     ///< no CUDA driver, or no such device
  ExitDeviceTooOld = 11, ///< the device or its driver
  ExitDeviceMemory = 12, ///< the arena does not fit in the device's memory
  ExitDeviceCode = 13,   ///< the driver refuses the compiled code
  ExitDeviceLost = 14,   ///< the device does not answer any more
  ExitKernelFailed = 15, ///< a kernel failed on the device
  ExitNoLibrary = 16,    ///< cuBLASLt or cuDNN is missing, or refuses
  ExitLock = 17,         ///< the lock file's algorithms are not available here
  ExitRank = 20,         ///< another rank does not answer, or differs
  ExitUsage = 64,        ///< wrong command line
  ExitInternal = 70,     ///< a defect of ckopt itself
  ExitIoError = 74,      ///< cannot write (disk full, no permission)
};

} // namespace ckopt

#endif // CKOPT_BASE_EXITCODES_H
