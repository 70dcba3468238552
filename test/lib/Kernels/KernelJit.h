//===- KernelJit.h - runs kernels against the interpreter -------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A kernel is planned, emitted, compiled by LLVM's JIT and run on given
// operands, each in a buffer of its own that ends at an inaccessible page.
// Checked: results against the reference interpreter; the same bits however the
// stages' ranges are cut and ordered; the same bits with every pair of `reuse`
// sharing bytes; no write to operands or outside of results. The same kernel in
// block form, lowered to loops, must meet the same checks with threads and
// blocks ascending and descending, and where it only computes or moves elements
// give the CPU's bits, unless it approximates functions. Its PTX, in the
// interpreter of test/lib/CudaStandin/Ptx, must give the bits of the loops.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_KERNELS_KERNELJIT_H
#define CKOPT_TEST_LIB_KERNELS_KERNELJIT_H

#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Reference/Tensor.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ckopt {
struct PtxKernel;
} // namespace ckopt

namespace ckopt::test {

/// What was wrong, one sentence each.
using Failures = std::vector<std::string>;

struct KernelOptions {
  double absolute = 1e-6, relative = 2e-6; ///< allowed difference, f32
  double low = -1, high = 1;               ///< range of random floats
  double intLow = 0, intHigh = 4;          ///< range of random integers
  std::vector<int64_t> scalars;            ///< of the call
  uint64_t seed = 1;
  std::vector<double> absolutes; ///< instead of `absolute`, one a result
  unsigned reuseRounds = ~0u;    ///< runs with operands that share bytes
  /// Of products in block form. What is wanted is then the interpreter's result
  /// for operands rounded so.
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
};

/// What a kernel is compiled to: the CPU's code, or the block form as loops.
enum class KernelForm { CPU, Blocks };

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
  /// `values`: of the launch parameters. Returns what was wrong, or nothing.
  virtual std::string launch(llvm::StringRef symbol,
                             llvm::ArrayRef<uint64_t> values,
                             llvm::ArrayRef<Range> memory) = 0;
};
/// Of a module in block form; null where it cannot run, with the reason in
/// `error` unless that is as it should be.
using MakeLauncher = std::function<std::unique_ptr<KernelLauncher>(
    mlir::ModuleOp, std::string &error)>;

/// Of launches, with contractions of our own, for `device` (its variant of
/// contractions and number of multiprocessors).
CodegenOptions launchOptions(
    runtime::ProductPrecision precision = runtime::ProductPrecision::F32,
    const KernelSettings &device = {});

/// All that kernels are made of and run by.
void registerJitDialects(mlir::DialectRegistry &registry);
void loadKernelDialects(mlir::MLIRContext &context);

/// How kernels are compiled.
struct JitOptions {
  KernelForm form = KernelForm::CPU;
  unsigned optLevel = 2; ///< 0 or 2
  runtime::ProductPrecision precision = runtime::ProductPrecision::F32;
  unsigned vectorBits = 512; ///< of the CPU's code
  KernelSettings device;     ///< of launchOptions
};

/// A compiled kernel.
class KernelJit {
public:
  /// `text`: a module with one kernel @k.
  explicit KernelJit(const std::string &text, unsigned vectorBits = 512);
  /// For CUDA: the block form as loops.
  static std::unique_ptr<KernelJit> onDevice(
      const std::string &text,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32);
  /// For CUDA, with another way to run the block form.
  static std::unique_ptr<KernelJit> launchedBy(
      const MakeLauncher &make, const std::string &text,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32);
  static std::unique_ptr<KernelJit> launchedBy(
      const MakeLauncher &make, mlir::func::FuncOp kernel,
      runtime::ProductPrecision precision = runtime::ProductPrecision::F32,
      const KernelSettings &device = {});
  /// Kernels of one module, compiled together and in order. They must outlive
  /// the result; their context has loadKernelDialects.
  static std::vector<std::unique_ptr<KernelJit>>
  compileAll(llvm::ArrayRef<mlir::func::FuncOp> kernels,
             const JitOptions &options);
  ~KernelJit();
  /// The same code of block form, threads and blocks from the last to the
  /// first. This one must outlive the result.
  std::unique_ptr<KernelJit> reversed() const;
  /// Whether it can run. If not, `error` says why, unless a launcher refused.
  bool ok() const;
  const std::string &error() const;
  bool isOnDevice() const;
  /// Whether launches have a device's approximations of functions.
  bool approximates() const;
  const KernelCode &code() const;
  mlir::func::FuncOp kernel() const;
  mlir::MLIRContext &context() const;
  /// Runs all stages on argument pointers (operands, results), each stage as
  /// one range.
  void run(void *const *args, const int64_t *scalars, void *scratch) const;
  using Fn = void (*)(void *const *, const int64_t *, int64_t, int64_t, void *);
  Fn stage(size_t number) const;
  /// A launch on the CPU. Returns what was wrong, or nothing.
  std::string launch(size_t number, void *const *args, const int64_t *scalars,
                     void *scratch) const;
  /// Launches all stages on zeros. Returns what was wrong in each, or nothing.
  std::vector<std::string> launchOnZeros() const;

private:
  struct Impl;
  KernelJit();
  std::unique_ptr<Impl> impl;
};

/// Interprets the block form's PTX for sm_80.
std::unique_ptr<KernelLauncher> interpretPtx(mlir::ModuleOp blockForm,
                                             std::string &error);

/// The bytes of shared memory that a launch must ask for.
uint32_t dynamicSharedBytes(const PtxKernel &kernel);

/// One kernel, compiled.
struct KernelForms {
  const KernelJit *cpu; ///< null: a library's
  const KernelJit *up, *down;
  const KernelJit *ptx = nullptr; ///< the PTX, interpreted; null: not run
};

/// All the checks above on given operands. `wanted`: of evaluateKernel.
/// Returns the results.
std::vector<reference::Tensor>
checkForms(const KernelForms &forms, llvm::ArrayRef<reference::Tensor> inputs,
           llvm::ArrayRef<reference::Tensor> wanted,
           const KernelOptions &options, Failures &failures);

/// Random operands of a kernel, as `options` say.
std::vector<reference::Tensor> makeInputs(mlir::func::FuncOp kernel,
                                          const KernelOptions &options);

/// Runs the kernel once and reads its results, without any check.
std::vector<reference::Tensor>
runKernel(const KernelJit &jit, llvm::ArrayRef<reference::Tensor> inputs);

/// Returns a kernel's operands, those of f32 that are multiplied as products by
/// `precision` round them.
std::vector<reference::Tensor>
roundedOperands(const KernelJit &jit, llvm::ArrayRef<reference::Tensor> inputs,
                runtime::ProductPrecision precision);

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

#endif // CKOPT_TEST_LIB_KERNELS_KERNELJIT_H
