//===- DeviceContraction.cpp - matmuls and convolutions on a GPU ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DeviceContraction.h"
#include "Kinds/GeneratedKernel.h"
#include "ckopt/Dialect/Block/IR/BlockDialect.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::MatMulDesc;
using runtime::PrimitiveKind;
using runtime::ProductPrecision;

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

unsigned Operand::lanes(bool lies, ArrayRef<int64_t> numbers) const {
  int64_t lanes = lies ? wide() : 1;
  for (int64_t number : numbers)
    while (number % lanes)
      lanes /= 2;
  // A vector of less than 8 bytes does not pay.
  return 2 * lanes >= wide() ? unsigned(lanes) : 1;
}

Value Operand::address(Emitter &e, Value offset) const {
  if (offset.getType().isInteger(32))
    offset = arith::ExtUIOp::create(e.b, e.b.getI64Type(), offset);
  Value base = e.argument(number);
  return LLVM::GEPOp::create(e.b, base.getType(), element, base,
                             ArrayRef<LLVM::GEPArg>{offset});
}

Value Operand::load(Emitter &e, Value offset, unsigned lanes,
                    Value inside) const {
  return place(e, offset, inside).load(e, element, lanes);
}

Value codegen::formed(Emitter &e, Value v, OperandForm as) {
  Type from = getElementTypeOrSelf(v.getType()), to = as.type;
  if (as.tf32)
    return block::RoundTf32Op::create(e.b, v.getType(), v);
  if (to == from)
    return v;
  if (auto vector = dyn_cast<VectorType>(v.getType()))
    to = vector.clone(to);
  if (as.type.getIntOrFloatBitWidth() < from.getIntOrFloatBitWidth())
    return arith::TruncFOp::create(e.b, to, v);
  return arith::ExtFOp::create(e.b, to, v);
}

void Operand::store(Emitter &e, Value offset, Value v) const {
  Type type = element;
  if (auto vector = dyn_cast<VectorType>(v.getType()))
    type = vector.clone(element);
  if (v.getType() != type)
    v = arith::TruncFOp::create(e.b, type, v);
  LLVM::StoreOp::create(e.b, v, address(e, offset),
                        element.getIntOrFloatBitWidth() / 8);
}

OperandForm codegen::operandForm(Operand a, Operand b, Type sums,
                                 ProductPrecision precision) {
  if (a.element.isF32() && b.element.isF32() &&
      precision == ProductPrecision::TF32)
    return {sums, /*tf32=*/true};
  bool half = a.element.isF16() || a.element.isBF16();
  return {half && a.element == b.element ? a.element : sums};
}

Value codegen::linear(Emitter &e, ArrayRef<Value> values,
                      ArrayRef<int64_t> strides) {
  Type type = values.front().getType();
  Value sum = e.constant(type, int64_t(0));
  for (auto [v, stride] : llvm::zip_equal(values, strides))
    if (stride)
      sum = e.add(sum, stride == 1 ? v : e.mul(v, e.constant(type, stride)));
  return sum;
}

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

