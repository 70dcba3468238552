//===- OnnxModel.h - an ONNX model as plain data ----------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A file's contents, checked for form but not for meaning. The importer and its
// handlers use these structs; only the reader and the writer know protobuf.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_FRONTEND_ONNX_READER_ONNXMODEL_H
#define CKOPT_LIB_FRONTEND_ONNX_READER_ONNXMODEL_H

#include "ckopt/Support/HostTensor.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

/// Integers of four bits: two in a byte, the first in its low half; a last byte
/// may be half empty.
struct Nibbles {
  std::vector<int64_t> shape;
  bool isSigned = false;
};

struct Tensor {
  std::string name;
  HostTensor value; ///< of nibbles, the bytes
  std::optional<Nibbles> nibbles{};
};

struct Graph;

struct NodeAttribute {
  enum Kind {
    Float,
    Int,
    String,
    TensorValue,
    Floats,
    Ints,
    Strings,
    Subgraph,
    Other ///< types, sparse tensors, strings in tensors: unsupported
  };
  std::string name;
  /// In the body of a function: the name of the call's attribute that gives the
  /// value. Empty elsewhere.
  std::string reference;
  Kind kind = Other;
  double f = 0;
  int64_t i = 0;
  std::string s;
  std::optional<HostTensor> tensor;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  std::shared_ptr<Graph> graph;
};

struct Node {
  std::string name, op, domain, overload;
  int64_t opset = 1;                        ///< version of the node's domain
  std::vector<std::string> inputs, outputs; ///< "" for one that is not given
  std::vector<NodeAttribute> attributes;
  /// Modules that hold the node, outermost first, as PyTorch's exporter names
  /// them ("net.h.0"), and their classes ("package.GPT2Block"); may be empty.
  std::vector<std::string> scopes, classes;
  /// The call of PyTorch's exported program that the node belongs to, and the
  /// rewrite rule that made the node; empty if the file does not tell.
  std::string fxNode, rewriteRule;
  /// Where the call was made, outermost caller first: 'File "m.py", line 3, in
  /// forward'; empty if the file does not tell.
  std::vector<std::string> frames;
  /// Name and target of that call ("linear_1", "aten.linear.default"), which
  /// are in the file even if the call itself is not.
  std::string fxName, fxTarget;
  /// Set if the call was in a region that the exporter inlined: torch.no_grad()
  /// or autocast.
  bool inRegion = false;
  /// Numbers of operands through which no gradient flows (detach()).
  std::vector<size_t> stopped;
  /// Returns "node 'n' (Conv)", for messages.
  std::string describe() const;
  /// Returns the integer attribute, or 0 if the node does not have it.
  int64_t intAttribute(llvm::StringRef attribute) const;
};

struct Dim {
  int64_t size = -1;  ///< -1: not a number
  std::string symbol; ///< may be empty
};

struct ValueInfo {
  std::string name;
  /// Nothing if not a tensor, or of an unknown type.
  std::optional<DType> dtype;
  std::string typeText; ///< the type's text, for messages
  std::optional<std::vector<Dim>> shape;
};

/// A graph or subgraph. The names that a subgraph defines are unique within the
/// model, other names are those of the graphs around it, and its initializers
/// are listed with those of the model's graph.
struct Graph {
  std::vector<Node> nodes;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<Tensor> initializers;
  std::map<std::string, std::string> metadata; ///< the graph's own
};

/// A function that the model defines.
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs;
  std::vector<NodeAttribute> defaults; ///< of attributes that a call omits
  std::vector<Node> nodes;
};

struct Model {
  int64_t irVersion = 0;
  std::string producer;
  std::map<std::string, int64_t> opsets; ///< by domain; "" is ONNX's own
  Graph graph;
  std::set<std::string> externalFiles; ///< that hold numbers of its tensors
};

/// Returns the name of the TensorProto.DataType `type`: "f16", "string",
/// "float8e5m2".
std::string onnxTypeName(int32_t type);

/// Reads a file with its external data; calls of functions that the model
/// defines are replaced by the functions' nodes.
llvm::Expected<Model> readModel(llvm::StringRef path);

/// Calls `visit` for each node, those of subgraphs after the node that holds
/// them.
void forEachNode(const std::vector<Node> &nodes,
                 llvm::function_ref<void(const Node &)> visit);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_LIB_FRONTEND_ONNX_READER_ONNXMODEL_H
