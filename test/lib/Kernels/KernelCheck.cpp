//===- KernelCheck.cpp - runs kernels against the interpreter -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelJit.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Reference/Interpreter.h"
#include "llvm/ADT/bit.h"

#include <random>
#include <sys/mman.h>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::test;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {

/// Bytes that end at an inaccessible page, or less than `align` bytes of a
/// pattern before it, and start after a pattern.
class Buffer {
public:
  explicit Buffer(int64_t bytes, int64_t align = 1)
      : bytes(bytes), room(int64_t(llvm::alignTo(bytes, align))) {
    int64_t pages = (room + kHead + 4095) / 4096 + 1;
    size = pages * 4096;
    base = static_cast<char *>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    mprotect(base + size - 4096, 4096, PROT_NONE);
    memset(base, 0xA5, size - 4096);
  }
  ~Buffer() { munmap(base, size); }
  Buffer(const Buffer &) = delete;
  char *data() const { return base + size - 4096 - room; }
  /// Nothing was written before or behind the bytes.
  bool intact() const {
    auto isPattern = [](const char *begin, const char *end) {
      return std::all_of(begin, end, [](char c) { return c == char(0xA5); });
    };
    return isPattern(data() - kHead, data()) &&
           isPattern(data() + bytes, data() + room);
  }
  std::vector<char> copy() const { return {data(), data() + bytes}; }

private:
  static constexpr int64_t kHead = 256;
  int64_t bytes, room, size;
  char *base;
};

template <typename T> void put(char *p, T value) {
  memcpy(p, &value, sizeof(T));
}
template <typename T> T take(const char *p) {
  T value;
  memcpy(&value, p, sizeof(T));
  return value;
}

void writeElement(char *p, Type type, const reference::Tensor &t, int64_t i) {
  if (type.isF32())
    return put(p, float(t.real(i)));
  if (type.isBF16()) // of numbers that are bf16's
    return put(p, uint16_t(llvm::bit_cast<uint32_t>(float(t.real(i))) >> 16));
  if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(t.real(i));
    bool lost;
    value.convert(floating.getFloatSemantics(),
                  llvm::APFloat::rmNearestTiesToEven, &lost);
    uint64_t bits = value.bitcastToAPInt().getZExtValue();
    memcpy(p, &bits, floating.getWidth() / 8);
    return;
  }
  int64_t value = t.integer(i);
  memcpy(p, &value, std::max(1u, type.getIntOrFloatBitWidth() / 8));
}

void readElement(const char *p, Type type, reference::Tensor &t, int64_t i) {
  if (type.isF32()) {
    t.real(i) = double(take<float>(p));
    return;
  }
  if (type.isBF16()) {
    t.real(i) = llvm::bit_cast<float>(uint32_t(take<uint16_t>(p)) << 16);
    return;
  }
  unsigned bytes = std::max(1u, type.getIntOrFloatBitWidth() / 8);
  uint64_t bits = 0;
  memcpy(&bits, p, bytes);
  if (auto floating = dyn_cast<FloatType>(type)) {
    llvm::APFloat value(floating.getFloatSemantics(),
                        llvm::APInt(bytes * 8, bits));
    t.real(i) = value.convertToDouble();
    return;
  }
  auto integer = cast<IntegerType>(type);
  if (type.isInteger(1))
    t.integer(i) = int64_t(bits);
  else if (integer.isUnsigned())
    t.integer(i) = int64_t(bits);
  else
    t.integer(i) = llvm::SignExtend64(bits, bytes * 8);
}

template <typename Fn> void forOffsets(RankedTensorType type, Fn fn) {
  SmallVector<int64_t> strides = getElementStrides(type);
  int64_t bytes = std::max(1u, type.getElementTypeBitWidth() / 8);
  reference::forEachIndex(type.getShape(),
                          [&](ArrayRef<int64_t> index, int64_t i) {
                            int64_t offset = 0;
                            for (size_t d = 0; d < index.size(); ++d)
                              offset += index[d] * strides[d];
                            fn(i, offset * bytes);
                          });
}

