//===- StepToLLVM.cpp - planned functions to code over the arena ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a planned function gives every value an offset; the code has to call
// each kernel with the addresses and do nothing else. Method: each planned
// function becomes one LLVM function. It has one array of pointers and one of
// scalars on its stack, sized for the widest call, fills them for each call and
// calls ckrt_parallel_for (generated kernels, one call a stage) or ckrt_execute
// (library primitives; a failure returns at once). Guarantee: only addresses of
// planned bytes are passed. Complexity: linear in calls and operands; each
// kernel is emitted once.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cpu/StepToLLVM.h"
#include "ManifestBuilder.h"
#include "OpenSizes.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Support/Error.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace ckopt;

namespace {

/// Symbols of the runtime, declared once in the lowered module.
struct RuntimeCalls {
  LLVM::LLVMFuncOp parallelFor, execute, callDone, openSize;
};

/// Lowers one planned module.
class StepLowering {
public:
  /// `isOpen`: kernels get the open size of the session (ckrt_open_size) in
  /// front of their call's scalars.
  StepLowering(ModuleOp planned, const LowerStepOptions &options, bool isOpen)
      : planned(planned), options(options), isOpen(isOpen),
        context(planned.getContext()), builder(context) {}
  /// Takes the grains of another size, in the order of stages: they decide no
  /// bit, and are no polynomials.
  void useGrains(const StepLowering &other) { given = other.grains; }

  /// Plans the kernels and emits them, before their lowering; without code for
  /// the manifest alone.
  LogicalResult emitKernels(bool withCode = true);
  LogicalResult lowerKernels();
  /// Lowers the functions, into a module of their own if that is given.
  LogicalResult lowerFunctions(ModuleOp into = {});
  LoweredStep take() { return std::move(lowered); }
  ModuleOp module() { return *lowered.module; }
  runtime::Manifest &manifest() { return lowered.manifest; }

private:
  void declareRuntime();
  /// Plans and emits every kernel that the function calls.
  LogicalResult emitKernelsOf(func::FuncOp function, bool withCode);
  LogicalResult lowerFunction(func::FuncOp function, int32_t index);
  LogicalResult lowerCall(KernelCallOp call, const ValueOffsets &offsets,
                          int32_t function);
  /// Returns the function that runs a product block by block, over (env, args,
  /// scratch).
  LLVM::LLVMFuncOp blocksFunction(KernelCallOp call);
  void emitBlocks(Location loc, const KernelCode &code, int32_t primitive,
                  int64_t tensors);
  /// Returns the sizes of the two arrays: the most pointers and scalars of any
  /// call.
  std::pair<int64_t, int64_t> widest(func::FuncOp function);
  /// Returns an array for a call's scalars, behind the open size if kernels get
  /// it.
  Value scalarSlots(Location loc, int64_t count);
  /// Emits a return of the status if it is not zero.
  void returnOnFailure(Location loc, Value status);

  int64_t grainOf(const KernelStage &stage) {
    grains.push_back(grains.size() < given.size() ? given[grains.size()]
                                                  : stage.grain);
    return grains.back();
  }

  Value constant(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, builder.getI64Type(),
                                    builder.getI64IntegerAttr(value));
  }

  ModuleOp planned;
  const LowerStepOptions &options;
  bool isOpen;
  std::vector<int64_t> grains, given;
  MLIRContext *context;
  OpBuilder builder;
  Type pointer;
  LoweredStep lowered;
  SmallVector<func::FuncOp> functions;
  RuntimeCalls calls;
  llvm::StringMap<KernelCode> kernels;
  llvm::StringMap<int32_t> primitives;              ///< kernel symbol -> index
  llvm::StringMap<LLVM::LLVMFuncOp> blockFunctions; ///< by kernel symbol
  CallRecorder recorder;

  // The function being emitted.
  LLVM::LLVMFuncOp current;
  Value env, arena, argsArray, scalarsArray;
  Block *failBlock = nullptr;
};

} // namespace

