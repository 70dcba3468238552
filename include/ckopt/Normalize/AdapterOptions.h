//===- AdapterOptions.h - which adapters a model gets -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_ADAPTEROPTIONS_H
#define CKOPT_NORMALIZE_ADAPTEROPTIONS_H

#include <cstdint>
#include <string>

namespace ckopt {

/// The defaults are PEFT's.
struct AdapterOptions {
  int64_t rank = 0; ///< 0: no adapters
  double alpha = 8; ///< the adapter's product is multiplied by alpha / rank
  /// Names of products, or their ends behind a dot; "": all but the output
  /// heads.
  std::string targets;
  double dropout = 0; ///< of the adapter's input
  bool dora = false;  ///< a trained magnitude of each output, too
  /// Parameters that the model has are not trained.
  bool freezes = true;
};

} // namespace ckopt

#endif // CKOPT_NORMALIZE_ADAPTEROPTIONS_H
