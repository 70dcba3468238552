//===- Together.h - ranks that compile one step -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans and compiles; the others get its plan and its code. Before that
// all ranks compare their inputs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_TOGETHER_H
#define CKOPT_COMPILER_TOGETHER_H

#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/StoredTensors.h"

namespace ckopt {

/// Refuses options that differ from rank 0's, before they are used, and
/// restricts code to the processors of all ranks.
llvm::Error agreeOnGiven(CompileOptions &options);

/// Returns the named texts that each rank has, by rank.
llvm::Expected<std::vector<StringMetadata>>
gatherNamed(const Ranks &ranks, const StringMetadata &own);

/// Compares imported models and their weights before they are planned together;
/// an error on all ranks if one has failed before (`own`).
llvm::Error agreeOnModel(const Compilation &compilation, llvm::Error own);

/// Compares weights that are given in addition to the model's.
llvm::Error agreeOnWeights(const Ranks &ranks, const TensorMap &weights);

/// If `compilation` is planned together, plans only on rank 0, whose search may
/// depend on time; all ranks get the plan or the error.
llvm::Error planOnMain(Compilation &compilation);

/// Makes the code of the plan only on rank 0; all ranks get it, or the error.
llvm::Error emitOnMain(Compilation &compilation);

/// Adds a line with a tensor's name and the hash of its bytes to `hashes`.
void hashTensor(std::string &hashes, llvm::StringRef name,
                const HostTensor &value);
/// Adds a hash of the given tensors to `hash`.
void addHash(uint64_t &hash, const TensorMap &tensors);

/// Adds a hash of a file's tensors, which are read one by one.
llvm::Error addHash(uint64_t &hash, const StoredTensors &tensors);

/// Returns a flag's value in the form that ranks compare: numbers in one
/// notation, files without their location.
std::string comparableText(llvm::StringRef value);

} // namespace ckopt

#endif // CKOPT_COMPILER_TOGETHER_H
