//===- StepToDevice.cpp - planned functions to launches -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: a planned function gives every value an offset; a device needs code
// for each kernel and, for each call, the launch and its addresses. Method:
// emit every kernel once in block form, all of them to one PTX module; then add
// one table entry for each launch of a call. Guarantee: a launch only gets
// addresses that the plan gave to the call's operands, results and workspace.
// Complexity: linear in calls and operands; each kernel is emitted once.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/Cuda/StepToDevice.h"
#include "../Cpu/ManifestBuilder.h"
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/CodeGen/Kernels.h"
#include "ckopt/Runtime/DeviceCollectives.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"

using namespace mlir;
using namespace ckopt;

namespace {

/// Lowers one planned module.
class DeviceLowering {
public:
  DeviceLowering(ModuleOp planned, const LowerDeviceOptions &options)
      : planned(planned), options(options) {}

  llvm::Expected<LoweredDeviceStep> run();

private:
  LogicalResult collectFunctions();
  /// Plans and emits every kernel that the functions call; reports all that
  /// have no code.
  LogicalResult emitKernels();
  /// Whether the kernel is a library's alone.
  bool leftToLibrary(StringRef kernel, const KernelCode &code) const {
    return code.library && code.blocks.empty() && options.own &&
           !options.own->contains(kernel);
  }
  void describeKernels();
  LogicalResult lowerFunction(func::FuncOp function, int32_t index);
  LogicalResult lowerCall(KernelCallOp call, const ValueOffsets &offsets,
                          int32_t function);
  /// Adds, for each block of a product's factor, a call that makes it and one
  /// that multiplies it, as each of these may be a library's.
  LogicalResult addBlocks(KernelCallOp call, const KernelCode &code,
                          const std::vector<runtime::LaunchPointer> &pointers,
                          int32_t function);
  /// Adds launches of stages with the same parameters.
  LogicalResult addStages(KernelCallOp call, ArrayRef<KernelStage> stages,
                          const std::vector<runtime::LaunchPointer> &pointers,
                          ArrayRef<int64_t> scalars, int64_t scratch,
                          std::vector<runtime::LaunchInfo> &into);
  void addRankLaunches(const KernelCode &code, int32_t primitive,
                       const std::vector<runtime::LaunchPointer> &pointers,
                       runtime::CallInfo &info);

  ModuleOp planned;
  const LowerDeviceOptions &options;
  SmallVector<func::FuncOp> functions;
  LoweredDeviceStep lowered;
  llvm::StringMap<KernelCode> kernels;
  llvm::StringMap<int32_t> primitives; ///< kernel -> Manifest::primitives
  llvm::StringMap<int32_t> entries; ///< symbol of a launch -> Manifest::kernels
  llvm::StringMap<std::vector<std::string>> sources; ///< of kernels
  CallRecorder recorder;
};

} // namespace

/// Returns whether the kernel is a collective, or depends on the rank.
static bool isOfRanks(const KernelCode &code) {
  return !code.primitiveArgs.empty() && runtime::isOfRanks(code.primitive.kind);
}

/// Returns whether the kernel is what a primitive describes.
static bool isProduct(const KernelCode &code) {
  return !code.primitiveArgs.empty() || !code.blocks.empty();
}

LogicalResult DeviceLowering::collectFunctions() {
  for (const std::string &name : options.functions) {
    auto function = planned.lookupSymbol<func::FuncOp>(name);
    if (!function)
      continue;
    auto bytes = function->getAttrOfType<IntegerAttr>(attrs::kArenaBytes);
    if (!bytes)
      return function.emitError()
             << "no " << attrs::kArenaBytes << "; run plan-memory first";
    lowered.manifest.arenaBytes =
        std::max(lowered.manifest.arenaBytes, bytes.getInt());
    runtime::DeviceInfo &device = lowered.manifest.device;
    if (auto fed = function->getAttrOfType<DenseI64ArrayAttr>(attrs::kFed))
      std::tie(device.fedBegin, device.fedEnd, device.fedShift) =
          std::tuple(fed[0], fed[1], fed[2]);
    functions.push_back(function);
  }
  return success();
}

