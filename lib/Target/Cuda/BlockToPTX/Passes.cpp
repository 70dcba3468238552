//===- Passes.cpp - print-ptx ---------------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/BlockToPTX/BlockToPTX.h"
#include "llvm/Support/raw_ostream.h"

namespace ckopt {
#define GEN_PASS_DEF_PRINTPTXPASS
#include "ckopt/Target/Cuda/BlockToPTX/Passes.h.inc"
} // namespace ckopt

using namespace mlir;
using namespace ckopt;

static void print(const PtxModule &ptx, raw_ostream &os) {
  os << "sm_" << ptx.sm << ", PTX " << ptx.isaMajor << "." << ptx.isaMinor
     << ", driver " << ptx.driverVersion << ": " << ptx.oldestDriver << "\n";
  for (const PtxKernel &kernel : ptx.kernels) {
    os << kernel.symbol << "(";
    for (PtxKernel::Parameter parameter : kernel.parameters)
      os << (parameter == PtxKernel::Parameter::Pointer ? "p" : "s");
    os << "): grid " << kernel.grid << ", block " << kernel.block << ", shared "
       << kernel.sharedBytes << (kernel.usesF64 ? ", f64" : "") << ", wide "
       << kernel.wideAccesses << ", narrow " << kernel.narrowAccesses
       << ", split " << kernel.splitVectors << ", trees "
       << kernel.shuffledTrees << "+" << kernel.plainTrees << ", loads "
       << kernel.mostLoads << " together, " << kernel.loadStretches
       << " times\n";
  }
}

static void print(ArrayRef<AssembledKernel> kernels, raw_ostream &os) {
  for (const AssembledKernel &kernel : kernels)
    os << kernel.symbol << ": " << kernel.registers << " registers, "
       << kernel.spillStoreBytes + kernel.spillLoadBytes << " bytes spilled, "
       << kernel.sharedBytes << " bytes shared, " << kernel.stackBytes
       << " bytes stack\n";
}

namespace {
struct PrintPtx : ckopt::impl::PrintPtxPassBase<PrintPtx> {
  using PrintPtxPassBase::PrintPtxPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    PtxOptions options;
    options.sm = sm;
    options.keepDenormals = keepDenormals;
    options.tf32 = tf32;
    options.programmatic = programmatic;
    auto ptx = emitPtx(getOperation(), options);
    if (!ptx)
      return fail(ptx.takeError());
    if (assemble)
      return runAssembler(*ptx);
    if (report)
      print(*ptx, llvm::outs());
    else
      llvm::outs() << ptx->text;
  }

private:
  void fail(llvm::Error error) {
    getOperation().emitError() << takeErrorText(std::move(error)).message;
    signalPassFailure();
  }
  void runAssembler(const PtxModule &ptx) {
    auto ptxas = findPtxas();
    if (!ptxas) {
      llvm::outs() << "ptxas is not installed: NOT assembled\n";
      return;
    }
    auto kernels = ckopt::assemble(ptx.text, ptx.sm, *ptxas);
    if (!kernels)
      return fail(kernels.takeError());
    print(*kernels, llvm::outs());
  }
};
} // namespace
