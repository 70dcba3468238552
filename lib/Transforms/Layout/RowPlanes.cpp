//===- RowPlanes.cpp - places attention's numbers of rows in planes -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: attention keeps two numbers of each row for its gradient, side by
// side: the logarithm of its sum, and what rounding took from that. Libraries
// write and read the first alone, densely.
// Method: the type of such a value gets the order in which its last dimension
// is the outermost, so that each of the numbers lies in a plane.
// Guarantee: values that anything else than the gradient reads stay as they
// are.
//
//===----------------------------------------------------------------------===//
#include "RowPlanes.h"

#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"

using namespace mlir;
using namespace ckopt;

void layout::placeRowsInPlanes(func::FuncOp function) {
  function.walk([](AttentionOp op) {
    Value lse = op.getLse();
    if (!llvm::all_of(lse.getUsers(), llvm::IsaPred<AttentionGradOp>))
      return;
    auto type = cast<RankedTensorType>(lse.getType());
    SmallVector<int64_t> order{type.getRank() - 1};
    llvm::append_range(order, llvm::seq(type.getRank() - 1));
    lse.setType(withOrder(type, order));
  });
}