DeviceGemm codegen::describeProduct(const runtime::PrimitiveDesc &primitive,
                                    ArrayRef<Operand> operands) {
  const MatMulDesc &desc = primitive.matmul;
  Operand a = operands[0], b = operands[1], c = operands.back();
  DeviceGemm gemm;
  gemm.batch = desc.batch[0] * desc.batch[1];
  gemm.m = desc.m;
  gemm.n = desc.n;
  gemm.k = desc.k;
  gemm.type = computeType(c.element);
  gemm.operand = operandForm(a, b, gemm.type, primitive.precision);
  gemm.aElement = a.element;
  gemm.bElement = b.element;
  using Strides = std::array<int64_t, 4>;
  auto offset = [desc](Emitter &e, Value batch, Value row, Value column,
                       const Strides &strides) {
    SmallVector<Value> at = split(e, batch, {desc.batch[0], desc.batch[1]});
    return linear(e, {at[0], at[1], row, column}, strides);
  };
  auto elements = [=](Operand of, Strides strides) -> DeviceGemm::Element {
    return [=](Emitter &e, Value batch, Value row, Value column, Value inside) {
      return of.place(e, offset(e, batch, row, column, strides), inside);
    };
  };
  Strides ofResult{desc.cBatch[0], desc.cBatch[1], desc.cRow, desc.cCol};
  gemm.a = elements(a, {desc.aBatch[0], desc.aBatch[1], desc.aRow, desc.aCol});
  gemm.b = elements(b, {desc.bBatch[0], desc.bBatch[1], desc.bRow, desc.bCol});
  gemm.store = [=](Emitter &e, Value batch, Value row, Value column, Value v) {
    c.store(e, offset(e, batch, row, column, ofResult), v);
  };
  gemm.cElement = c.element;
  if (primitive.accumulate)
    gemm.addend = elements(operands[2], ofResult);
  if (primitive.hasBias)
    gemm.bias = elements(operands[3], {0, 0, 0, 1});
  gemm.aAlongK = desc.aCol == 1;
  gemm.bAlongN = desc.bCol == 1;
  gemm.cAlongN = desc.cCol == 1;
  // Vectors need stride 1 along one dimension, and multiples for the starts of
  // all others.
  auto lanes = [](Operand x, int64_t stride, int64_t extent, int64_t other,
                  const int64_t (&batches)[2]) {
    return x.lanes(stride == 1, {extent, other, batches[0], batches[1]});
  };
  gemm.aLanes = gemm.aAlongK
                    ? lanes(a, desc.aCol, desc.k, desc.aRow, desc.aBatch)
                    : lanes(a, desc.aRow, desc.m, desc.aCol, desc.aBatch);
  gemm.bLanes = gemm.bAlongN
                    ? lanes(b, desc.bCol, desc.n, desc.bRow, desc.bBatch)
                    : lanes(b, desc.bRow, desc.k, desc.bCol, desc.bBatch);
  gemm.cLanes = gemm.cAlongN
                    ? lanes(c, desc.cCol, desc.n, desc.cRow, desc.cBatch)
                    : lanes(c, desc.cRow, desc.m, desc.cCol, desc.cBatch);
  return gemm;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {

class DeviceContraction : public GeneratedKernel {
public:
  DeviceContraction(func::FuncOp kernel, const CodegenOptions &options,
                    std::optional<runtime::PrimitiveDesc> given = {})
      : GeneratedKernel(kernel, options), given(given) {}

  LogicalResult plan() override {
    if (failed(describePrimitive(kernel, options, code)))
      return failure();
    code.reuse = libraryReuse(kernel, code);
    if (given)
      code.primitive = *given;
    gemms = describe();
    for (DeviceGemm &gemm : gemms) {
      gemm.chooseShape({options.multiprocessors, options.sharedBytes,
                        options.processorShared},
                       options.contractions);
      planLaunches(gemm);
      code.shapes.push_back(gemm.cost());
    }
    return success();
  }

  LogicalResult emit(ModuleOp into) override {
    unsigned number = 0;
    for (const DeviceGemm &gemm : gemms) {
      if (failed(emitLaunch(into, number++, [&](Emitter &e, Value block) {
            gemm.emitTile(e, block);
          })))
        return failure();
      if (gemm.parts() > 1 &&
          failed(emitThreads(
              into, number++, gemm.sums(), [&](Emitter &e, Value item) {
                gemm.emitSum(e, e.mul(item, e.index(gemm.sumLanes())));
              })))
        return failure();
    }
    return success();
  }

private:
  static int64_t elements(const DeviceGemm &gemm) {
    return gemm.batch * gemm.m * gemm.n;
  }

  void planLaunches(const DeviceGemm &gemm) {
    code.workspaceBytes = std::max(code.workspaceBytes, gemm.scratchBytes());
    StringRef reason = "elements that pass at once are no neighbours in memory";
    if (gemm.aLanes > 1 && gemm.bLanes > 1 && gemm.cLanes > 1)
      reason = "";
    addLaunch(elements(gemm) ? gemm.blocks() : 0, DeviceGemm::kThreads,
              /*together=*/true, reason);
    if (gemm.parts() > 1)
      addLaunch(gemm.sums(), kBlockThreads, /*together=*/false,
                gemm.sumLanes() > 1 ? ""
                                    : "a thread adds the parts of an element");
  }

  Operand operand(unsigned argument) {
    unsigned number = code.primitiveArgs[argument];
    Type type = number < kernel.getNumArguments()
                    ? kernel.getArgument(number).getType()
                    : terminator.getOperand(0).getType();
    return {number, getElementTypeOrSelf(type)};
  }

  SmallVector<DeviceGemm, 0> describe() {
    SmallVector<Operand> all;
    for (unsigned i = 0; i < code.primitiveArgs.size(); ++i)
      all.push_back(operand(i));
    if (code.primitive.kind == PrimitiveKind::MatMul)
      return {describeProduct(code.primitive, all)};
    return describeConvolution(code.primitive, all[0], all[1], all[2]);
  }

  std::optional<runtime::PrimitiveDesc> given;
  SmallVector<DeviceGemm, 0> gemms; ///< one after another
};

} // namespace

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceContraction(func::FuncOp kernel,
                               const CodegenOptions &options) {
  return std::make_unique<DeviceContraction>(kernel, options);
}

std::unique_ptr<GeneratedKernel>
codegen::makeDeviceProduct(func::FuncOp kernel, const CodegenOptions &options,
                           const runtime::PrimitiveDesc &product) {
  return std::make_unique<DeviceContraction>(kernel, options, product);
}
