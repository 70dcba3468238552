//===- ManifestBuilder.cpp - tensors and calls of a planned module --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Turns argument and result attributes into the tables that the runtime reads.
// Linear in the number of ops and arguments.
//
//===----------------------------------------------------------------------===//
#include "ManifestBuilder.h"
#include "ckopt/Dialect/Ckopt/Utils/LabelRange.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;

FailureOr<ValueOffsets> ValueOffsets::read(func::FuncOp function) {
  ValueOffsets result;
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    auto offset = function.getArgAttrOfType<IntegerAttr>(i, attrs::kOffset);
    if (!offset)
      return function.emitError()
             << "argument " << i << " has no " << attrs::kOffset
             << "; run plan-memory first";
    result.offsets[argument] = offset.getInt();
  }
  for (Operation &op : function.getBody().front().without_terminator()) {
    if (auto kernel = dyn_cast<KernelOpInterface>(op);
        kernel && kernel.getKernelKind() == KernelKind::View) {
      result.offsets[op.getResult(0)] = result.lookup(op.getOperand(0));
      continue;
    }
    auto call = dyn_cast<KernelCallOp>(op);
    if (!call)
      return op.emitError("only kernel calls and reshapes can be lowered; run "
                          "fuse first"),
             failure();
    if (!call.getOffsets())
      return call.emitError("kernel call without offsets; run plan-memory "
                            "first"),
             failure();
    for (auto [out, offset] : llvm::zip(call.getOuts(), *call.getOffsets()))
      result.offsets[out] = offset;
  }
  return result;
}

FailureOr<DType> ckopt::runtimeType(Type element) {
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isF16())
    return DType::F16;
  if (element.isBF16())
    return DType::BF16;
  if (auto integer = dyn_cast<IntegerType>(element)) {
    switch (integer.getWidth()) {
    case 64:
      return integer.isUnsigned() ? DType::U64 : DType::I64;
    case 32:
      return integer.isUnsigned() ? DType::U32 : DType::I32;
    case 16:
      return integer.isUnsigned() ? DType::U16 : DType::I16;
    case 8:
      return integer.isUnsigned() ? DType::U8 : DType::I8;
    case 1:
      return DType::Bool;
    }
  }
  return failure();
}

/// Collects the outermost NameLoc names (a NameLoc's child holds the op's
/// type).
static void collectNames(Location location,
                         llvm::SmallSetVector<StringRef, 4> &names) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    names.insert(name.getName());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names);
  }
}

std::string ckopt::sourceName(Location location) {
  llvm::SmallSetVector<StringRef, 4> names;
  collectNames(location, names);
  return llvm::join(names, ", ");
}

/// Sets the fans of a weight: [out, in/groups, kernel...] for convolutions,
/// [in, out] or [out, in] for matrices (both rules only use their sum).
static void setFans(runtime::TensorInfo &tensor) {
  const std::vector<int64_t> &shape = tensor.fullShape();
  int64_t receptive = 1;
  for (size_t d = 2; d < shape.size(); ++d)
    receptive *= shape[d];
  size_t rank = shape.size();
  tensor.fanIn = rank > 1 ? shape[1] * receptive : (rank ? shape[0] : 1);
  tensor.fanOut = rank ? shape[0] * receptive : 1;
}

static FailureOr<runtime::TensorInfo>
describeTensor(func::FuncOp function, RankedTensorType type, StringRef name,
               runtime::TensorRole role, int64_t offset) {
  runtime::TensorInfo tensor;
  auto dtype = runtimeType(type.getElementType());
  if (failed(dtype))
    return function.emitError()
           << "'" << name << "': no runtime type for " << type.getElementType();
  tensor.name = name.str();
  tensor.role = role;
  tensor.dtype = *dtype;
  tensor.shape.assign(type.getShape().begin(), type.getShape().end());
  auto strides = getElementStrides(type);
  tensor.strides.assign(strides.begin(), strides.end());
  tensor.offset = offset;
  tensor.bytes = getByteSize(type);
  return tensor;
}

