//===- PtxText.h - reading PTX as text --------------------------*- C++ -*-===//
#ifndef CKOPT_LIB_CONVERSION_BLOCKTOPTX_PTXTEXT_H
#define CKOPT_LIB_CONVERSION_BLOCKTOPTX_PTXTEXT_H

#include "ckopt/Conversion/BlockToPTX/BlockToPTX.h"

namespace ckopt::blockform {

/// Counts the kernel's accesses of global memory by width.
void countAccesses(llvm::StringRef text, PtxKernel &kernel);

} // namespace ckopt::blockform

#endif // CKOPT_LIB_CONVERSION_BLOCKTOPTX_PTXTEXT_H
