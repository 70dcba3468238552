//===- RegistryTest.cpp - targets that cannot be registered ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Traits with which steps would plan and compile, and fail where they are
// loaded, are refused where the target is registered.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Target/TargetRegistry.h"
#include "ckopt/Target/Targets.h"

#include "gtest/gtest.h"

#include <cmath>

using namespace ckopt;

namespace {

/// Nothing but traits.
class Traits final : public TargetInfo {
public:
  explicit Traits(TargetTraits traits) : TargetInfo(std::move(traits)) {}
  llvm::Error settle(TargetRequest &) const override { return none(); }
  llvm::Expected<CodegenOptions>
  codegen(const KernelSettings &) const override {
    return none();
  }
  LibraryChoice chooseLibrary(const runtime::PrimitiveDesc &,
                              const CodegenOptions &) const override {
    return {};
  }
  llvm::Expected<std::unique_ptr<StepCode>>
  emit(mlir::ModuleOp, const EmitOptions &) const override {
    return none();
  }

private:
  static llvm::Error none() { return usageError("no code"); }
};

TargetTraits named(const std::string &name) {
  TargetTraits traits;
  traits.name = name;
  return traits;
}

TEST(TargetRegistry, RefusesTraitsThatNoStepCanHave) {
  struct Case {
    const char *text;
    void (*change)(TargetTraits &);
  };
  const Case cases[] = {
      {"arenaAlignment is 64, not 128",
       [](TargetTraits &t) { t.arenaAlignment = 128; }},
      {"arenaAlignment is 64, not 32",
       [](TargetTraits &t) { t.arenaAlignment = 32; }},
      {"a power of two from 64 to 256, not 512",
       [](TargetTraits &t) {
         t.form = StageForm::Blocks;
         t.arenaAlignment = 512;
       }},
      {"a power of two from 64 to 256, not 96",
       [](TargetTraits &t) {
         t.form = StageForm::Blocks;
         t.arenaAlignment = 96;
       }},
      {"a name is letters", [](TargetTraits &t) { t.name = ""; }},
      {"a name is letters", [](TargetTraits &t) { t.name = "a=b"; }},
      {"joined operands", [](TargetTraits &t) { t.limits.joined = 1; }},
      {"rates are finite", [](TargetTraits &t) { t.rates.vector = 0; }},
      {"overhead", [](TargetTraits &t) { t.rates.overhead = NAN; }},
      {"two targets have the name 'cpu'",
       [](TargetTraits &t) { t.name = "cpu"; }},
  };
  registerAllTargets();
  size_t before = allTargets().size();
  for (const Case &one : cases) {
    TargetTraits traits = named("refused");
    one.change(traits);
    Traits target(traits);
    llvm::Error error = registerTarget(target);
    ASSERT_TRUE(bool(error)) << one.text;
    ErrorText found = takeErrorText(std::move(error));
    EXPECT_EQ(found.code, ExitUsage);
    EXPECT_NE(found.text.find(one.text), std::string::npos) << found.text;
    auto phases = buildPhases(StepOptions(), target);
    ASSERT_FALSE(bool(phases)) << one.text;
    EXPECT_EQ(takeErrorText(phases.takeError()).text, found.text);
  }
  EXPECT_EQ(allTargets().size(), before);
}

TEST(TargetRegistry, TakesATargetAgain) {
  TargetTraits traits = named("again");
  traits.form = StageForm::Blocks;
  traits.arenaAlignment = 128;
  static const Traits target(traits);
  for (int i = 0; i < 2; ++i)
    EXPECT_FALSE(bool(registerTarget(target)));
  size_t found = 0;
  for (const TargetInfo *known : allTargets())
    found += known == &target;
  EXPECT_EQ(found, 1u);
}

} // namespace
