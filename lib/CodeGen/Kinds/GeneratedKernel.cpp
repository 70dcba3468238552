//===- GeneratedKernel.cpp - common parts of generated kernels ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;

int64_t codegen::bytesOfPoint(TypeRange tensors, int64_t points) {
  int64_t bytes = 0;
  for (Type type : tensors)
    if (auto tensor = cast<RankedTensorType>(type);
        2 * tensor.getNumElements() >= points)
      bytes += llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
  return bytes;
}

/// Returns whether 16-bit vectors of 16 bytes are the largest accesses of a
/// thread of a GPU: all tensors that count (those that are not broadcast) are
/// f16, bf16 or masks, and their rows are multiples of the vector.
static bool movesHalves(func::FuncOp kernel, int64_t lanes) {
  auto kind = kernel->getAttrOfType<StringAttr>(attrs::kKernel);
  if (!kind || (kind.getValue() != "elementwise" && kind.getValue() != "row"))
    return false;
  SmallVector<RankedTensorType> tensors;
  int64_t most = 0;
  for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                            kernel.getResultTypes())) {
    tensors.push_back(cast<RankedTensorType>(type));
    most = std::max(most, tensors.back().getNumElements());
  }
  return llvm::all_of(tensors, [&](RankedTensorType tensor) {
    if (tensor.getNumElements() <= most / 8)
      return true;
    Type element = tensor.getElementType();
    return (element.isF16() || element.isBF16() || element.isInteger(1)) &&
           tensor.getRank() > 0 &&
           tensor.getDimSize(getPhysicalOrder(tensor).back()) % lanes == 0;
  });
}

/// Returns the lanes for the widest float in the computation. Integers do not
/// count, since indices and labels are often i64 in kernels of f32 data.
static unsigned lanesOf(func::FuncOp kernel, const CodegenOptions &options) {
  unsigned vectorBits = unsigned(options.vectorBits);
  bool wide = false, narrow = false;
  auto look = [&](Type type) {
    Type element = getElementTypeOrSelf(type);
    auto tensor = dyn_cast<RankedTensorType>(type);
    bool one = tensor && tensor.getNumElements() == 1;
    wide |= element.isF64() && !one;
    narrow |= isa<FloatType>(element) && !element.isF64();
    if (isa<IntegerType>(element) && element.getIntOrFloatBitWidth() < 64)
      narrow |= !one;
  };
  for (Type type : kernel.getArgumentTypes())
    look(type);
  kernel.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      look(type);
  });
  unsigned bits = wide || !narrow ? 64 : 32;
  if (bits == 32 && options.target->traits.form == StageForm::Blocks &&
      movesHalves(kernel, vectorBits / 16))
    bits = 16;
  return std::max(1u, vectorBits / bits);
}

GeneratedKernel::GeneratedKernel(func::FuncOp kernel,
                                 const CodegenOptions &options)
    : kernel(kernel),
      terminator(cast<func::ReturnOp>(kernel.front().getTerminator())),
      options(options), ctx(kernel.getContext()),
      lanes(lanesOf(kernel, options)) {
  if (auto sizes = kernel->getAttrOfType<DenseI64ArrayAttr>(kOpenSizesAttr))
    open.insert_range(sizes.asArrayRef());
}

GeneratedKernel::~GeneratedKernel() = default;

LogicalResult FormedKernel::plan() {
  if (failed(analyze()))
    return failure();
  switch (options.target->traits.form) {
  case StageForm::Ranges:
    return planRanges();
  case StageForm::Blocks:
    return planBlocks();
  }
  llvm_unreachable("forms are listed above");
}

LogicalResult FormedKernel::emit(ModuleOp into) {
  switch (options.target->traits.form) {
  case StageForm::Ranges:
    return emitRanges(into);
  case StageForm::Blocks:
    return emitBlocks(into);
  }
  llvm_unreachable("forms are listed above");
}

void GeneratedKernel::addStage(int64_t trip, int64_t grain) {
  std::string symbol =
      (kernel.getSymName() + ".s" + Twine(code.stages.size())).str();
  code.stages.push_back(
      {symbol, trip, std::max<int64_t>(grain, 1), /*block=*/0, {}});
}

SmallVector<bool> GeneratedKernel::openDims(ArrayRef<int64_t> sizes) const {
  return llvm::map_to_vector(sizes, [&](int64_t size) { return isOpen(size); });
}

bool GeneratedKernel::hasHugeTensors() {
  bool huge = false;
  auto look = [&](Type type) {
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      huge |= tensor.getNumElements() > std::numeric_limits<int32_t>::max();
  };
  llvm::for_each(kernel.getArgumentTypes(), look);
  kernel.walk(
      [&](Operation *op) { llvm::for_each(op->getResultTypes(), look); });
  return huge;
}

