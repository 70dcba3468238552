//===- OperatorTest.cpp - operators against ONNX's own backend tests ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each folder of test/data/onnx holds one operator with inputs and outputs
// that ONNX publishes; the imported graph is evaluated by the reference
// interpreter.
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static std::vector<std::string> allCases() {
  std::vector<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(dataFile("onnx"), error), end;
       it != end && !error; it.increment(error))
    names.push_back(llvm::sys::path::filename(it->path()).str());
  std::sort(names.begin(), names.end());
  return names;
}

static void runCase(const std::string &name) {
  SCOPED_TRACE(name);
  auto data = readNpz(dataFile("onnx/" + name + "/data.npz"));
  ASSERT_TRUE(bool(data));
  ImportOptions options;
  options.trainMode = false;
  options.allowUnread = true; // an input that makes a constant model a model
  std::map<std::string, HostTensor> inputs;
  for (const auto &[key, tensor] : *data)
    if (llvm::StringRef(key).starts_with("in/"))
      inputs[key.substr(3)] = tensor;
  mlir::MLIRContext context;
  std::string path = dataFile("onnx/" + name + "/model.onnx");
  // Operands that became initializers are in the data, too.
  for (const auto &[key, tensor] : inputs)
    options.inputs.push_back(key);
  for (bool tried = false;; tried = true) {
    auto model = importModel(path, options, context);
    if (!model && !tried) {
      llvm::consumeError(model.takeError());
      options.inputs.clear();
      continue;
    }
    ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
    auto results = evaluate(*model, inputs);
    auto func = forward(*model);
    unsigned compared = 0;
    for (unsigned i = 0; i < results.size(); ++i) {
      auto result = func.getResultAttrOfType<mlir::StringAttr>(i, "ckopt.name");
      const HostTensor *want = data->find("out/" + result.str());
      if (!want)
        continue;
      ++compared;
      ASSERT_EQ(want->shape(), results[i].getShape());
      auto expected = reference::Tensor::fromHost(*want, results[i].getType());
      EXPECT_TRUE(reference::allClose(results[i], expected, 1e-3, 1e-3))
          << reference::compare(results[i], expected).str();
    }
    EXPECT_GT(compared, 0u);
    return;
  }
}

TEST(Operators, MatchOnnx) {
  std::vector<std::string> names = allCases();
  EXPECT_GT(names.size(), 100u);
  for (const std::string &name : names)
    runCase(name);
}

TEST(Operators, ListNamesEachOnce) {
  std::pair<std::string, std::string> last;
  for (const SupportedOp &op : listSupportedOps()) {
    EXPECT_LT(last, std::pair(op.domain, op.name));
    EXPECT_FALSE(op.opsets.empty());
    last = {op.domain, op.name};
  }
}
