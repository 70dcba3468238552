//===- Grouping.h - which op becomes part of which kernel -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The plan that `fuse` makes before it changes anything. A unit is a kernel in
// the making: its roots are the ops whose results are stored, its inputs the
// stored values that it reads, and its body every op on the way from the inputs
// to the roots. An op that no unit has as a root is computed inside each unit
// that needs it.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_TRANSFORMS_FUSE_GROUPING_H
#define CKOPT_LIB_TRANSFORMS_FUSE_GROUPING_H

#include "Evaluations.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace ckopt::fuse {

struct Options {
  bool group = true;
  unsigned maxOps = 64;
  unsigned maxPointers = 24;
};

/// The kernel kinds of `ckopt.kernel`, with updates told apart from other
/// elementwise kernels.
enum class UnitKind {
  Elementwise,
  Update,
  Reduction,
  Row,
  Structured,
  Library
};

struct Unit {
  UnitKind kind;
  llvm::SmallVector<mlir::Operation *, 2> roots;
  llvm::SmallSetVector<mlir::Value, 8> inputs;
  /// Position at which the unit runs. It is the position of the unit's root in
  /// the program, so every input comes from a unit of a lower position.
  int64_t place;
  /// Number of ops in the body.
  unsigned ops = 1;
  /// Shape and layout that the kernel iterates over.
  mlir::RankedTensorType domain;
  /// Reduced dimensions of a reduction.
  llvm::ArrayRef<int64_t> axes;
  /// Set if the root reads at other indices than it writes (transpose,
  /// pooling): its operands are stored, and it shares its kernel with no other
  /// root.
  bool alone = false;
  /// Points at which the ops of the body are computed (Evaluations.h).
  PointsOfOps points;
  /// Set once the unit is part of another one.
  bool merged = false;
};

/// Everything known about a function while it is being grouped.
class Grouping {
public:
  Grouping(mlir::func::FuncOp function, const Options &options)
      : function(function), options(options) {}

  /// Decides which values are stored and which are computed inside their
  /// readers. O(ops).
  void decide();
  /// Merges producers into consumers and siblings over one domain. O(units).
  void merge();
  /// Places each update after the last reader of the old value.
  mlir::LogicalResult orderUpdates();

  /// Returns the units in the order in which they run.
  llvm::SmallVector<Unit *> schedule();
  /// Returns the ops of the unit's kernel in program order.
  llvm::SmallVector<mlir::Operation *> body(const Unit &unit) const;
  /// Returns the results of the unit's roots that other units or the step read.
  llvm::SmallVector<mlir::Value> outputs(const Unit &unit) const;

private:
  friend class Merger;

  bool isStored(mlir::Value value) const;
  void createUnit(mlir::Operation *op, UnitKind kind);
  bool canAbsorb(const Unit &unit, mlir::Operation *op);
  void absorb(unsigned unit, mlir::Operation *op);
  /// Joins an assignment to the kernel of the assignment that follows it.
  bool joinAssignment(mlir::Operation *op);
  bool worthComputingAgain(mlir::Operation *op,
                           llvm::ArrayRef<unsigned> needers) const;
  void decideOp(mlir::Operation *op);
  void decideView(mlir::Operation *op);
  /// Returns whether a library op lies between two positions.
  bool libraryBetween(int64_t first, int64_t last) const;
  unsigned find(unsigned unit) const;
  /// Returns the stored value whose bytes a view shows.
  static mlir::Value base(mlir::Value value);

  mlir::func::FuncOp function;
  Options options;
  llvm::SmallVector<mlir::Operation *> ops;
  llvm::DenseMap<mlir::Operation *, int64_t> place;
  /// Number of library ops up to each position.
  llvm::SmallVector<unsigned> libraryOps;
  PointTable pointTable;
  /// Values that must be stored, whatever the costs.
  llvm::DenseSet<mlir::Value> forced;
  /// Values that the step itself reads: operands of views and of the return.
  llvm::DenseSet<mlir::Value> needed;
  llvm::SmallVector<Unit> units;
  mutable llvm::SmallVector<unsigned> parent;
  /// Units that read a value, updated while values are decided.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<unsigned, 4>> readers;
  /// The unit that makes a stored value.
  llvm::DenseMap<mlir::Value, unsigned> maker;
  /// Views that the step makes, by base value.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 2>> views;
};

/// Lets products that a kernel of additions alone reads be added as they are
/// stored. `rounds`: factors of products are rounded to 16 bits. Returns
/// whether there were such, so that the function needs a new grouping.
bool addProducts(mlir::func::FuncOp function, Grouping &grouping, bool rounds);

/// Builds the calls of `grouping`'s units in place of the function's ops;
/// kernels that exist already are called again.
class Outliner {
public:
  explicit Outliner(mlir::ModuleOp module);
  void run(mlir::func::FuncOp function, Grouping &grouping);

private:
  mlir::func::FuncOp getKernel(const Unit &unit,
                               llvm::ArrayRef<mlir::Operation *> body,
                               llvm::ArrayRef<mlir::Value> inputs,
                               llvm::ArrayRef<mlir::Value> outputs);
  mlir::SymbolTable symbols;
  mlir::ModuleOp module;
  llvm::StringMap<unsigned> counters;
  llvm::DenseMap<mlir::Attribute, mlir::func::FuncOp> kernels;
};

/// "elementwise", "reduction", ...
llvm::StringRef kindName(UnitKind kind);

} // namespace ckopt::fuse

#endif // CKOPT_LIB_TRANSFORMS_FUSE_GROUPING_H
