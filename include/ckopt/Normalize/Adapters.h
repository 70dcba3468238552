//===- Adapters.h - low-rank adapters of a model's products -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_ADAPTERS_H
#define CKOPT_NORMALIZE_ADAPTERS_H

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Normalize/AdapterOptions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace ckopt {

/// What PEFT puts before a module's name.
inline constexpr llvm::StringLiteral kAdapterPrefix = "base_model.model.";
/// What names of A, B and DoRA's magnitude end in.
inline constexpr llvm::StringLiteral kDownSuffix = ".lora_A.weight";
inline constexpr llvm::StringLiteral kUpSuffix = ".lora_B.weight";
inline constexpr llvm::StringLiteral kMagnitudeSuffix =
    ".lora_magnitude_vector";

/// The products of activations with one matrix, which one adapter is for.
struct AdapterTarget {
  std::string name; ///< "layers.0.q_proj"
  llvm::SmallVector<MatMulOp> products;
  mlir::Value weight; ///< their operand, a matrix
  bool weightFirst = false;
  bool outputsFirst = false; ///< `weight` is [outputs, inputs]
  /// The argument that the matrix is computed from; null: a constant.
  mlir::BlockArgument stored;
  /// `stored` holds the matrix itself, up to its float type and dimensions of
  /// size 1; transposed if `isSwapped`.
  bool isPlain = true, isSwapped = false;
  bool isAlone = false;  ///< nothing else reads what is stored
  bool isHead = false;   ///< nothing behind it is such a product
  bool isBuffer = false; ///< of no parameter: only on demand

  int64_t inputs() const { return size(outputsFirst ? 1 : 0); }
  int64_t outputs() const { return size(outputsFirst ? 0 : 1); }

private:
  int64_t size(unsigned dimension) const {
    return llvm::cast<mlir::RankedTensorType>(weight.getType())
        .getDimSize(dimension);
  }
};

/// Finds the products that can have adapters, in the function's order. Linear
/// in its ops.
std::vector<AdapterTarget> findAdapterTargets(mlir::func::FuncOp function);

/// Gives adapters to those of the function's targets that the options name, and
/// returns them; see the pass add-adapters. An error lists the candidates.
llvm::Expected<std::vector<AdapterTarget>>
addAdapters(mlir::func::FuncOp function, llvm::ArrayRef<AdapterTarget> all,
            const AdapterOptions &options);

} // namespace ckopt

#endif // CKOPT_NORMALIZE_ADAPTERS_H
