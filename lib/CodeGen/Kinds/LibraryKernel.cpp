//===- LibraryKernel.cpp - descriptors of contractions, convolutions ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GeneratedKernel.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/ExitDiagnostic.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace ckopt;
using namespace ckopt::codegen;
using runtime::ConvDesc;
using runtime::MatMulDesc;
using runtime::PrimitiveKind;

/// Reports that no library computes `op` on this machine.
static InFlightDiagnostic refuse(Operation *op, const Twine &why) {
  InFlightDiagnostic error = op->emitError(why);
  setExitCode(error, ExitUnsupported);
  return error;
}

static RankedTensorType typeOf(Value v) {
  return cast<RankedTensorType>(v.getType());
}

static std::optional<DType> libraryType(Value v) {
  Type element = getElementTypeOrSelf(v);
  if (element.isF64())
    return DType::F64;
  if (element.isF32())
    return DType::F32;
  if (element.isBF16())
    return DType::BF16;
  if (element.isF16())
    return DType::F16;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

namespace {
/// A batch dimension with the strides of the three tensors (0: broadcast).
struct Batch {
  int64_t size;
  std::array<int64_t, 3> strides;
};
} // namespace

/// Returns the batch dimensions of a matmul without dimensions of size 1;
/// adjacent ones are merged if all three tensors allow it.
static SmallVector<Batch> batchesOf(ArrayRef<RankedTensorType> types) {
  SmallVector<Batch> batches;
  RankedTensorType out = types[2];
  int64_t rank = out.getRank() - 2;
  for (int64_t d = 0; d < rank; ++d) {
    Batch batch{out.getDimSize(d), {}};
    if (batch.size == 1)
      continue;
    for (auto [i, type] : llvm::enumerate(types)) {
      int64_t own = d - (rank - (type.getRank() - 2));
      batch.strides[i] = own < 0 || type.getDimSize(own) == 1
                             ? 0
                             : getElementStrides(type)[own];
    }
    if (!batches.empty()) {
      Batch &last = batches.back();
      bool merges = true;
      for (int i = 0; i < 3; ++i)
        merges &= last.strides[i] == batch.strides[i] * batch.size;
      if (merges) {
        last.size *= batch.size;
        last.strides = batch.strides;
        continue;
      }
    }
    batches.push_back(batch);
  }
  return batches;
}

/// Describes a matmul or matmul_add of these operands.
template <typename Op>
static LogicalResult describeMatMul(Op op, Value lhs, Value rhs,
                                    MatMulDesc &desc) {
  SmallVector<RankedTensorType> types{typeOf(lhs), typeOf(rhs),
                                      typeOf(op.getOutput())};
  SmallVector<Batch> batches = batchesOf(types);
  if (batches.size() > 2)
    return op.emitError(
               "more than two batch dimensions that cannot be merged: ")
           << types[0] << " x " << types[1];
  auto rowCol = [](RankedTensorType type, bool transpose, int64_t &row,
                   int64_t &col) {
    auto strides = getElementStrides(type);
    row = strides[type.getRank() - 2];
    col = strides[type.getRank() - 1];
    if (transpose)
      std::swap(row, col);
  };
  rowCol(types[0], op.getTransposeLhs(), desc.aRow, desc.aCol);
  rowCol(types[1], op.getTransposeRhs(), desc.bRow, desc.bCol);
  rowCol(types[2], false, desc.cRow, desc.cCol);
  desc.m = types[2].getShape().take_back(2)[0];
  desc.n = types[2].getShape().take_back(2)[1];
  desc.k = types[0].getShape().take_back(2)[!op.getTransposeLhs()];
  for (size_t i = 0; i < batches.size(); ++i) {
    size_t slot = 2 - batches.size() + i;
    desc.batch[slot] = batches[i].size;
    desc.aBatch[slot] = batches[i].strides[0];
    desc.bBatch[slot] = batches[i].strides[1];
    desc.cBatch[slot] = batches[i].strides[2];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

/// Returns whether the tensor's elements have this order in memory (dimensions
/// of size 1 may have any position).
static bool liesIn(RankedTensorType type, ArrayRef<int64_t> order) {
  auto own = getElementStrides(type),
       wanted = getElementStrides(withOrder(type, order));
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.getDimSize(d) != 1 && own[d] != wanted[d])
      return false;
  return true;
}

template <typename Op>
static LogicalResult describeConv(Op op, RankedTensorType input,
                                  RankedTensorType weight,
                                  RankedTensorType output, ConvDesc &desc) {
  int64_t rank = input.getRank() - 2;
  SmallVector<int64_t> rowMajor, channelsLast{0};
  for (int64_t d = 0; d < rank + 2; ++d) {
    rowMajor.push_back(d);
    if (d >= 2)
      channelsLast.push_back(d);
  }
  channelsLast.push_back(1);
  if (liesIn(input, channelsLast) && liesIn(output, channelsLast))
    desc.channelsLast = true;
  else if (!liesIn(input, rowMajor) || !liesIn(output, rowMajor))
    return op.emitError("both activations of a convolution must be row-major "
                        "or both channels-last: ")
           << input << " and " << output;
  desc.weightsLast = !liesIn(weight, rowMajor);
  if (desc.weightsLast && !(desc.channelsLast && liesIn(weight, channelsLast)))
    return op.emitError("the weight of a convolution must be row-major, or "
                        "channels-last as its activations, is ")
           << weight;
  desc.rank = rank;
  desc.batch = input.getDimSize(0);
  desc.inChannels = input.getDimSize(1);
  desc.outChannels = output.getDimSize(1);
  desc.groups = op.getGroups();
  for (int64_t d = 0; d < rank; ++d) {
    desc.in[d] = input.getDimSize(d + 2);
    desc.out[d] = output.getDimSize(d + 2);
    desc.kernel[d] = weight.getDimSize(d + 2);
    desc.strides[d] = op.getStrides()[d];
    desc.dilations[d] = op.getDilations()[d];
    desc.padsLo[d] = op.getPadsLow()[d];
    desc.padsHi[d] = op.getPadsHigh()[d];
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// Sets the strides of batch, head and row.
static LogicalResult headStrides(Value v, int64_t (&into)[3]) {
  auto strides = getElementStrides(typeOf(v));
  size_t rank = strides.size();
  if (strides[rank - 1] != 1 && typeOf(v).getShape().back() != 1)
    return emitError(v.getLoc(), "attention needs rows without gaps, not ")
           << v.getType();
  into[0] = rank == 4 ? strides[0] : 0;
  into[1] = strides[rank - 3];
  into[2] = strides[rank - 2];
  return success();
}

/// Sets the strides of batch, head, row and key of a tensor that broadcasts to
/// scores.
static void scoreStrides(Value v, int64_t (&into)[4]) {
  RankedTensorType type = typeOf(v);
  auto strides = getElementStrides(type);
  for (int64_t d = 0; d < type.getRank(); ++d)
    if (type.getDimSize(d) != 1)
      into[4 - type.getRank() + d] = strides[d];
}

template <typename Op>
static LogicalResult describeScores(Op op, runtime::AttentionDesc &desc) {
  auto query = typeOf(op.getQuery()), key = typeOf(op.getKey());
  int64_t rank = query.getRank();
  desc.batch = rank == 4 ? query.getDimSize(0) : 1;
  desc.heads = query.getDimSize(rank - 3);
  desc.keyHeads = key.getDimSize(rank - 3);
  desc.queries = query.getDimSize(rank - 2);
  desc.depth = query.getDimSize(rank - 1);
  desc.keys = key.getDimSize(rank - 2);
  desc.width = typeOf(op.getValue()).getShape().back();
  desc.hasBias = bool(op.getBias());
  desc.hasMask = bool(op.getMask());
  if (op.getBias())
    scoreStrides(op.getBias(), desc.bias);
  if (op.getMask())
    scoreStrides(op.getMask(), desc.mask);
  desc.causal = op.getCausalOffset().has_value();
  desc.offset = op.getCausalOffset().value_or(0);
  desc.hasWindow = op.getWindowSize().has_value();
  desc.window = op.getWindowSize().value_or(0);
  desc.hasSegments = bool(op.getSegments());
  if (op.getSegments() && typeOf(op.getSegments()).getDimSize(0) != 1)
    desc.segments = desc.keys;
  desc.zeroEmptyRows = op.getZeroEmptyRows();
  RankedTensorType lse = typeOf(op.getLse());
  desc.planes = getPhysicalOrder(lse).front() == lse.getRank() - 1;
  desc.scale = llvm::bit_cast<uint64_t>(op.getScale().convertToDouble());
  desc.cap = llvm::bit_cast<uint64_t>(op.getCapValue());
  desc.fill = llvm::bit_cast<uint64_t>(op.getFillValue());
  desc.hasDropout = op.getSeed() != nullptr;
  if (desc.hasDropout)
    desc.ratio = llvm::bit_cast<uint64_t>(op.getRatio()->convertToDouble());
  return success(succeeded(headStrides(op.getQuery(), desc.q)) &&
                 succeeded(headStrides(op.getKey(), desc.k)) &&
                 succeeded(headStrides(op.getValue(), desc.v)) &&
                 succeeded(headStrides(op.getOutput(), desc.o)));
}

static LogicalResult describeAttentionGrad(AttentionGradOp op,
                                           runtime::AttentionDesc &desc) {
  return success(succeeded(describeScores(op, desc)) &&
                 succeeded(headStrides(op.getGrad(), desc.grad)) &&
                 succeeded(headStrides(op.getQueryGrad(), desc.qGrad)) &&
                 succeeded(headStrides(op.getKeyGrad(), desc.kGrad)) &&
                 succeeded(headStrides(op.getValueGrad(), desc.vGrad)));
}

/// Describes a collective.
static LogicalResult describeRanks(CollectiveOpInterface op,
                                   runtime::PrimitiveDesc &desc) {
  auto kind =
      llvm::StringSwitch<std::optional<PrimitiveKind>>(op.getCollective())
          .Case("all_reduce", PrimitiveKind::AllReduce)
          .Case("all_gather", PrimitiveKind::AllGather)
          .Case("reduce_scatter", PrimitiveKind::ReduceScatter)
          .Case("broadcast", PrimitiveKind::Broadcast)
          .Case("own_rows", PrimitiveKind::OwnRows)
          .Case("rank", PrimitiveKind::Rank)
          .Case("collective_wait", PrimitiveKind::CollectiveWait)
          .Default(std::nullopt);
  if (!kind)
    return op->emitError("is no collective that the runtime has");
  RankGroup group = op.getGroup();
  desc.kind = *kind;
  desc.allReduce.ranks = group.size;
  desc.allReduce.groups = group.groups;
  desc.allReduce.stride = group.stride;
  desc.allReduce.root = int64_t(op.getRoot());
  desc.allReduce.started = isa<CollectiveStartOp>(op);
  if (kind == PrimitiveKind::CollectiveWait)
    return success();
  bool gathers = kind == PrimitiveKind::AllGather;
  bool hasRows = gathers || kind == PrimitiveKind::ReduceScatter ||
                 kind == PrimitiveKind::OwnRows;
  for (auto [input, output] :
       llvm::zip(op->getOperands(), op->getResults())) { // a start has more
    int64_t in = typeOf(input).getNumElements();
    int64_t out = typeOf(output).getNumElements();
    desc.allReduce.elements.push_back(gathers ? out : in);
    if (hasRows)
      desc.allReduce.shares.push_back(gathers ? in : out);
  }
  return success();
}

static LogicalResult
describeOp(Operation *op, runtime::PrimitiveDesc &desc,
           function_ref<LogicalResult(ArrayRef<Value>)> setArgs) {
  if (auto matmul = dyn_cast<MatMulOp>(op)) {
    desc.kind = PrimitiveKind::MatMul;
    return success(succeeded(setArgs({matmul.getLhs(), matmul.getRhs()})) &&
                   succeeded(describeMatMul(matmul, matmul.getLhs(),
                                            matmul.getRhs(), desc.matmul)));
  }
  if (auto sum = dyn_cast<MatMulAddOp>(op)) {
    desc.kind = PrimitiveKind::MatMul;
    desc.accumulate = true;
    desc.hasBias = bool(sum.getBias());
    return success(succeeded(setArgs(llvm::to_vector(sum->getOperands()))) &&
                   succeeded(describeMatMul(sum, sum.getLhs(), sum.getRhs(),
                                            desc.matmul)));
  }
  if (auto conv = dyn_cast<ConvOp>(op)) {
    desc.kind = PrimitiveKind::ConvForward;
    return success(succeeded(setArgs({conv.getInput(), conv.getWeight()})) &&
                   succeeded(describeConv(
                       conv, typeOf(conv.getInput()), typeOf(conv.getWeight()),
                       typeOf(conv.getOutput()), desc.conv)));
  }
  if (auto conv = dyn_cast<ConvInputGradOp>(op)) {
    desc.kind = PrimitiveKind::ConvInputGrad;
    return success(succeeded(setArgs({conv.getGrad(), conv.getWeight()})) &&
                   succeeded(describeConv(conv, typeOf(conv.getOutput()),
                                          typeOf(conv.getWeight()),
                                          typeOf(conv.getGrad()), desc.conv)));
  }
  if (auto conv = dyn_cast<ConvWeightGradOp>(op)) {
    desc.kind = PrimitiveKind::ConvWeightGrad;
    return success(succeeded(setArgs({conv.getInput(), conv.getGrad()})) &&
                   succeeded(describeConv(conv, typeOf(conv.getInput()),
                                          typeOf(conv.getOutput()),
                                          typeOf(conv.getGrad()), desc.conv)));
  }
  if (auto attention = dyn_cast<AttentionOp>(op)) {
    desc.kind = PrimitiveKind::Attention;
    return success(succeeded(setArgs(llvm::to_vector(op->getOperands()))) &&
                   succeeded(describeScores(attention, desc.attention)));
  }
  if (auto attention = dyn_cast<AttentionGradOp>(op)) {
    desc.kind = PrimitiveKind::AttentionGrad;
    return success(succeeded(setArgs(llvm::to_vector(op->getOperands()))) &&
                   succeeded(describeAttentionGrad(attention, desc.attention)));
  }
  if (auto collective = dyn_cast<CollectiveOpInterface>(op))
    return success(succeeded(describeRanks(collective, desc)) &&
                   succeeded(setArgs(llvm::to_vector(op->getOperands()))));
  return op->emitError("is not a library op");
}

/// Sets the types and the class of the products, and checks the whole.
static LogicalResult describeTypes(Operation *op, const CodegenOptions &options,
                                   runtime::PrimitiveDesc &desc) {
  auto dtype = libraryType(op->getOperand(0));
  if (!dtype)
    return refuse(op, "element type has no library primitive: ")
           << op->getOperand(0).getType();
  desc.dtype = *dtype;
  desc.wideResult = libraryType(op->getResult(0)) != dtype;
  if (*dtype == DType::F32 && !isOfRanks(desc.kind))
    desc.precision = options.precision;
  std::string error = runtime::check(desc);
  if (!error.empty())
    return refuse(op, "no library primitive: ") << error;
  return success();
}

LogicalResult codegen::describePrimitive(func::FuncOp kernel,
                                         const CodegenOptions &options,
                                         KernelCode &code) {
  Operation *op = &kernel.front().front();
  OperandRange results = kernel.front().getTerminator()->getOperands();
  if (kernel.front().getOperations().size() != 2 || results != op->getResults())
    return kernel.emitError("a library kernel must hold exactly one op and "
                            "give all of its results");
  auto setArgs = [&](ArrayRef<Value> operands) {
    for (Value operand : operands) {
      auto arg = dyn_cast<BlockArgument>(operand);
      if (!arg)
        return failure();
      code.primitiveArgs.push_back(arg.getArgNumber());
    }
    for (unsigned i = 0; i < op->getNumResults(); ++i)
      code.primitiveArgs.push_back(kernel.getNumArguments() + i);
    return success();
  };
  if (failed(describeOp(op, code.primitive, setArgs)))
    return failure();
  if (code.primitive.kind == PrimitiveKind::Rank) {
    code.primitive.dtype = DType::I64;
    return success();
  }
  return describeTypes(op, options, code.primitive);
}

LogicalResult codegen::describeProduct(Operation *op,
                                       const CodegenOptions &options,
                                       runtime::PrimitiveDesc &desc) {
  auto anyArgs = [](ArrayRef<Value>) { return success(); };
  return success(succeeded(describeOp(op, desc, anyArgs)) &&
                 succeeded(describeTypes(op, options, desc)));
}

SmallVector<std::pair<unsigned, unsigned>>
codegen::libraryReuse(func::FuncOp kernel, const KernelCode &code) {
  SmallVector<std::pair<unsigned, unsigned>> pairs;
  auto op = cast<KernelOpInterface>(kernel.front().front());
  for (auto [operand, result] : op.getReusePairs()) {
    unsigned argument = code.primitiveArgs[operand];
    // An operand that is also another operand is not read at one point only.
    if (llvm::count(code.primitiveArgs, argument) == 1)
      pairs.emplace_back(argument, result);
  }
  return pairs;
}

/// Makes a device's code of ours.
static std::unique_ptr<GeneratedKernel> makeOwn(func::FuncOp kernel,
                                                const CodegenOptions &options) {
  auto contraction = dyn_cast<ContractionOpInterface>(kernel.front().front());
  return contraction &&
                 contraction.getContractionKind() == ContractionKind::Attention
             ? makeDeviceAttention(kernel, options)
             : makeDeviceContraction(kernel, options);
}

namespace {

class LibraryKernel : public GeneratedKernel {
public:
  using GeneratedKernel::GeneratedKernel;

  LogicalResult plan() override {
    if (failed(describePrimitive(kernel, options, code)))
      return failure();
    LibraryChoice choice =
        options.target->chooseLibrary(code.primitive, options);
    if (!choice.library)
      return refuse(&kernel.front().front(), "no library primitive: ")
             << choice.reason;
    code.library = true;
    code.primitive.form = choice.form;
    code.reuse = libraryReuse(kernel, code);
    code.workspaceBytes = choice.workspaceBytes;
    return success();
  }

  LogicalResult emit(ModuleOp) override { return success(); }
};

/// A library kernel together with our own, for devices whose library refuses.
class EitherKernel : public GeneratedKernel {
public:
  EitherKernel(func::FuncOp kernel, const CodegenOptions &options)
      : GeneratedKernel(kernel, options), own(makeOwn(kernel, options)) {}

  LogicalResult plan() override {
    if (failed(own->plan()))
      return failure();
    code = own->code;
    LibraryChoice choice =
        options.target->chooseLibrary(code.primitive, options);
    // There is nothing to compute for empty tensors.
    code.library = llvm::any_of(
        code.stages, [](const KernelStage &stage) { return stage.trip > 0; });
    if (!code.library)
      return success();
    code.primitive.form = choice.form;
    code.ownScratchBytes = code.workspaceBytes;
    code.workspaceBytes = std::max(code.ownScratchBytes, choice.workspaceBytes);
    return success();
  }

  LogicalResult emit(ModuleOp into) override {
    LogicalResult emitted = own->emit(into);
    report = own->report;
    return emitted;
  }

private:
  std::unique_ptr<GeneratedKernel> own;
};

} // namespace

/// Returns whether the target leaves the op to libraries, though generated code
/// exists for cases that libraries refuse.
static bool leftToLibraries(func::FuncOp kernel,
                            const CodegenOptions &options) {
  KernelCode code;
  return options.libraryWorkspace &&
         succeeded(describePrimitive(kernel, options, code)) &&
         options.target->chooseLibrary(code.primitive, options).library;
}

std::unique_ptr<GeneratedKernel>
codegen::makeLibraryKernel(func::FuncOp kernel, const CodegenOptions &options) {
  Operation &op = kernel.front().front();
  if (kernel.front().getOperations().size() > 2)
    return options.target->traits.form == StageForm::Ranges
               ? makeStoredProduct(kernel, options)
               : makeDeviceStoredProduct(kernel, options);
  if (options.target->traits.form == StageForm::Blocks &&
      isa<CollectiveOpInterface>(op))
    return makeDeviceCollective(kernel, options);
  if (options.target->traits.ownContractions &&
      !leftToLibraries(kernel, options))
    return makeOwn(kernel, options);
  if (options.ownBesideLibraries && options.target->traits.ownContractions)
    return std::make_unique<EitherKernel>(kernel, options);
  return std::make_unique<LibraryKernel>(kernel, options);
}
