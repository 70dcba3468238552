//===- Export.h - writes trained weights into an ONNX file ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_EXPORT_H
#define CKOPT_FRONTEND_ONNX_EXPORT_H

#include "ckopt/Support/TensorParts.h"
#include <climits>
#include <map>
#include <string>

namespace ckopt::onnx_frontend {

/// Changes to a file other than its weights, as importing found them. Finding
/// them again takes as much memory as importing.
class WriteBack;

struct ExportOptions {
  /// Added to the model's metadata_props.
  std::map<std::string, std::string> metadata;
  /// Null, of another file, or of one that was written since: the changes are
  /// found again.
  std::shared_ptr<const WriteBack> writeBack;
  /// A file with more bytes keeps its weights in `outPath`.data.
  uint64_t mostBytes = INT_MAX;
};

/// Writes a copy of the ONNX file `originalPath` to `outPath`, atomically, with
/// the given values of weights. Initializers are replaced (external ones become
/// internal; a model above 2 GiB keeps its weights in `outPath`.data instead),
/// and graph inputs become initializers. Values are converted to the file's
/// element type. Everything else is kept, unknown fields too. Fails if a name
/// is not one of the file's weights. Weights are read in blocks while the file
/// is written: with a `writeBack`, it needs memory for the graph without its
/// weights, and for a block.
llvm::Error exportModel(llvm::StringRef originalPath, llvm::StringRef outPath,
                        TensorParts &weights,
                        const ExportOptions &options = {});
/// The same for weights in memory.
llvm::Error exportModel(llvm::StringRef originalPath, llvm::StringRef outPath,
                        const std::map<std::string, HostTensor> &weights,
                        const ExportOptions &options = {});

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_EXPORT_H
