//===- ExportTest.cpp - trained weights back into ONNX files --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include "ckopt/Support/Npz.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>
#include <sys/resource.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

static onnx::ModelProto readProto(const std::string &path) {
  onnx::ModelProto model;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  EXPECT_TRUE(bool(buffer));
  EXPECT_TRUE(model.ParseFromArray((*buffer)->getBufferStart(),
                                   int((*buffer)->getBufferSize())));
  return model;
}

// Exporting what was imported gives the same model; new values replace old.
TEST(Export, ReplacesInitializers) {
  std::string original = goldenModel("resnet");
  mlir::MLIRContext context;
  auto model = importModel(original, {}, context);
  ASSERT_TRUE(bool(model));
  auto weights = model->weights;
  for (auto &[name, value] : weights)
    value.setDouble(0, 42);
  std::string path = writeTemporary("trained.onnx", "old");
  llvm::Error error = exportModel(original, path, weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  auto again = importModel(path, {}, context);
  ASSERT_TRUE(bool(again)) << takeErrorText(again.takeError()).text;
  ASSERT_EQ(again->weights.size(), weights.size());
  for (auto &[name, value] : weights)
    EXPECT_TRUE(again->weights.at(name).bitEqual(value)) << name;
  onnx::ModelProto was = readProto(original), is = readProto(path);
  was.mutable_graph()->clear_initializer();
  is.mutable_graph()->clear_initializer();
  EXPECT_EQ(was.SerializeAsString(), is.SerializeAsString());
}

// Weights in f64 go back in the file's own type.
TEST(Export, KeepsElementTypes) {
  std::string original = goldenModel("mlp");
  mlir::MLIRContext context;
  ImportOptions options;
  options.f64 = true;
  auto model = importModel(original, options, context);
  ASSERT_TRUE(bool(model));
  std::string path = writeTemporary("f32.onnx", "");
  llvm::Error error = exportModel(original, path, model->weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  onnx::ModelProto proto = readProto(path);
  for (const auto &tensor : proto.graph().initializer())
    EXPECT_EQ(tensor.data_type(), onnx::TensorProto::FLOAT);
}

// Parameters that were graph inputs become initializers.
TEST(Export, InputsBecomeInitializers) {
  std::string graph =
      "node { op_type: 'MatMul' input: 'x' input: 'w' output: 'y' } input { " +
      info("x", 1, {"2", "3"}) + " } input { " + info("w", 1, {"3", "4"}) +
      " } output { " + info("y", 1, {"2", "4"}) + " }";
  std::string original = modelFile("input.onnx", graph);
  std::string path = writeTemporary("filled.onnx", "");
  std::map<std::string, HostTensor> weights{
      {"w", HostTensor(DType::F32, {3, 4})}};
  llvm::Error error = exportModel(original, path, weights);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  onnx::ModelProto proto = readProto(path);
  ASSERT_EQ(proto.graph().input_size(), 1);
  EXPECT_EQ(proto.graph().input(0).name(), "x");
  ASSERT_EQ(proto.graph().initializer_size(), 1);
  EXPECT_EQ(proto.graph().initializer(0).name(), "w");
}

// A wrong weight is an error and leaves the file that was there.
TEST(Export, WrongWeights) {
  std::string path = writeTemporary("kept.onnx", "old bytes");
  std::map<std::string, HostTensor> weights{
      {"no such weight", HostTensor(DType::F32, {1})}};
  ErrorText error =
      takeErrorText(exportModel(goldenModel("mlp"), path, weights));
  EXPECT_EQ(error.code, ExitInputError);
  EXPECT_NE(error.text.find("no weight 'no such weight'"), std::string::npos);
  mlir::MLIRContext context;
  auto model = importModel(goldenModel("mlp"), {}, context);
  ASSERT_TRUE(bool(model));
  weights = {
      {model->weights.begin()->first, HostTensor(DType::F32, {1, 1, 7})}};
  error = takeErrorText(exportModel(goldenModel("mlp"), path, weights));
  EXPECT_NE(error.text.find("the model wants"), std::string::npos)
      << error.text;
  auto buffer = llvm::MemoryBuffer::getFile(path);
  ASSERT_TRUE(bool(buffer));
  EXPECT_EQ((*buffer)->getBuffer(), "old bytes");
}

// A file whose parameters were merged, transposed and packed when exporting
// takes them back one by one, under PyTorch's names: the copy imports with the
// new values, needs no mending, and gives the same results.
TEST(Export, FoldedParametersGoBackApart) {
  for (const char *name : {"tied", "gru", "norms", "cell", "encoder", "token",
                           "states", "lookup", "tables"})
    for (const char *form : {"default", "script"}) {
      std::string original =
          dataFile(std::string("from_torch/") + name + "/" + form + ".onnx");
      if (!llvm::sys::fs::exists(original))
        continue;
      SCOPED_TRACE(original);
      mlir::MLIRContext context;
      auto model = importModel(original, {}, context);
      ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
      double next = 0.25; // all different: a merged value would show
      for (unsigned i = 0; i < forward(*model).getNumArguments(); ++i) {
        if (argumentText(forward(*model), i, "ckopt.role") != "parameter")
          continue;
        auto &value =
            model->weights.at(argumentText(forward(*model), i, "ckopt.name"));
        for (int64_t e = 0; e < value.numElements(); ++e)
          value.setDouble(e, std::sin(next += 1));
      }
      std::string path = writeTemporary("apart.onnx", "");
      llvm::Error error = exportModel(original, path, model->weights);
      ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
      auto again = importModel(path, {}, context);
      ASSERT_TRUE(bool(again)) << takeErrorText(again.takeError()).text;
      for (auto &[key, value] : model->weights)
        EXPECT_TRUE(again->weights.at(key).bitEqual(value)) << key;
      auto data =
          readNpz(dataFile(std::string("from_torch/") + name + "/data.npz"));
      ASSERT_TRUE(bool(data));
      auto want = evaluate(*model, {{"x", *data->find("x")}});
      auto have = evaluate(*again, {{"x", *data->find("x")}});
      ASSERT_FALSE(want.empty());
      EXPECT_EQ(reference::compare(have[0], want[0]).maxAbs, 0);
    }
}

// Weights that a file makes by ConstantOfShape are parameters without values on
// request, and go back as initializers.
TEST(Export, WeightsFromConstants) {
  std::string graph =
      "initializer { name: 's' data_type: 7 dims: 2 int64_data: 3 int64_data: "
      "4 "
      "} node { op_type: 'ConstantOfShape' input: 's' output: 'w' attribute { "
      "name: 'value' type: TENSOR t { data_type: 1 dims: 1 float_data: 0.02 } "
      "} "
      "} node { op_type: 'MatMul' input: 'x' input: 'w' output: 'y' } input "
      "{ " +
      info("x", 1, {"2", "3"}) + " } output { " + info("y", 1, {"2", "4"}) +
      " }";
  std::string original = modelFile("constants.onnx", graph, 9);
  mlir::MLIRContext context;
  ImportOptions options;
  auto plain = importModel(original, options, context);
  ASSERT_TRUE(bool(plain));
  EXPECT_EQ(argumentNamed(forward(*plain), "w"), -1);
  options.paramsFromConstants = true;
  auto model = importModel(original, options, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  int w = argumentNamed(forward(*model), "w");
  ASSERT_GE(w, 0);
  EXPECT_EQ(argumentText(forward(*model), unsigned(w), "ckopt.role"),
            "parameter");
  EXPECT_EQ(argumentText(forward(*model), unsigned(w), "ckopt.init"),
            "kaiming");
  HostTensor value(DType::F32, {3, 4});
  value.setDouble(5, 7);
  std::string path = writeTemporary("filled.onnx", "");
  llvm::Error error = exportModel(original, path, {{"w", value}});
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  auto again = importModel(path, {}, context);
  ASSERT_TRUE(bool(again));
  EXPECT_TRUE(again->weights.at("w").bitEqual(value));
}

namespace {
/// A model y = x w + b, of which w has so many rows of 1024 numbers.
std::string productFile(const std::string &name, int64_t rows,
                        const std::string &values) {
  std::string size = std::to_string(rows);
  std::string path = modelFile(
      name,
      "node { op_type: 'MatMul' input: 'x' input: 'w' output: 'm' } node { "
      "op_type: 'Add' input: 'm' input: 'b' output: 'y' } initializer { name: "
      "'b' data_type: 1 dims: 1 float_data: 0.5 } input { " +
          info("x", 1, {"2", size}) + " } output { " +
          info("y", 1, {"2", "1024"}) + " }");
  onnx::ModelProto model = readProto(path);
  onnx::TensorProto &w = *model.mutable_graph()->add_initializer();
  w.set_name("w");
  w.set_data_type(onnx::TensorProto::FLOAT);
  w.add_dims(rows);
  w.add_dims(1024);
  w.set_raw_data(values);
  std::ofstream(path, std::ios::binary) << model.SerializeAsString();
  return path;
}

/// Weights that are made when they are asked for.
class Made : public TensorParts {
public:
  explicit Made(int64_t rows)
      : list{{"w", DType::F32, {rows, 1024}}, {"b", DType::F32, {1}}} {}
  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t, int64_t begin,
                                  int64_t count) override {
    HostTensor piece(DType::F32, {count});
    auto values = piece.mutableData<float>();
    for (int64_t i = 0; i < count; ++i)
      values[size_t(i)] = float((begin + i) % 1021);
    return piece;
  }

private:
  std::vector<TensorSpec> list;
};

/// Bytes of memory that is this process's own.
uint64_t ownBytes() {
  std::ifstream status("/proc/self/status");
  uint64_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmData:")
      status >> kib;
  return kib << 10;
}

std::string textOfFile(const std::string &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : "";
}
} // namespace

// Weights of 64 MiB are written with a few MiB of memory, and the file is the
// one that protobuf writes of the whole message.
TEST(Export, LargeWeightsPassInPieces) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer's own memory counts, too";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer's own memory counts, too";
#endif
#endif
  constexpr int64_t rows = 16 << 10;
  constexpr uint64_t bytes = rows * 4096;
  std::string original =
      productFile("large.onnx", rows, std::string(bytes, '\1'));
  std::string path = writeTemporary("pieces.onnx", "");
  ExportOptions options;
  options.metadata = {{"key", "value"}};
  {
    mlir::MLIRContext context;
    auto model = importModel(original, {}, context);
    ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
    options.writeBack = model->writeBack;
  }
  Made weights(rows);
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  rlimit little = before;
  little.rlim_cur = ownBytes() + bytes / 2;
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &little), 0);
  llvm::Error error = exportModel(original, path, weights, options);
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;

  onnx::ModelProto want = readProto(original);
  for (size_t i = 0; i < 2; ++i) {
    onnx::TensorProto &to =
        *want.mutable_graph()->mutable_initializer(1 - int(i));
    HostTensor value = llvm::cantFail(weights.read(i, 0, i ? 1 : rows * 1024));
    to.clear_float_data();
    to.set_raw_data(value.rawData(), size_t(value.sizeInBytes()));
  }
  onnx::StringStringEntryProto &entry = *want.add_metadata_props();
  entry.set_key("key");
  entry.set_value("value");
  EXPECT_TRUE(textOfFile(path) == want.SerializeAsString());
}