LogicalResult DeviceLowering::emitKernels() {
  bool failedAny = false;
  const CodegenOptions &codegen = options.codegen;
  lowered.rates = ratesOf(planned);
  for (func::FuncOp function : functions)
    function.walk([&](KernelCallOp call) {
      StringRef name = call.getCallee();
      std::string source = sourceName(call.getLoc());
      std::vector<std::string> &known = sources[name];
      if (!source.empty() && !llvm::is_contained(known, source))
        known.push_back(source);
      auto [place, isNew] = kernels.try_emplace(name);
      if (!isNew)
        return;
      auto kernel = planned.lookupSymbol<func::FuncOp>(name);
      auto code = planKernel(kernel, codegen);
      if (failed(code) ||
          (!leftToLibrary(name, *code) &&
           failed(emitKernel(kernel, codegen, *lowered.blockForm)))) {
        failedAny = true;
        return;
      }
      bool ofRanks = isOfRanks(*code);
      if (code->library || ofRanks) {
        auto &list = lowered.manifest.primitives;
        primitives[name] = int32_t(list.size());
        if (code->blocks.empty())
          list.push_back(code->primitive);
        list.insert(list.end(), code->blockPrimitives.begin(),
                    code->blockPrimitives.end());
      }
      if (codegen.libraryWorkspace && !code->library && !ofRanks &&
          isProduct(*code))
        if (LibraryChoice choice =
                codegen.target->chooseLibrary(code->primitive, codegen);
            !choice.library)
          lowered.refusedPrimitives.push_back(
              {name.str(), runtime::describe(code->primitive),
               choice.reason.inShell()});
      MachineRates counted;
      counted.multiprocessors = lowered.rates.multiprocessors;
      KernelWork work = kernelWork(kernel, counted);
      double products = work.matmul + work.conv + work.depthwiseConv;
      // Rates count only the multiplications of the result.
      if (auto time = kernel->getAttrOfType<FloatAttr>(attrs::kProductTime))
        products /= time.getValueAsDouble();
      lowered.work.push_back(
          {name.str(),
           isProduct(*code) ? runtime::describe(code->primitive) : "",
           products > 0 ? products : work.vector, work.bytes,
           CostModel(lowered.rates).kernelSeconds(kernel),
           kernelWork(kernel, lowered.rates)});
      for (const KernelStage &stage : code->stages)
        if (stage.trip && !stage.scalarReason.empty())
          lowered.scalarLaunches.push_back({stage.symbol, stage.scalarReason});
      place->second = std::move(*code);
    });
  return failure(failedAny);
}

void DeviceLowering::describeKernels() {
  llvm::StringMap<StringRef> owners; // launch -> kernel
  for (const auto &entry : kernels)
    for (const KernelStage &stage : entry.second.stages)
      owners[stage.symbol] = entry.first();
  for (const PtxKernel &kernel : lowered.code.kernels) {
    runtime::KernelInfo info;
    info.symbol = kernel.symbol;
    info.grid = kernel.grid;
    info.block = kernel.block;
    info.sharedBytes = kernel.sharedBytes;
    info.scalars =
        int32_t(llvm::count(kernel.parameters, PtxKernel::Parameter::Scalar));
    info.pointers = int32_t(kernel.parameters.size()) - info.scalars - 1;
    info.sources = sources.lookup(owners.lookup(kernel.symbol));
    entries[kernel.symbol] = int32_t(lowered.manifest.kernels.size());
    lowered.manifest.kernels.push_back(std::move(info));
  }
}

/// Adds the launches of a collective: the runtime moves bytes, and between two
/// such launches of a block a kernel adds.
void DeviceLowering::addRankLaunches(
    const KernelCode &code, int32_t primitive,
    const std::vector<runtime::LaunchPointer> &pointers,
    runtime::CallInfo &info) {
  if (code.primitive.kind == runtime::PrimitiveKind::CollectiveWait)
    return; // the runtime finds its start by its results
  const int64_t scratch = code.primitive.allReduce.started
                              ? pointers.back().offset
                              : info.workspaceOffset;
  auto move = [&](runtime::RankPhase phase, const runtime::SumPiece &piece) {
    runtime::LaunchInfo launch;
    launch.primitive = primitive;
    for (unsigned argument : code.primitiveArgs)
      launch.pointers.push_back(pointers[argument]);
    launch.scalars = {int64_t(phase), piece.from, piece.count};
    launch.scratchOffset = scratch;
    info.launches.push_back(std::move(launch));
  };
  if (!runtime::isDeviceSum(code.primitive))
    return move(runtime::RankPhase::Whole, {});
  std::vector<runtime::SumPiece> pieces = runtime::sumPieces(code.primitive);
  for (const runtime::SumPiece &piece : pieces) {
    move(runtime::RankPhase::Exchange, piece);
    runtime::LaunchInfo sum;
    const KernelStage &stage = piece.width == pieces.front().width
                                   ? code.stages.front()
                                   : code.stages.back();
    sum.kernel = entries.lookup(stage.symbol);
    sum.pointers = pointers;
    sum.scratchOffset = scratch;
    info.launches.push_back(std::move(sum));
    move(runtime::RankPhase::Spread, piece);
  }
}

