//===- RandomProgram.h - random ONNX models for tests -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A program is a graph of ONNX operators on small float tensors, drawn from a
// table with one entry an operator form (RandomProgram.cpp): each entry looks
// for operands that it can take among the values made so far, adds its nodes
// and its result. All values that nothing else reads are squashed and join one
// scalar output `loss`, so that no operator is dead. Equal seeds give equal
// programs.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_STEPS_RANDOMPROGRAM_H
#define CKOPT_UNITTESTS_STEPS_RANDOMPROGRAM_H

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace ckopt::test {

class RandomProgram {
public:
  explicit RandomProgram(uint64_t seed);

  /// A GraphProto in protobuf's text format, for opset 18: the data input `x`,
  /// weights as initializers, the output `loss`.
  std::string text() const;
  /// Operators in the order of the nodes, for messages.
  std::string summary() const;

  //===--- For the entries of the table -----------------------------------===//

  using Shape = std::vector<int64_t>;
  struct Value {
    std::string name;
    Shape shape;
    bool used = false;
  };
  uint64_t draw(uint64_t count) { return random() % count; }
  /// Any value, of `rank` dimensions if not negative; null where there is none.
  Value *pick(int64_t rank = -1);
  /// Another name for a new result of that shape.
  std::string result(Shape shape);
  std::string node(const std::string &op, std::vector<std::string> inputs,
                   Shape shape, const std::string &attributes = "");
  /// A trained weight with random values.
  std::string weight(Shape shape, double low = -1, double high = 1);
  std::string ints(std::vector<int64_t> values);
  std::string intTensor(Shape shape, std::vector<int64_t> values);
  std::string scalar(double value);
  /// Adds a node that no value of the pool stands for.
  void raw(const std::string &op, const std::vector<std::string> &inputs,
           const std::vector<std::string> &outputs,
           const std::string &attributes = "");
  std::string fresh();

  static std::string attr(const std::string &name, int64_t value);
  static std::string attr(const std::string &name,
                          const std::vector<int64_t> &values);
  static std::string attrF(const std::string &name, double value);
  static std::string attrS(const std::string &name, const std::string &value);

private:
  void finish();

  std::mt19937_64 random;
  std::vector<Value> values;
  std::string nodes, initializers, operators;
  Shape input;
  int names = 0;
};

} // namespace ckopt::test

#endif // CKOPT_UNITTESTS_STEPS_RANDOMPROGRAM_H
