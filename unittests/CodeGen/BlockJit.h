//===- BlockJit.h - runs kernels in block form on the CPU -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_CODEGEN_BLOCKJIT_H
#define CKOPT_UNITTESTS_CODEGEN_BLOCKJIT_H

#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ckopt::test {

/// A context with all that block form is made of.
std::unique_ptr<mlir::MLIRContext> blockContext();

/// Kernels in block form, compiled for this machine.
class BlockJit {
public:
  /// `text`: a module. `change`, if given, edits it first. Fails the test on
  /// any error.
  BlockJit(const std::string &text,
           const std::function<void(mlir::ModuleOp)> &change = {});
  ~BlockJit();
  /// Runs SYMBOL__emul, or SYMBOL__emul_descending, on pointers to the launch
  /// parameters, 8 bytes each.
  void run(const std::string &symbol, std::vector<void *> parameters,
           bool descending = false) const;

private:
  struct Impl;
  void compile(const std::string &text,
               const std::function<void(mlir::ModuleOp)> &change);
  std::unique_ptr<Impl> impl;
};

/// Kernels that the tests share, as text in block form. Row sums: a tree over
/// 256 threads whose last steps are lane steps; `race`: neighbours are added
/// within one interval, without a barrier between.
std::string rowSum(int64_t rows, int64_t columns, bool race = false);
/// Chan's combination of means and squares over two buffers in one tree of 32
/// lanes: x[64] to y[2].
std::string laneMoments();
/// c[m][n] = sum of a[m][k] * b[k][n], a thread for each element of a tile of
/// 16 x 16, tiles in shared memory, one private accumulator.
std::string matmul(int64_t m, int64_t n, int64_t k);
/// y = sqrt(add / x), an element a thread, `add` a call scalar.
std::string pointwise(int64_t count);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_CODEGEN_BLOCKJIT_H
