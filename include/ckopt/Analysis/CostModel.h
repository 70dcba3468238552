//===- CostModel.h - seconds of a kernel ------------------------*- C++ -*-===//
//
// What a kernel is expected to take: the larger of its arithmetic at the rate
// of its kind and its bytes at the machine's bandwidth, plus a start. The plan
// only needs the proportions; a profile of the machine replaces the table.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_COSTMODEL_H
#define CKOPT_ANALYSIS_COSTMODEL_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace ckopt {

/// Rates of a machine. The defaults were measured on two AVX-512 cores (see
/// the table in CostModel.cpp).
struct MachineRates {
  double bandwidth = 14e9;     ///< bytes a second, from and to memory
  double matmul = 280e9;       ///< flops a second, large f32 products
  double conv = 230e9;         ///< channels-last f32, dense
  double depthwiseConv = 40e9; ///< groups = channels
  double vector = 60e9;        ///< simple vector operations
  double overhead = 2e-6;      ///< seconds to start a kernel
};

/// Costs of ops; remembers each kernel symbol's. Not thread safe.
class CostModel {
public:
  explicit CostModel(const MachineRates &rates = {}) : rates(rates) {}

  /// Seconds of one execution. Kernel calls: their `cost` if it is set, else an
  /// estimate of the callee. Other ops: an estimate from their interfaces, or
  /// from the bytes of their operands and results.
  double seconds(mlir::Operation *op);

private:
  double kernelSeconds(mlir::Operation *callee);
  double flopSeconds(mlir::Operation *op);

  MachineRates rates;
  llvm::DenseMap<mlir::Operation *, double> kernels;
  mlir::SymbolTableCollection symbols;
};

/// Sets `cost` on every kernel call of the function that has none.
void annotateCosts(mlir::Operation *function, CostModel &model);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_COSTMODEL_H