void StepLowering::declareRuntime() {
  Type i64 = builder.getI64Type(), i32 = builder.getI32Type();
  Type none = LLVM::LLVMVoidType::get(context);
  auto declare = [&](StringRef name, Type result, ArrayRef<Type> arguments) {
    return LLVM::LLVMFuncOp::create(
        builder, builder.getUnknownLoc(), name,
        LLVM::LLVMFunctionType::get(result, arguments));
  };
  calls.parallelFor =
      declare("ckrt_parallel_for", none,
              {pointer, pointer, pointer, pointer, i64, i64, pointer});
  calls.execute =
      declare("ckrt_execute", i32, {pointer, i64, pointer, pointer});
  if (isOpen)
    calls.openSize = declare("ckrt_open_size", i64, {pointer});
  if (options.instrument)
    calls.callDone = declare("ckrt_call_done", i32, {pointer, i64, pointer});
}

LogicalResult StepLowering::emitKernelsOf(func::FuncOp function,
                                          bool withCode) {
  const CodegenOptions &codegen = options.codegen;
  auto walk = function.walk([&](KernelCallOp call) {
    if (kernels.count(call.getCallee()))
      return WalkResult::advance();
    auto kernel = planned.lookupSymbol<func::FuncOp>(call.getCallee());
    auto code = planKernel(kernel, codegen);
    if (failed(code))
      return WalkResult::interrupt();
    if (code->library) {
      auto &list = lowered.manifest.primitives;
      primitives[call.getCallee()] = int32_t(list.size());
      if (code->blocks.empty())
        list.push_back(code->primitive);
      list.insert(list.end(), code->blockPrimitives.begin(),
                  code->blockPrimitives.end());
    }
    if (withCode && !code->stages.empty() &&
        failed(emitKernel(kernel, codegen, *lowered.module))) {
      return WalkResult::interrupt();
    }
    kernels[call.getCallee()] = std::move(*code);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

std::pair<int64_t, int64_t> StepLowering::widest(func::FuncOp function) {
  int64_t pointers = 1, scalars = 1;
  function.walk([&](KernelCallOp call) {
    const KernelCode &code = kernels[call.getCallee()];
    // A primitive may take one argument several times.
    size_t count = code.library && code.blocks.empty()
                       ? code.primitiveArgs.size()
                       : call.getArgs().size() + call.getOuts().size();
    pointers = std::max<int64_t>(pointers, int64_t(count) + 1);
    scalars = std::max<int64_t>(scalars, call.getScalars().size());
  });
  return {pointers, scalars};
}

Value StepLowering::scalarSlots(Location loc, int64_t count) {
  Type i64 = builder.getI64Type();
  int64_t before = isOpen ? -kSizeScalar : 0;
  Value slots = LLVM::AllocaOp::create(builder, loc, pointer, i64,
                                       constant(loc, count + before));
  if (!before)
    return slots;
  Value size =
      LLVM::CallOp::create(builder, loc, calls.openSize, ValueRange{env})
          .getResult();
  LLVM::StoreOp::create(builder, loc, size, slots);
  return LLVM::GEPOp::create(builder, loc, pointer, i64, slots,
                             ArrayRef<LLVM::GEPArg>{int32_t(before)});
}

void StepLowering::returnOnFailure(Location loc, Value status) {
  if (!failBlock) {
    failBlock = builder.createBlock(&current.getBody(), current.getBody().end(),
                                    builder.getI32Type(), loc);
    LLVM::ReturnOp::create(builder, loc, failBlock->getArgument(0));
    builder.setInsertionPointAfterValue(status);
  }
  Value zero = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(0));
  Value failed =
      LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne, status, zero);
  Block *next = new Block;
  current.getBody().getBlocks().insert(Region::iterator(failBlock), next);
  LLVM::CondBrOp::create(builder, loc, failed, failBlock, ValueRange{status},
                         next, ValueRange{});
  builder.setInsertionPointToStart(next);
}

/// The stage runs from scalars[0] on, and writes to the place of the whole
/// factor, which is the workspace less what lies before the block.
void StepLowering::emitBlocks(Location loc, const KernelCode &code,
                              int32_t primitive, int64_t tensors) {
  Value scratch = current.getArgument(2);
  auto slots = [&](Type type, int64_t count) -> Value {
    return LLVM::AllocaOp::create(builder, loc, pointer, type,
                                  constant(loc, count));
  };
  auto at = [&](Value base, Type type, int64_t index) -> Value {
    return LLVM::GEPOp::create(builder, loc, pointer, type, base,
                               ArrayRef<LLVM::GEPArg>{constant(loc, index)});
  };
  Value given = slots(pointer, tensors), multiplied = slots(pointer, 4);
  Value first = scalarSlots(loc, 1);
  SmallVector<Value> tensor;
  for (int64_t i = 0; i < tensors; ++i) {
    tensor.push_back(LLVM::LoadOp::create(
        builder, loc, pointer, at(current.getArgument(1), pointer, i)));
    LLVM::StoreOp::create(builder, loc, tensor.back(), at(given, pointer, i));
  }
  Value fill = LLVM::AddressOfOp::create(builder, loc, pointer,
                                         code.stages.front().symbol);
  Value rest = at(scratch, builder.getI8Type(), code.blockBytes);
  for (const KernelCode::ProductBlock &block : code.blocks) {
    LLVM::StoreOp::create(builder, loc,
                          at(scratch, builder.getI8Type(), -block.shift),
                          at(given, pointer, tensors - 1));
    LLVM::StoreOp::create(builder, loc, constant(loc, block.firstTrip), first);
    LLVM::CallOp::create(
        builder, loc, calls.parallelFor,
        ValueRange{env, fill, given, first, constant(loc, block.trips),
                   constant(loc, grainOf(code.stages.front())), scratch});
    for (auto [i, arg] : llvm::enumerate(block.args)) {
      Value base = arg.number == KernelCode::kFactor
                       ? scratch
                       : tensor[size_t(arg.number)];
      LLVM::StoreOp::create(builder, loc,
                            at(base, builder.getI8Type(), arg.offset),
                            at(multiplied, pointer, int64_t(i)));
    }
    Value status =
        LLVM::CallOp::create(
            builder, loc, calls.execute,
            ValueRange{env, constant(loc, primitive + int(block.primitive)),
                       multiplied, rest})
            .getResult();
    returnOnFailure(loc, status);
  }
}

LLVM::LLVMFuncOp StepLowering::blocksFunction(KernelCallOp call) {
  LLVM::LLVMFuncOp &made = blockFunctions[call.getCallee()];
  if (made)
    return made;
  Location loc = call.getLoc();
  const KernelCode &code = kernels[call.getCallee()];
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfter(calls.execute);
  made = LLVM::LLVMFuncOp::create(
      builder, loc, (call.getCallee() + ".blocks").str(),
      LLVM::LLVMFunctionType::get(builder.getI32Type(),
                                  {pointer, pointer, pointer}),
      LLVM::Linkage::Internal);
  Block *entry = made.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  llvm::SaveAndRestore function(current, made);
  llvm::SaveAndRestore environment(env, Value(entry->getArgument(0)));
  llvm::SaveAndRestore failing(failBlock, static_cast<Block *>(nullptr));
  emitBlocks(loc, code, primitives[call.getCallee()],
             int64_t(call.getArgs().size() + call.getOuts().size()));
  Value zero = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(0));
  LLVM::ReturnOp::create(builder, loc, zero);
  return made;
}

