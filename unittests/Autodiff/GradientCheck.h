//===- GradientCheck.h - gradients against central differences --*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A case builds a small function of its arguments. The check takes the loss
// sum(result * weight) with random weights, differentiates by every
// floating-point argument, and compares with central differences of the
// reference interpreter in double precision. Then: each argument alone gives
// the same gradient; f32 and bf16 forms verify (f32 with the same numbers); and
// decompose changes no value.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_AUTODIFF_GRADIENTCHECK_H
#define CKOPT_UNITTESTS_AUTODIFF_GRADIENTCHECK_H

#include "ckopt/Dialect/Ckopt/Utils/TensorBuilder.h"
#include "ckopt/Reference/Tensor.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <functional>
#include <gtest/gtest.h>

namespace ckopt::test {

struct Arg {
  llvm::SmallVector<int64_t> shape;
  double low, high;
  bool integer = false;
  std::vector<double> values; ///< instead of random ones
};

/// A float argument with random values in [low, high).
Arg real(llvm::ArrayRef<int64_t> shape, double low = -1, double high = 1);
/// A float argument with these values.
Arg values(llvm::ArrayRef<int64_t> shape, std::vector<double> numbers);
/// An i64 argument with random values in [low, high).
Arg ints(llvm::ArrayRef<int64_t> shape, int64_t low, int64_t high);
/// An i64 argument with these values.
Arg intValues(llvm::ArrayRef<int64_t> shape, std::vector<double> numbers);

using Build = std::function<llvm::SmallVector<mlir::Value>(TensorBuilder &,
                                                           mlir::ValueRange)>;

struct GradientCase {
  std::string name;
  std::vector<Arg> args;
  Build build; ///< float results
  double tolerance = 1e-6;
};

/// Prints a case for gtest.
inline void PrintTo(const GradientCase &test, std::ostream *os) {
  *os << test.name;
}
/// gtest's name of a case.
inline std::string caseName(const testing::TestParamInfo<GradientCase> &info) {
  return info.param.name;
}

/// A context with the dialect, the rules and the interpreter.
mlir::MLIRContext &testContext();

/// The function of a case; float arguments and results have `element`.
class TestFunction {
public:
  TestFunction(const GradientCase &test, mlir::Type element);
  TestFunction(const TestFunction &other);

  mlir::func::FuncOp get() const;
  bool verify() const;
  /// Differentiates by these arguments (all if empty).
  bool differentiate(llvm::ArrayRef<unsigned> wrt = {});
  /// All results, in double.
  std::vector<reference::Tensor>
  evaluate(llvm::ArrayRef<reference::Tensor> args) const;
  /// Returns random arguments and weights in double, or those that `get` gives.
  std::vector<reference::Tensor> arguments(const GradientCase &test) const;

private:
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

void checkGradients(const GradientCase &test);

/// The gradients by all float arguments, where the loss is the plain sum of
/// the results.
std::vector<std::vector<double>> gradientsOf(const GradientCase &test);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_AUTODIFF_GRADIENTCHECK_H
