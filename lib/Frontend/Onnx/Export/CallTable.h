//===- CallTable.h - calls of PyTorch that ckopt can compare ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_CALLTABLE_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_CALLTABLE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace ckopt::onnx_frontend {

/// An argument of a call, and how it is found in the nodes of the call.
struct CallArgument {
  enum Kind {
    Read,      ///< the form in ONNX is made from it
    Idle,      ///< it has no effect on values
    Only,      ///< the form in ONNX is right for some values, wrong for others
    Uncertain, ///< it is right for some values, and not known for others
    Attribute, ///< it is an attribute of a node
  };
  Kind kind = Read;
  llvm::StringRef name;
  /// The values for which the form is right; for an attribute, pairs "sum=add"
  /// of the argument's and the attribute's words, if these differ.
  llvm::SmallVector<llvm::StringRef, 0> values;
  llvm::StringRef attribute;
};

using CallArguments = llvm::SmallVector<CallArgument, 0>;

/// Returns the arguments of the call ("aten.softmax.int") in their order; null
/// if nothing is known of such calls.
const CallArguments *findCall(llvm::StringRef target);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_CALLTABLE_H