LogicalResult StepLowering::lowerCall(KernelCallOp call,
                                      const ValueOffsets &offsets,
                                      int32_t function) {
  Location loc = call.getLoc();
  const KernelCode &code = kernels[call.getCallee()];
  // At other sizes than the planned one, the session looks at it.
  if (!isOpen && code.workspaceBytes > int64_t(call.getWorkspace()))
    return call.emitError("planned with ")
           << call.getWorkspace() << " bytes of workspace, the kernel needs "
           << code.workspaceBytes << "; run annotate-kernels before planning";
  auto place = [&](int64_t offset) -> Value {
    return LLVM::GEPOp::create(builder, loc, pointer, builder.getI8Type(),
                               arena,
                               ArrayRef<LLVM::GEPArg>{constant(loc, offset)});
  };
  auto slot = [&](Value array, Type type, int64_t index) -> Value {
    return LLVM::GEPOp::create(builder, loc, pointer, type, array,
                               ArrayRef<LLVM::GEPArg>{int32_t(index)});
  };
  SmallVector<int64_t> places;
  for (Value value : call.getArgs())
    places.push_back(offsets.lookup(value));
  llvm::append_range(places, *call.getOffsets());
  bool isWhole = code.library && code.blocks.empty();
  if (isWhole) { // a primitive may need its arguments in another order
    SmallVector<int64_t> ordered;
    for (unsigned argument : code.primitiveArgs)
      ordered.push_back(places[argument]);
    places = std::move(ordered);
  }
  for (auto [i, offset] : llvm::enumerate(places))
    LLVM::StoreOp::create(builder, loc, place(offset),
                          slot(argsArray, pointer, int64_t(i)));
  for (auto [i, scalar] : llvm::enumerate(call.getScalars()))
    LLVM::StoreOp::create(builder, loc, constant(loc, scalar),
                          slot(scalarsArray, builder.getI64Type(), i));
  if (isWhole && !call.getScalars().empty()) // a last argument
    LLVM::StoreOp::create(builder, loc, scalarsArray,
                          slot(argsArray, pointer, int64_t(places.size())));
  Value scratch = place(call.getWorkspaceOffset().value_or(0));
  int32_t primitive = -1;
  if (code.library) {
    primitive = primitives[call.getCallee()];
    auto run =
        isWhole ? LLVM::CallOp::create(builder, loc, calls.execute,
                                       ValueRange{env, constant(loc, primitive),
                                                  argsArray, scratch})
                : LLVM::CallOp::create(builder, loc, blocksFunction(call),
                                       ValueRange{env, argsArray, scratch});
    returnOnFailure(loc, run.getResult());
  }
  for (const KernelStage &stage : code.stages) {
    if (!code.blocks.empty())
      break; // they run it
    Value kernel =
        LLVM::AddressOfOp::create(builder, loc, pointer, stage.symbol);
    int64_t grain = grainOf(stage);
    LLVM::CallOp::create(builder, loc, calls.parallelFor,
                         ValueRange{env, kernel, argsArray, scalarsArray,
                                    constant(loc, stage.trip),
                                    constant(loc, grain), scratch});
  }
  recorder.add(call, primitive, function, lowered.manifest);
  if (options.instrument) {
    Value number = constant(loc, lowered.manifest.calls.size() - 1);
    Value status = LLVM::CallOp::create(builder, loc, calls.callDone,
                                        ValueRange{env, number, arena})
                       .getResult();
    returnOnFailure(loc, status);
  }
  return success();
}

