//===- ImportTest.cpp - ONNX files to IR ----------------------------------===//
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

static std::string golden(const std::string &name) {
  return std::string(CKOPT_TEST_DATA) + "/golden/" + name + "/model.onnx";
}

TEST(Import, Golden) {
  for (const char *name :
       {"mlp", "lenet", "resnet", "mobile", "unet", "lstm", "gpt", "vit"}) {
    mlir::MLIRContext context;
    auto model = importModel(golden(name), {}, context);
    ASSERT_TRUE(bool(model))
        << name << ": " << takeErrorText(model.takeError()).text;
    EXPECT_TRUE(mlir::succeeded(mlir::verify(*model->module)));
  }
}
