//===- TargetRegistry.cpp - targets by name -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Support/Error.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

#include <cmath>

using namespace ckopt;

StepCode::~StepCode() = default;
TargetInfo::~TargetInfo() = default;
TargetOptions::~TargetOptions() = default;

std::shared_ptr<TargetOptions> TargetInfo::makeOptions() const {
  return nullptr;
}
std::vector<TargetFlag> TargetInfo::ownFlags(TargetOptions &) const {
  return {};
}

llvm::Expected<runtime::ProductPrecision>
TargetInfo::productPrecision(MatmulPrecision name) const {
  if (name == MatmulPrecision::F32 || name == MatmulPrecision::Highest)
    return runtime::ProductPrecision::F32;
  return usageError("products by " + nameOf(name) + ": " + traits.machines +
                    " have those by f32 alone");
}

llvm::Expected<MachineRates>
TargetInfo::rates(const KernelSettings &settings) const {
  if (!settings.deviceRates.empty())
    return usageError("rates of a device are for devices, not " +
                      traits.machines);
  return traits.rates;
}

llvm::Expected<int64_t> TargetInfo::roomOn(const DeviceOptions &,
                                           const KernelSettings &) const {
  return usageError("devices have free bytes, and " + traits.machines +
                    " are none");
}

llvm::Expected<StepCode::Program> StepCode::loadAt(int64_t) const {
  return usageError("code for this target has one size alone");
}

std::string StepCode::pack() const { return ""; }
llvm::Expected<std::unique_ptr<StepCode>>
TargetInfo::unpack(llvm::StringRef) const {
  return nullptr;
}

void StepCode::print(llvm::raw_ostream &) const {}
llvm::Error StepCode::writeJson(llvm::json::OStream &) const {
  return llvm::Error::success();
}

static std::vector<const TargetInfo *> &registeredTargets() {
  static std::vector<const TargetInfo *> targets;
  return targets;
}

static const TargetInfo *lookupTarget(llvm::StringRef name) {
  for (const TargetInfo *target : registeredTargets())
    if (target->name() == name)
      return target;
  return nullptr;
}

/// Traits that a step would fail with later: when planned, loaded or named.
static llvm::Error checkTraits(const TargetTraits &traits) {
  auto wrong = [&](const llvm::Twine &what) {
    return usageError("target '" + traits.name + "': " + what);
  };
  if (traits.name.empty() || !llvm::all_of(traits.name, [](char c) {
        return llvm::isAlnum(c) || c == '-' || c == '_' || c == '.';
      }))
    return wrong("a name is letters, digits, '-', '_' and '.'");
  // What manifests and the runtimes of these forms take.
  int64_t most = traits.form == StageForm::Blocks ? runtime::kDeviceAlignment
                                                  : int64_t(64);
  int64_t alignment = traits.arenaAlignment;
  if (alignment < 64 || alignment > most ||
      !llvm::isPowerOf2_64(uint64_t(alignment)))
    return wrong("arenaAlignment is " +
                 (most == 64
                      ? std::string("64")
                      : "a power of two from 64 to " + std::to_string(most)) +
                 ", not " + llvm::Twine(alignment));
  if (traits.limits.joined == 1 || traits.limits.blocks < 0)
    return wrong("limits are 0 (none) or positive, that of joined operands "
                 "at least 2");
  const MachineRates &rates = traits.rates;
  for (double rate : {rates.bandwidth, rates.matmul, rates.conv,
                      rates.depthwiseConv, rates.vector})
    if (!(rate > 0) || !std::isfinite(rate))
      return wrong("rates are finite numbers above 0");
  if (!(rates.overhead >= 0) || !std::isfinite(rates.overhead))
    return wrong("the overhead of a kernel is a finite number from 0 on");
  return llvm::Error::success();
}

llvm::Error ckopt::registerTarget(const TargetInfo &target) {
  const TargetInfo *known = lookupTarget(target.name());
  if (known == &target)
    return llvm::Error::success();
  if (llvm::Error error = checkTraits(target.traits))
    return error;
  if (known)
    return usageError("two targets have the name '" + target.name() + "'");
  registeredTargets().push_back(&target);
  nameRates(target.name(), target.traits.rates);
  return llvm::Error::success();
}

std::vector<const TargetInfo *> ckopt::allTargets() {
  return registeredTargets();
}

llvm::Expected<const TargetInfo *> ckopt::findTarget(llvm::StringRef name) {
  if (const TargetInfo *target = lookupTarget(name))
    return target;
  std::string known;
  for (const TargetInfo *target : registeredTargets())
    known += (known.empty() ? "" : ", ") + target->name();
  return usageError("no target '" + name + "'; there are " + known);
}

llvm::Expected<ContractionVariant>
ckopt::ContractionVariant::parse(llvm::StringRef text) {
  struct Member {
    const char *name;
    int64_t ContractionVariant::*member;
    std::vector<int64_t> allowed; ///< empty: all positive numbers
  };
  static const Member kMembers[] = {
      {"tile", &ContractionVariant::tile, {64, 128, 256}},
      {"stages", &ContractionVariant::stages, {1, 2, 3, 4}},
      {"parts", &ContractionVariant::parts, {}}};
  ContractionVariant variant;
  llvm::SmallVector<llvm::StringRef> words;
  text.split(words, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef word : words) {
    auto [name, value] = word.split('=');
    const auto *member =
        llvm::find_if(kMembers, [&](auto &m) { return name == m.name; });
    int64_t number = 0;
    if (member == std::end(kMembers) || value.getAsInteger(10, number) ||
        number < 1 || number > 4096 ||
        (!member->allowed.empty() &&
         !llvm::is_contained(member->allowed, number)))
      return usageError("no variant of contractions '" + word +
                        "'; there are tile=64|128|256, stages=1|2|3|4 and "
                        "parts=N");
    if (variant.*(member->member))
      return usageError("variant of contractions: '" + name +
                        "' is given twice");
    variant.*(member->member) = number;
  }
  return variant;
}

Setting ckopt::settingFor(llvm::StringRef target, bool runsHere) {
  return runsHere ? Setting("device", target + ":0")
                  : Setting("target", target);
}
