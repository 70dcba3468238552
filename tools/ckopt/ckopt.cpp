//===- ckopt.cpp - compiles, trains and runs ONNX models ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Restarts the tool with a better setting of libgomp. libgomp reads from the
// environment, before main, when its threads stop spinning and go to sleep. Its
// default, milliseconds, is fine on an idle machine; on a shared one, a thread
// that spins while its partner waits for a core makes small steps tens of times
// slower. So the tool starts itself once more with a limit of some tens of
// microseconds, unless the user chose one.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Tool/Main.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/PrettyStackTrace.h"

#include <cstdlib>
#include <unistd.h>

int main(int argc, char **argv) {
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY") &&
      setenv("GOMP_SPINCOUNT", "20000", 1) == 0)
    // Only returns on failure: then continue without.
    execv("/proc/self/exe", argv);
  llvm::InitLLVM init(argc, argv);
  llvm::setBugReportMsg("This is a defect of ckopt; please report it with the "
                        "command line and the model.\n");
  return ckopt::driverMain(argc, argv);
}
