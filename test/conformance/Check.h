//===- Check.h - one case, forward or by gradients ------------ -*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_CONFORMANCE_CHECK_H
#define CKOPT_TEST_CONFORMANCE_CHECK_H

#include "Corpus.h"
#include "ckopt/Train/Step.h"

#include <set>

namespace conformance {

enum class Verdict : char {
  Pass = 'P',
  Refused = 'R', ///< by name, of a family that ckopt refuses by design
  Skipped = 'S', ///< nothing to check here, and why
  Fail = 'F',
};

struct Outcome {
  Verdict verdict = Verdict::Fail;
  std::string text;
};

using Tensors = std::vector<std::pair<std::string, ckopt::HostTensor>>;
const ckopt::HostTensor *findTensor(const Tensors &tensors,
                                    llvm::StringRef name);

/// A model imported for data of one shape. Inputs that decide shapes, axes or
/// trip counts became constants with the values of the data.
struct Imported {
  std::unique_ptr<ckopt::Compilation> compilation;
  std::set<std::string> constants;
};
llvm::Expected<Imported> importFor(const Case &test, const Signature &signature,
                                   const Tensors &inputs, bool f64);

/// Plans, compiles and loads the functions of a compilation. Weights that the
/// file leaves open take their values from `inputs`.
llvm::Expected<std::unique_ptr<ckopt::Session>>
load(ckopt::Compilation &compilation, const Tensors &inputs);
llvm::Error feed(ckopt::Session &session, const Tensors &inputs);
/// Results of "eval" or "step", by name.
llvm::Expected<Tensors> runFunction(ckopt::Session &session,
                                    const char *function);

/// Compiles, runs and compares the outputs with those of the test.
Outcome checkForward(const Case &test);
/// Compares the gradients of a weighted sum of all outputs by all float inputs
/// with central differences, in f64.
Outcome checkGradients(const Case &test);

} // namespace conformance

#endif // CKOPT_TEST_CONFORMANCE_CHECK_H