// A model that would be larger than a file may be has its numbers beside it.
TEST(Export, NumbersGoBesideTheFile) {
  std::string original =
      productFile("beside.onnx", 8, std::string(8 * 4096, '\1'));
  std::string path = writeTemporary("outside.onnx", "");
  Made weights(8);
  ExportOptions options;
  options.mostBytes = 8 << 10;
  llvm::Error error = exportModel(original, path, weights, options);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  EXPECT_LT(textOfFile(path).size(), options.mostBytes);
  EXPECT_EQ(textOfFile(path + ".data").size(), 8u * 4096);
  mlir::MLIRContext context;
  auto again = importModel(path, {}, context);
  ASSERT_TRUE(bool(again)) << takeErrorText(again.takeError()).text;
  HostTensor value = llvm::cantFail(weights.read(0, 0, 8 * 1024));
  EXPECT_TRUE(again->weights.at("w").bitEqual(value.reshaped({8, 1024})));
  // Back into one file, which has what was beside the other.
  std::string whole = writeTemporary("inside.onnx", "");
  TensorMap small;
  small.set("b", HostTensor::of<float>({1}, {2}));
  MapParts parts(small);
  error = exportModel(path, whole, parts);
  ASSERT_FALSE(bool(error)) << takeErrorText(std::move(error)).text;
  auto inside = importModel(whole, {}, context);
  ASSERT_TRUE(bool(inside)) << takeErrorText(inside.takeError()).text;
  EXPECT_TRUE(inside->weights.at("w").bitEqual(value.reshaped({8, 1024})));
  EXPECT_EQ(inside->weights.at("b").getDouble(0), 2);
}
