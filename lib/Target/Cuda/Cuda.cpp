//===- Cuda.cpp - steps for NVIDIA's GPUs ---------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "CudaRates.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptDialect.h"
#include "ckopt/Runtime/CudaCapabilities.h"
#include "ckopt/Runtime/CudaLibraries.h"
#include "ckopt/Runtime/LastFailure.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cuda/CudaCode.h"
#include "ckopt/Target/Cuda/DeviceSpeeds.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/MathExtras.h"

using namespace ckopt;

namespace {
/// What code depends on, by compute capability.
struct Capability {
  unsigned sm;
  const char *device; ///< whose rates and multiprocessors are the default
  /// Code for 9.0 needs 227 KiB for a block, which 12.0 does not have.
  unsigned code;
  int32_t processorShared; ///< bytes for all blocks on a multiprocessor
};
constexpr Capability kCapabilities[] = {{80, "a100", 80, 164 << 10},
                                        {86, "rtx3090", 80, 100 << 10},
                                        {89, "rtx4090", 80, 100 << 10},
                                        {90, "h100", 90, 228 << 10},
                                        {120, "rtx5090", 80, 100 << 10}};
} // namespace

/// Returns the capability whose code is the best one that a device runs.
static const Capability &capabilityOf(unsigned sm) {
  return *llvm::find_if(kCapabilities, [&](const Capability &one) {
    return one.sm == unsigned(runtime::codeCapability(int32_t(sm)));
  });
}

DeviceSpeeds ckopt::findDeviceSpeeds(llvm::StringRef name, unsigned sm) {
  using runtime::ProductPrecision;
  llvm::StringRef known = cudaDeviceNamed(name, "");
  DeviceSpeeds speeds;
  speeds.isKnown = !known.empty();
  speeds.device = speeds.isKnown ? known.str() : capabilityOf(sm).device;
  speeds.multiprocessors = cudaMultiprocessors(speeds.device);
  auto of = [&](ProductPrecision precision) { // no file is read
    return llvm::cantFail(cudaRates(speeds.device, precision));
  };
  MachineRates rates = of(ProductPrecision::TF32);
  speeds.f32 = of(ProductPrecision::F32).libraryMatmul;
  speeds.tf32 = rates.libraryMatmul;
  speeds.halves = rates.libraryHalves;
  speeds.bandwidth = rates.bandwidth;
  speeds.vector = rates.vector;
  return speeds;
}

/// Returns the capability that code with so much shared memory a block is for.
static unsigned codeWith(int64_t sharedBytes) {
  return sharedBytes > runtime::mostSharedBytes(80) ? 90 : 80;
}

/// Asks the device that a step is compiled for, if it is one of this machine.
static llvm::Expected<std::optional<ckrt_device_facts>>
askDevice(const DeviceOptions &device) {
  if (device.target.empty() || device.ordinal < 0)
    return std::nullopt;
  ckrt_device_facts facts = {};
  facts.size = sizeof(facts);
  if (ckrt_status status = ckrt_describe_device(device.ordinal, &facts))
    return makeError(exitCodeOf(status), runtime::lastFailure());
  return facts;
}

namespace {

/// With fewer keys the matrix of scores is small. With more columns of a head,
/// a block's sums take too many registers.
constexpr int64_t kLeastCudaKeys = 128, kMostCudaColumns = 256;

/// The gradient's workspace takes 64 KiB a row, so this is for 16,384.
constexpr int64_t kMostAttentionWorkspace = int64_t(1) << 30;

/// Rows of a chunk of a classification loss. Each chunk but the first reads the
/// weight's gradient and writes it again, 8 bytes an element, and does one
/// multiplication a row for each element: from 220 rows (TF32) or 440 (bf16)
/// on, the matmuls take longer on an H100. Tiles have 128 or 256 rows. cuBLASLt
/// multiplies bf16 three times as fast: its matmuls take longer from 570 rows
/// (H200) to 1000 (H100) on, so 2048 are enough.
constexpr int64_t kChunkBytes = int64_t(128) << 20, kLeastChunkRows = 512,
                  kEnoughRows = 2048, kChunkRowStep = 128;
/// A load of 16 bytes has eight 16-bit elements.
constexpr int64_t kClassGroup = 8;

/// With 4 channels cuDNN 9.14 took 2 (TF32) to 13 times (bf16) as long as our
/// own kernels on an H200 (docs/benchmarks/gpu.md). Numbers between were not
/// measured; 8 elements of 16 bits are a load of 16 bytes.
constexpr int64_t kLeastCudnnChannels = 8;

class CudaTarget final : public TargetInfo {
public:
  CudaTarget() : TargetInfo(describe()) {}

