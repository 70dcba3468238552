//===- Outputs.h - a model's outputs, batch by batch ------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TRAIN_OUTPUTS_H
#define CKOPT_TRAIN_OUTPUTS_H

#include "ckopt/Train/Training.h"

namespace ckopt {

/// Returns the outputs of the "eval" function; with `losses` its loss, too.
std::vector<int64_t> evaluationOutputs(const Session &session, bool losses);

/// Computes outputs over one epoch of a source that has the step's inputs, and
/// targets or not. Outputs with the batch's dimension are put one after
/// another, of the others the first counts. The last batch is filled up.
llvm::Expected<TensorMap> computeOutputs(Session &session, BatchSource &source,
                                         const StepData &data,
                                         llvm::ArrayRef<int64_t> outputs);

} // namespace ckopt

#endif // CKOPT_TRAIN_OUTPUTS_H
