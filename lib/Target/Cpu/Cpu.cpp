//===- Cpu.cpp - steps for the processor that ckopt runs on ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "ckopt/Target/Cpu/StepToLLVM.h"
#include "ckopt/Target/LibraryTableFile.h"
#include "ckopt/Target/Targets.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

#include <cstring>

using namespace ckopt;

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {

/// Host code, as object files.
class HostCode final : public StepCode {
public:
  llvm::Expected<Program> load(llvm::ArrayRef<int64_t>) const override {
    if (!foreign.empty())
      return usageError(Setting("cpu") + ": code for " + foreign +
                        " does not run on this machine; ckopt compile writes "
                        "it to a file");
    auto jit = linked();
    if (!jit)
      return jit.takeError();
    return Program{(*jit)->program(), *jit};
  }

  llvm::Expected<Program> loadAt(int64_t size) const override {
    auto jit = linked();
    if (!jit)
      return jit.takeError();
    ckrt_program *program = nullptr;
    if (ckrt_program_at((*jit)->program(), size, &program) != CKRT_OK)
      return usageError(runtime::lastFailure());
    auto keeper = std::shared_ptr<ckrt_program>(
        program,
        [code = *jit](ckrt_program *made) { ckrt_program_destroy(made); });
    return Program{program, std::move(keeper)};
  }

  llvm::Error write(const std::string &path) const override {
    return linkSharedLibrary(objects, path);
  }

  std::string pack() const override {
    std::vector<uint8_t> described = runtime::serialize(manifest);
    std::string packed;
    auto add = [&](const char *bytes, size_t count) {
      auto size = uint64_t(count);
      packed.append(reinterpret_cast<const char *>(&size), sizeof(size));
      packed.append(bytes, count);
    };
    add(reinterpret_cast<const char *>(described.data()), described.size());
    add(foreign.data(), foreign.size());
    add(data.data(), data.size());
    add(objects.main.data(), objects.main.size());
    for (const std::vector<char> &kernel : objects.kernels)
      add(kernel.data(), kernel.size());
    return packed;
  }

  llvm::Error inspect(llvm::raw_ostream &os) const override {
    os << "\nlibrary primitives (" << manifest.primitives.size() << " distinct"
       << (manifest.libraryTable.empty() ? "" : ", by library table ")
       << manifest.libraryTable << "):\n";
    for (const runtime::PrimitiveDesc &desc : manifest.primitives) {
      std::string error;
      auto primitive =
          runtime::Primitive::create(desc, manifest.threads, error);
      os << "  " << runtime::describe(desc) << "  ";
      if (desc.form != runtime::LibraryForm::Default)
        os << runtime::libraryFormName(desc.form) << "  ";
      os << (primitive ? primitive->implementation() : error) << "\n";
    }
    // List the memory that a process needs beside the arena.
    os << "\noutside the arena:\n  code and tables of the step  "
       << formatBytesExact(objects.bytes()) << "\n  stacks of "
       << manifest.threads
       << " threads         8 MiB each, mapped, touched as used\n"
          "  oneDNN: packing buffers of its own inside matrix products\n"
          "  (per thread, bounded by its cache blocking), and the code\n"
          "  that it generates for each primitive\n"
          "  file mappings of data and weights that are being read\n";
    return llvm::Error::success();
  }

  StepObjects objects;
  std::string foreign; ///< another architecture than this machine's

private:
  /// The code in this process, as long as something keeps it.
  llvm::Expected<std::shared_ptr<JitProgram>> linked() const {
    if (auto known = program.lock())
      return known;
    auto made = JitProgram::create(objects);
    if (!made)
      return made.takeError();
    std::shared_ptr<JitProgram> shared = std::move(*made);
    program = shared;
    return shared;
  }

  mutable std::weak_ptr<JitProgram> program;
};

} // namespace