LogicalResult GeneratedKernel::emitStage(ModuleOp into, unsigned number,
                                         function_ref<void(Emitter &)> fn) {
  OpBuilder builder(ctx);
  builder.setInsertionPointToEnd(into.getBody());
  Type ptr = LLVM::LLVMPointerType::get(ctx), i64 = builder.getI64Type();
  auto type = builder.getFunctionType({ptr, ptr, i64, i64, ptr}, {});
  auto stage = func::FuncOp::create(builder, kernel.getLoc(),
                                    code.stages[number].symbol, type);
  // LLVM as Debian builds it prefers 256-bit vectors on most machines with 512.
  stage->setAttr(
      "passthrough",
      builder.getArrayAttr({builder.getStrArrayAttr(
          {"prefer-vector-width", std::to_string(options.vectorBits)})}));
  stage.addEntryBlock();
  Emitter e(kernel, stage, builder, lanes);
  if (hasHugeTensors())
    e.useWideLaneIndices();
  fn(e);
  e.b.setInsertionPointToEnd(&stage.front());
  func::ReturnOp::create(e.b);
  return finishStage(e);
}

LogicalResult GeneratedKernel::finishStage(Emitter &e) {
  report.lanes = lanes;
  report.unitLoads += e.report.unitLoads;
  report.broadcasts += e.report.broadcasts;
  report.gathers += e.report.gathers;
  report.libmCalls += e.report.libmCalls;
  if (!e.failed)
    return success();
  e.stage.erase();
  return failure();
}

void GeneratedKernel::findReuse(const Accesses &accesses,
                                ArrayRef<AffineExpr> point) {
  for (BlockArgument arg : kernel.getArguments()) {
    bool fits = !llvm::is_contained(accesses.elsewhere, arg);
    auto type = cast<RankedTensorType>(arg.getType());
    for (const Accesses::Read &read : accesses.reads) {
      if (read.arg != arg || !fits)
        continue;
      fits &= read.index.size() == point.size();
      for (size_t d = 0; fits && d < point.size(); ++d)
        fits &= read.index[d] == point[d] || type.getDimSize(d) == 1;
    }
    if (!fits)
      continue;
    for (auto [r, result] : llvm::enumerate(terminator.getOperands()))
      if (result.getType() == type)
        code.reuse.emplace_back(arg.getArgNumber(), unsigned(r));
  }
}

SmallVector<Value> codegen::split(Emitter &e, Value t,
                                  ArrayRef<int64_t> sizes) {
  SmallVector<Value> result(sizes.size());
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] == 1) { // no unknown term in an address
      result[i] = e.constant(t.getType(), int64_t(0));
    } else if (i == 0) {
      result[i] = t;
    } else {
      Value size = e.constant(t.getType(), sizes[i]);
      result[i] = arith::RemUIOp::create(e.b, t, size);
      t = arith::DivUIOp::create(e.b, t, size);
    }
  }
  return result;
}

Value codegen::maskBelow(Emitter &e, Value at, Value high) {
  // Lane indices are i32, and the difference may be large, so clamp it first.
  Value left = e.sub(high, at);
  left = e.minimum(left, e.index(e.lanes));
  Type i32 = e.b.getI32Type();
  left = arith::TruncIOp::create(e.b, i32, left);
  return e.cmpi(arith::CmpIPredicate::slt, e.iota(i32, 1), e.splat(left));
}

void codegen::vectorLoop(Emitter &e, Value low, Value high,
                         std::optional<int64_t> count,
                         function_ref<void(AffineExpr)> body) {
  int64_t lanes = e.lanes;
  Value middle = high;
  if (!count || *count % lanes) {
    Value size = e.sub(high, low), step = e.index(lanes);
    size = e.mul(arith::DivUIOp::create(e.b, size, step), step);
    middle = e.add(low, size);
  }
  if (!count || *count >= lanes)
    e.forLoop(low, middle, lanes, {}, [&](Value iv, ValueRange) {
      body(e.addDim(iv, /*lane=*/true));
      return SmallVector<Value>();
    });
  if (lanes == 1 || (count && *count % lanes == 0))
    return;
  // A single remaining element is computed as a scalar. (LLVM 22 also
  // miscompiles narrowing stores under a constant mask of one lane: it stores
  // the wide element.)
  if (count && *count % lanes == 1)
    return body(e.addDim(middle));
  auto rest = [&] {
    AffineExpr at = e.addDim(middle, /*lane=*/true);
    e.withMask(maskBelow(e, middle, high), [&] {
      body(at);
      return Value();
    });
    return SmallVector<Value>();
  };
  if (count)
    rest();
  else
    e.ifThen(e.cmpi(arith::CmpIPredicate::slt, middle, high), rest, nullptr);
}