LogicalResult
DeviceLowering::addStages(KernelCallOp call, ArrayRef<KernelStage> stages,
                          const std::vector<runtime::LaunchPointer> &pointers,
                          ArrayRef<int64_t> scalars, int64_t scratch,
                          std::vector<runtime::LaunchInfo> &into) {
  for (const KernelStage &stage : stages) {
    if (stage.trip == 0) // nothing to do for empty tensors
      continue;
    runtime::LaunchInfo launch;
    launch.kernel = entries.lookup(stage.symbol);
    launch.pointers = pointers;
    int32_t wanted = lowered.manifest.kernels[size_t(launch.kernel)].scalars;
    if (size_t(wanted) > scalars.size())
      return call.emitError("gives ")
             << scalars.size() << " scalars to a kernel that reads " << wanted;
    launch.scalars.assign(scalars.begin(), scalars.begin() + wanted);
    launch.scratchOffset = scratch;
    into.push_back(std::move(launch));
  }
  return success();
}

LogicalResult
DeviceLowering::addBlocks(KernelCallOp call, const KernelCode &code,
                          const std::vector<runtime::LaunchPointer> &pointers,
                          int32_t function) {
  runtime::Manifest &manifest = lowered.manifest;
  ArrayRef<KernelStage> stages(code.stages);
  const int64_t workspace = call.getWorkspaceOffset().value_or(0);
  const runtime::LaunchPointer factor{workspace, code.blockBytes};
  std::vector<runtime::LaunchPointer> filled(pointers);
  filled.back() = factor;
  const int64_t rest =
      code.workspaceBytes > code.blockBytes ? code.restOffset() : 0;
  for (auto [number, block] : llvm::enumerate(code.blocks)) {
    runtime::CallInfo &fill = recorder.addPart(call, -1, function, manifest);
    fill.workspaceBytes = code.blockBytes;
    if (failed(addStages(call, stages.slice(block.fill, 1), filled,
                         {int64_t(number)}, workspace, fill.launches)))
      return failure();
    int32_t primitive = code.library ? primitives.lookup(call.getCallee()) +
                                           int32_t(block.primitive)
                                     : -1;
    bool last = number + 1 == code.blocks.size();
    runtime::CallInfo &info =
        last ? recorder.add(call, primitive, function, manifest)
             : recorder.addPart(call, primitive, function, manifest);
    info.workspaceOffset += rest;
    info.workspaceBytes = rest ? info.workspaceBytes - rest : 0;
    std::vector<runtime::LaunchPointer> places;
    for (const KernelCode::BlockArg &arg : block.args) {
      places.push_back(arg.number == KernelCode::kFactor
                           ? factor
                           : pointers[size_t(arg.number)]);
      places.back().offset += arg.offset;
      places.back().bytes -= arg.offset;
    }
    if (code.library) {
      runtime::LaunchInfo launch;
      launch.primitive = primitive;
      launch.pointers = places;
      launch.scratchOffset = info.workspaceOffset;
      info.launches.push_back(std::move(launch));
      info.ownScratchBytes = code.ownScratchBytes;
    }
    if (code.blockStages.empty())
      continue;
    auto [first, count] = code.blockStages[block.primitive];
    if (failed(addStages(call, stages.slice(first, count), places, {},
                         info.workspaceOffset,
                         code.library ? info.ownLaunches : info.launches)))
      return failure();
  }
  return success();
}

