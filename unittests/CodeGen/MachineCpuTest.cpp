//===- MachineCpuTest.cpp - code for the processors of several machines ---===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Target/Cpu/Emit.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace ckopt;

namespace {

/// This machine, and one that lacks a feature which it has; without features
/// there is nothing to lack.
struct TwoMachines {
  MachineCpu own = MachineCpu::own("rank 0 on a"), other = own;
  std::string lost;

  TwoMachines() {
    other.name = "rank 1 on b";
    auto native = cpuFeatures(CpuOptions());
    if (!native || native->empty()) {
      llvm::consumeError(native.takeError());
      return;
    }
    lost = native->back();
    llvm::erase(other.features, lost);
  }
};

TEST(MachineCpuTest, NativeCodeHasTheFeaturesOfAllMachines) {
  TwoMachines machines;
  if (machines.lost.empty())
    GTEST_SKIP() << "no features are listed for this architecture";
  CpuOptions first, second;
  ASSERT_FALSE(settleCpu(first, machines.own, {machines.own, machines.other}));
  EXPECT_EQ(first.without, std::vector<std::string>{machines.lost});
  ASSERT_FALSE(
      settleCpu(second, machines.other, {machines.own, machines.other}));
  EXPECT_TRUE(second.without.empty());
  auto features = cpuFeatures(first);
  ASSERT_TRUE(bool(features));
  EXPECT_FALSE(llvm::is_contained(*features, machines.lost));
}

TEST(MachineCpuTest, AMachineThatCannotRunTheCodeIsNamed) {
  TwoMachines machines;
  if (machines.lost.empty())
    GTEST_SKIP() << "no features are listed for this architecture";
  machines.other.features.clear();
  CpuOptions named;
  named.cpu = "x86-64-v2";
  llvm::Error error =
      settleCpu(named, machines.own, {machines.own, machines.other});
  ErrorText text = takeErrorText(std::move(error));
  EXPECT_EQ(text.code, ExitRank);
  EXPECT_NE(text.text.find("rank 1 on b lacks what code for --cpu=x86-64-v2 "
                           "needs: "),
            std::string::npos)
      << text.text;
  machines.other.architecture = "m68k";
  CpuOptions any;
  error = settleCpu(any, machines.own, {machines.own, machines.other});
  text = takeErrorText(std::move(error));
  EXPECT_NE(text.text.find("rank 1 on b is a machine of m68k"),
            std::string::npos)
      << text.text;
}

} // namespace
