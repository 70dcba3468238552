//===- WeightRoles.h - what the weights of a graph are for ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H
#define CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H

#include "OnnxModel.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace ckopt::onnx_frontend {

struct WeightRole {
  std::string role; ///< "parameter", "frozen", "state"; "": inline constant
  std::string init;
  int64_t fanIn = 0, fanOut = 0; ///< 0: has no meaning here
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
};

/// A weight before its role is known: an initializer or a graph input.
struct WeightSource {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  bool hasValue;
};

/// Finds each weight's role by the operators that read it, looking through
/// transposes, reshapes, slices and concatenations.
llvm::StringMap<WeightRole>
findWeightRoles(const Graph &graph, llvm::ArrayRef<WeightSource> weights,
                llvm::function_ref<bool(llvm::StringRef)> isFrozen);

/// Takes ConstantOfShape nodes out whose results are read as weights, and says
/// what they are: for files whose numbers were taken out.
std::vector<ValueInfo> takeConstantWeights(Graph &graph);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_WEIGHTROLES_H
