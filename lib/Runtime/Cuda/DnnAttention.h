//===- DnnAttention.h - attention as a graph of cuDNN -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_RUNTIME_CUDA_DNNATTENTION_H
#define CKOPT_LIB_RUNTIME_CUDA_DNNATTENTION_H

#include "DnnGraph.h"

namespace ckopt::runtime::cuda {

/// Adds a part of attention or its gradient, as `desc` describes it, to an
/// empty graph. Arguments have the places that PrimitiveKind says.
void addAttention(DnnGraph &graph, const PrimitiveDesc &desc, int type);

} // namespace ckopt::runtime::cuda

#endif // CKOPT_LIB_RUNTIME_CUDA_DNNATTENTION_H
