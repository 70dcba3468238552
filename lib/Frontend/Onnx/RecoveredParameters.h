//===- RecoveredParameters.h - parameters out of their forms ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_RECOVEREDPARAMETERS_H
#define CKOPT_LIB_FRONTEND_ONNX_RECOVEREDPARAMETERS_H

#include "GraphEdits.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

/// An operand that reads an initializer.
struct OperandUse {
  size_t node, operand;
};

/// What an exporter's folding made of a parameter.
enum class Form {
  Same,
  Transposed, ///< of two dimensions
  Reshaped,   ///< to one dimension, or without one of its dimensions of size 1
  Rows,       ///< some of its rows, looked up by constant indices
  Expanded,   ///< its one slice along a dimension, repeated
  Repeated,   ///< its copies along a first dimension that it does not have
};

/// The transposed matrix; `value` has two dimensions.
HostTensor transposed(const HostTensor &value);

/// Gives every parameter an initializer of its own under PyTorch's name, and
/// the operands that read it in another form nodes that make that form.
class RecoveredParameters {
public:
  explicit RecoveredParameters(const Model &model);

  /// The file's initializer of that name, or null.
  const HostTensor *initializer(llvm::StringRef name) const;
  /// The same, or what was taken out of another form; or null.
  const HostTensor *parameter(llvm::StringRef target) const;
  const HostTensor &valueOf(OperandUse use) const;
  const std::string &nameOf(OperandUse use) const;

  /// Notes that the operand holds parameter `target` in `form` (`dim`: the
  /// dimension that a reshaped parameter does not have, none: it is a vector;
  /// or the one of an expanded one that was of size 1, none: as values say).
  /// False, and no change, where its value cannot be such a form, or where it
  /// is not the value that the parameter is known to have.
  bool bind(OperandUse use, llvm::StringRef target, Form form,
            std::optional<size_t> dim = std::nullopt);
  /// Whether of all dimensions only the first can be one that was added with
  /// size 1 and then expanded.
  static bool hasNewFirst(const HostTensor &value);
  /// Notes that the operand reads the parameter of that name as it is.
  void claim(llvm::StringRef target) { bound.insert(target); }
  /// Gives the node operand `use.operand`, which it lacks, with this value.
  bool append(OperandUse use, llvm::StringRef target, HostTensor value);
  /// Gives the operand a constant of its own with the same value.
  void separate(OperandUse use);
  /// Node `node` copies an initializer: its result becomes an initializer.
  void replaceNode(size_t node);
  /// Packed weights of a recurrent node's operand 1, 2 or 3: `targets` holds a
  /// name for each direction (two for biases). `order[i]`: the place that the
  /// i-th gate of ONNX has in PyTorch.
  bool bindPacked(OperandUse use, llvm::ArrayRef<std::string> targets,
                  llvm::ArrayRef<int64_t> order, size_t directions);

  bool isBound(llvm::StringRef target) const { return bound.contains(target); }
  /// Whether each of several rows stands in one place.
  static bool hasDistinctRows(const HostTensor &value);
  /// Whether the order in which places read the rows of a table, or which of
  /// them are one, cannot be seen. It can where rows repeat as a whole, and no
  /// initialization makes two rows alike.
  static bool hasUnclearRows(const HostTensor &value);
  /// Lists what nothing reads any more, and hands the edits over.
  GraphEdits finish();

  int64_t numSplit = 0;  ///< operands that read another parameter's initializer
  int64_t numFormed = 0; ///< parameters that were stored in another form

private:
  bool know(llvm::StringRef target, const HostTensor &value);
  void rewire(OperandUse use, const std::string &to);
  std::string integers(llvm::ArrayRef<int64_t> values);
  std::string addNode(const char *op, std::vector<std::string> inputs,
                      llvm::StringRef stem,
                      std::vector<NodeAttribute> attributes = {});
  std::string freshName(const llvm::Twine &stem);

  const Graph &graph;
  int64_t opset; ///< of nodes that are made
  llvm::StringMap<const HostTensor *> initializers;
  llvm::StringMap<HostTensor> added;
  llvm::StringSet<> bound, taken;
  std::map<std::string, std::string> formed; ///< values by parameter and form
  GraphEdits edits;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_RECOVEREDPARAMETERS_H
