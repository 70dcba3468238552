//===- DynamicCodes.h - the code book of 8-bit states -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dynamic code book of bitsandbytes and torchao (create_dynamic_map) is
// seven decades of evenly spaced numbers, 0 and 1. Kernels find codes and
// numbers by arithmetic of lanes in place of a lookup.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_DYNAMICCODES_H
#define CKOPT_LIB_CODEGEN_EMIT_DYNAMICCODES_H

#include "ValueBuilder.h"

namespace ckopt::codegen {

/// Returns the code, i8, of the number of the book that is nearest to x, f32,
/// in [-1, 1]; without signs in [0, 1]. What is no number has the code of 1.
Value emitEncodeDynamic(ValueBuilder &v, Value x, bool hasSign);
/// Returns the number, f32, that a code, i8, stands for.
Value emitDecodeDynamic(ValueBuilder &v, Value code, bool hasSign);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_DYNAMICCODES_H
