//===- KernelInterface.h - what fusion and planning ask ops -----*- C++ -*-===//
#ifndef CKOPT_INTERFACES_KERNELINTERFACE_H
#define CKOPT_INTERFACES_KERNELINTERFACE_H

#include "mlir/IR/OpDefinition.h"

namespace ckopt {

/// How an op takes part in kernels.
enum class KernelKind {
  View,        ///< no code: the result is the operand's bytes (reshape)
  Constant,    ///< no inputs; made again inside each kernel that reads it
  Elementwise, ///< point i of the result from points i (or broadcast) of
               ///< operands
  Indexed,     ///< point i from operand points at other indices (transpose,
               ///< slice, concat, pad, gather, pooling); any point on its own
  Reduction,   ///< reduces some dimensions of a domain
  RowWise,     ///< several passes over rows (softmax, layer norm)
  Structured,  ///< a loop nest of its own (scatter)
  Library,     ///< one library primitive (matmul, convolution)
  Update,      ///< elementwise new value of a state; runs once, never cloned
};

namespace detail {
/// One per result element, twenty for transcendental functions.
double defaultFlops(mlir::Operation *op);
/// For elementwise ops: each operand of a result's own type, else none.
llvm::SmallVector<std::pair<unsigned, unsigned>>
defaultReusePairs(mlir::Operation *op);
} // namespace detail
} // namespace ckopt

#include "ckopt/Interfaces/KernelInterface.h.inc"

#endif // CKOPT_INTERFACES_KERNELINTERFACE_H