llvm::Expected<std::unique_ptr<StepCode>>
ckopt::unpackHostCode(llvm::StringRef packed) {
  std::vector<llvm::StringRef> parts;
  while (!packed.empty()) {
    uint64_t size = 0;
    if (packed.size() < sizeof(size))
      return inputError("packed code is cut off");
    std::memcpy(&size, packed.data(), sizeof(size));
    packed = packed.drop_front(sizeof(size));
    if (size > packed.size())
      return inputError("packed code is cut off");
    parts.push_back(packed.take_front(size));
    packed = packed.drop_front(size);
  }
  if (parts.size() < 4)
    return inputError("packed code is cut off");
  auto code = std::make_unique<HostCode>();
  std::string error;
  if (!runtime::parse(parts[0].data(), parts[0].size(), code->manifest, error))
    return inputError("packed code: " + error);
  code->foreign = parts[1].str();
  code->data.assign(parts[2].begin(), parts[2].end());
  code->objects.main.assign(parts[3].begin(), parts[3].end());
  for (llvm::StringRef kernel : llvm::ArrayRef(parts).drop_front(4))
    code->objects.kernels.emplace_back(kernel.begin(), kernel.end());
  return std::move(code);
}

static std::string describe(const KernelCounts &counts,
                            const KernelCache &cache) {
  std::string text = "kernels: " + std::to_string(counts.functions) +
                     " functions, " + std::to_string(counts.distinct) +
                     " distinct, ";
  int64_t compiled = counts.distinct - counts.found;
  if (cache.folder().empty())
    return text + std::to_string(compiled) + " compiled (no cache)";
  return text + std::to_string(counts.found) + " from the cache '" +
         cache.folder() + "', " + std::to_string(compiled) + " compiled";
}

llvm::Expected<std::unique_ptr<StepCode>>
ckopt::emitHostCode(mlir::ModuleOp planned, const CodegenOptions &codegen,
                    const EmitOptions &options) {
  auto features = cpuFeatures(options.cpu);
  if (!features)
    return features.takeError();
  LowerStepOptions lowering;
  lowering.codegen = codegen;
  lowering.instrument = options.instrument;
  lowering.keepDenormals = options.keepDenormals;
  lowering.cpuFeatures = std::move(*features);
  lowering.producer = options.producer;
  std::optional<LoweredStep> lowered;
  if (options.sizes) {
    if (llvm::Error error =
            lowerSizes(planned, *options.sizes, lowering).moveInto(lowered))
      return std::move(error);
  } else if (auto made = lowerStep(planned, lowering); succeeded(made)) {
    lowered = std::move(*made);
  } else {
    return makeError(ExitInternal, "lowering failed");
  }
  if (codegen.libraries)
    lowered->manifest.libraryTable = codegen.libraries->hash;
  auto foreign = foreignArchitecture(options.cpu);
  if (!foreign)
    return foreign.takeError();
  auto code = std::make_unique<HostCode>();
  code->foreign = *foreign;
  if (options.addData)
    if (llvm::Error error = options.addData(lowered->manifest, code->data))
      return std::move(error);
  code->manifest = lowered->manifest;
  auto loc = mlir::UnknownLoc::get(planned.getContext());
  KernelCache cache(options.cpu.kernelCache, [&](const MessageText &text) {
    mlir::emitWarning(loc) << text;
  });
  KernelCounts counts;
  auto objects = emitObjects(*lowered, code->data, options.cpu, cache, counts);
  if (!objects)
    return objects.takeError();
  code->objects = std::move(*objects);
  if (options.verbose)
    mlir::emitRemark(loc) << describe(counts, cache);
  return std::move(code);
}

