//===- LabelRanges.h - what integer data may hold ---------------*- C++ -*-===//
#ifndef CKOPT_LIB_DRIVER_LABELRANGES_H
#define CKOPT_LIB_DRIVER_LABELRANGES_H

#include "ckopt/Driver/Training.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace ckopt {

/// Of arguments that hold labels of losses: their range, by name. Of several
/// losses the smallest counts.
std::map<std::string, LabelRange> findLabelRanges(mlir::func::FuncOp function);

/// Of data inputs that index tables: rows of the smallest, by name.
std::map<std::string, int64_t> findTableRows(mlir::func::FuncOp function);

} // namespace ckopt

#endif // CKOPT_LIB_DRIVER_LABELRANGES_H
