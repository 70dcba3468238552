//===- Harness.cpp - models from the test data, compiled and loaded -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Harness.h"

using namespace ckopt;
using namespace ckopt::test;

const std::vector<GoldenModel> &ckopt::test::goldenModels() {
  static const std::vector<GoldenModel> models = {{"mlp", "mse"},
                                                  {"lenet", "cross_entropy"},
                                                  {"resnet", "cross_entropy"},
                                                  {"unet", "cross_entropy"},
                                                  {"gpt", "cross_entropy"},
                                                  {"vit", "cross_entropy"},
                                                  {"mobile", "cross_entropy"},
                                                  {"lstm", "cross_entropy"}};
  return models;
}

bool ckopt::test::isRepresentative(llvm::StringRef name) {
  return name == "resnet" || name == "gpt";
}

std::string ckopt::test::dataPath(const std::string &file) {
  return std::string(CKOPT_TEST_DATA) + "/" + file;
}

std::string ckopt::test::goldenPath(const std::string &name,
                                    const std::string &file) {
  return dataPath("golden/" + name + "/" + file);
}

CompileOptions ckopt::test::trainingOptions(const std::string &model,
                                            const std::string &loss,
                                            const MemoryBudget &budget) {
  CompileOptions options;
  options.model = model;
  if (!loss.empty())
    options.step.loss = llvm::cantFail(parseLoss(loss));
  options.step.optimizer.kind = "adamw";
  options.step.remat.budget = budget;
  options.step.remat.search.workLimit = 1000000; // any plan will do
  options.step.threads = 2;
  options.remarks = false;
  options.lost = LostParameters::Ignore;
  return options;
}

llvm::Expected<Loaded> ckopt::test::load(CompileOptions options,
                                         const SessionOptions &session) {
  Loaded loaded;
  loaded.compilation = std::make_unique<Compilation>(std::move(options));
  if (llvm::Error error = loaded.compilation->import())
    return std::move(error);
  if (llvm::Error error = loaded.compilation->plan())
    return std::move(error);
  if (llvm::Error error = loaded.compilation->emit())
    return std::move(error);
  LoadOptions how;
  how.session = session;
  how.seed = 1;
  auto opened = load(*loaded.compilation, how);
  if (!opened)
    return opened.takeError();
  loaded.session = std::move(*opened);
  return std::move(loaded);
}