  llvm::Error settle(TargetRequest &request) const override;

  std::shared_ptr<TargetOptions> makeOptions() const override {
    return std::make_shared<CudaOptions>();
  }
  std::vector<TargetFlag> ownFlags(TargetOptions &options) const override;

  llvm::Expected<runtime::ProductPrecision>
  productPrecision(MatmulPrecision name) const override {
    using runtime::ProductPrecision;
    auto precision = productsNamed(name, ProductPrecision::TF32);
    if (name == MatmulPrecision::Medium) // no class is coarser than it says
      return ProductPrecision::TF32;
    if (precision == ProductPrecision::F32 ||
        precision == ProductPrecision::TF32)
      return precision;
    return usageError(
        Setting("matmul-precision", nameOf(name)) +
        ": products of f32 tensors are by f32 or tf32 on a GPU; " +
        Setting("precision", nameOf(name)) + " stores tensors in " +
        nameOf(name));
  }

  llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &settings) const override {
    auto precision = productPrecision(settings.matmulPrecision);
    if (!precision)
      return precision.takeError();
    auto variant = ContractionVariant::parse(settings.contractions);
    if (!variant)
      return variant.takeError();
    CodegenOptions options;
    options.target = this;
    options.vectorBits = 128;
    options.libraryWorkspace = settings.libraryWorkspace;
    options.attentionWorkspace = settings.attentionWorkspace;
    options.multiprocessors = settings.multiprocessors
                                  ? settings.multiprocessors
                                  : cudaMultiprocessors("h100");
    options.sharedBytes = settings.sharedBytes
                              ? settings.sharedBytes
                              : int32_t(runtime::mostSharedBytes(80));
    options.processorShared =
        settings.processorShared
            ? settings.processorShared
            : capabilityOf(codeWith(options.sharedBytes)).processorShared;
    options.ownBesideLibraries = settings.ownBesideLibraries;
    options.contractions = *variant;
    options.precision = *precision;
    return options;
  }

  llvm::Expected<MachineRates>
  rates(const KernelSettings &settings) const override {
    if (settings.deviceRates.empty())
      return traits.rates;
    auto precision = productPrecision(settings.matmulPrecision);
    return precision ? cudaRates(settings.deviceRates, *precision)
                     : llvm::Expected<MachineRates>(precision.takeError());
  }

  std::string ratedDevice(const KernelSettings &settings) const override {
    return llvm::StringRef(settings.deviceRates).split(',').first.str();
  }

  LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &desc,
                              const CodegenOptions &options) const override {
    LibraryChoice choice;
    if (!options.libraryWorkspace)
      choice.reason = "libraries were not asked for";
    else if (!options.ownBesideLibraries && isHalfConvolution(desc))
      choice.reason = "which convolutions of " +
                      std::string(runtime::dtypeName(desc.dtype)) +
                      " cuDNN has is known on the device alone";
    else if (options.ownBesideLibraries && hasFewChannels(desc))
      choice.reason = "cuDNN's convolutions of less than " +
                      std::to_string(kLeastCudnnChannels) +
                      " input channels are slower";
    else
      choice.reason = runtime::cudaLibraryRefuses(desc);
    if (choice.reason.empty() && runtime::isAttention(desc.kind))
      return chooseAttention(desc, options);
    choice.library = choice.reason.empty();
    // cuDNN chooses its algorithm at load time, so only a limit of the
    // workspace is known here.
    if (choice.library)
      choice.workspaceBytes = workspaceOf(desc, options);
    return choice;
  }

  llvm::Expected<int64_t> roomOn(const DeviceOptions &device,
                                 const KernelSettings &settings) const override;

  MessageText lessWorkspace() const override {
    return "a smaller " + Setting("cuda-workspace") + " or " +
           Setting("cuda-libs", "none") + " lowers";
  }

  llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp planned, const EmitOptions &options) const override;

