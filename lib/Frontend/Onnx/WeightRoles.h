//===- WeightRoles.h - what the weights of a graph are for ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H
#define CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H

#include "Reader/OnnxModel.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

struct WeightRole {
  /// "parameter", "frozen", "state"; "" for an inline constant
  std::string role;
  /// A constant without dimensions that arithmetic reads, such as a learned
  /// temperature, or a number of the program.
  bool isFactor = false;
  std::string init;
  int64_t fanIn = 0, fanOut = 0; ///< 0 if it has no meaning
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

/// An initializer or a graph input whose role is not yet known.
struct WeightSource {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool hasValue;
};

/// Finds each weight's role from the operators that read it, through
/// transposes, reshapes, slices and concatenations.
llvm::StringMap<WeightRole>
findWeightRoles(const Graph &graph, llvm::ArrayRef<WeightSource> weights,
                llvm::function_ref<bool(llvm::StringRef)> isFrozen);

/// Removes ConstantOfShape nodes whose results are read as weights, and
/// describes them. Files whose weights were removed have such nodes.
std::vector<ValueInfo> takeConstantWeights(Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H
