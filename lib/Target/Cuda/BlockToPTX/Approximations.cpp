//===- Approximations.cpp - functions that a GPU approximates -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: NVIDIA states how far ex2 and rcp may be off (PTX ISA, "Floating
// Point Instructions"), but not by which bits. A test with exact functions
// would be nicer to the code around them than a device may be.
//
// Method: the CPU computes the function in f64, moves the result by a fixed
// share up or down as the operand's bits have it, and rounds to f32. The share
// is what the stated error leaves beside that rounding. Where NVIDIA states the
// result (zero, infinity, NaN), nothing is moved. The interpreter of the tests
// (test/lib/CudaStandin/Ptx/Float.cpp) has the same model, so that both have
// the same bits.
//
// Guarantee: results are within the stated error of the exact ones, and most of
// them near to it.
//
//===----------------------------------------------------------------------===//
#include "Approximations.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::blockform;

namespace {
/// A function, as a device and as the model have it.
struct Approximation {
  StringRef intrinsic;
  double share;
  Value (*exact)(ImplicitLocOpBuilder &b, Value x); ///< of f64
};
} // namespace

static Approximation approximationOf(block::ApproxExp2Op) {
  return {"llvm.nvvm.ex2.approx.ftz.f32", 0x1p-22 - 0x1.1p-24,
          [](ImplicitLocOpBuilder &b, Value x) -> Value {
            return math::Exp2Op::create(b, x);
          }};
}

/// The error is one unit in the last place, of which rounding takes half.
static Approximation approximationOf(block::ApproxReciprocalOp) {
  return {"llvm.nvvm.rcp.approx.ftz.f", 0x1p-25,
          [](ImplicitLocOpBuilder &b, Value x) -> Value {
            Value one = arith::ConstantOp::create(b, b.getF64FloatAttr(1));
            return arith::DivFOp::create(b, one, x);
          }};
}

static Value byDevice(ImplicitLocOpBuilder &b, const Approximation &function,
                      Value x) {
  return LLVM::CallIntrinsicOp::create(b, x.getType(),
                                       b.getStringAttr(function.intrinsic), x)
      .getResult(0);
}

static Value byModel(ImplicitLocOpBuilder &b, const Approximation &function,
                     Value x) {
  Type f64 = b.getF64Type(), i32 = b.getI32Type();
  auto number = [&](double v) -> Value {
    return arith::ConstantOp::create(b, b.getF64FloatAttr(v));
  };
  Value bits = arith::BitcastOp::create(b, i32, x);
  // Of bf16 only the upper half has bits.
  Value upper =
      arith::ShRUIOp::create(b, bits, arith::ConstantIntOp::create(b, i32, 16));
  Value side = arith::TruncIOp::create(b, b.getI1Type(),
                                       arith::XOrIOp::create(b, bits, upper));
  Value wide = arith::ExtFOp::create(b, f64, x);
  Value isStated = arith::CmpFOp::create(
      b, arith::CmpFPredicate::OEQ, arith::AddFOp::create(b, wide, wide), wide);
  Value factor = arith::SelectOp::create(b, side, number(1 + function.share),
                                         number(1 - function.share));
  factor = arith::SelectOp::create(b, isStated, number(1), factor);
  Value exact = function.exact(b, wide);
  return arith::TruncFOp::create(b, b.getF32Type(),
                                 arith::MulFOp::create(b, exact, factor));
}

template <typename Op>
static void expandAll(func::FuncOp kernel, bool onDevice) {
  SmallVector<Op> all;
  kernel->walk([&](Op op) { all.push_back(op); });
  for (Op op : all) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    Approximation function = approximationOf(op);
    auto expanded = [&](Value x) {
      return onDevice ? byDevice(b, function, x) : byModel(b, function, x);
    };
    auto vector = dyn_cast<VectorType>(op.getType());
    Value result;
    if (vector) {
      SmallVector<Value> elements;
      for (int64_t i = 0; i < vector.getNumElements(); ++i)
        elements.push_back(
            expanded(vector::ExtractOp::create(b, op.getX(), i)));
      result = vector::FromElementsOp::create(b, vector, elements);
    } else {
      result = expanded(op.getX());
    }
    op.replaceAllUsesWith(result);
    op.erase();
  }
}

void blockform::expandApproximations(const Kernel &kernel, bool onDevice) {
  expandAll<block::ApproxExp2Op>(kernel.function, onDevice);
  expandAll<block::ApproxReciprocalOp>(kernel.function, onDevice);
}

bool blockform::usesApproximations(const Kernel &kernel) {
  func::FuncOp function = kernel.function;
  return function
      ->walk([](Operation *op) {
        return block::isApproximate(op) ? WalkResult::interrupt()
                                        : WalkResult::advance();
      })
      .wasInterrupted();
}