/// Returns the index of an equal tensor, adding it if there is none.
static int32_t intern(runtime::TensorInfo tensor, runtime::Manifest &manifest) {
  for (auto [i, other] : llvm::enumerate(manifest.tensors))
    if (other.name == tensor.name && other.offset == tensor.offset &&
        other.shape == tensor.shape && other.strides == tensor.strides &&
        other.role == tensor.role) {
      other.limits.narrow(tensor.limits); // other functions read it, too
      if (other.values == runtime::TargetValues::Any)
        other.values = tensor.values;
      return int32_t(i);
    }
  manifest.tensors.push_back(std::move(tensor));
  return int32_t(manifest.tensors.size()) - 1;
}

static runtime::TensorRole resultRole(StringRef name, StringRef role) {
  using runtime::TensorRole;
  if (role == "loss")
    return TensorRole::Loss;
  return llvm::StringSwitch<TensorRole>(name)
      .Case("loss", TensorRole::Loss)
      .StartsWith("grad/", TensorRole::Gradient)
      .Default(TensorRole::Output);
}

/// Notes that the tensor is a shard of one of type `whole`.
static void setShards(runtime::TensorInfo &tensor, Attribute whole,
                      Attribute shards) {
  auto type = dyn_cast_or_null<TypeAttr>(whole);
  auto count = dyn_cast_or_null<IntegerAttr>(shards);
  if (!type || !count)
    return;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(type.getValue()).getShape();
  tensor.wholeShape.assign(shape.begin(), shape.end());
  tensor.shards = count.getInt();
}

/// Reads limits whose numbers `number` finds by the names of attributes.
static IntegerLimits
readLimits(llvm::function_ref<IntegerAttr(StringRef)> number) {
  IntegerLimits limits;
  if (IntegerAttr classes = number(kClassesAttr))
    limits.classes = classes.getInt();
  if (IntegerAttr ignored = number(kIgnoreIndexAttr);
      ignored && limits.classes) {
    limits.hasIgnored = true;
    limits.ignored = ignored.getInt();
  }
  if (IntegerAttr rows = number(kRowsAttr))
    limits.rows = rows.getInt();
  return limits;
}

/// Notes which values data of an argument may hold.
static void setLimits(func::FuncOp function, unsigned argument,
                      runtime::TensorInfo &tensor) {
  using runtime::TargetValues;
  if (function.getArgAttr(argument, kSignsAttr))
    tensor.values = TargetValues::Signs;
  if (auto kind =
          function.getArgAttrOfType<StringAttr>(argument, kProbabilitiesAttr))
    tensor.values = kind.getValue() == "required"
                        ? TargetValues::Probabilities
                        : TargetValues::UsuallyProbabilities;
  if (isFloat(tensor.dtype))
    return;
  tensor.limits.all = readLimits([&](StringRef name) {
    return function.getArgAttrOfType<IntegerAttr>(argument, name);
  });
  auto parts = function.getArgAttrOfType<ArrayAttr>(argument, kPartLimitsAttr);
  if (!parts)
    return;
  for (auto part : parts.getAsRange<DictionaryAttr>()) {
    auto number = [&](StringRef name) { return part.getAs<IntegerAttr>(name); };
    PartLimits limits{int32_t(number("axis").getInt()), number("low").getInt(),
                      number("high").getInt(), readLimits([&](StringRef name) {
                        return number(name.split('.').second);
                      })};
    // A rank's share of a batch has fewer places.
    limits.high =
        std::min(limits.high, elementsFrom(tensor.shape, size_t(limits.axis)));
    if (limits.low < limits.high && limits.limits.exist())
      tensor.limits.parts.push_back(limits);
  }
}

