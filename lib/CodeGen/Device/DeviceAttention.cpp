//===- DeviceAttention.cpp - attention kernels of a GPU -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "AttentionTile.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/RandomSite.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Support/Error.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::PrimitiveKind;

namespace {

class DeviceAttention final : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;

  LogicalResult plan() override;
  LogicalResult emit(ModuleOp into) override;

private:
  const runtime::AttentionDesc &desc() const {
    return code.primitive.attention;
  }
  bool isGradient() const {
    return code.primitive.kind == PrimitiveKind::AttentionGrad;
  }
  LogicalResult refuse(const MessageText &why) {
    InFlightDiagnostic error = kernel.front().front().emitError("attention ");
    setExitCode(error, ExitUnsupported);
    return error << why;
  }
  void bindOperands();

  AttentionOperands operands;
  OperandForm form;
};

} // namespace

/// Names the arguments in the order of runtime::PrimitiveKind.
void DeviceAttention::bindOperands() {
  unsigned next = 0;
  auto take = [&](Operand &x) {
    unsigned number = code.primitiveArgs[next++];
    unsigned arguments = kernel.getNumArguments();
    Type type = number < arguments
                    ? kernel.getArgument(number).getType()
                    : terminator.getOperand(number - arguments).getType();
    x = {number, storageType(getElementTypeOrSelf(type))};
  };
  for (Operand *x : {&operands.q, &operands.k, &operands.v})
    take(*x);
  if (desc().hasBias)
    take(operands.bias);
  if (desc().hasMask)
    take(operands.mask);
  if (desc().hasDropout) {
    take(operands.seed);
    take(operands.step);
    operands.site = *randomSite(&kernel.front().front());
  }
  take(operands.o);
  take(operands.lse);
  if (isGradient())
    for (Operand *x :
         {&operands.grad, &operands.qGrad, &operands.kGrad, &operands.vGrad})
      take(*x);
}

LogicalResult DeviceAttention::plan() {
  if (failed(describePrimitive(kernel, options, code)))
    return failure();
  if (code.primitive.dtype == DType::F64)
    return refuse("has no code on a GPU in f64; compute it in f32, or run this "
                  "model on the CPU");
  if (std::max(desc().depth, desc().width) > AttentionTile::kMostColumns)
    return refuse("of more than " + Twine(AttentionTile::kMostColumns) +
                  " columns has no code on a GPU as one op; use " +
                  Setting("attention", "off"));
  bindOperands();
  form = operandForm(operands.q, operands.k, Float32Type::get(ctx),
                     code.primitive.precision);
  int64_t wide = operands.q.wide();
  StringRef reason = desc().depth % wide || desc().width % wide
                         ? "elements that pass at once are no neighbours in "
                           "memory"
                         : "";
  int64_t rows = AttentionTile::rows(desc());
  if (isGradient()) {
    code.workspaceBytes = 4 * rows;
    addLaunch(AttentionTile::dotBlocks(desc()), AttentionTile::kDotThreads,
              /*together=*/true, reason);
    addLaunch(AttentionTile::queryBlocks(desc()), TileProducts::kThreads,
              /*together=*/true, reason);
    for (int i = 0; i < (AttentionTile::sumsTogether(desc()) ? 1 : 2); ++i)
      addLaunch(AttentionTile::keyBlocks(desc()), TileProducts::kThreads,
                /*together=*/true, reason);
  } else {
    addLaunch(AttentionTile::queryBlocks(desc()), TileProducts::kThreads,
              /*together=*/true, reason);
  }
  return success();
}

LogicalResult DeviceAttention::emit(ModuleOp into) {
  using Emit = void (AttentionTile::*)(Value);
  auto blocks = [&](unsigned number, Emit fn) {
    return emitLaunch(into, number, [&](Emitter &e, Value block) {
      // Two blocks share a multiprocessor, so that one computes while the other
      // waits. That leaves 128 registers a thread, and some are spilled.
      e.stage->setAttr("ckopt.gpu.resident", e.b.getI32IntegerAttr(2));
      AttentionTile tile(e, desc(), operands, form);
      (tile.*fn)(block);
    });
  };
  if (!isGradient())
    return blocks(0, &AttentionTile::emitForward);
  if (failed(
          emitLaunch(into, 0,
                     [&](Emitter &e, Value block) {
                       runtime::AttentionDesc plain = desc();
                       plain.hasDropout = false; // it is in the output
                       AttentionTile(e, plain, operands, form).emitDots(block);
                     })) ||
      failed(blocks(1, &AttentionTile::emitQueryGradient)))
    return failure();
  if (AttentionTile::sumsTogether(desc()))
    return blocks(2, &AttentionTile::emitKeyGradients);
  return success(succeeded(blocks(2, &AttentionTile::emitValueGradient)) &&
                 succeeded(blocks(3, &AttentionTile::emitKeyGradient)));
}

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceAttention(func::FuncOp kernel,
                             const CodegenOptions &options) {
  return std::make_unique<DeviceAttention>(kernel, options);
}
