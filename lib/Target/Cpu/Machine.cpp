//===- Machine.cpp - the processors that code is made for -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "llvm/Config/Targets.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"

using namespace ckopt;

/// LLVM's names of the features that its code generator can use for what the
/// emitter writes. The runtime knows what /proc/cpuinfo calls them.
static constexpr llvm::StringLiteral usedFeatures[] = {"sse3",
                                                       "ssse3",
                                                       "sse4.1",
                                                       "sse4.2",
                                                       "popcnt",
                                                       "lzcnt",
                                                       "movbe",
                                                       "bmi",
                                                       "bmi2",
                                                       "adx",
                                                       "avx",
                                                       "f16c",
                                                       "fma",
                                                       "avx2",
                                                       "avxvnni",
                                                       "avxifma",
                                                       "avxneconvert",
                                                       "avxvnniint8",
                                                       "gfni",
                                                       "vaes",
                                                       "vpclmulqdq",
                                                       "avx512f",
                                                       "avx512cd",
                                                       "avx512bw",
                                                       "avx512dq",
                                                       "avx512vl",
                                                       "avx512ifma",
                                                       "avx512vbmi",
                                                       "avx512vbmi2",
                                                       "avx512vnni",
                                                       "avx512bitalg",
                                                       "avx512vpopcntdq",
                                                       "avx512bf16",
                                                       "avx512fp16",
                                                       "avx512vp2intersect"};

/// The architecture that code is emitted for beside this machine's own.
static constexpr llvm::StringLiteral crossTriple = "aarch64-unknown-linux-gnu";

/// Makes LLVM know that architecture, and none beside it: where LLVM is an
/// archive, all its code generators would take more room than the compiler.
static void initializeCrossTarget() {
#if LLVM_HAS_AARCH64_TARGET
  LLVMInitializeAArch64TargetInfo();
  LLVMInitializeAArch64Target();
  LLVMInitializeAArch64TargetMC();
  LLVMInitializeAArch64AsmPrinter();
#endif
}

/// Returns whether LLVM knows the CPU in an architecture; a code generator for
/// one that it does not know would print so, several times.
static bool knowsCpu(const llvm::Target &target, const llvm::Triple &triple,
                     llvm::StringRef cpu) {
  std::unique_ptr<llvm::MCSubtargetInfo> any(
      target.createMCSubtargetInfo(triple, "", ""));
  if (!any || !any->isCPUStringValid(cpu))
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> own(
      target.createMCSubtargetInfo(triple, cpu, ""));
  return !triple.isX86() || own->checkFeatures("+64bit");
}

/// Makes the code generator of an architecture; null with a reason, or with
/// none where it does not know the CPU.
static std::unique_ptr<llvm::TargetMachine>
makeMachine(const llvm::Triple &triple, llvm::StringRef cpu,
            llvm::StringRef features, unsigned optLevel, std::string &error) {
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  if (!knowsCpu(*target, triple, cpu))
    return nullptr;
  llvm::TargetOptions targetOptions;
  targetOptions.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, cpu, features, targetOptions, llvm::Reloc::PIC_, std::nullopt,
      optLevel >= 3 ? llvm::CodeGenOptLevel::Aggressive
                    : llvm::CodeGenOptLevel::Default));
  if (!machine)
    error = "cannot generate code for CPU '" + cpu.str() + "'";
  return machine;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
ckopt::makeTargetMachine(const CpuOptions &options) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  llvm::Triple triple(llvm::sys::getProcessTriple());
  std::string error, features, cpu = options.cpu;
  if (cpu == "native") {
    // The CPU's name only tunes; the features decide what code may use, since a
    // virtual machine may hide some features of its CPU.
    cpu = llvm::sys::getHostCPUName().str();
    std::vector<std::string> list;
    for (const auto &feature : llvm::sys::getHostCPUFeatures())
      list.push_back((feature.second && !llvm::is_contained(options.without,
                                                            feature.first())
                          ? "+"
                          : "-") +
                     feature.first().str());
    llvm::sort(list);
    features = llvm::join(list, ",");
  }
  auto machine = makeMachine(triple, cpu, features, options.optLevel, error);
  if (!machine && !error.empty())
    return makeError(ExitInternal,
                     "no code generator for this machine: " + error);
  if (machine)
    return std::move(machine);
  initializeCrossTarget();
  auto cross =
      makeMachine(llvm::Triple(crossTriple), cpu, "", options.optLevel, error);
  if (cross)
    return std::move(cross);
  return usageError(Setting("cpu") + ": '" + cpu + "' is no " +
                    triple.getArchName() + " or " +
                    llvm::Triple(crossTriple).getArchName() +
                    " processor that LLVM knows");
}

