//===- DeviceCollective.cpp - kernels of collectives on a GPU -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The runtime moves bytes between ranks (Runtime/DeviceCollectives.h). Sums
// need a kernel: it adds the slots of the workspace, one for each rank, in the
// order of the ranks, into the first one. Blocks of equal width share the
// kernel. A collective that only starts has the same launches; its wait has
// none.
//
//===----------------------------------------------------------------------===//
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Runtime/DeviceCollectives.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

namespace {

class DeviceCollective : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;

  LogicalResult plan() override {
    if (failed(describePrimitive(kernel, options, code)))
      return failure();
    auto op = cast<KernelOpInterface>(kernel.front().front());
    for (auto [operand, result] : op.getReusePairs())
      code.reuse.emplace_back(code.primitiveArgs[operand], result);
    // A start works in its last result, which is alive until the wait.
    code.workspaceBytes = code.primitive.allReduce.started
                              ? 0
                              : runtime::deviceWorkspace(code.primitive);
    if (!runtime::isDeviceSum(code.primitive))
      return success();
    for (int64_t width : widths())
      addLaunch(llvm::divideCeil(width, int64_t(lanes)), kBlockThreads,
                /*together=*/false);
    return success();
  }

  LogicalResult emit(ModuleOp into) override {
    for (unsigned stage = 0; stage < code.stages.size(); ++stage) {
      int64_t items = llvm::divideCeil(widths()[stage], int64_t(lanes));
      if (failed(emitThreads(into, stage, items, [&](Emitter &e, Value item) {
            addSlots(e, item);
          })))
        return failure();
    }
    return success();
  }

private:
  /// The width of all blocks but the last, and of the last if it differs.
  SmallVector<int64_t> widths() const {
    SmallVector<int64_t> result;
    for (const runtime::SumPiece &piece : runtime::sumPieces(code.primitive))
      if (result.empty() || result.back() != piece.width)
        result.push_back(piece.width);
    return result;
  }

  /// Adds a vector of each slot. The last one may reach into the padding, which
  /// is zero.
  void addSlots(Emitter &e, Value item) {
    const runtime::PrimitiveDesc &desc = code.primitive;
    Type element = desc.dtype == DType::F64 ? Type(e.b.getF64Type())
                                            : Type(e.b.getF32Type());
    AffineExpr at =
        e.addDim(e.mul(item, e.index(int64_t(lanes))), /*lane=*/lanes > 1);
    int64_t slot = runtime::slotElements(desc);
    Value sum = e.loadFrom(e.scratch, element, at);
    for (int64_t rank = 1; rank < desc.allReduce.ranks; ++rank)
      sum = e.add(sum, e.loadFrom(e.scratch, element, at + rank * slot));
    e.storeTo(e.scratch, element, at, sum);
  }
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceCollective(func::FuncOp kernel,
                              const CodegenOptions &options) {
  return std::make_unique<DeviceCollective>(kernel, options);
}