LogicalResult DeviceLowering::lowerCall(KernelCallOp call,
                                        const ValueOffsets &offsets,
                                        int32_t function) {
  const KernelCode &code = kernels[call.getCallee()];
  if (code.workspaceBytes > int64_t(call.getWorkspace()))
    return call.emitError("planned with ")
           << call.getWorkspace() << " bytes of workspace, the kernel needs "
           << code.workspaceBytes
           << "; run annotate-kernels{target=cuda} before planning";
  std::vector<runtime::LaunchPointer> pointers;
  for (Value value : call.getArgs())
    pointers.push_back({offsets.lookup(value),
                        getByteSize(cast<RankedTensorType>(value.getType()))});
  for (auto [out, offset] : llvm::zip(call.getOuts(), *call.getOffsets()))
    pointers.push_back(
        {offset, getByteSize(cast<RankedTensorType>(out.getType()))});
  if (!code.blocks.empty())
    return addBlocks(call, code, pointers, function);
  bool ofRanks = isOfRanks(code);
  int32_t primitive =
      code.library || ofRanks ? primitives.lookup(call.getCallee()) : -1;
  runtime::CallInfo &info =
      recorder.add(call, primitive, function, lowered.manifest);
  std::vector<runtime::LaunchInfo> *into = &info.launches;
  if (code.library) {
    runtime::LaunchInfo launch;
    launch.primitive = primitive;
    for (unsigned argument : code.primitiveArgs)
      launch.pointers.push_back(pointers[argument]);
    launch.scratchOffset = info.workspaceOffset;
    info.launches.push_back(std::move(launch));
    if (leftToLibrary(call.getCallee(), code))
      return success();
    info.ownScratchBytes = code.ownScratchBytes;
    into = &info.ownLaunches;
  }
  if (ofRanks) {
    addRankLaunches(code, primitive, pointers, info);
    return success();
  }
  return addStages(call, code.stages, pointers, call.getScalars(),
                   info.workspaceOffset, *into);
}

LogicalResult DeviceLowering::lowerFunction(func::FuncOp function,
                                            int32_t index) {
  auto offsets = ValueOffsets::read(function);
  if (failed(offsets) ||
      failed(addFunction(function, *offsets, lowered.manifest)))
    return failure();
  for (Operation &op : function.getBody().front())
    if (auto call = dyn_cast<KernelCallOp>(op))
      if (failed(lowerCall(call, *offsets, index)))
        return failure();
  return success();
}

llvm::Expected<LoweredDeviceStep> DeviceLowering::run() {
  MLIRContext *context = planned.getContext();
  DialectRegistry registry;
  registerKernelDialects(registry);
  context->appendDialectRegistry(registry);
  context->loadAllAvailableDialects();
  lowered.blockForm = ModuleOp::create(planned.getLoc(), "ckopt_kernels");
  runtime::Manifest &manifest = lowered.manifest;
  manifest.target = runtime::Target::Cuda;
  manifest.alignment = options.codegen.target->traits.arenaAlignment;
  manifest.keepDenormals = options.keepDenormals;
  manifest.producer = options.producer;
  if (failed(collectFunctions()))
    return makeError(ExitInternal, "lowering failed");
  if (failed(emitKernels()))
    return toldError(ExitUnsupported,
                     "what is said above has no code for CUDA");
  auto code = emitPtx(*lowered.blockForm, {options.sm, options.keepDenormals,
                                           /*tf32=*/options.codegen.precision ==
                                               runtime::ProductPrecision::TF32,
                                           options.programmatic});
  if (!code)
    return code.takeError();
  lowered.code = std::move(*code);
  manifest.device.sm = int32_t(lowered.code.sm);
  manifest.device.precision = options.codegen.precision;
  manifest.device.multiprocessors = int32_t(options.codegen.multiprocessors);
  manifest.device.programmatic = options.programmatic;
  manifest.device.ptxIsa =
      int32_t(lowered.code.isaMajor * 10 + lowered.code.isaMinor);
  manifest.device.minDriver = lowered.code.driverVersion;
  describeKernels();
  for (auto [index, function] : llvm::enumerate(functions))
    if (failed(lowerFunction(function, int32_t(index))))
      return makeError(ExitInternal, "lowering failed");
  return std::move(lowered);
}

llvm::Expected<LoweredDeviceStep>
ckopt::lowerDeviceStep(ModuleOp planned, const LowerDeviceOptions &options) {
  return DeviceLowering(planned, options).run();
}