private:
  static bool isHalf(const runtime::PrimitiveDesc &desc) {
    return desc.dtype == runtime::DType::F16 ||
           desc.dtype == runtime::DType::BF16;
  }

  /// Returns whether our own tensor-core kernel is the faster one for an
  /// image's first convolution, whose channels do not fill a load of cuDNN's.
  static bool hasFewChannels(const runtime::PrimitiveDesc &desc) {
    bool byTensorCores =
        isHalf(desc) || (desc.dtype == runtime::DType::F32 &&
                         desc.precision != runtime::ProductPrecision::F32);
    return byTensorCores && desc.kind == runtime::PrimitiveKind::ConvForward &&
           desc.conv.groups == 1 && desc.conv.inChannels < kLeastCudnnChannels;
  }

  static bool isHalfConvolution(const runtime::PrimitiveDesc &desc) {
    return isHalf(desc) && runtime::isConvolution(desc.kind);
  }

  /// The library says beforehand what attention needs.
  static LibraryChoice chooseAttention(const runtime::PrimitiveDesc &desc,
                                       const CodegenOptions &options) {
    LibraryChoice choice;
    if (!options.ownBesideLibraries) {
      choice.reason = "which attention cuDNN has is known on the device alone";
      return choice;
    }
    int64_t bytes = runtime::cudaLibraryWorkspace(desc);
    choice.library = bytes <= options.attentionWorkspace;
    choice.workspaceBytes = int64_t(llvm::alignTo(uint64_t(bytes), 256));
    if (!choice.library)
      choice.reason = "cuDNN's attention takes " + std::to_string(bytes) +
                      " bytes of workspace, and " +
                      std::to_string(options.attentionWorkspace) + " are there";
    return choice;
  }

  /// A library that may refuse gets at most as much workspace as the call's
  /// tensors take, so that small steps stay small.
  static int64_t workspaceOf(const runtime::PrimitiveDesc &desc,
                             const CodegenOptions &options) {
    if (!options.ownBesideLibraries)
      return options.libraryWorkspace;
    int64_t bytes = runtime::cudaLibraryTensorBytes(desc);
    return std::min(options.libraryWorkspace,
                    int64_t(llvm::alignTo(
                        uint64_t(std::max(bytes, kLeastWorkspace)), 256)));
  }
  static constexpr int64_t kLeastWorkspace = 4096;

  static TargetTraits describe() {
    TargetTraits traits;
    traits.name = "cuda";
    traits.machines = "GPUs";
    traits.form = StageForm::Blocks;
    // A kernel may have 512 parameters of 8 bytes, one of them the scratch. The
    // limit of blocks is that of the one grid dimension in use.
    traits.limits.tensors = 511;
    traits.limits.joined = 500;
    traits.limits.blocks = (int64_t(1) << 31) - 1;
    traits.ownContractions = true;
    traits.joinsUpdates = true;
    traits.feedsAhead = true;
    traits.leastAttentionKeys = kLeastCudaKeys;
    traits.mostAttentionColumns = kMostCudaColumns;
    traits.planesOfRows = true;
    traits.halfProducts = true;
    traits.lossChunks = {kChunkBytes, kLeastChunkRows, kChunkRowStep,
                         kEnoughRows, kClassGroup};
    traits.bf16Products = true;
    traits.addsToTensors = true;
    traits.channelGroup = 4;
    traits.arenaAlignment = runtime::kDeviceAlignment;
    // Rates of a device come from the settings (CudaRates.cpp); passes without
    // settings weigh kernels as on a CPU.
    traits.rates = MachineRates();
    traits.writesFolder = true;
    traits.hasDevices = true;
    return traits;
  }
};

} // namespace

