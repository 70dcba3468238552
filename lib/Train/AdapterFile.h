//===- AdapterFile.h - adapters in files ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRAIN_ADAPTERFILE_H
#define CKOPT_LIB_TRAIN_ADAPTERFILE_H

#include "ckopt/Support/TensorParts.h"

namespace ckopt {

class Compilation;

/// Writes a compilation's trained weights by PEFT's names, with rank and alpha
/// in the metadata. Beside a file of the name that PEFT gives it,
/// adapter_model.safetensors, it writes adapter_config.json.
llvm::Error writeAdapters(const Compilation &compilation, llvm::StringRef path,
                          TensorParts &weights, StringMetadata metadata);

} // namespace ckopt

#endif // CKOPT_LIB_TRAIN_ADAPTERFILE_H
