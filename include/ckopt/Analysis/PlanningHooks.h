//===- PlanningHooks.h - what clients tell of ops and types -----*- C++ -*-===//
//
// A compiler that plans its own IR knows more of it than any interface says.
// Every callback may be empty, and may answer nothing: what attributes,
// interfaces and the conservative answers for any dialect say holds then. They
// are called from several threads at a time where functions are planned in
// parallel, and must not change the IR.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_PLANNINGHOOKS_H
#define CKOPT_ANALYSIS_PLANNINGHOOKS_H

#include "ckopt/Interfaces/PlanningInterface.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <functional>
#include <memory>
#include <optional>

namespace ckopt {

/// What they mean and promise is said in PlanningInterface.td.
struct PlanningHooks {
  /// Seconds of one execution, from 0 to 1e9.
  std::function<std::optional<double>(mlir::Operation *)> seconds;
  /// Bytes beside operands and results while the op runs.
  std::function<std::optional<int64_t>(mlir::Operation *)> workspace;
  /// Whether the op may run several times, or only once.
  std::function<std::optional<bool>(mlir::Operation *)> rematerializable;
  /// Pairs (operand, result) of in-place reuse.
  std::function<std::optional<PlanningReusePairs>(mlir::Operation *)>
      reusePairs;
  /// Bytes of a value of the type; the type then stands for its contents, as a
  /// tensor does. Asked first, for every type.
  std::function<std::optional<int64_t>(mlir::Type)> typeBytes;
  /// Bytes that a call of the function needs beside operands and results.
  std::function<std::optional<int64_t>(mlir::FunctionOpInterface)> callee;
};

/// What a value of a type takes in memory: as hooks say, by shape and element
/// type, by the type's own DataLayoutTypeInterface in the data layout around an
/// op. Not thread safe; cheap to make.
class TypeSizes {
public:
  TypeSizes() = default;
  explicit TypeSizes(mlir::Operation *scope, const PlanningHooks &hooks = {})
      : scope(scope), hook(hooks.typeBytes) {}

  /// Bytes of a tensor, a vector, a tuple of them, of memory that a static
  /// memref shows, or of any type that hooks or its interface give a size
  /// (sub-byte elements take a byte each). 0 for numbers, tokens and pointers,
  /// and for what is not known.
  int64_t bytes(mlir::Type type) const;
  /// Whether bytes() is all that a value takes.
  bool isKnown(mlir::Type type) const;
  /// Why a tensor's, a vector's or a tuple's bytes are not known when
  /// compiling: no rank, a dynamic shape, a scalable vector, a sparse encoding,
  /// an element type of unknown size. Empty for all other types.
  std::string describeUnsized(mlir::Type type) const;
  /// Whether a value is its contents, as numbers, vectors and tensors are,
  /// rather than memory or something unknown.
  bool isValue(mlir::Type type) const;

private:
  std::optional<int64_t> asked(mlir::Type type) const;
  std::optional<int64_t> ofInterface(mlir::Type type) const;
  int64_t elementBytes(mlir::Type element) const;
  int64_t shapedBytes(mlir::ShapedType type) const;
  const mlir::DataLayout &layout() const;

  mlir::Operation *scope = nullptr;
  std::function<std::optional<int64_t>(mlir::Type)> hook;
  mutable std::shared_ptr<mlir::DataLayout> cachedLayout;
};

} // namespace ckopt

#endif // CKOPT_ANALYSIS_PLANNINGHOOKS_H