LogicalResult ckopt::addFunction(func::FuncOp function,
                                 const ValueOffsets &offsets,
                                 runtime::Manifest &manifest) {
  runtime::FunctionInfo info;
  info.name = function.getName().str();
  info.symbol = "ckopt_fn_" + info.name;
  auto text = [](Attribute attr) {
    auto string = dyn_cast_or_null<StringAttr>(attr);
    return string ? string.getValue() : StringRef();
  };
  for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
    StringRef name = text(function.getArgAttr(i, attrs::kName));
    StringRef roleText = text(function.getArgAttr(i, attrs::kRole));
    runtime::TensorRole role = runtime::TensorRole::Input;
    if (!roleText.empty() && !runtime::parseRole(roleText.str(), role))
      return function.emitError() << "unknown role '" << roleText << "'";
    auto tensor =
        describeTensor(function, cast<RankedTensorType>(argument.getType()),
                       name.empty() ? ("arg" + Twine(i)).str() : name.str(),
                       role, offsets.lookup(argument));
    if (failed(tensor))
      return failure();
    tensor->init = text(function.getArgAttr(i, attrs::kInit)).str();
    setShards(*tensor, function.getArgAttr(i, attrs::kWhole),
              function.getArgAttr(i, attrs::kShards));
    setLimits(function, i, *tensor);
    setFans(*tensor);
    if (auto fan = function.getArgAttrOfType<IntegerAttr>(i, attrs::kFanIn))
      tensor->fanIn = fan.getInt();
    if (auto fan = function.getArgAttrOfType<IntegerAttr>(i, attrs::kFanOut))
      tensor->fanOut = fan.getInt();
    info.inputs.push_back(intern(std::move(*tensor), manifest));
  }
  Operation *terminator = function.getBody().front().getTerminator();
  for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
    if (function.getResultAttr(i, attrs::kUpdates))
      continue; // the new value of an argument lies in the argument's bytes
    StringRef name = text(function.getResultAttr(i, attrs::kName));
    std::string shown = name.empty() ? ("result" + Twine(i)).str() : name.str();
    auto tensor = describeTensor(
        function, cast<RankedTensorType>(value.getType()), shown,
        resultRole(shown, text(function.getResultAttr(i, attrs::kRole))),
        offsets.lookup(value));
    if (failed(tensor))
      return failure();
    setShards(*tensor, function.getResultAttr(i, attrs::kWhole),
              function.getResultAttr(i, attrs::kShards));
    info.outputs.push_back(intern(std::move(*tensor), manifest));
  }
  manifest.functions.push_back(std::move(info));
  return success();
}

/// Describes a call without its results.
static runtime::CallInfo describeCall(KernelCallOp call, int32_t primitive,
                                      int32_t function) {
  runtime::CallInfo info;
  info.function = function;
  info.kernel = call.getCallee().str();
  info.source = sourceName(call.getLoc());
  info.primitive = primitive;
  info.workspaceOffset = call.getWorkspaceOffset().value_or(0);
  info.workspaceBytes = call.getWorkspace();
  return info;
}

runtime::CallInfo &CallRecorder::addPart(KernelCallOp call, int32_t primitive,
                                         int32_t function,
                                         runtime::Manifest &manifest) {
  manifest.calls.push_back(describeCall(call, primitive, function));
  return manifest.calls.back();
}

runtime::CallInfo &CallRecorder::add(KernelCallOp call, int32_t primitive,
                                     int32_t function,
                                     runtime::Manifest &manifest) {
  runtime::CallInfo info = describeCall(call, primitive, function);
  // What is in flight is written by another thread; its wait gives the results.
  bool starts = primitive >= 0 &&
                manifest.primitives[size_t(primitive)].allReduce.started;
  for (auto [out, offset] : llvm::zip(call.getOuts(), *call.getOffsets())) {
    if (starts)
      break;
    auto type = cast<RankedTensorType>(out.getType());
    auto dtype = runtimeType(type.getElementType());
    info.results.push_back(
        {succeeded(dtype) ? *dtype : DType::U8, offset, getByteSize(type)});
  }
  // Calls of one node of the unscheduled step: later calls must repeat the
  // values of the first one.
  if (auto node = call->getAttrOfType<IntegerAttr>(attrs::kNode)) {
    auto [first, isNew] = originals.try_emplace({function, node.getInt()},
                                                int32_t(manifest.calls.size()));
    if (!isNew)
      info.originalCall = first->second;
  }
  manifest.calls.push_back(std::move(info));
  return manifest.calls.back();
}
