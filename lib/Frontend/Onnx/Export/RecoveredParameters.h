//===- RecoveredParameters.h - parameters out of their forms ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_EXPORT_RECOVEREDPARAMETERS_H
#define CKOPT_LIB_FRONTEND_ONNX_EXPORT_RECOVEREDPARAMETERS_H

#include "Reader/GraphEdits.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

/// An operand that reads an initializer.
struct OperandUse {
  size_t node, operand;
};

/// The form in which folding stored a parameter.
enum class Form {
  Same,
  Transposed, ///< a transposed matrix
  Reshaped,   ///< to one dimension, or without one of its dimensions of size 1
  Rows,       ///< some of its rows, looked up by constant indices
  Expanded,   ///< its one slice along a dimension, repeated
  Repeated,   ///< its copies along a first dimension that it does not have
};

/// Transposes `value`, which has two dimensions.
HostTensor transposed(const HostTensor &value);

/// Gives every parameter an initializer of its own under PyTorch's name, and
/// adds nodes that compute the forms in which operands read it.
class RecoveredParameters {
public:
  explicit RecoveredParameters(const Model &model);

  /// Returns the file's initializer of that name, or null.
  const HostTensor *initializer(llvm::StringRef name) const;
  /// Returns the initializer, or the value extracted from another form, or
  /// null.
  const HostTensor *parameter(llvm::StringRef target) const;
  const HostTensor &valueOf(OperandUse use) const;
  const std::string &nameOf(OperandUse use) const;

  /// Records that the operand holds parameter `target` in `form`. `dim` is the
  /// dimension that a reshaped parameter lacks (none: it is a vector), or the
  /// dimension of size 1 that was expanded (none: the values have to tell).
  /// Returns false, without a change, if the operand's value cannot have this
  /// form, or differs from the known value of the parameter.
  bool bind(OperandUse use, llvm::StringRef target, Form form,
            std::optional<size_t> dim = std::nullopt);
  /// Returns whether only the first dimension can be one that was added with
  /// size 1 and then expanded.
  static bool hasNewFirst(const HostTensor &value);
  /// Records that the operand reads the parameter of that name directly.
  void claim(llvm::StringRef target) { bound.insert(target); }
  /// Adds the missing operand `use.operand` to the node, with this value.
  bool append(OperandUse use, llvm::StringRef target, HostTensor value);
  /// Gives the operand a constant of its own with the same value.
  void separate(OperandUse use);
  /// Replaces node `node`, which copies an initializer, by an initializer.
  void replaceNode(size_t node);
  /// Binds packed weights of a recurrent node's operand 1, 2 or 3: `targets`
  /// holds a name for each direction (two for biases). `order[i]` is the
  /// position in PyTorch of ONNX's i-th gate.
  bool bindPacked(OperandUse use, llvm::ArrayRef<std::string> targets,
                  llvm::ArrayRef<int64_t> order, size_t directions);

  bool isBound(llvm::StringRef target) const { return bound.contains(target); }
  /// Returns whether several distinct rows occur once each.
  static bool hasDistinctRows(const HostTensor &value);
  /// Returns whether the positions that read each row of a table cannot be
  /// determined. They can if whole rows repeat, because no initialization makes
  /// two rows equal.
  static bool hasUnclearRows(const HostTensor &value);
  /// Lists initializers without readers, and returns the edits.
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
  int64_t opset; ///< opset of new nodes
  llvm::StringMap<const HostTensor *> initializers;
  llvm::StringMap<HostTensor> added;
  llvm::StringSet<> bound, taken;
  std::map<std::string, std::string> formed; ///< values by parameter and form
  GraphEdits edits;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_EXPORT_RECOVEREDPARAMETERS_H