std::vector<TargetFlag> CudaTarget::ownFlags(TargetOptions &options) const {
  auto &own = static_cast<CudaOptions &>(options);
  auto capability = [&own](llvm::StringRef text) -> llvm::Error {
    unsigned sm = 0;
    if (text.getAsInteger(10, sm) ||
        llvm::none_of(kCapabilities,
                      [&](const Capability &one) { return one.sm == sm; }))
      return usageError(Setting("sm") + ": '" + text +
                        "' is none of 80, 86, 89, 90, 120");
    own.sm = sm;
    return llvm::Error::success();
  };
  auto workspace = [&own](llvm::StringRef text) -> llvm::Error {
    auto bytes = parseByteSize(text);
    if (!bytes)
      return bytes.takeError();
    if (*bytes <= 0)
      return usageError(Setting("cuda-workspace") +
                        ": more than 0 bytes are needed");
    own.workspace = int64_t(llvm::alignTo(uint64_t(*bytes), 64));
    own.limitsAttention = true;
    return llvm::Error::success();
  };
  auto libraries = [&own](llvm::StringRef text) -> llvm::Error {
    if (text == "auto")
      own.libraries = CudaLibraries::Auto;
    else if (text == "none")
      own.libraries = CudaLibraries::None;
    else if (text == "all")
      own.libraries = CudaLibraries::All;
    else
      return usageError(Setting("cuda-libs") + ": '" + text +
                        "' is none of auto, none, all");
    return llvm::Error::success();
  };
  auto emulation = [&own](llvm::StringRef text) -> llvm::Error {
    if (text.empty())
      return usageError(Setting("cuda-emulation") + " needs a file name");
    own.emulation = text.str();
    return llvm::Error::success();
  };
  auto multiprocessors = [&own](llvm::StringRef text) -> llvm::Error {
    if (text.getAsInteger(10, own.multiprocessors) || own.multiprocessors < 1 ||
        own.multiprocessors > 1024)
      return usageError(Setting("multiprocessors") + ": '" + text +
                        "' is no number from 1 to 1024");
    return llvm::Error::success();
  };
  return {
      {"sm", "N",
       "cuda: compute capability of the devices: 80, 86, 89, 90 or 120 "
       "(default: that of " +
           Setting("device") + ", or 80)",
       capability},
      {"cuda-libs", "NAME",
       "auto (default): products and convolutions by cuBLASLt and cuDNN where "
       "they are there and take the call, else by code of our own; none: by "
       "ours; all: by theirs",
       libraries},
      {"cuda-workspace", "BYTES",
       "planned for each call of a library at most (default 32 MiB; of "
       "attention 1 GiB)",
       workspace},
      {"multiprocessors", "N",
       "cuda: how many multiprocessors products, convolutions and sums of "
       "columns are divided for (default: those of " +
           Setting("device") + ", or 108 for " + Setting("sm", "80") +
           ", 132 for 90); other numbers, other bits",
       multiprocessors},
      {"device-rates", "NAME|FILE|NAME,FILE",
       "cuda: plan by the rates of a100 (default for " + Setting("sm", "80") +
           "), h100 (for 90), h200, l4, rtx3090 (86), rtx4090 (89), rtx5090 "
           "(120), or of a file that bench " +
           Setting("calibrate") +
           " wrote; rates that it lacks are those of the device that it names, "
           "or NAME",
       [&own](llvm::StringRef text) -> llvm::Error {
         if (text.empty())
           return usageError(Setting("device-rates") +
                             ": the name of a device or a file is needed");
         own.rates = text.str();
         own.ratesFile = cudaRatesFile(text).str();
         return settleCudaRates(text, "").takeError();
       },
       &own.ratesFile},
      {"cuda-programmatic-launches", "",
       "cuda: kernels of our own begin before the one before them has ended, "
       "and wait for it by themselves (" +
           Setting("sm", "90") + "; not yet run on a device)",
       [&own](llvm::StringRef) {
         own.programmatic = true;
         return llvm::Error::success();
       }},
      {"cuda-weight-copies", "",
       "cuda: with " + Setting("precision", "bf16") +
           " or f16: 16-bit copies of weights stay from step to step, 2 bytes "
           "a number, instead of being made twice in each",
       [&own](llvm::StringRef) {
         own.weightCopies = true;
         return llvm::Error::success();
       }},
      {"cuda-emulation", "FILE",
       "also write the kernels as CPU code, for tests without a GPU", emulation,
       &own.emulation, /*isWritten=*/true},
  };
}

