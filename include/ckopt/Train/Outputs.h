//===- Outputs.h - a model's outputs, batch by batch ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_OUTPUTS_H
#define CKOPT_TRAIN_OUTPUTS_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// Returns the outputs of the "eval" function; with `losses` also its loss.
std::vector<int64_t> evaluationOutputs(const Session &session, bool losses);

/// Computes outputs over one epoch of a source that has the step's inputs, with
/// or without targets. Outputs with the batch's dimension are concatenated; of
/// others the first batch's is returned. An incomplete last batch is padded.
llvm::Expected<TensorMap> computeOutputs(Session &session, BatchSource &source,
                                         const StepData &data,
                                         llvm::ArrayRef<int64_t> outputs);

} // namespace ckopt

#endif // CKOPT_TRAIN_OUTPUTS_H
