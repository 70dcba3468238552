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
  if (desc().hasSegments)
    take(operands.segments);
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
  auto launch = [&](int64_t blocks, int64_t threads) {
    addLaunch(blocks, threads, /*together=*/true, reason);
  };
  code.workspaceBytes = AttentionTile::rangeBytes(desc());
  if (isGradient())
    code.workspaceBytes += AttentionTile::dotBytes(desc());
  if (desc().hasSegments)
    launch(AttentionTile::rangeBlocks(desc()), AttentionTile::kDotThreads);
  if (isGradient())
    launch(AttentionTile::dotBlocks(desc()), AttentionTile::kDotThreads);
  launch(AttentionTile::queryBlocks(desc()), TileProducts::kThreads);
  for (int i = 0;
       isGradient() && i < (AttentionTile::sumsTogether(desc()) ? 1 : 2); ++i)
    launch(AttentionTile::keyBlocks(desc()), TileProducts::kThreads);
  return success();
}

LogicalResult DeviceAttention::emit(ModuleOp into) {
  using Emit = void (AttentionTile::*)(Value);
  unsigned number = 0;
  // Of one launch: passes over rows draw no numbers of a dropout, which is in
  // the output.
  auto rows = [&](Emit fn) {
    return emitLaunch(into, number++, [&](Emitter &e, Value block) {
      runtime::AttentionDesc plain = desc();
      plain.hasDropout = false;
      AttentionTile tile(e, plain, operands, form, isGradient());
      (tile.*fn)(block);
    });
  };
  auto blocks = [&](Emit fn) {
    return emitLaunch(into, number++, [&](Emitter &e, Value block) {
      // Two blocks share a multiprocessor, so that one computes while the other
      // waits. That leaves 128 registers a thread, and some are spilled.
      e.stage->setAttr("ckopt.gpu.resident", e.b.getI32IntegerAttr(2));
      AttentionTile tile(e, desc(), operands, form, isGradient());
      (tile.*fn)(block);
    });
  };
  if (desc().hasSegments && failed(rows(&AttentionTile::emitRanges)))
    return failure();
  if (!isGradient())
    return blocks(&AttentionTile::emitForward);
  if (failed(rows(&AttentionTile::emitDots)) ||
      failed(blocks(&AttentionTile::emitQueryGradient)))
    return failure();
  if (AttentionTile::sumsTogether(desc()))
    return blocks(&AttentionTile::emitKeyGradients);
  return success(succeeded(blocks(&AttentionTile::emitValueGradient)) &&
                 succeeded(blocks(&AttentionTile::emitKeyGradient)));
}

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceAttention(func::FuncOp kernel,
                             const CodegenOptions &options) {
  return std::make_unique<DeviceAttention>(kernel, options);
}
