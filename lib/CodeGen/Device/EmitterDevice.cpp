//===- EmitterDevice.cpp - threads of a block, shared and private memory --===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// These functions of the emitter are needed only by launches in block form. A
// buffer is an argument of the launch in an address space of its own; the
// lowering of block form decides where it lies.
//
//===----------------------------------------------------------------------===//
#include "Emit/Emitter.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

Emitter::Emitter(Launch, func::FuncOp kernel, func::FuncOp launch,
                 OpBuilder &builder, unsigned lanes)
    : ValueBuilder(kernel.getLoc(), builder, lanes), kernel(kernel),
      stage(launch), ctx(kernel.getContext()) {
  unsigned count = kernel.getNumArguments() + kernel.getNumResults();
  for (unsigned i = 0; i < count; ++i)
    argPtrs.push_back(launch.getArgument(i));
  scratch = launch.getArgument(count);
  indexType = b.getI32Type();
  report.lanes = lanes;
  levels.push_back({nullptr, nextLevelId++});
  auto module = kernel->getParentOfType<ModuleOp>();
  approximates = approximatesElements =
      module && module->hasAttr(kApproximatesAttr);
}

Emitter Emitter::forLaunch(func::FuncOp kernel, func::FuncOp launch,
                           OpBuilder &builder, unsigned lanes) {
  return Emitter(Launch(), kernel, launch, builder, lanes);
}

void Emitter::forThreads(int64_t count, function_ref<void(Value)> body,
                         ArrayRef<NamedAttribute> attributes) {
  auto mapping = gpu::GPUThreadMappingAttr::get(ctx, gpu::MappingId::DimX);
  auto loop =
      scf::ForallOp::create(b, ArrayRef<OpFoldResult>{b.getIndexAttr(count)},
                            ValueRange(), b.getArrayAttr({mapping}));
  for (NamedAttribute attribute : attributes)
    loop->setAttr(attribute.getName(), attribute.getValue());
  Operation *before = levels.back().child;
  enter(loop);
  b.setInsertionPoint(loop.getBody()->getTerminator());
  thread = loop.getInductionVar(0);
  body(arith::IndexCastOp::create(b, b.getI64Type(), thread));
  leave();
  levels.back().child = before;
  b.setInsertionPointAfter(loop);
}

SmallVector<Value> Emitter::choose(Value number,
                                   ArrayRef<SmallVector<Value>> choices) {
  Value at = arith::IndexCastOp::create(b, b.getIndexType(), number);
  auto cases = llvm::to_vector(
      llvm::seq<int64_t>(0, int64_t(choices.size()) - 1)); // then the default
  auto choice = scf::IndexSwitchOp::create(
      b, TypeRange(ValueRange(choices.front())), at, cases, cases.size());
  OpBuilder::InsertionGuard guard(b);
  for (auto [i, values] : llvm::enumerate(choices)) {
    Region &region = i < cases.size() ? choice.getCaseRegions()[i]
                                      : choice.getDefaultRegion();
    b.setInsertionPointToEnd(&region.emplaceBlock());
    scf::YieldOp::create(b, values);
  }
  return SmallVector<Value>(choice.getResults());
}

static Value addBuffer(func::FuncOp launch, ArrayRef<int64_t> shape,
                       Type element, gpu::AddressSpace space) {
  auto where = gpu::AddressSpaceAttr::get(launch.getContext(), space);
  auto type = MemRefType::get(shape, element, MemRefLayoutAttrInterface(),
                              Attribute(where));
  unsigned at = launch.getNumArguments();
  (void)launch.insertArgument(at, type, {}, launch.getLoc());
  return launch.getArgument(at);
}

Value Emitter::sharedBuffer(Type element, int64_t count) {
  return addBuffer(stage, {count}, element, gpu::AddressSpace::Workgroup);
}

Value Emitter::privateBuffer(Type element, int64_t threads, int64_t count) {
  return addBuffer(stage, {threads, count}, element,
                   gpu::AddressSpace::Private);
}
