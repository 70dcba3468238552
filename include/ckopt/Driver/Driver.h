//===- Driver.h - the ckopt tool --------------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DRIVER_DRIVER_H
#define CKOPT_DRIVER_DRIVER_H

namespace ckopt {

/// The ckopt tool: parses, runs the command, prints errors. Returns the exit
/// code (Base/ExitCodes.h).
int driverMain(int argc, char **argv);

} // namespace ckopt

#endif // CKOPT_DRIVER_DRIVER_H
