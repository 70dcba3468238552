//===- TestUtils.cpp - models and evaluation for the import tests ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;

std::string test::goldenModel(const std::string &name) {
  return dataFile("golden/" + name + "/model.onnx");
}

std::string test::dataFile(const std::string &name) {
  return std::string(CKOPT_TEST_DATA) + "/" + name;
}

std::string test::writeTemporary(const std::string &name,
                                 const std::string &bytes) {
  std::string folder =
      ::testing::TempDir() + "/ckopt-frontend-" + std::to_string(getpid());
  EXPECT_FALSE(llvm::sys::fs::create_directories(folder));
  std::string path = folder + "/" + name;
  std::error_code error;
  llvm::raw_fd_ostream out(path, error);
  EXPECT_FALSE(error) << error.message();
  out << bytes;
  return path;
}

std::string test::modelFile(const std::string &name,
                            const std::string &graphText, int opset) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  auto *import = model.add_opset_import();
  import->set_domain("");
  import->set_version(opset);
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      graphText, model.mutable_graph()));
  return writeTemporary(name, model.SerializeAsString());
}

std::string test::wholeModelFile(const std::string &name,
                                 const std::string &text) {
  onnx::ModelProto model;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &model));
  model.set_ir_version(8);
  return writeTemporary(name, model.SerializeAsString());
}

std::string test::info(const std::string &name, int elementType,
                       const std::vector<std::string> &dims) {
  std::string text = "name: \"" + name + "\" type { tensor_type { elem_type: " +
                     std::to_string(elementType) + " shape { ";
  for (const std::string &dim : dims)
    text += isdigit(dim[0]) ? "dim { dim_value: " + dim + " } "
                            : "dim { dim_param: \"" + dim + "\" } ";
  return text + "} } }";
}

ErrorText test::importError(const std::string &path,
                            const ImportOptions &options) {
  mlir::MLIRContext context;
  auto model = importModel(path, options, context);
  if (model) {
    ADD_FAILURE() << path << " was imported";
    return {};
  }
  return takeErrorText(model.takeError());
}

mlir::func::FuncOp test::forward(ImportedModel &model) {
  return *model.module->getOps<mlir::func::FuncOp>().begin();
}

std::string test::argumentText(mlir::func::FuncOp func, unsigned i,
                               llvm::StringRef attribute) {
  auto text = func.getArgAttrOfType<mlir::StringAttr>(i, attribute);
  return text ? text.str() : "";
}

int test::argumentNamed(mlir::func::FuncOp func, llvm::StringRef name) {
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (argumentText(func, i, "ckopt.name") == name)
      return int(i);
  return -1;
}

std::vector<reference::Tensor>
test::evaluate(ImportedModel &model,
               const std::map<std::string, HostTensor> &inputs) {
  mlir::func::FuncOp func = forward(model);
  llvm::SmallVector<reference::Tensor> args, results;
  for (unsigned i = 0; i < func.getNumArguments(); ++i) {
    auto type = mlir::cast<mlir::RankedTensorType>(func.getArgumentTypes()[i]);
    std::string name = argumentText(func, i, "ckopt.name");
    auto given = inputs.find(name);
    auto weight = model.weights.find(name);
    if (given != inputs.end())
      args.push_back(reference::Tensor::fromHost(given->second, type));
    else if (weight != model.weights.end())
      args.push_back(reference::Tensor::fromHost(weight->second, type));
    else
      args.push_back(reference::Tensor::splat(type, 1));
  }
  EXPECT_TRUE(mlir::succeeded(reference::evaluate(func, args, results)));
  return {results.begin(), results.end()};
}

std::string test::print(ImportedModel &model) {
  std::string text;
  llvm::raw_string_ostream os(text);
  model.module->print(os);
  return text;
}
