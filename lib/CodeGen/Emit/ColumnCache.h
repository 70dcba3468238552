//===- ColumnCache.h - values that depend only on the column ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If lanes run over columns and the loop over rows is outside of them, values
// that depend only on the column (1 / sqrt(variance + epsilon) of a channel)
// would be computed again in each row. Instead they are computed once for each
// range, into a buffer on the stack, and loaded from there.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_COLUMNCACHE_H
#define CKOPT_LIB_CODEGEN_EMIT_COLUMNCACHE_H

#include "Domain.h"
#include "Emitter.h"

namespace ckopt::codegen {

class ColumnCache {
public:
  /// Selects values among those that `roots` need at the domain's points.
  /// Nothing is cached unless the innermost loop is one logical dimension of at
  /// most kColumns and there are many rows.
  void plan(const Domain &domain, ArrayRef<Value> roots);
  /// Computes the values; called at the start of a stage.
  void emit(Emitter &e) const;
  bool empty() const { return entries.empty(); }

  static constexpr int64_t kColumns = 4096;

private:
  struct Entry {
    Value value;
    /// In terms of the domain's logical dimensions.
    SmallVector<AffineExpr> index;
    unsigned component; ///< component of `index` that is the column
  };
  void visit(Value value, ArrayRef<AffineExpr> index);

  llvm::DenseSet<std::pair<void *, const void *>> seen;
  SmallVector<Entry> entries;
  unsigned dim = 0;
  int64_t columns = 0;
};

/// Makes an uninitialized buffer on the stack of a stage.
Value stackBuffer(Emitter &e, Type element, int64_t count);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_COLUMNCACHE_H