LibraryChoice ckopt::chooseHostLibrary(const runtime::PrimitiveDesc &desc,
                                       const CodegenOptions &options) {
  LibraryChoice choice;
  runtime::PrimitiveDesc formed = desc;
  const runtime::LibraryTable &table =
      options.libraries ? *options.libraries : runtime::builtInLibraryTable("");
  choice.form = formed.form = table.formOf(desc);
  std::string reason;
  choice.workspaceBytes =
      runtime::primitiveWorkspace(formed, int32_t(options.threads), reason);
  choice.library = reason.empty() && choice.workspaceBytes >= 0;
  choice.reason = reason;
  if (!choice.library &&
      (desc.dtype == DType::F16 || desc.dtype == DType::BF16))
    choice.reason += "; convert the model to f32, or compile it with " +
                     Setting("target", "cuda") +
                     ", which has products of f16 or bf16";
  return choice;
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

namespace {

/// How many times as fast products of bf16 are as those of f32, with AVX-512
/// alone and with AMX (by oneDNN: 330 GFLOP/s of f32 and 2,000 to 2,700 of bf16
/// on two cores).
constexpr double kHalvesRate = 1.8, kAmxHalvesRate = 6;

/// Below, products of all heads at once are faster (docs/attention.md).
constexpr int64_t kLeastAttentionKeys = 128;

llvm::Expected<std::shared_ptr<const runtime::LibraryTable>>
libraryTable(const KernelSettings &settings) {
  std::string name = settings.cpuClass;
  if (name.empty()) {
    auto native = cpuClass(CpuOptions());
    if (!native)
      return native.takeError();
    name = *native;
  }
  if (!settings.libraryTable.empty())
    return readLibraryTable(settings.libraryTable, name);
  // Built-in tables live as long as the program.
  return std::shared_ptr<const runtime::LibraryTable>(
      &runtime::builtInLibraryTable(name), [](const auto *) {});
}

class CpuTarget final : public TargetInfo {
public:
  CpuTarget() : TargetInfo(describe()) {}

  llvm::Error settle(TargetRequest &request) const override {
    auto cpuClassOf = cpuClass(request.cpu);
    if (!cpuClassOf)
      return cpuClassOf.takeError();
    request.kernels.cpuClass = *cpuClassOf;
    MatmulPrecision name = request.kernels.matmulPrecision;
    if (name == MatmulPrecision::TF32 || name == MatmulPrecision::F16)
      return refuseNarrowProducts(request);
    auto precision = productPrecision(name);
    if (!precision)
      return precision.takeError();
    if (request.f64 && *precision != runtime::ProductPrecision::F32)
      return usageError(Setting("matmul-precision", nameOf(name)) +
                        " is for products of f32, and " +
                        Setting("compute-type", "f64") +
                        " has none: leave out one of the two");
    return llvm::Error::success();
  }

  /// `high` is f32: sums of products of bf16 pieces, the only class nearly as
  /// exact, made no step faster, with AMX neither, and went.
  llvm::Expected<runtime::ProductPrecision>
  productPrecision(MatmulPrecision name) const override {
    using runtime::ProductPrecision;
    auto precision = productsNamed(name, ProductPrecision::F32);
    if (precision == ProductPrecision::TF32 ||
        precision == ProductPrecision::F16)
      return usageError("products by " + nameOf(name) +
                        " are for target cuda alone");
    return precision;
  }

  llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &settings) const override {
    auto precision = productPrecision(settings.matmulPrecision);
    if (!precision)
      return precision.takeError();
    MessageText refusal = runtime::refusesTeam(settings.threads);
    if (!refusal.empty())
      return inputError("the step would be planned for " + refusal);
    CodegenOptions options;
    options.target = this;
    options.threads = unsigned(settings.threads);
    options.vectorBits = settings.vectorBits;
    auto table = libraryTable(settings);
    if (!table)
      return table.takeError();
    options.libraries = *table;
    return options;
  }

  LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &desc,
                              const CodegenOptions &options) const override {
    return chooseHostLibrary(desc, options);
  }

  llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp planned, const EmitOptions &options) const override {
    auto kernels = codegen(options.kernels);
    if (!kernels)
      return kernels.takeError();
    return emitHostCode(planned, *kernels, options);
  }

  llvm::Expected<std::unique_ptr<StepCode>>
  unpack(llvm::StringRef packed) const override {
    return unpackHostCode(packed);
  }

private:
  static TargetTraits describe() {
    TargetTraits traits;
    traits.name = "cpu";
    traits.machines = "CPUs";
    traits.roundsApart = true;
    traits.leastAttentionKeys = kLeastAttentionKeys;
    llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
    traits.bf16Products = host.lookup("avx512bf16") || host.lookup("amx-bf16");
    if (traits.bf16Products)
      traits.rates.halves = traits.rates.convHalves =
          hasAmx() ? kAmxHalvesRate : kHalvesRate;
    return traits;
  }

  static bool hasAmx() {
    return llvm::sys::getHostCPUFeatures().lookup("amx-bf16");
  }
};

} // namespace

const TargetInfo &ckopt::cpuTarget() {
  static const CpuTarget target;
  return target;
}
