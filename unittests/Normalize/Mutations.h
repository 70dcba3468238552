//===- Mutations.h - programs that differ in one place ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whoever recognizes a formula must look at all of it. Mutations are what
// nearly is the formula: a constant, an operand, an op, an attribute, a shape,
// a reader or the order of two ops is another.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_NORMALIZE_MUTATIONS_H
#define CKOPT_UNITTESTS_NORMALIZE_MUTATIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>

namespace ckopt::test {

/// Makes change number `which` of those that the function has, in one fixed
/// order, and infers the types behind it. Returns what was changed; an empty
/// text if there are not as many. The function may be invalid afterwards.
std::string mutate(mlir::func::FuncOp function, int64_t which);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_NORMALIZE_MUTATIONS_H
