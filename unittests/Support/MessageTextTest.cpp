//===- MessageTextTest.cpp - tests of messages that name settings ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/MessageText.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/Twine.h"
#include "gtest/gtest.h"

#include <sstream>

using namespace ckopt;

static MessageText advice() {
  return Setting("class-axis") + " is for " + Setting("loss", "nll") +
         "; give " + Setting("batch", "N") + " (or " +
         Setting("memory-budget", "2GiB") + ", " + Setting("ema", "0.9") + ").";
}

TEST(MessageTextTest, SettingsAreNamedAsTheReaderHasThem) {
  EXPECT_EQ(advice().in(SettingStyle::Flags),
            "--class-axis is for --loss=nll; give --batch=N (or "
            "--memory-budget=2GiB, --ema=0.9).");
  EXPECT_EQ(advice().in(SettingStyle::Named),
            "'class-axis' is for loss=nll; give batch=N (or "
            "memory-budget=2GiB, ema=0.9).");
  EXPECT_EQ(advice().in(SettingStyle::Keywords),
            "'class_axis' is for loss='nll'; give batch=N (or "
            "budget='2GiB', ema=0.9).");
}

TEST(MessageTextTest, QuotedAndEmptyValues) {
  MessageText group = Setting("group", inQuotes("a b:lr=1")) + ": bad";
  EXPECT_EQ(group.in(SettingStyle::Flags), "--group='a b:lr=1': bad");
  EXPECT_EQ(group.in(SettingStyle::Keywords), "group='a b:lr=1': bad");
  EXPECT_EQ(MessageText(Setting("inputs", "")).inShell(), "--inputs=");
  EXPECT_EQ(MessageText(Setting("inputs", "")).in(SettingStyle::Keywords),
            "'inputs'");
  EXPECT_EQ(MessageText(Setting::ofFlag("o")).inShell(), "-o");
}

/// No text is searched: a value or a name that looks like a flag stays.
TEST(MessageTextTest, TextIsLeftAlone) {
  std::string name = "node '--batch=2'";
  EXPECT_EQ(MessageText(name).in(SettingStyle::Keywords), name);
  EXPECT_EQ((name + ": " + Setting("dim", "--lr=N")).in(SettingStyle::Named),
            name + ": dim=--lr=N");
}

/// Python's package turns keywords into settings by the inverse.
TEST(MessageTextTest, EveryNameHasAKeyword) {
  std::istringstream names{std::string(kSettingNames)};
  for (std::string name; names >> name;) {
    std::string keyword = keywordOf(name);
    std::replace(keyword.begin(), keyword.end(), '_', '-');
    EXPECT_EQ(keyword, name == "memory-budget" ? "budget" : name);
  }
}

TEST(MessageTextTest, ErrorsKeepSettingsOnTheirWay) {
  ErrorText text = takeErrorText(llvm::joinErrors(
      withContext(usageError(advice()), Setting("group", "x\x1b")),
      inputError(llvm::Twine("a") + Setting("lr"))));
  EXPECT_EQ(text.code, ExitUsage);
  EXPECT_EQ(text.message.in(SettingStyle::Keywords),
            "group='x\\x1b': " + advice().in(SettingStyle::Keywords) +
                "\na'lr'");
  EXPECT_EQ(MessageText::unpack(text.message.pack()), text.message);
}

/// An error that diagnostics told gives way to them; others follow them.
TEST(MessageTextTest, ToldErrorsGiveWayToDiagnostics) {
  ErrorText told = takeErrorText(toldError(ExitUnsupported, "stopped"));
  EXPECT_EQ(told.after("why").inShell(), "why");
  EXPECT_EQ(told.after({}).inShell(), "stopped");
  ErrorText other = takeErrorText(inputError("wrong"));
  EXPECT_EQ(other.after("why").inShell(), "why\nwrong");
  EXPECT_FALSE(takeErrorText(llvm::joinErrors(toldError(ExitInputError, "a"),
                                              inputError("b")))
                   .wasTold);
}
