//===- Inside.h - what a module for any machine brings ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_PYTHON_INSIDE_H
#define CKOPT_PYTHON_INSIDE_H

namespace ckopt::python {

/// Lets steps be linked by the lld in this module: the machine may have none.
void linkInside();

} // namespace ckopt::python

#endif // CKOPT_PYTHON_INSIDE_H