LogicalResult StepLowering::lowerFunction(func::FuncOp function,
                                          int32_t index) {
  Location loc = function.getLoc();
  auto offsets = ValueOffsets::read(function);
  if (failed(offsets) ||
      failed(addFunction(function, *offsets, lowered.manifest)))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  current = LLVM::LLVMFuncOp::create(
      builder, loc, lowered.manifest.functions.back().symbol,
      LLVM::LLVMFunctionType::get(builder.getI32Type(), {pointer, pointer}));
  Block *entry = current.addEntryBlock(builder);
  builder.setInsertionPointToStart(entry);
  env = entry->getArgument(0);
  arena = entry->getArgument(1);
  failBlock = nullptr;
  auto [pointers, scalars] = widest(function);
  argsArray = LLVM::AllocaOp::create(builder, loc, pointer, pointer,
                                     constant(loc, pointers));
  scalarsArray = scalarSlots(loc, scalars);
  for (Operation &op : function.getBody().front())
    if (auto call = dyn_cast<KernelCallOp>(op))
      if (failed(lowerCall(call, *offsets, index)))
        return failure();
  Value zero = LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                        builder.getI32IntegerAttr(0));
  LLVM::ReturnOp::create(builder, loc, zero);
  return success();
}

LogicalResult StepLowering::emitKernels(bool withCode) {
  DialectRegistry registry;
  registerKernelDialects(registry);
  registry.insert<LLVM::LLVMDialect>();
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  pointer = LLVM::LLVMPointerType::get(context);
  lowered.module = ModuleOp::create(planned.getLoc(), "ckopt_step");
  builder.setInsertionPointToEnd(lowered.module->getBody());
  runtime::Manifest &manifest = lowered.manifest;
  manifest.threads = int32_t(options.codegen.threads);
  manifest.alignment = options.codegen.target->traits.arenaAlignment;
  manifest.keepDenormals = options.keepDenormals;
  manifest.cpuFeatures = options.cpuFeatures;
  manifest.producer = options.producer;
  for (const std::string &name : options.functions)
    if (auto function = planned.lookupSymbol<func::FuncOp>(name))
      functions.push_back(function);
  for (func::FuncOp function : functions) {
    auto bytes = function->getAttrOfType<IntegerAttr>(attrs::kArenaBytes);
    if (!bytes)
      return function.emitError()
             << "no " << attrs::kArenaBytes << "; run plan-memory first";
    manifest.arenaBytes = std::max(manifest.arenaBytes, bytes.getInt());
    if (failed(emitKernelsOf(function, withCode)))
      return failure();
  }
  return success();
}

