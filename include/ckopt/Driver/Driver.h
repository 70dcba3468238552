//===- Driver.h - the ckopt tool --------------------------------*- C++ -*-===//
#ifndef CKOPT_DRIVER_DRIVER_H
#define CKOPT_DRIVER_DRIVER_H

namespace ckopt {

/// The ckopt tool: parses, runs the command, prints errors. Returns the exit
/// code (Base/ExitCodes.h).
int driverMain(int argc, char **argv);

} // namespace ckopt

#endif // CKOPT_DRIVER_DRIVER_H
