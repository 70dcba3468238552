//===- Export.h - trained weights back into an ONNX file --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_EXPORT_H
#define CKOPT_FRONTEND_ONNX_EXPORT_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <string>

namespace ckopt::onnx_frontend {

/// Writes a copy of the ONNX file `originalPath` to `outPath`, atomically, in
/// which each named weight has the given value: initializers are replaced
/// (external ones become internal; a model above 2 GiB keeps its numbers in
/// `outPath`.data instead), graph inputs become initializers. Values
/// are converted to the file's element type. Everything else is kept, unknown
/// fields too. `metadata` is added to the model's metadata_props. Fails if a
/// name is not one of the file's weights.
llvm::Error
exportModel(llvm::StringRef originalPath, llvm::StringRef outPath,
            const std::map<std::string, HostTensor> &weights,
            const std::map<std::string, std::string> &metadata = {});

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_EXPORT_H