/// Returns the settings of this target; those of another are an error.
static llvm::Expected<const CudaOptions *>
ownOptions(const DeviceOptions &device) {
  static const CudaOptions defaults;
  if (!device.own)
    return &defaults;
  if (device.own->target != defaults.target)
    return usageError("settings of target '" + device.own->target +
                      "' are none of target '" + defaults.target + "'");
  return static_cast<const CudaOptions *>(device.own.get());
}

/// Refuses flags that have no effect on a step for GPUs.
static llvm::Error refuseIdleFlags(const TargetRequest &request,
                                   const CudaOptions &device) {
  if (request.flags.count("threads"))
    return usageError(Setting("threads") +
                      " is for CPUs: leave it out for a GPU");
  for (const char *flag : {"cpu", "O"})
    if (request.flags.count(flag) && device.emulation.empty())
      return usageError(Setting::ofFlag(flag) +
                        " is for CPUs: leave it out for a GPU");
  if (request.flags.count("cuda-workspace") &&
      device.libraries == CudaLibraries::None)
    return usageError(Setting("cuda-workspace") +
                      " is for libraries: leave it or " +
                      Setting("cuda-libs", "none") + " out");
  return llvm::Error::success();
}

/// Refuses launches that code for less than 9.0 has not; the device may not run
/// other code.
static llvm::Error refuseProgrammatic(int32_t device) {
  MessageText text = Setting("cuda-programmatic-launches") +
                     " needs code for compute capability 9.0";
  if (capabilityOf(unsigned(device)).code >= 90)
    return usageError(text + ": give " + Setting("sm", "90") +
                      ", or leave it out");
  return usageError(text + ", which a device of " + llvm::Twine(device / 10) +
                    "." + llvm::Twine(device % 10) +
                    " does not run: leave it out");
}

llvm::Error CudaTarget::settle(TargetRequest &request) const {
  auto own = ownOptions(request.device);
  if (!own)
    return own.takeError();
  if (llvm::Error error = refuseIdleFlags(request, **own))
    return error;
  KernelSettings &kernels = request.kernels;
  if (!kernels.libraryTable.empty())
    return usageError(Setting("library-table") +
                      " is for CPUs: leave it out for a GPU");
  auto precision = productPrecision(kernels.matmulPrecision);
  if (!precision)
    return precision.takeError();
  if (request.f64 && *precision != runtime::ProductPrecision::F32)
    return usageError(
        Setting("matmul-precision", nameOf(kernels.matmulPrecision)) +
        " is for products of f32, and " + Setting("compute-type", "f64") +
        " has none: leave out one of the two");
  kernels.libraryWorkspace =
      (*own)->libraries == CudaLibraries::None ? 0 : (*own)->workspace;
  kernels.ownBesideLibraries = (*own)->libraries == CudaLibraries::Auto;
  if (kernels.ownBesideLibraries && !kernels.attentionWorkspace)
    kernels.attentionWorkspace =
        (*own)->limitsAttention ? (*own)->workspace : kMostAttentionWorkspace;
  auto facts = askDevice(request.device);
  if (!facts)
    return facts.takeError();
  auto asked = [&](auto given, auto device, auto usual) {
    return given ? given : *facts ? device(**facts) : usual;
  };
  const Capability &capability = capabilityOf(asked(
      (*own)->sm,
      [](const ckrt_device_facts &f) { return unsigned(f.compute_capability); },
      80u));
  if ((*own)->weightCopies && kernels.precision == Precision::F32)
    return usageError(Setting("cuda-weight-copies") + " is for " +
                      Setting("precision", "bf16") +
                      " or f16: leave it out, or give one of them");
  kernels.keepCopies = (*own)->weightCopies;
  if ((*own)->programmatic && capability.code < 90)
    return refuseProgrammatic(*facts ? (*facts)->compute_capability : 90);
  auto rates = settleCudaRates(
      (*own)->rates, *facts ? cudaDeviceNamed((*facts)->name, capability.device)
                            : llvm::StringRef(capability.device));
  if (!rates)
    return rates.takeError();
  kernels.deviceRates = *rates;
  kernels.multiprocessors =
      asked((*own)->multiprocessors,
            [](const ckrt_device_facts &f) { return f.multiprocessors; },
            cudaMultiprocessors(capability.device));
  kernels.sharedBytes =
      int32_t(runtime::mostSharedBytes(int32_t(capability.code)));
  kernels.processorShared = capability.processorShared;
  kernels.threads = 1;
  if (request.runsHere && request.device.target.empty())
    return usageError("a step for CUDA runs on a device: give " +
                      Setting("device", "cuda:0"));
  return llvm::Error::success();
}

