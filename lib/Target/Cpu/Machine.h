//===- Machine.h - the processors that code is made for ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TARGET_CPU_MACHINE_H
#define CKOPT_LIB_TARGET_CPU_MACHINE_H

#include "ckopt/Target/TargetInfo.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

#include <memory>

namespace ckopt {

/// Makes the code generator for a CPU of this machine's architecture, or of
/// AArch64. A usage error where LLVM knows no such CPU.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
makeTargetMachine(const CpuOptions &options);

} // namespace ckopt

#endif // CKOPT_LIB_TARGET_CPU_MACHINE_H
