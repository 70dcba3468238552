//===- Together.h - ranks that compile one step -----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Rank 0 plans and compiles; the others get its plan and its code. Before that
// all compare what they were given.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_COMPILER_TOGETHER_H
#define CKOPT_COMPILER_TOGETHER_H

#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/StoredTensors.h"

namespace ckopt {

/// Refuses options that are not those of rank 0, before anything is made of
/// them, and makes code run on the processors of all ranks.
llvm::Error agreeOnGiven(CompileOptions &options);

/// Compares imported models and their weights before they are planned together;
/// an error on all where one has failed by itself already (`own`).
llvm::Error agreeOnModel(const Compilation &compilation, llvm::Error own);

/// Compares weights that are given beside the model.
llvm::Error agreeOnWeights(const Ranks &ranks, const TensorMap &weights);

/// Plans on rank 0 alone, whose search may depend on time; all ranks get the
/// plan, or the error, where `compilation` is planned together.
llvm::Error planOnMain(Compilation &compilation);

/// Makes the code of the plan on rank 0 alone; all ranks get it, or the error.
llvm::Error emitOnMain(Compilation &compilation);

/// Adds a line with a tensor's name and the hash of its bytes to `hashes`.
void hashTensor(std::string &hashes, llvm::StringRef name,
                const HostTensor &value);
/// Adds a hash of given tensors to `hash`.
void addHash(uint64_t &hash, const TensorMap &tensors);

/// The same of a file's, which are read one by one.
llvm::Error addHash(uint64_t &hash, const StoredTensors &tensors);

/// Returns a flag's value as ranks compare it: numbers are those that are
/// written otherwise, files those of another place.
std::string comparableText(llvm::StringRef value);

} // namespace ckopt

#endif // CKOPT_COMPILER_TOGETHER_H
