//===- MessagesTest.cpp - messages on their way to a reader ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Messages.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace ckopt;

TEST(Messages, DiagnosticsKeepTheirSettings) {
  mlir::MLIRContext context;
  std::string flags, keywords;
  mlir::ScopedDiagnosticHandler keep(&context, [&](mlir::Diagnostic &said) {
    flags = said.str();
    keywords = textOf(said).in(SettingStyle::Keywords);
  });
  mlir::emitError(mlir::UnknownLoc::get(&context), "'--lr' has ")
      << 2 << " axes; give " << Setting("class-axis", "1") << " or "
      << Setting("memory-budget") + " and more";
  EXPECT_EQ(flags,
            "'--lr' has 2 axes; give --class-axis=1 or --memory-budget and "
            "more");
  EXPECT_EQ(keywords,
            "'--lr' has 2 axes; give class_axis=1 or 'budget' and more");
}

TEST(Messages, NotesBelongToErrors) {
  using Severity = Message::Severity;
  ErrorLines lines;
  for (Severity severity : {Severity::Warning, Severity::Note, Severity::Error,
                            Severity::Note, Severity::Remark})
    lines.add({severity, "node 'n'", Setting("lr")});
  EXPECT_EQ(lines.take().in(SettingStyle::Named),
            "node 'n': 'lr'\nnote: node 'n': 'lr'");
  EXPECT_TRUE(lines.take().empty());
}

TEST(Messages, AModelOfBytesHasNoPath) {
  auto named = [](const char *text, const char *path) {
    return nameGivenBytes(text, path).inShell();
  };
  EXPECT_EQ(named("'/t/m.onnx' is no model", "/t/m.onnx"),
            "the model given as bytes is no model");
  EXPECT_EQ(named("/t/m.onnx: a, '/t/m.onnx': b", "/t/m.onnx"),
            "the model given as bytes: a, the model given as bytes: b");
  EXPECT_EQ(named("'m.onnx'", ""), "'m.onnx'");
  EXPECT_EQ(
      named("cannot open external data '/t/w.bin': no such file", "/t/m.onnx"),
      "cannot open external data 'w.bin': no such file; bytes have no "
      "folder where other files could lie: give the model's path, or one "
      "with its weights inside");
}