/// Converts kernels to LLVM functions, before their addresses are taken.
LogicalResult StepLowering::lowerKernels() {
  PassManager manager(context);
  buildKernelLoweringPipeline(manager);
  return manager.run(*lowered.module);
}

LogicalResult StepLowering::lowerFunctions(ModuleOp into) {
  builder.setInsertionPointToEnd((into ? into : *lowered.module).getBody());
  declareRuntime();
  for (auto [index, function] : llvm::enumerate(functions))
    if (failed(lowerFunction(function, int32_t(index))))
      return failure();
  return success();
}

FailureOr<LoweredStep> ckopt::lowerStep(ModuleOp planned,
                                        const LowerStepOptions &options) {
  StepLowering lowering(planned, options, /*isOpen=*/false);
  if (failed(lowering.emitKernels()) || failed(lowering.lowerKernels()) ||
      failed(lowering.lowerFunctions()))
    return failure();
  return lowering.take();
}

/// Kernels are merged before their lowering, which would compute with numbers
/// that are constants at one size alone; functions are made afterwards.
llvm::Expected<LoweredStep> ckopt::lowerSizes(ModuleOp largest,
                                              const PlannedSizes &sizes,
                                              const LowerStepOptions &options) {
  auto fail = [] { return makeError(ExitInternal, "lowering failed"); };
  std::vector<std::unique_ptr<StepLowering>> all;
  SmallVector<SizePoint> points;
  SmallVector<ModuleOp> kernels, functions;
  SmallVector<OwningOpRef<ModuleOp>> owned;
  for (const auto &[point, planned] : sizes.others) {
    all.push_back(
        std::make_unique<StepLowering>(*planned, options, /*isOpen=*/true));
    if (failed(all.back()->emitKernels()))
      return fail();
    points.push_back(point);
    kernels.push_back(all.back()->module());
  }
  if (llvm::Error error = mergeCode(points, kernels, sizes.range))
    return std::move(error);
  if (failed(all.front()->lowerKernels()))
    return fail();
  std::vector<runtime::Manifest> manifests;
  for (auto &lowering : all) {
    owned.push_back(ModuleOp::create(largest.getLoc()));
    functions.push_back(*owned.back());
    lowering->useGrains(*all.front());
    if (failed(lowering->lowerFunctions(functions.back())))
      return fail();
    manifests.push_back(lowering->manifest());
  }
  if (llvm::Error error = mergeCode(points, functions, sizes.range))
    return std::move(error);
  StepLowering described(largest, options, /*isOpen=*/true);
  OwningOpRef<ModuleOp> unused = ModuleOp::create(largest.getLoc());
  if (failed(described.emitKernels(/*withCode=*/false)) ||
      failed(described.lowerFunctions(*unused)))
    return fail();
  LoweredStep lowered = all.front()->take();
  auto &into = lowered.module->getBody()->getOperations();
  into.splice(into.end(), functions.front().getBody()->getOperations());
  lowered.manifest = described.manifest();
  if (llvm::Error error =
          mergeManifests(points, manifests, lowered.manifest, sizes.range))
    return std::move(error);
  return std::move(lowered);
}
