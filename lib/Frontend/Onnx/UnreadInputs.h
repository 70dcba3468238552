//===- UnreadInputs.h - inputs without effect -------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_UNREADINPUTS_H
#define CKOPT_LIB_FRONTEND_ONNX_UNREADINPUTS_H

#include "Reader/OnnxModel.h"

namespace ckopt::onnx_frontend {

/// Returns the names among `inputs` that no node on the way to an output of the
/// graph reads, be it for its shape alone. O(nodes + operands).
std::vector<std::string>
findUnread(const Graph &graph, const std::vector<const ValueInfo *> &inputs);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_UNREADINPUTS_H