/// One execution: operands written, stages run, results as bytes.
struct Execution {
  Execution(const KernelJit &jit, ArrayRef<reference::Tensor> inputs,
            const KernelOptions &options)
      : jit(jit), options(options) {
    func::FuncOp kernel = jit.kernel();
    // Places in an arena of a device are aligned, and code relies on it.
    int64_t align = jit.isOnDevice() ? 64 : 1;
    for (const reference::Tensor &input : inputs) {
      auto type = input.getType();
      buffers.push_back(std::make_unique<Buffer>(getByteSize(type), align));
      char *data = buffers.back()->data();
      forOffsets(type, [&](int64_t i, int64_t offset) {
        writeElement(data + offset, type.getElementType(), input, i);
      });
      args.push_back(data);
    }
    for (Type type : kernel.getResultTypes()) {
      buffers.push_back(std::make_unique<Buffer>(
          getByteSize(cast<RankedTensorType>(type)), align));
      args.push_back(buffers.back()->data());
    }
    scratch =
        std::make_unique<Buffer>(llvm::alignTo(jit.code().workspaceBytes, 64));
  }

  /// Result `result` lies where operand `operand` does.
  void share(unsigned operand, unsigned result) {
    args[jit.kernel().getNumArguments() + result] = args[operand];
  }

  /// `random`: on the CPU in ranges that it cuts and orders.
  void run(Failures &failures, std::mt19937_64 *random = nullptr) {
    if (jit.isOnDevice()) {
      for (size_t s = 0; s < jit.code().stages.size(); ++s)
        if (std::string wrong = jit.launch(
                s, args.data(), options.scalars.data(), scratch->data());
            !wrong.empty())
          failures.push_back(wrong);
      return;
    }
    for (size_t s = 0; s < jit.code().stages.size(); ++s) {
      const KernelStage &stage = jit.code().stages[s];
      std::vector<std::pair<int64_t, int64_t>> ranges;
      for (int64_t at = 0; at < stage.trip;) {
        int64_t steps = random ? 1 + int64_t((*random)() % 5) : stage.trip;
        int64_t next = std::min(stage.trip, at + steps * stage.grain);
        ranges.push_back({at, next});
        at = next;
      }
      if (random)
        std::shuffle(ranges.begin(), ranges.end(), *random);
      for (auto [begin, end] : ranges)
        jit.stage(s)(args.data(), options.scalars.data(), begin, end,
                     scratch->data());
    }
  }

  std::vector<char> result(unsigned r) const {
    auto type = cast<RankedTensorType>(jit.kernel().getResultTypes()[r]);
    const char *data =
        static_cast<char *>(args[jit.kernel().getNumArguments() + r]);
    return {data, data + getByteSize(type)};
  }

  const KernelJit &jit;
  const KernelOptions &options;
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::unique_ptr<Buffer> scratch;
  std::vector<void *> args;
};

} // namespace

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

std::vector<reference::Tensor> test::makeInputs(func::FuncOp kernel,
                                                const KernelOptions &options) {
  std::vector<reference::Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    bool floating = isa<FloatType>(tensor.getElementType());
    reference::Tensor value = reference::Tensor::random(
        tensor, options.seed * 100 + i, floating ? options.low : options.intLow,
        floating ? options.high : options.intHigh);
    value.roundToType();
    inputs.push_back(value);
  }
  return inputs;
}

LogicalResult test::evaluateKernel(func::FuncOp kernel,
                                   ArrayRef<reference::Tensor> inputs,
                                   ArrayRef<int64_t> scalars,
                                   std::vector<reference::Tensor> &results) {
  reference::Options wide;
  wide.roundToType = false;
  llvm::DenseMap<Value, reference::Tensor> values;
  for (auto [arg, input] : llvm::zip(kernel.getArguments(), inputs))
    values[arg] = input;
  for (Operation &op : kernel.front()) {
    if (isa<func::ReturnOp>(op)) {
      for (Value result : op.getOperands())
        results.push_back(values[result]);
      return success();
    }
    SmallVector<const reference::Tensor *> operands;
    for (Value operand : op.getOperands())
      operands.push_back(&values[operand]);
    SmallVector<reference::Tensor> made;
    reference::Environment environment{wide, scalars};
    if (failed(reference::evaluateOp(&op, operands, made, environment)))
      return failure();
    for (auto [value, tensor] : llvm::zip(op.getResults(), made))
      values[value] = std::move(tensor);
  }
  return failure();
}

