//===- SubgraphTest.cpp - branches, loops and functions in files ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TestUtils.h"
#include <gtest/gtest.h>

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using namespace ckopt::test;

using Inputs = std::map<std::string, HostTensor>;

static HostTensor floats(std::vector<int64_t> shape,
                         std::vector<float> values) {
  return HostTensor::of<float>(std::move(shape), values);
}

/// All results of the model on `inputs`, one list of numbers each.
static std::vector<std::vector<double>> run(const std::string &path,
                                            const Inputs &inputs) {
  mlir::MLIRContext context;
  ImportOptions options;
  auto model = importModel(path, options, context);
  if (!model) {
    ADD_FAILURE() << takeErrorText(model.takeError()).text;
    return std::vector<std::vector<double>>(3, {0});
  }
  std::vector<std::vector<double>> results;
  for (const reference::Tensor &tensor : evaluate(*model, inputs)) {
    results.emplace_back();
    for (int64_t i = 0; i < tensor.size(); ++i)
      results.back().push_back(tensor.get(i));
  }
  return results;
}

static std::string node(const std::string &op, const std::string &inputs,
                        const std::string &outputs,
                        const std::string &more = "") {
  std::string text = "node { op_type: '" + op + "' name: 'n_" + outputs + "' ";
  auto list = [&](const char *field, llvm::StringRef names) {
    llvm::SmallVector<llvm::StringRef> parts;
    names.split(parts, ' ', -1, /*KeepEmpty=*/false);
    for (llvm::StringRef part : parts)
      text +=
          std::string(field) + ": '" + (part == "-" ? "" : part.str()) + "' ";
  };
  list("input", inputs);
  list("output", outputs);
  return text + more + " } ";
}

