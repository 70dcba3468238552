//===- Domain.h - the loops over a tensor's points --------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel runs over the points of one shape, in the physical order of one
// tensor. Adjacent dimensions become one loop if every access stays linear in
// it (contiguous tensors become a single loop), tested symbolically on the
// accesses of the whole body.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_DOMAIN_H
#define CKOPT_LIB_CODEGEN_EMIT_DOMAIN_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseSet.h"

namespace ckopt::codegen {

/// The elements that a body reads, as functions of the point (dimensions d0,
/// d1, ... are the domain's logical ones).
struct Accesses {
  struct Read {
    mlir::BlockArgument arg;
    llvm::SmallVector<mlir::AffineExpr> index;
  };
  llvm::SmallVector<Read> reads;
  /// Other expressions that the code computes.
  llvm::SmallVector<mlir::AffineExpr> uses;
  /// Arguments that are read at unknown points, or at several.
  llvm::SmallVector<mlir::BlockArgument> elsewhere;
  /// Null, or an op that has no element model.
  mlir::Operation *unsupported = nullptr;

  /// Adds the reads that computing `value` at `index` needs. Linear in the
  /// body's ops for each index.
  void add(mlir::Value value, llvm::ArrayRef<mlir::AffineExpr> index);
  /// Adds the point of a tensor that is written (or read) directly.
  void addUse(mlir::RankedTensorType type,
              llvm::ArrayRef<mlir::AffineExpr> index);

  /// Adds a value that is read at unknown points.
  void addElsewhere(mlir::Value value);

private:
  llvm::DenseSet<std::pair<void *, const void *>> seen;
};

/// The loops of a kernel that reduces some of them.
struct LoopRoles {
  llvm::SmallVector<unsigned> reduced, kept; ///< numbers of loops
  llvm::SmallVector<int64_t> trips;          ///< trip counts of the kept loops
  bool rows = false; ///< there are reduced loops, and the innermost loop is one
};

class Domain {
public:
  struct Loop {
    int64_t size;
    llvm::SmallVector<unsigned> dims; ///< logical dimensions, outermost first
    bool open = false;                ///< the size may be another at run time

    /// Returns the number of points, if it is known.
    std::optional<int64_t> count() const {
      return open ? std::nullopt : std::optional(size);
    }
  };
  /// Only dimensions of one class (`classes[d]`) may share a loop; those that
  /// are `open` have one each.
  Domain(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> order,
         llvm::ArrayRef<int> classes, llvm::ArrayRef<bool> open,
         const Accesses &accesses, mlir::MLIRContext *ctx);
  /// Returns whether the size of some loop may be another at run time.
  bool isOpen() const {
    return llvm::any_of(loops, [](const Loop &loop) { return loop.open; });
  }

  /// Loops over dimensions of a class that is not 0 are reduced.
  LoopRoles roles(llvm::ArrayRef<int> classes) const;

  llvm::SmallVector<Loop> loops; ///< outermost first, at least one
  llvm::SmallVector<int64_t> shape;
  mlir::MLIRContext *ctx;

  /// Returns the logical index at which loop l has position at[l].
  llvm::SmallVector<mlir::AffineExpr>
  index(llvm::ArrayRef<mlir::AffineExpr> at) const {
    return indexOf(loops, at);
  }

private:
  llvm::SmallVector<mlir::AffineExpr>
  indexOf(llvm::ArrayRef<Loop> loops,
          llvm::ArrayRef<mlir::AffineExpr> at) const;
  bool staysLinear(llvm::ArrayRef<Loop> loops, const Accesses &accesses) const;
};

/// Returns d0, d1, ...
llvm::SmallVector<mlir::AffineExpr> identityIndex(unsigned rank,
                                                  mlir::MLIRContext *ctx);

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_DOMAIN_H
