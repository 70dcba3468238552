//===- Normalize.h - forms that later phases need ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions do the work of the passes make-eval, freeze-norms, normalize,
// chunk-vocab, tile-rows, decompose and widen-channels. Their diagnostics name
// the source node.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_NORMALIZE_NORMALIZE_H
#define CKOPT_NORMALIZE_NORMALIZE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Unit attribute of a state that is not trained.
inline constexpr llvm::StringLiteral kFrozenAttr = "ckopt.frozen";

/// Adds the evaluation form of `function` to its module, under `name`; see the
/// pass make-eval. Fails if the name is taken. `asWritten`: leaves dropouts and
/// batch norms unchanged.
llvm::FailureOr<mlir::func::FuncOp> makeEval(mlir::func::FuncOp function,
                                             llvm::StringRef name,
                                             bool asWritten = false);

/// Finds the batch norms of a training function that have no trained parameter:
/// scale and bias are frozen, or they are constants and the running statistics
/// carry `ckopt.frozen`.
llvm::SmallVector<mlir::Operation *>
findFrozenNorms(mlir::func::FuncOp function);

/// Puts such batch norms into evaluation form; see the pass freeze-norms.
llvm::LogicalResult freezeNorms(mlir::func::FuncOp function);

/// Brings matmuls to one form before autodiff, and canonicalizes.
llvm::LogicalResult normalize(mlir::func::FuncOp function);

/// Parses how cross entropies are chunked: "auto" (0), "off" (-1), or the rows
/// of a chunk, a positive number; nothing for any other text.
std::optional<int64_t> parseChunkRows(llvm::StringRef text);
/// Inverse of parseChunkRows: returns its text.
std::string printChunkRows(int64_t rows);

/// How "auto" chooses the rows of a chunk: as many as take `mostBytes` of
/// logits, but not fewer than `leastRows`, and a multiple of `rowStep`.
struct ChunkRule {
  int64_t mostBytes, leastRows, rowStep;
  /// An evaluation's results are read, and nothing is said of it.
  bool evaluates = false;
  /// Where the rows of a chunk are given: the number of chunks, whose last ones
  /// are filled with ignored rows; 0: as many as there are rows for.
  int64_t blocks = 0;
  /// Chunks are not made smaller than this to have more than four.
  int64_t enoughRows = 0;
};

/// The rows of the largest head that was cut into chunks, and their number, on
/// modules that leave a size open.
inline constexpr llvm::StringLiteral kChunksAttr = "ckopt.chunks";

/// Rewrites cross entropies of large heads to chunks of rows; see the pass
/// chunk-vocab and parseChunkRows.
llvm::LogicalResult chunkVocabulary(mlir::func::FuncOp function,
                                    llvm::StringRef rows,
                                    const ChunkRule &rule);

/// How "auto" tiles a region whose largest value has `leastBytes` or more: a
/// block of rows takes at most `mostBytes` of it where `mostBlocks` blocks are
/// enough for that; its rows are a multiple of `rowStep`.
struct TileRule {
  int64_t leastBytes, mostBytes, mostBlocks, rowStep;
  bool draws; ///< regions with a dropout are tiled
};

/// Writes regions that work row by row as blocks of rows, in this function or
/// (with an empty name) in all; see the pass tile-rows and parseChunkRows.
llvm::LogicalResult tileRows(mlir::ModuleOp module, llvm::StringRef function,
                             llvm::StringRef rows, const TileRule &rule);

/// Rewrites linear_cross_entropy and its gradient to matmuls and cross
/// entropies of one chunk after another, whose rows are padded to a multiple of
/// `classGroup` (0: not padded).
void unrollChunks(mlir::func::FuncOp function, int64_t classGroup = 0);

/// Rewrites matmuls with more batch dimensions than libraries support to one
/// batch dimension. With `widenHalves`, matmuls and convolutions of f16 are
/// computed in f32.
void fitContractions(mlir::func::FuncOp function, bool widenHalves);

/// Rewrites composite ops to reductions and elementwise ops, and concatenations
/// of more than `maxJoined` tensors (unless 0; at least 2) to several. Unrolls
/// chunks of losses as unrollChunks does.
void decompose(mlir::func::FuncOp function, unsigned maxJoined = 0,
               int64_t classGroup = 0);

/// Pads input channels of convolutions to a multiple of `group` unless that
/// adds more than a third; see the pass widen-channels.
void widenChannels(mlir::func::FuncOp function, int64_t group);

} // namespace ckopt

#endif // CKOPT_NORMALIZE_NORMALIZE_H