static std::string graphAttribute(const std::string &name,
                                  const std::string &graph) {
  return "attribute { name: '" + name + "' type: GRAPH g { " + graph + " } } ";
}
static std::string intAttribute(const std::string &name, int value) {
  return "attribute { name: '" + name +
         "' type: INT i: " + std::to_string(value) + " } ";
}
static std::string input(const std::string &text) {
  return "input { " + text + " } ";
}
static std::string output(const std::string &text) {
  return "output { " + text + " } ";
}
static std::string integers(const std::string &name,
                            const std::vector<int64_t> &values,
                            bool scalar = false) {
  std::string text = "initializer { name: '" + name + "' data_type: 7 ";
  if (!scalar)
    text += "dims: " + std::to_string(values.size()) + " ";
  for (int64_t value : values)
    text += "int64_data: " + std::to_string(value) + " ";
  return text + "} ";
}
static std::string boolean(const std::string &name, bool value) {
  return "initializer { name: '" + name +
         "' data_type: 9 int32_data: " + std::to_string(value) + " } ";
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

static std::string ifNode() {
  return node("If", "c", "y",
              graphAttribute("then_branch",
                             node("Exp", "x", "t") + output("name: 't'")) +
                  graphAttribute("else_branch",
                                 node("Neg", "x", "e") + output("name: 'e'")));
}

// A condition that is known takes its branch: the other leaves no op.
TEST(Subgraph, IfKnown) {
  std::string graph = ifNode() + boolean("c", false) +
                      input(info("x", 1, {"2"})) + output(info("y", 1, {"2"}));
  std::string path = modelFile("if_known.onnx", graph);
  auto results = run(path, {{"x", floats({2}, {1, -2})}});
  EXPECT_EQ(results[0], (std::vector<double>{-1, 2}));
  mlir::MLIRContext context;
  auto model = importModel(path, {}, context);
  ASSERT_TRUE(bool(model));
  EXPECT_EQ(print(*model).find("ckopt.exp"), std::string::npos);
}

// A condition that depends on data selects between the results of both.
TEST(Subgraph, IfDynamic) {
  std::string graph =
      node("ReduceSum", "x", "s", intAttribute("keepdims", 0)) +
      node("Greater", "s zero", "c") + ifNode() +
      "initializer { name: 'zero' data_type: 1 float_data: 0 } " +
      input(info("x", 1, {"2"})) + output(info("y", 1, {"2"}));
  std::string path = modelFile("if_dynamic.onnx", graph);
  EXPECT_EQ(run(path, {{"x", floats({2}, {1, -2})}})[0],
            (std::vector<double>{-1, 2}));
  auto results = run(path, {{"x", floats({2}, {0, 2})}});
  EXPECT_EQ(results[0][0], 1);
  EXPECT_NEAR(results[0][1], std::exp(2.0), 1e-5);
}

// The shape of a result must not depend on data: the error names both types.
TEST(Subgraph, IfOfDifferentShapes) {
  std::string graph =
      node("ReduceSum", "x", "s", intAttribute("keepdims", 0)) +
      node("Cast", "s", "c", intAttribute("to", 9)) +
      node("If", "c", "y",
           graphAttribute("then_branch",
                          node("Exp", "x", "t") + output("name: 't'")) +
               graphAttribute("else_branch",
                              node("Neg", "s", "e") + output("name: 'e'"))) +
      input(info("x", 1, {"2"})) + output(info("y", 1, {"2"}));
  ErrorText error = importError(modelFile("if_shapes.onnx", graph));
  EXPECT_EQ(error.code, ExitUnsupported);
  for (const char *part :
       {"node 'n_y' (If)", "'tensor<2xf32>' and 'tensor<f32>'"})
    EXPECT_NE(error.text.find(part), std::string::npos) << error.text;
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// s = s * x each round; collects s. `go` is the condition of the next round.
static std::string loopBody(const std::string &go) {
  return graphAttribute(
      "body", node("Mul", "s x", "s2") + node("Identity", "s2", "each") +
                  node("Identity", go, "on2") + input(info("i", 7, {})) +
                  input(info("on", 9, {})) + input(info("s", 1, {"2"})) +
                  output("name: 'on2'") + output("name: 's2'") +
                  output(info("each", 1, {"2"})));
}

static std::string loopModel(const std::string &name, const std::string &trips,
                             const std::string &go,
                             const std::string &more = "") {
  return modelFile(
      name, node("Loop", trips + " - start", "y all", loopBody(go)) + more +
                integers("three", {3}, /*scalar=*/true) +
                integers("none", {0}, /*scalar=*/true) + boolean("no", false) +
                "initializer { name: 'start' data_type: 1 dims: 2 float_data: "
                "1 float_data: 1 } " +
                input(info("x", 1, {"2"})) + output(info("y", 1, {"2"})) +
                output(info("all", 1, {"n", "2"})));
}

TEST(Subgraph, LoopUnrolls) {
  auto results =
      run(loopModel("loop.onnx", "three", "on"), {{"x", floats({2}, {2, 3})}});
  EXPECT_EQ(results[0], (std::vector<double>{8, 27}));
  EXPECT_EQ(results[1], (std::vector<double>{2, 3, 4, 9, 8, 27}));
}

// What would be unrolled for minutes is refused, with the number of nodes.
TEST(Subgraph, LongLoopsAndSequencesAreRefused) {
  auto refuses = [](const std::string &file, const char *what) {
    ErrorText error = importError(file);
    EXPECT_EQ(error.code, ExitUnsupported);
    EXPECT_NE(error.text.find(what), std::string::npos) << error.text;
  };
  // 12 nodes a step of a cell.
  refuses(modelFile("long_lstm.onnx",
                    node("LSTM", "x w r", "y", intAttribute("hidden_size", 1)) +
                        input(info("x", 1, {"20000", "1", "1"})) +
                        "initializer { name: 'w' data_type: 1 dims: 1 dims: 4 "
                        "dims: 1 float_data: [1, 1, 1, 1] } "
                        "initializer { name: 'r' data_type: 1 dims: 1 dims: 4 "
                        "dims: 1 float_data: [1, 1, 1, 1] } " +
                        output(info("y", 1, {"20000", "1", "1", "1"}))),
          "is unrolled, which makes 240000 nodes; ckopt takes up to 65536");
}

// The condition that a round leaves ends the loop.
TEST(Subgraph, LoopEndsByCondition) {
  auto results = run(loopModel("loop_ends.onnx", "three", "no"),
                     {{"x", floats({2}, {2, 3})}});
  EXPECT_EQ(results[0], (std::vector<double>{2, 3}));
  EXPECT_EQ(results[1], (std::vector<double>{2, 3}));
}

// Without a round, the state is returned unchanged, and nothing is collected.
TEST(Subgraph, LoopWithoutRounds) {
  auto results = run(loopModel("loop_none.onnx", "none", "on"),
                     {{"x", floats({2}, {2, 3})}});
  EXPECT_EQ(results[0], (std::vector<double>{1, 1}));
  EXPECT_TRUE(results[1].empty());
}

// The error for a loop names the inputs that decide when it ends.
TEST(Subgraph, LoopOfUnknownLength) {
  std::string more =
      node("ReduceSum", "x", "sum", intAttribute("keepdims", 0)) +
      node("Cast", "sum", "trips", intAttribute("to", 7)) +
      node("Cast", "sum", "go", intAttribute("to", 9));
  // The nodes must come first.
  auto model = [&](const std::string &trips, const std::string &go) {
    return modelFile(
        "loop_unknown.onnx",
        more + node("Loop", trips + " - start", "y all", loopBody(go)) +
            integers("three", {3}, /*scalar=*/true) +
            "initializer { name: 'start' data_type: 1 dims: 2 float_data: 1 "
            "float_data: 1 } " +
            input(info("x", 1, {"2"})) + output(info("y", 1, {"2"})));
  };
  ErrorText trips = importError(model("trips", "on"));
  EXPECT_EQ(trips.code, ExitUnsupported);
  EXPECT_NE(trips.text.find("operand 0 ('trips')"), std::string::npos)
      << trips.text;
  ErrorText condition = importError(model("three", "go"));
  EXPECT_EQ(condition.code, ExitUnsupported);
  EXPECT_NE(condition.text.find("whether it goes on (condition"),
            std::string::npos)
      << condition.text;
}

// An operator in a body that ckopt does not know is named where it is reached,
// once, although the body is imported three times.
TEST(Subgraph, UnknownOperatorInBody) {
  std::string graph =
      node("Loop", "three - x", "y",
           graphAttribute(
               "body", node("Foo", "s", "s2") + node("Identity", "on", "on2") +
                           input(info("i", 7, {})) + input(info("on", 9, {})) +
                           input(info("s", 1, {"2"})) + output("name: 'on2'") +
                           output("name: 's2'"))) +
      integers("three", {3}, true) + input(info("x", 1, {"2"})) +
      output(info("y", 1, {"2"}));
  ErrorText error = importError(modelFile("body_unknown.onnx", graph));
  EXPECT_EQ(error.code, ExitUnsupported);
  size_t first = error.text.find("unsupported operator Foo");
  ASSERT_NE(first, std::string::npos) << error.text;
  EXPECT_EQ(error.text.find("unsupported operator Foo", first + 1),
            std::string::npos)
      << error.text;
}

// A scan in reverse along axis 1 puts its results along axis 1 as well.
TEST(Subgraph, ScanDirectionsAndAxes) {
  std::string lists;
  for (const char *name : {"scan_input_axes", "scan_output_axes",
                           "scan_input_directions", "scan_output_directions"})
    lists +=
        "attribute { name: '" + std::string(name) + "' type: INTS ints: 1 } ";
  std::string graph =
      node("Scan", "start x", "y all",
           intAttribute("num_scan_inputs", 1) + lists +
               graphAttribute(
                   "body",
                   node("Add", "s e", "s2") + node("Identity", "s2", "each") +
                       input(info("s", 1, {"2"})) + input(info("e", 1, {"2"})) +
                       output("name: 's2'") + output("name: 'each'"))) +
      "initializer { name: 'start' data_type: 1 dims: 2 float_data: 0 "
      "float_data: 0 } " +
      input(info("x", 1, {"2", "3"})) + output(info("y", 1, {"2"})) +
      output(info("all", 1, {"2", "3"}));
  auto results = run(modelFile("scan.onnx", graph),
                     {{"x", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_EQ(results[0], (std::vector<double>{6, 15}));
  EXPECT_EQ(results[1], (std::vector<double>{6, 5, 3, 15, 11, 6}));
}

// Weights in a branch are weights of the model: they are trained.
TEST(Subgraph, WeightsOfBranches) {
  std::string weight = "initializer { name: 'w' data_type: 1 dims: 2 "
                       "float_data: 3 float_data: 4 } ";
  std::string graph =
      node("If", "c", "y",
           graphAttribute("then_branch", node("Mul", "x w", "t") + weight +
                                             output("name: 't'")) +
               graphAttribute("else_branch",
                              node("Neg", "x", "e") + output("name: 'e'"))) +
      boolean("c", true) + input(info("x", 1, {"2"})) +
      output(info("y", 1, {"2"}));
  mlir::MLIRContext context;
  auto model = importModel(modelFile("branch_weight.onnx", graph), {}, context);
  ASSERT_TRUE(bool(model)) << takeErrorText(model.takeError()).text;
  auto func = forward(*model);
  int number = argumentNamed(func, "w");
  ASSERT_GE(number, 0);
  EXPECT_EQ(argumentText(func, unsigned(number), "ckopt.role"), "parameter");
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

// A function that is called twice, with an attribute of the call, that calls
// another one.
TEST(Subgraph, FunctionsExpand) {
  std::string leaky =
      "node { op_type: 'LeakyRelu' input: 'a' output: 'b' attribute { name: "
      "'alpha' ref_attr_name: 'slope' type: FLOAT } } ";
  std::string text =
      "opset_import { domain: '' version: 17 } opset_import { domain: 'mine' "
      "version: 1 } "
      "functions { name: 'Inner' domain: 'mine' input: 'a' output: 'b' "
      "attribute: 'slope' opset_import { domain: '' version: 17 } " +
      leaky +
      "} "
      "functions { name: 'Outer' domain: 'mine' input: 'a' output: 'c' output: "
      "'a' opset_import { domain: '' version: 17 } opset_import { domain: "
      "'mine' version: 1 } "
      "node { op_type: 'Inner' domain: 'mine' input: 'a' output: 'b' attribute "
      "{ name: 'slope' type: FLOAT f: 0.5 } } "
      "node { op_type: 'Add' input: 'b' input: 'b' output: 'c' } } "
      "graph { "
      "node { op_type: 'Outer' domain: 'mine' input: 'x' output: 'y' output: "
      "'same' } "
      "node { op_type: 'Outer' domain: 'mine' input: 'y' output: 'z' } " +
      input(info("x", 1, {"2"})) + output(info("y", 1, {"2"})) +
      output(info("same", 1, {"2"})) + output(info("z", 1, {"2"})) + "}";
  auto results = run(wholeModelFile("functions.onnx", text),
                     {{"x", floats({2}, {1, -2})}});
  EXPECT_EQ(results[0], (std::vector<double>{2, -2}));
  EXPECT_EQ(results[1], (std::vector<double>{1, -2}));
  EXPECT_EQ(results[2], (std::vector<double>{4, -2}));
}

TEST(Subgraph, FunctionThatCallsItself) {
  std::string text =
      "opset_import { domain: 'mine' version: 1 } "
      "functions { name: 'F' domain: 'mine' input: 'a' output: 'b' node { "
      "op_type: 'F' domain: 'mine' input: 'a' output: 'b' } } graph { node { "
      "op_type: 'F' domain: 'mine' input: 'x' output: 'y' } " +
      input(info("x", 1, {"2"})) + output(info("y", 1, {"2"})) + "}";
  ErrorText error = importError(wholeModelFile("recursion.onnx", text));
  EXPECT_EQ(error.code, ExitInputError);
  EXPECT_NE(error.text.find("function 'mine.F' calls itself"),
            std::string::npos)
      << error.text;
}
