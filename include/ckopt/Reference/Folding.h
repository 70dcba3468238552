//===- Folding.h - constant folding through the interpreter -----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The dialect has one fold hook for all ops: an op whose operands are all
// constants and whose results are small becomes constants. The values are those
// of the reference interpreter with rounding, so folding an f32 op gives the
// correctly rounded result. Shape arithmetic of exporters vanishes this way
// while the importer builds (`builder.createOrFold`) and in canonicalize.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_REFERENCE_FOLDING_H
#define CKOPT_REFERENCE_FOLDING_H

#include <cstdint>

namespace mlir {
class DialectRegistry;
}

namespace ckopt {

/// The largest results that fold, in bytes; splats of any size fold.
inline constexpr int64_t maxFoldedFloatBytes = 4 << 10;
inline constexpr int64_t maxFoldedIntegerBytes = 64 << 10;

/// Registers the hook, and the interpreter's models that it needs. Call it
/// before the ckopt dialect is loaded, or use
/// MLIRContext::appendDialectRegistry.
void registerReferenceFolding(mlir::DialectRegistry &registry);

} // namespace ckopt

#endif // CKOPT_REFERENCE_FOLDING_H