llvm::Expected<std::string>
ckopt::foreignArchitecture(const CpuOptions &options) {
  auto machine = makeTargetMachine(options);
  if (!machine)
    return machine.takeError();
  const llvm::Triple &triple = (*machine)->getTargetTriple();
  bool own =
      triple.getArch() == llvm::Triple(llvm::sys::getProcessTriple()).getArch();
  return own ? std::string() : triple.getArchName().str();
}

llvm::Expected<std::vector<std::string>>
ckopt::cpuFeatures(const CpuOptions &options) {
  auto machine = makeTargetMachine(options);
  if (!machine)
    return machine.takeError();
  std::vector<std::string> result;
  if (!(*machine)->getTargetTriple().isX86())
    return result;
  for (llvm::StringRef feature : usedFeatures)
    if ((*machine)->getMCSubtargetInfo()->checkFeatures(("+" + feature).str()))
      result.push_back(feature.str());
  return result;
}

MachineCpu MachineCpu::own(std::string name) {
  MachineCpu result;
  result.name = std::move(name);
  result.architecture =
      llvm::Triple(llvm::sys::getProcessTriple()).getArchName().str();
  for (const auto &feature : llvm::sys::getHostCPUFeatures())
    if (feature.second)
      result.features.push_back(feature.first().str());
  llvm::sort(result.features);
  return result;
}

bool MachineCpu::has(llvm::StringRef feature) const {
  return llvm::is_contained(features, feature);
}

llvm::Error ckopt::settleCpu(CpuOptions &options, const MachineCpu &own,
                             llvm::ArrayRef<MachineCpu> all) {
  for (const MachineCpu &machine : all)
    if (machine.architecture != all.front().architecture)
      return makeError(ExitRank, machine.name + " is a machine of " +
                                     machine.architecture + ", " +
                                     all.front().name + " one of " +
                                     all.front().architecture +
                                     ": one code has to run on all");
  if (options.cpu == "native") {
    for (const std::string &feature : own.features)
      if (!llvm::all_of(all, [&](const MachineCpu &machine) {
            return machine.has(feature);
          }))
        options.without.push_back(feature);
    return llvm::Error::success();
  }
  auto needed = cpuFeatures(options);
  if (!needed)
    return needed.takeError();
  for (const MachineCpu &machine : all) {
    std::string lacks;
    for (const std::string &feature : *needed)
      if (!machine.has(feature))
        lacks += " " + feature;
    if (!lacks.empty())
      return makeError(ExitRank, machine.name + " lacks what code for " +
                                     Setting("cpu", options.cpu) + " needs:" +
                                     lacks + "; " + Setting("cpu", "native") +
                                     " takes what all ranks have");
  }
  return llvm::Error::success();
}

llvm::Expected<std::string> ckopt::cpuClass(const CpuOptions &options) {
  auto machine = makeTargetMachine(options);
  if (!machine)
    return machine.takeError();
  static constexpr std::pair<const char *, const char *> classes[] = {
      {"+amx-bf16", "amx"},
      {"+avx512bf16", "avx512-bf16"},
      {"+avx512f", "avx512"},
      {"+avx2", "avx2"}};
  if ((*machine)->getTargetTriple().isX86())
    for (auto [feature, name] : classes)
      if ((*machine)->getMCSubtargetInfo()->checkFeatures(feature))
        return name;
  return "baseline";
}
