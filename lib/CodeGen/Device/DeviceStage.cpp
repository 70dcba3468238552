//===- DeviceStage.cpp - stages of a kernel as launches in block form -----===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Builds launches: a loop over blocks around loops over threads. Items are
// numbered; either every thread handles one (emitThreads), or every block one
// together (emitBlocks). The assignment of items to blocks depends only on the
// shape.
//
//===----------------------------------------------------------------------===//
#include "Kinds/GeneratedKernel.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

void GeneratedKernel::addLaunch(int64_t items, int64_t block, bool together,
                                StringRef scalarReason) {
  std::string symbol =
      (kernel.getSymName() + "_s" + Twine(code.stages.size())).str();
  for (char &c : symbol) // PTX allows fewer characters in names
    if (!llvm::isAlnum(c))
      c = '_';
  int64_t blocks = together ? items : llvm::divideCeil(items, block);
  code.stages.push_back({symbol, blocks, 1, block, scalarReason.str()});
}

/// Makes the launch's function with its loop over blocks, and moves the builder
/// inside.
static func::FuncOp makeLaunch(func::FuncOp kernel, const KernelStage &stage,
                               OpBuilder &builder, Value &block) {
  MLIRContext *ctx = kernel.getContext();
  Location loc = kernel.getLoc();
  Type ptr = LLVM::LLVMPointerType::get(ctx);
  unsigned pointers = kernel.getNumArguments() + kernel.getNumResults() + 1;
  auto launch = func::FuncOp::create(
      builder, loc, stage.symbol,
      builder.getFunctionType(SmallVector<Type>(pointers, ptr), {}));
  launch->setAttr("ckopt.gpu.grid", builder.getI64IntegerAttr(stage.trip));
  launch->setAttr("ckopt.gpu.block", builder.getI64IntegerAttr(stage.block));
  for (unsigned i = 0; i < pointers; ++i)
    launch.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                      builder.getI64IntegerAttr(64));
  builder.setInsertionPointToStart(launch.addEntryBlock());
  auto mapping = gpu::GPUBlockMappingAttr::get(ctx, gpu::MappingId::DimX);
  auto blocks = scf::ForallOp::create(
      builder, loc, ArrayRef<OpFoldResult>{builder.getIndexAttr(stage.trip)},
      ValueRange(), builder.getArrayAttr({mapping}));
  func::ReturnOp::create(builder, loc);
  builder.setInsertionPoint(blocks.getBody()->getTerminator());
  block = arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                     blocks.getInductionVar(0));
  return launch;
}

LogicalResult
GeneratedKernel::emitLaunch(ModuleOp into, unsigned number,
                            function_ref<void(Emitter &, Value block)> body,
                            func::FuncOp of) {
  const KernelStage &stage = code.stages[number];
  if (stage.trip == 0)
    return success();
  OpBuilder builder(ctx);
  builder.setInsertionPointToEnd(into.getBody());
  Value block;
  func::FuncOp launch = makeLaunch(kernel, stage, builder, block);
  Emitter e = Emitter::forLaunch(of ? of : kernel, launch, builder, lanes);
  if (hasHugeTensors())
    e.useWideLaneIndices();
  body(e, block);
  return finishStage(e);
}

LogicalResult
GeneratedKernel::emitThreads(ModuleOp into, unsigned number, int64_t items,
                             function_ref<void(Emitter &, Value)> fn) {
  int64_t threads = code.stages[number].block;
  return emitLaunch(into, number, [&](Emitter &e, Value block) {
    Value first = e.mul(block, e.index(threads));
    e.forThreads(threads, [&](Value thread) {
      Value item = e.add(first, thread);
      if (items % threads == 0)
        return fn(e, item);
      e.ifThen(
          e.cmpi(arith::CmpIPredicate::slt, item, e.index(items)),
          [&] {
            fn(e, item);
            return SmallVector<Value>();
          },
          nullptr);
    });
  });
}
