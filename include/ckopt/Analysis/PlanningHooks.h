//===- PlanningHooks.h - callbacks about ops and types ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A client that plans its own IR can describe its ops and types by callbacks.
// Every callback may be empty, and may return nothing; then attributes,
// interfaces and conservative defaults for any dialect apply. Callbacks are
// called from several threads if functions are planned in parallel, and must
// not change the IR.
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

/// Callbacks of a client; PlanningInterface.td says what their answers promise.
struct PlanningHooks {
  /// Seconds of one execution, from 0 to 1e9.
  std::function<std::optional<double>(mlir::Operation *)> seconds;
  /// Bytes that the op needs in addition to operands and results while it runs.
  std::function<std::optional<int64_t>(mlir::Operation *)> workspace;
  /// Whether the op may run several times, or only once.
  std::function<std::optional<bool>(mlir::Operation *)> rematerializable;
  /// Pairs (operand, result) of in-place reuse.
  std::function<std::optional<PlanningReusePairs>(mlir::Operation *)>
      reusePairs;
  /// Bytes of a value of the type; the type then stands for its contents, as a
  /// tensor does. Asked first, for every type.
  std::function<std::optional<int64_t>(mlir::Type)> typeBytes;
  /// Bytes that a call of the function needs in addition to operands and
  /// results.
  std::function<std::optional<int64_t>(mlir::FunctionOpInterface)> callee;
};

/// Computes the bytes of values of a type: from the client's callback, from
/// shape and element type, or from the type's own DataLayoutTypeInterface in
/// the data layout around an op. Not thread safe; cheap to make.
class TypeSizes {
public:
  TypeSizes() = default;
  explicit TypeSizes(mlir::Operation *scope, const PlanningHooks &hooks = {})
      : scope(scope), hook(hooks.typeBytes) {}

  /// Returns the bytes of a tensor, a vector, a tuple of them, of the memory of
  /// a static memref, or of any type that has a size by hooks or its interface
  /// (sub-byte elements take a byte each). Returns 0 for numbers, tokens,
  /// pointers, and types of unknown size.
  int64_t bytes(mlir::Type type) const;
  /// Tells whether a value consists of bytes() bytes and nothing else.
  bool isKnown(mlir::Type type) const;
  /// Returns the reason why the bytes of a tensor, a vector or a tuple are not
  /// known when compiling: no rank, a dynamic shape, a scalable vector, a
  /// sparse encoding, an element type of unknown size. Empty for all other
  /// types.
  std::string describeUnsized(mlir::Type type) const;
  /// Tells whether a value of the type is its contents (numbers, vectors,
  /// tensors), not memory or something unknown.
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
