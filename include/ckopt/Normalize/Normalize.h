//===- Normalize.h - forms that later phases need ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions do the work of the passes make-eval, freeze-norms, normalize,
// chunk-vocab, decompose and widen-channels. Their diagnostics name the source
// node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_NORMALIZE_H
#define CKOPT_NORMALIZE_NORMALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Unit attribute of a state that is not trained.
inline constexpr llvm::StringLiteral kFrozenAttr = "ckopt.frozen";

/// Adds the evaluation form of `function` to its module, under `name`; see the
/// pass make-eval. Fails where the name is taken. `asWritten`: without a change
/// to dropouts and batch norms.
llvm::FailureOr<mlir::func::FuncOp> makeEval(mlir::func::FuncOp function,
                                             llvm::StringRef name,
                                             bool asWritten = false);

/// Finds the batch norms of a training function without a trained parameter:
/// scale and bias are frozen, or, where they are constants, the running
/// statistics carry `ckopt.frozen`.
llvm::SmallVector<mlir::Operation *>
findFrozenNorms(mlir::func::FuncOp function);

/// Puts such batch norms into evaluation form; see the pass freeze-norms.
llvm::LogicalResult freezeNorms(mlir::func::FuncOp function);

/// Brings matrix products to one form before autodiff, and canonicalizes.
llvm::LogicalResult normalize(mlir::func::FuncOp function);

/// Reads how cross entropies are chunked: "auto" (0), "off" (-1), or the rows
/// of a chunk, a positive number; nothing for any other text.
std::optional<int64_t> parseChunkRows(llvm::StringRef text);
/// Returns the text that parses to these rows.
std::string printChunkRows(int64_t rows);

/// Which rows are a chunk by sizes alone: as many as take `mostBytes` of
/// logits, but not fewer than `leastRows`, and a multiple of `rowStep`.
struct ChunkRule {
  int64_t mostBytes, leastRows, rowStep;
};

/// Rewrites cross entropies of large heads to chunks of rows; see the pass
/// chunk-vocab and parseChunkRows.
llvm::LogicalResult chunkVocabulary(mlir::func::FuncOp function,
                                    llvm::StringRef rows,
                                    const ChunkRule &rule);

/// Rewrites linear_cross_entropy and its gradient to products and cross
/// entropies of one chunk after another, whose rows are padded to a multiple of
/// `classGroup` (0: to no length).
void unrollChunks(mlir::func::FuncOp function, int64_t classGroup = 0);

/// Rewrites matrix products with more batch dimensions than libraries take to
/// one batch dimension. With `widenHalves`, products and convolutions of f16
/// are computed in f32.
void fitContractions(mlir::func::FuncOp function, bool widenHalves);

/// Rewrites composite ops to reductions and elementwise ops, and concatenations
/// of more than `maxJoined` tensors (unless 0; at least 2) to several. Chunks
/// of losses as by unrollChunks.
void decompose(mlir::func::FuncOp function, unsigned maxJoined = 0,
               int64_t classGroup = 0);

/// Pads input channels of convolutions to a multiple of `group` where that is
/// at most a third more; see the pass widen-channels.
void widenChannels(mlir::func::FuncOp function, int64_t group);

} // namespace ckopt

#endif // CKOPT_NORMALIZE_NORMALIZE_H
