//===- Fields.h - a step's requirements on its data -------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A field is one tensor of a step's data: an input or the targets of a loss.
// One function checks its values, for whole files and for single batches.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_DATA_FIELDS_H
#define CKOPT_TRAIN_DATA_FIELDS_H

#include "ckopt/Base/IntegerLimits.h"
#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ckopt {

/// The properties that a step expects of one array.
struct FieldSpec {
  std::string name;  ///< the model's input, or "target"
  std::string array; ///< in the file
  DType dtype = DType::F32;
  /// Shape of one sample (without the batch); of the whole array if not
  /// `batched`. Nothing: the array's own shape.
  std::optional<std::vector<int64_t>> shape;
  /// False: one constant for all samples, no batch dimension.
  bool batched = true;
  /// For integers that are labels or indices, as in the manifest.
  TensorLimits limits;
  /// Values are -1 or 1.
  bool signs = false;
  /// Values are from 0 to 1. Others are an error, or, if `warn` is set, the
  /// first one is reported to it.
  bool probabilities = false;
  std::function<void(const std::string &)> warn;
};

/// Checks the shape of an array. If the field is batched, its first dimension
/// counts samples.
llvm::Error checkShape(const FieldSpec &spec, llvm::ArrayRef<int64_t> shape);

/// Checks all values of `tensor`, which has the right shape: they must be
/// finite, labels and indices must be in their ranges, and they must convert to
/// the field's type. `nameSample` names a sample by its place in the tensor
/// ("sample 12").
llvm::Error checkValues(const FieldSpec &spec, const HostTensor &tensor,
                        llvm::function_ref<std::string(int64_t)> nameSample);

/// Checks `tensor`, a batch, against limits that depend on a sample's place in
/// the batch.
llvm::Error checkBatch(const FieldSpec &spec, const HostTensor &tensor,
                       llvm::function_ref<std::string(int64_t)> nameSample);

} // namespace ckopt

#endif // CKOPT_TRAIN_DATA_FIELDS_H
