//===- WordingTest.cpp - tests of messages as interfaces word them --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Wording.h"
#include "gtest/gtest.h"

using namespace ckopt;

static std::string inC(llvm::StringRef text) {
  return wordSettings(text, SettingStyle::Named);
}
static std::string inPython(llvm::StringRef text) {
  return wordSettings(text, SettingStyle::Keywords);
}

TEST(WordingTest, SettingsAreNamedAsTheCallerHasThem) {
  const char *text = "--class-axis is for --loss=nll; give --batch=N (or "
                     "--memory-budget=2GiB, --ema=0.9).";
  EXPECT_EQ(inC(text), "'class-axis' is for loss=nll; give batch=N (or "
                       "memory-budget=2GiB, ema=0.9).");
  EXPECT_EQ(inPython(text), "'class_axis' is for loss='nll'; give batch=N (or "
                            "budget='2GiB', ema=0.9).");
}

TEST(WordingTest, ValuesEndWhereTheyDo) {
  EXPECT_EQ(inPython("--group='a b:lr=1': bad"), "group='a b:lr=1': bad");
  EXPECT_EQ(inPython("--loss=mse:NAME)"), "loss='mse:NAME')");
  EXPECT_EQ(inPython("--optimizer=none: no"), "optimizer='none': no");
  EXPECT_EQ(inPython("name them (--inputs=)"), "name them ('inputs')");
  EXPECT_EQ(inPython("--sequence=128"), "sequence=128");
  EXPECT_EQ(inC("--lr: 'x' is no number"), "'lr': 'x' is no number");
  EXPECT_EQ(inC("give '--lr'"), "give 'lr'");
}

TEST(WordingTest, OtherDashesStay) {
  for (const char *text : {"a -- b", "node 'x--y'", "--", "-o FILE", "---x",
                           "1e--3", "dir/--data", ""})
    EXPECT_EQ(inC(text), text);
}

TEST(WordingTest, AModelOfBytesHasNoPath) {
  EXPECT_EQ(wordModel("'/t/m.onnx' is no model", "/t/m.onnx"),
            "the model given as bytes is no model");
  EXPECT_EQ(wordModel("/t/m.onnx: a, '/t/m.onnx': b", "/t/m.onnx"),
            "the model given as bytes: a, the model given as bytes: b");
  EXPECT_EQ(wordModel("'m.onnx'", ""), "'m.onnx'");
  EXPECT_EQ(wordModel("cannot open external data '/t/w.bin': no such file",
                      "/t/m.onnx"),
            "cannot open external data 'w.bin': no such file; bytes have no "
            "folder where other files could lie: give the model's path, or one "
            "with its weights inside");
}
