//===- OnnxModel.h - an ONNX model as plain data ----------------*- C++ -*-===//
//
// What a file says, checked for form but not for meaning: the importer and its
// handlers see these structs, only the reader and the writer see protobuf.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_ONNXMODEL_H
#define CKOPT_LIB_FRONTEND_ONNX_ONNXMODEL_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

struct Tensor {
  std::string name;
  HostTensor value;
};

struct NodeAttribute {
  enum Kind {
    Float,
    Int,
    String,
    TensorValue,
    Floats,
    Ints,
    Strings,
    Other ///< subgraphs, types, sparse tensors: no handler takes them
  };
  std::string name;
  Kind kind = Other;
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::optional<HostTensor> tensor;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
};

struct Node {
  std::string name, op, domain;
  std::vector<std::string> inputs, outputs; ///< "": not given
  std::vector<NodeAttribute> attributes;
  /// Modules that hold the node, outermost first, as PyTorch's exporter names
  /// them ("net.h.0"), and their classes ("package.GPT2Block"); may be empty.
  std::vector<std::string> scopes, classes;
  /// "node 'n' (Conv)", for messages.
  std::string describe() const;
};

struct Dim {
  int64_t size = -1;  ///< -1: not a number
  std::string symbol; ///< may be empty
};

struct ValueInfo {
  std::string name;
  std::optional<DType> dtype; ///< nothing: not a tensor, or of foreign type
  std::string typeText;       ///< what it is, for messages
  std::optional<std::vector<Dim>> shape;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<Tensor> initializers;
};

struct Model {
  int64_t irVersion = 0;
  std::map<std::string, int64_t> opsets; ///< by domain; "" is ONNX's own
  std::vector<std::string> functions;    ///< "domain.name" of local functions
  Graph graph;
};

/// Reads a file, external data included.
llvm::Expected<Model> readModel(llvm::StringRef path);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_ONNXMODEL_H
