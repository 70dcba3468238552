//===- Checks.h - what must hold of steps, wherever they run ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_STEPS_CHECKS_H
#define CKOPT_UNITTESTS_STEPS_CHECKS_H

#include "Harness.h"

namespace ckopt::test {

/// Runs the step once on the golden network's batch and compares loss and every
/// gradient with those that PyTorch computed in float64: the norm of the
/// difference is at most `tolerance` of the norm.
void checkGradients(Session &session, const GoldenModel &model,
                    double tolerance);

/// The tolerance of gradients by a storage precision: what bf16 costs is about
/// what PyTorch's autocast has on the same networks, which is 0.013 at worst
/// for mlp, gpt, vit and lstm, and 0.09, 0.44, 0.59 and 0.10 for one parameter
/// of lenet, resnet, unet and mobile: batch norms of a few samples take
/// differences of what was rounded. f16 has three bits more than bf16.
double gradientTolerance(const GoldenModel &model, llvm::StringRef precision);

/// The results of a run of a few steps.
struct Outcome {
  std::vector<double> losses;
  TensorMap weights; ///< optimizer state included
  int64_t planned = 0, measured = 0, recomputed = 0;
};

/// Inputs that differ from step to step, targets within the classes.
void feedNumbers(Session &session, int64_t step);

/// Trains with seed and learning rate; fills losses, weights and measured.
void train(Session &session, int64_t steps, Outcome &outcome,
           int64_t seed = 42);

/// Losses and weights agree to the bit.
void expectSame(const Outcome &a, const Outcome &b);

MemoryBudget budgetOf(int64_t bytes);
MemoryBudget smallestBudget();

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_STEPS_CHECKS_H
