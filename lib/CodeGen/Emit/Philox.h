//===- Philox.h - code of counter-based random numbers ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Emits the rounds of Philox4x32-10 as in ckopt/Base/Philox.h.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CODEGEN_EMIT_PHILOX_H
#define CKOPT_LIB_CODEGEN_EMIT_PHILOX_H

#include "Emitter.h"

namespace ckopt::codegen {

/// The generator's rounds.
class Philox {
public:
  explicit Philox(Emitter &e) : e(e), b(e.b) {}

  /// Computes one block of i32 words, all scalars.
  SmallVector<Value> rounds(SmallVector<Value> counter, Value key0,
                            Value key1) {
    return rounds(counter, key0, key1, [&](Value x, uint32_t factor) {
      Value wide = mlir::arith::ExtUIOp::create(b, b.getI64Type(), x);
      Value product = e.mul(wide, number(wide, factor));
      return std::pair(narrow(e.shr(product, 32)), narrow(product));
    });
  }

  /// Computes blocks of words, each a scalar or a vector of i64 whose lower
  /// half counts: the form of the machine's widening multiplication. Words that
  /// all blocks share stay scalars, outside of loops.
  SmallVector<Value> wideRounds(SmallVector<Value> counter, Value key0,
                                Value key1) {
    return rounds(counter, key0, key1, [&](Value x, uint32_t factor) {
      Value half = mlir::arith::AndIOp::create(b, x, number(x, 0xffffffff));
      Value product = mlir::arith::MulIOp::create(b, half, number(x, factor));
      Value high =
          mlir::arith::ShRUIOp::create(b, product, number(product, 32));
      return std::pair(high, product);
    });
  }

  /// Returns a scalar as a value of x's type.
  Value like(Value x, Value scalar) {
    if (!mlir::isa<mlir::VectorType>(x.getType()))
      return scalar;
    return mlir::vector::BroadcastOp::create(b, x.getType(), scalar);
  }
  /// Returns a 64-bit number of x's type.
  Value number(Value x, int64_t value) {
    return like(x, e.constant(b.getI64Type(), value));
  }

private:
  /// `multiply` returns the high and low words of x * factor.
  SmallVector<Value> rounds(
      SmallVector<Value> counter, Value key0, Value key1,
      llvm::function_ref<std::pair<Value, Value>(Value, uint32_t)> multiply) {
    Type word = mlir::getElementTypeOrSelf(counter[0]);
    auto key = [&](Value k) -> Value {
      return word == k.getType() ? k : mlir::arith::ExtUIOp::create(b, word, k);
    };
    for (int round = 0; round < 10; ++round) {
      auto [high0, low0] = multiply(counter[0], 0xD2511F53u);
      auto [high1, low1] = multiply(counter[2], 0xCD9E8D57u);
      counter = {xorOf(xorOf(high1, counter[1]), key(key0)), low1,
                 xorOf(xorOf(high0, counter[3]), key(key1)), low0};
      key0 = e.add(key0, e.constant(key0.getType(), int64_t(0x9E3779B9u)));
      key1 = e.add(key1, e.constant(key1.getType(), int64_t(0xBB67AE85u)));
    }
    return counter;
  }
  Value narrow(Value x) {
    return mlir::arith::TruncIOp::create(b, b.getI32Type(), x);
  }
  Value xorOf(Value x, Value y) {
    if (mlir::isa<mlir::VectorType>(x.getType()))
      y = mlir::isa<mlir::VectorType>(y.getType()) ? y : like(x, y);
    else if (mlir::isa<mlir::VectorType>(y.getType()))
      x = like(y, x);
    return mlir::arith::XOrIOp::create(b, x, y);
  }

  Emitter &e;
  mlir::ImplicitLocOpBuilder &b;
};

} // namespace ckopt::codegen

#endif // CKOPT_LIB_CODEGEN_EMIT_PHILOX_H
