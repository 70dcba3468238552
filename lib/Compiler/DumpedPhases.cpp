//===- DumpedPhases.cpp - what dumped IR was made with --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DumpedPhases.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Runtime/LibraryTable.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace ckopt;

static constexpr llvm::StringLiteral kMadeWith = "ckopt.made_with";
/// Entries beside those of phases: `fuse` plans workspaces for such kernels,
/// `autodiff` scales the loss of f16, and `normalize` makes attention one op
/// where it has code.
static constexpr llvm::StringLiteral kKernels = "kernels", kType = "precision",
                                     kAttention = "attention";

static constexpr const char *kPhases[] = {"import",     "normalize", "autodiff",
                                          "optimizer",  "fuse",      "remat",
                                          "plan-memory"};

static size_t placeOf(StringRef phase) {
  return size_t(llvm::find(kPhases, phase) - std::begin(kPhases));
}

/// Returns the flags that kernels depend on beside their ops, as text.
static llvm::Expected<std::string> kernelFlags(const CompileOptions &options,
                                               const TargetInfo &target) {
  auto kernels = target.codegen(options.step);
  if (!kernels)
    return kernels.takeError();
  std::string text =
      ", vectors of " + std::to_string(kernels->vectorBits) + " bits";
  if (!options.step.cpuClass.empty())
    text += ", libraries for " + options.step.cpuClass;
  if (kernels->libraries && !kernels->libraries->hash.empty())
    text += " by table " + kernels->libraries->hash;
  return (Setting("target", target.name()) + " " +
          Setting("threads", std::to_string(kernels->threads)) + " " +
          Setting("matmul-precision",
                  runtime::productPrecisionName(kernels->precision)) +
          text)
      .inShell();
}

llvm::Error ckopt::noteMadeWith(ModuleOp module, const CompileOptions &options,
                                const TargetInfo &target) {
  auto kernels = kernelFlags(options, target);
  if (!kernels)
    return kernels.takeError();
  Builder builder(module.getContext());
  NamedAttrList entries(module->getAttrOfType<DictionaryAttr>(kMadeWith));
  size_t from = options.phases.from.empty() ? 0 : placeOf(options.phases.from);
  for (const auto &[phase, flags] : options.phases.flags)
    if (placeOf(phase) >= from)
      entries.set(phase, builder.getStringAttr(StringRef(flags).ltrim()));
  entries.set(kKernels, builder.getStringAttr(*kernels));
  entries.set(kType, builder.getStringAttr(nameOf(options.step.precision)));
  entries.set(kAttention,
              builder.getBoolAttr(hasAttention(options.step, target)));
  module->setAttr(kMadeWith, entries.getDictionary(module.getContext()));
  return llvm::Error::success();
}

static llvm::Error refuse(StringRef from, const MessageText &was,
                          const MessageText &now) {
  return usageError(Setting("compile-from", from) + ": the IR was made with " +
                    was + ", and " + now);
}

llvm::Error ckopt::checkMadeWith(ModuleOp module, const CompileOptions &options,
                                 const TargetInfo &target) {
  StringRef from = options.phases.from;
  auto planned = module->getAttrOfType<StringAttr>(kTargetAttr);
  if (planned && planned.getValue() != target.name())
    return usageError("the IR was dumped from a compilation for target '" +
                      planned.getValue() + "': give " +
                      Setting("target", planned.getValue()) +
                      ", or a dump from before 'fuse'");
  auto made = module->getAttrOfType<DictionaryAttr>(kMadeWith);
  auto entry = [&](StringRef name) {
    auto text = made ? made.getAs<StringAttr>(name) : StringAttr();
    return text ? text.getValue() : StringRef();
  };
  for (const auto &[phase, flags] : options.phases.flags) {
    StringRef given = StringRef(flags).ltrim(), was = entry(phase);
    if (placeOf(phase) < placeOf(from) && given != was)
      return refuse(from,
                    was.empty() ? "no flag that " + phase + " reads" : was,
                    "that phase is behind it: leave out " + given);
  }
  StringRef type = entry(kType);
  if (placeOf(from) > placeOf("autodiff") && !type.empty() &&
      type != nameOf(options.step.precision) &&
      (type == "f16" || options.step.precision == Precision::F16 ||
       placeOf(from) > placeOf("fuse")))
    return refuse(from, Setting("precision", type),
                  "the phases that follow need the same: give " +
                      Setting("precision", type));
  auto attention = made ? made.getAs<BoolAttr>(kAttention) : BoolAttr();
  if (attention && placeOf(from) > placeOf("normalize") &&
      attention.getValue() != hasAttention(options.step, target))
    return refuse(from,
                  entry(kKernels) + " " + Setting("precision", entry(kType)),
                  "'normalize' treats attention otherwise for these flags: "
                  "give the same, or a dump from before it");
  auto kernels = kernelFlags(options, target);
  if (!kernels)
    return kernels.takeError();
  StringRef were = entry(kKernels);
  if (placeOf(from) > placeOf("fuse") && !were.empty() && were != *kernels)
    return refuse(from, were,
                  "its workspaces are not for " + *kernels +
                      ": give the same flags, or a dump from before 'fuse'");
  return llvm::Error::success();
}