/// The kernel's result `r` as `run` left it.
static reference::Tensor readResult(const Execution &run, unsigned r) {
  auto type = cast<RankedTensorType>(run.jit.kernel().getResultTypes()[r]);
  reference::Tensor got(type);
  std::vector<char> bytes = run.result(r);
  forOffsets(type, [&](int64_t i, int64_t offset) {
    readElement(bytes.data() + offset, type.getElementType(), got, i);
  });
  return got;
}

std::vector<reference::Tensor>
test::runKernel(const KernelJit &jit, ArrayRef<reference::Tensor> inputs) {
  KernelOptions options;
  Failures failures;
  Execution run(jit, inputs, options);
  run.run(failures);
  std::vector<reference::Tensor> results;
  for (unsigned r = 0; r < run.jit.kernel().getNumResults(); ++r)
    results.push_back(readResult(run, r));
  return results;
}

/// What storing a number rounds at most, relative to it: the interpreter's
/// results are not rounded.
static double storedError(Type type) {
  return type.isF16() ? 0x1p-11 : type.isBF16() ? 0x1p-8 : 0;
}

/// Compares what `run` left with the interpreter's results; reads it.
static std::vector<reference::Tensor>
checkResults(const Execution &run, ArrayRef<reference::Tensor> wanted,
             const KernelOptions &options, Failures &failures) {
  func::FuncOp kernel = run.jit.kernel();
  std::vector<reference::Tensor> results;
  for (unsigned r = 0; r < kernel.getNumResults(); ++r) {
    auto type = cast<RankedTensorType>(kernel.getResultTypes()[r]);
    reference::Tensor got = readResult(run, r);
    double scale = type.getElementType().isF64() ? 1e-6 : 1;
    double absolute =
        options.absolutes.empty() ? options.absolute : options.absolutes[r];
    if (!reference::allClose(got, wanted[r], absolute * scale,
                             options.relative * scale +
                                 storedError(type.getElementType())))
      failures.push_back(
          "result " + std::to_string(r) + " differs from the " +
          "interpreter's: " + reference::compare(got, wanted[r]).str() +
          "\n got " + got.str(24) + "\nwant " + wanted[r].str(24));
    results.push_back(got);
  }
  for (const auto &buffer : run.buffers)
    if (!buffer->intact())
      failures.push_back("wrote outside of a buffer");
  if (!run.scratch->intact())
    failures.push_back("wrote outside of the scratch");
  return results;
}

static void expectSameBits(const Execution &one, const Execution &other,
                           const char *what, Failures &failures) {
  for (unsigned r = 0; r < one.jit.kernel().getNumResults(); ++r)
    if (one.result(r) != other.result(r))
      failures.push_back(
          std::string(what) + ", result " + std::to_string(r) + ": " +
          reference::compare(readResult(one, r), readResult(other, r)).str());
}

/// Runs once whole; checks results, operands and the bytes around them.
static std::vector<reference::Tensor>
checkRun(Execution &run, size_t numInputs, ArrayRef<reference::Tensor> wanted,
         const KernelOptions &options, Failures &failures) {
  std::vector<std::vector<char>> before;
  for (size_t i = 0; i < numInputs; ++i)
    before.push_back(run.buffers[i]->copy());
  run.run(failures);
  std::vector<reference::Tensor> results =
      checkResults(run, wanted, options, failures);
  for (size_t i = 0; i < numInputs; ++i)
    if (run.buffers[i]->copy() != before[i])
      failures.push_back("operand " + std::to_string(i) + " changed");
  return results;
}

/// Pairs of `reuse` share bytes, as many at once as have bytes of their own:
/// plans combine them, too.
static void checkReuse(const KernelJit &jit, const Execution &apart,
                       ArrayRef<reference::Tensor> inputs,
                       const KernelOptions &options, Failures &failures,
                       std::mt19937_64 *random) {
  SmallVector<std::pair<unsigned, unsigned>> left(jit.code().reuse);
  for (unsigned round = 0; !left.empty() && round < options.reuseRounds;
       ++round) {
    Execution inPlace(jit, inputs, options);
    SmallVector<std::pair<unsigned, unsigned>> later, now;
    for (auto pair : left) {
      bool isFree = llvm::none_of(now, [&](auto taken) {
        return taken.first == pair.first || taken.second == pair.second;
      });
      (isFree ? now : later).push_back(pair);
    }
    for (auto [operand, result] : now)
      inPlace.share(operand, result);
    inPlace.run(failures, random);
    expectSameBits(apart, inPlace, "bits depend on sharing bytes", failures);
    left = std::move(later);
  }
}

