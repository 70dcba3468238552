//===- KernelJit.h - runs one kernel against the interpreter ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel, given as text or taken from a network, is planned, emitted,
// compiled by LLVM's JIT and run on random operands, each in a buffer of its
// own that ends at an inaccessible page. Checked: results against the reference
// interpreter; the same bits however the stages' ranges are cut and ordered;
// the same bits with every pair of `reuse` sharing bytes; no write to operands
// or outside of results. The same kernel in block form, lowered to loops, must
// meet the same checks with threads and blocks ascending and descending, and
// where it only computes or moves elements give the CPU's bits. A kernel given
// as text also runs as PTX, in the interpreter of lib/CudaStandin/Ptx, which
// must give the bits of the loops.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_CONVERSION_KERNELJIT_H
#define CKOPT_UNITTESTS_CONVERSION_KERNELJIT_H

#include "ckopt/Conversion/Kernels/Kernels.h"
#include "ckopt/Reference/Tensor.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ckopt::test {

struct KernelOptions {
  double absolute = 1e-6, relative = 2e-6; ///< allowed difference, f32
  double low = -1, high = 1;               ///< range of random floats
  double intLow = 0, intHigh = 4;          ///< range of random integers
  std::vector<int64_t> scalars;            ///< of the call
  uint64_t seed = 1;
  unsigned vectorBits = 512;
  std::vector<double> absolutes; ///< instead of `absolute`, one a result
  unsigned reuseRounds = ~0u;    ///< runs with operands that share bytes
  /// Of products in block form. What is wanted is then the interpreter's result
  /// for operands rounded so.
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
  /// Operands with given values instead of random ones.
  std::vector<std::pair<unsigned, reference::Tensor>> given;
};

/// What a kernel is compiled to: the CPU's code, or the block form as loops,
/// threads and blocks in either order.
enum class KernelForm { CPU, Ascending, Descending };

/// Runs a device kernel's launches in place of code that the JIT compiled.
class KernelLauncher {
public:
  virtual ~KernelLauncher() = default;
  /// Memory that the launch may touch.
  struct Range {
    const void *begin;
    int64_t bytes;
    std::string name;
  };
  /// `values`: of the launch parameters. Fails the test on any error.
  virtual void launch(llvm::StringRef symbol, llvm::ArrayRef<uint64_t> values,
                      llvm::ArrayRef<Range> memory) = 0;
};
/// Of a module in block form; null with a failed test.
using MakeLauncher =
    std::function<std::unique_ptr<KernelLauncher>(mlir::ModuleOp)>;

/// Of launches, with contractions of our own.
CodegenOptions launchOptions(
    runtime::ProductPrecision precision = runtime::ProductPrecision::F32);

/// All that kernels are made of and run by.
void loadKernelDialects(mlir::MLIRContext &context);

/// A compiled kernel.
class KernelJit {
public:
  /// `text`: a module with one kernel @k. Fails the test on any error.
  explicit KernelJit(const std::string &text, unsigned vectorBits = 512);
  /// For CUDA: the block form as loops.
  static std::unique_ptr<KernelJit> onDevice(
      const std::string &text, bool descending,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32);
  /// For CUDA, with another way to run the block form.
  static std::unique_ptr<KernelJit> launchedBy(
      const MakeLauncher &make, const std::string &text,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32);
  /// Kernels of one module, compiled together and in order. They must outlive
  /// the result; their context has loadKernelDialects. `optLevel`: 0 or 2.
  static std::vector<std::unique_ptr<KernelJit>> compileAll(
      llvm::ArrayRef<mlir::func::FuncOp> kernels, KernelForm form,
      unsigned optLevel,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32);
  ~KernelJit();
  bool ok() const;
  bool isOnDevice() const;
  const KernelCode &code() const;
  mlir::func::FuncOp kernel() const;
  mlir::MLIRContext &context() const;
  VectorReport report() const;
  /// Runs all stages on argument pointers (operands, results), each stage as
  /// one range.
  void run(void *const *args, const int64_t *scalars, void *scratch) const;
  using Fn = void (*)(void *const *, const int64_t *, int64_t, int64_t, void *);
  Fn stage(size_t number) const;
  /// A launch on the CPU.
  void launch(size_t number, void *const *args, const int64_t *scalars,
              void *scratch) const;

private:
  struct Impl;
  KernelJit();
  std::unique_ptr<Impl> impl;
};

/// Interprets the block form's PTX for sm_80.
std::unique_ptr<KernelLauncher> interpretPtx(mlir::ModuleOp blockForm);

/// All the checks above; returns the results.
std::vector<reference::Tensor> checkKernel(const std::string &text,
                                           const KernelOptions &options = {});

/// The checks of the block form alone, for kernels that the CPU leaves to a
/// library; returns the results.
std::vector<reference::Tensor>
checkDeviceKernel(const std::string &text, const KernelOptions &options = {});

/// One kernel, compiled.
struct KernelForms {
  const KernelJit *cpu; ///< null: a library's
  const KernelJit *up, *down;
  const KernelJit *ptx = nullptr; ///< the PTX, interpreted; null: not run
};

/// The checks on given operands. `wanted`: of evaluateKernel.
std::vector<reference::Tensor>
checkForms(const KernelForms &forms, llvm::ArrayRef<reference::Tensor> inputs,
           llvm::ArrayRef<reference::Tensor> wanted,
           const KernelOptions &options);

/// Random operands of a kernel, as `options` say.
std::vector<reference::Tensor> makeInputs(mlir::func::FuncOp kernel,
                                          const KernelOptions &options);

/// Runs the kernel once and reads its results, without any check.
std::vector<reference::Tensor>
runKernel(const KernelJit &jit, llvm::ArrayRef<reference::Tensor> inputs);

/// Rounds numbers as products by `precision` round operands of f32.
void roundOperand(reference::Tensor &t, runtime::ProductPrecision precision);

/// The interpreter's results, in double without rounding.
llvm::LogicalResult evaluateKernel(mlir::func::FuncOp kernel,
                                   llvm::ArrayRef<reference::Tensor> inputs,
                                   llvm::ArrayRef<int64_t> scalars,
                                   std::vector<reference::Tensor> &results);

/// "func.func private @k(" + signature + ") -> (...) attributes {...} {" ...:
/// `args` like "%x: tensor<4xf32>", results like "tensor<4xf32>".
std::string kernelText(const std::string &kind, const std::string &args,
                       const std::string &results, const std::string &body);

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_CONVERSION_KERNELJIT_H
