//===- WriteBack.h - what changes in a file besides its weights -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_WRITEBACK_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_WRITEBACK_H

#include "GraphEdits.h"
#include "ckopt/Frontend/Onnx/Export.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/FileSystem.h"
#include <optional>

namespace onnx {
class GraphProto;
}

namespace ckopt::onnx_frontend {

class WriteBack {
public:
  /// Keeps edits of the file `path`, whose graph they number the nodes of.
  /// Values of large initializers that are added are kept on request alone:
  /// they are weights, mostly.
  WriteBack(llvm::StringRef path, const GraphEdits &edits, const Graph &graph,
            bool keepsValues);

  /// Tells whether the file is still the one that the edits are of.
  bool isOf(llvm::StringRef path) const;
  /// Tells whether all initializers that are added without a value get one.
  bool hasAllValues(const llvm::StringMap<size_t> &weights) const;
  /// Applies the edits, so that the file and the model in memory are the same
  /// graph.
  llvm::Error apply(onnx::GraphProto &graph) const;

private:
  struct Added {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::optional<HostTensor> value; ///< nothing: it is a weight
  };
  /// A node of the graph, which is found in the file by its first result: the
  /// file may have calls of functions where the graph has the functions' nodes.
  struct Known {
    std::string result, op, text;
  };

  GraphEdits edits; ///< without the values of `added`
  std::vector<Added> added;
  std::map<size_t, Known> nodes; ///< that edits refer to
  llvm::sys::fs::UniqueID file;
  uint64_t bytes = 0;
  llvm::sys::TimePoint<> written;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_WRITEBACK_H