/// Code, graphs and local memory take some 30 MiB beside an arena; cuBLASLt and
/// cuDNN load up to 0.3 GB of code (measured on an H200).
static constexpr int64_t kRoomForCode = int64_t(64) << 20,
                         kRoomForLibraries = int64_t(384) << 20;

llvm::Expected<int64_t>
CudaTarget::roomOn(const DeviceOptions &device,
                   const KernelSettings &settings) const {
  int64_t bytes = 0;
  if (ckrt_status status = ckrt_device_free_bytes(device.ordinal, &bytes))
    return makeError(exitCodeOf(status), runtime::lastFailure());
  int64_t room = bytes - kRoomForCode -
                 (settings.libraryWorkspace ? kRoomForLibraries : 0);
  room -= room % 256;
  if (room > 0)
    return room;
  return makeError(exitCodeOf(CKRT_DEVICE_MEMORY),
                   "cuda:" + llvm::Twine(device.ordinal) + " has " +
                       llvm::Twine(bytes) +
                       " free bytes, which code and libraries need");
}

static bool isOfRanks(mlir::ModuleOp planned) {
  return llvm::any_of(
      planned.getOps<mlir::func::FuncOp>(), [](mlir::func::FuncOp function) {
        auto ranks = function->getAttrOfType<mlir::IntegerAttr>(attrs::kRanks);
        return ranks && ranks.getInt() > 1;
      });
}

llvm::Expected<std::unique_ptr<StepCode>>
CudaTarget::emit(mlir::ModuleOp planned, const EmitOptions &options) const {
  auto kernels = codegen(options.kernels);
  if (!kernels)
    return kernels.takeError();
  auto own = ownOptions(options.device);
  if (!own)
    return own.takeError();
  LowerDeviceOptions lowering;
  lowering.codegen = *kernels;
  lowering.sm = codeWith(kernels->sharedBytes);
  lowering.keepDenormals = options.keepDenormals;
  lowering.programmatic = (*own)->programmatic;
  lowering.producer = options.producer;
  // Where the step runs, libraries say what they refuse before code of ours is
  // made for it; each of several ranks would make its own.
  const bool isLater = !options.device.target.empty() &&
                       (*own)->emulation.empty() && !isOfRanks(planned);
  if (isLater)
    lowering.own.emplace();
  auto lowered = lowerDeviceStep(planned, lowering);
  if (!lowered)
    return lowered.takeError();
  auto code = isLater ? std::make_unique<CudaCode>(std::move(*lowered), planned,
                                                   lowering)
                      : std::make_unique<CudaCode>(std::move(*lowered));
  if (options.addData)
    if (llvm::Error error = options.addData(code->manifest, code->data))
      return std::move(error);
  if (!(*own)->emulation.empty())
    if (llvm::Error error =
            code->writeEmulation((*own)->emulation, options.cpu))
      return std::move(error);
  return std::move(code);
}

const TargetInfo &ckopt::cudaTarget() {
  static const CudaTarget target;
  return target;
}