std::vector<reference::Tensor>
test::checkForms(const KernelForms &forms, ArrayRef<reference::Tensor> inputs,
                 ArrayRef<reference::Tensor> wanted,
                 const KernelOptions &options, Failures &failures) {
  std::vector<reference::Tensor> results;
  std::unique_ptr<Execution> onCpu;
  if (forms.cpu) {
    std::mt19937_64 random(options.seed);
    onCpu = std::make_unique<Execution>(*forms.cpu, inputs, options);
    results = checkRun(*onCpu, inputs.size(), wanted, options, failures);
    for (int round = 0; round < 2; ++round) {
      Execution cut(*forms.cpu, inputs, options);
      cut.run(failures, &random);
      expectSameBits(*onCpu, cut, "bits depend on the ranges", failures);
    }
    checkReuse(*forms.cpu, *onCpu, inputs, options, failures, &random);
  }
  size_t before = failures.size();
  Execution up(*forms.up, inputs, options), down(*forms.down, inputs, options);
  auto onDevice = checkRun(up, inputs.size(), wanted, options, failures);
  down.run(failures);
  expectSameBits(up, down, "threads race", failures);
  auto kind =
      forms.up->kernel()->getAttrOfType<StringAttr>(attrs::kKernel).getValue();
  if (onCpu && (kind == "elementwise" || kind == "structured") &&
      !forms.up->approximates())
    expectSameBits(*onCpu, up, "bits differ from the CPU's", failures);
  for (const KernelJit *jit : {forms.up, forms.down})
    checkReuse(*jit, up, inputs, options, failures, nullptr);
  for (size_t i = before; i < failures.size(); ++i)
    failures[i] = "in block form: " + failures[i];
  if (!forms.ptx)
    return onCpu ? results : onDevice;
  before = failures.size();
  Execution interpreted(*forms.ptx, inputs, options);
  (void)checkRun(interpreted, inputs.size(), wanted, options, failures);
  // Tensor cores may add in another order of k.
  if (options.precision == runtime::ProductPrecision::F32)
    expectSameBits(up, interpreted, "PTX and block form differ", failures);
  checkReuse(*forms.ptx, interpreted, inputs, options, failures, nullptr);
  for (size_t i = before; i < failures.size(); ++i)
    failures[i] = "as PTX: " + failures[i];
  return onCpu ? results : onDevice;
}

static void roundOperand(reference::Tensor &t,
                         runtime::ProductPrecision precision) {
  using runtime::ProductPrecision;
  const llvm::fltSemantics &semantics =
      precision == ProductPrecision::TF32   ? llvm::APFloat::FloatTF32()
      : precision == ProductPrecision::BF16 ? llvm::APFloat::BFloat()
                                            : llvm::APFloat::IEEEhalf();
  for (int64_t i = 0; i < t.size(); ++i) {
    llvm::APFloat value(t.real(i));
    bool lost;
    value.convert(semantics,
                  precision == ProductPrecision::TF32
                      ? llvm::APFloat::rmNearestTiesToAway
                      : llvm::APFloat::rmNearestTiesToEven,
                  &lost);
    t.real(i) = value.convertToDouble();
  }
}

std::vector<reference::Tensor>
test::roundedOperands(const KernelJit &jit, ArrayRef<reference::Tensor> inputs,
                      runtime::ProductPrecision precision) {
  std::vector<reference::Tensor> operands = inputs.vec();
  const KernelCode &code = jit.code();
  for (auto [i, operand] : llvm::enumerate(operands)) {
    bool isAdded =
        code.primitive.accumulate &&
        llvm::is_contained(llvm::drop_begin(code.primitiveArgs, 2), i);
    if (precision != runtime::ProductPrecision::F32 && !isAdded &&
        operand.getType().getElementType().isF32())
      roundOperand(operand, precision);
  }
  return operands;
}
