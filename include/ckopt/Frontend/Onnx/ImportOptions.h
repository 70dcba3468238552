//===- ImportOptions.h - options of importing a model -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_IMPORTOPTIONS_H
#define CKOPT_FRONTEND_ONNX_IMPORTOPTIONS_H

#include "ckopt/Support/HostTensor.h"
#include "ckopt/Support/NameList.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

struct ImportOptions {
  /// The size of the data inputs' first dimension. It is required if the file
  /// has a symbol there. If the file has a number, the graph's shape constants
  /// that are proven to hold the batch are changed (an error names the others).
  std::optional<int64_t> batch;
  /// The batch is one of this number of equal parts of a whole one: numbers
  /// that the graph computes from its size get the whole batch's value, too
  /// (Dialect/Ckopt/Utils/WholeBatch.h).
  int64_t parts = 1;
  /// Values of other symbolic dimensions by name.
  std::map<std::string, int64_t> dims;
  /// Whole shapes of graph inputs by name: for inputs whose shape the file
  /// omits, or whose dimensions have no names. They must agree with the
  /// dimensions that the file gives.
  std::map<std::string, std::vector<int64_t>> shapes;
  /// Graph inputs with a fixed value, by name: inputs that determine shapes,
  /// axes and trip counts must be known at compile time.
  std::map<std::string, HostTensor> constants;
  /// If import fails, receives the graph inputs that would have to be constants
  /// for it to proceed (see `constants`).
  std::set<std::string> *neededConstants = nullptr;
  /// The graph inputs that are data. If empty: the first graph input if the
  /// graph has no initializers, else every input that is not an initializer.
  std::vector<std::string> inputs;
  /// Names of arrays in the user's data: in a file without initializers, graph
  /// inputs of these names are data, too.
  std::vector<std::string> arrays;
  /// Data inputs that may be unused; other unread inputs are an error, unless
  /// `allowUnread` is set.
  std::vector<std::string> unusedInputs;
  bool allowUnread = false;
  /// Weights without a value are an error, not filled by an initialization.
  bool needValues = false;
  /// Float weights whose whole name matches (POSIX extended) are not trained.
  std::string freezeRegex;
  /// If not empty, only weights whose whole name matches are trained; a weight
  /// that both expressions match is not.
  std::string trainRegex;
  /// No weight of the file is trained, as if both expressions matched all.
  bool trainsNone = false;
  /// Weights made by ConstantOfShape, as in files without weights, are
  /// parameters without a value.
  bool paramsFromConstants = false;
  /// Batch norms use the batch's statistics and update the running ones, and
  /// dropouts drop, even if the file was exported for inference. False: each
  /// node keeps the file's mode.
  bool trainMode = true;
  bool f64 = false; ///< every float32 becomes float64
  /// The step is compared with those of other sizes: constants of more than a
  /// few numbers are formulas (ranges, bands) or arguments, as those of many
  /// are in any case, so that their numbers are not part of it.
  bool hasOpenSize = false;
  /// How many names each remark lists.
  size_t namesInRemarks = kNamesInRemarks;
};

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_IMPORTOPTIONS_H
