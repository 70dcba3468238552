//===- OnnxFuzz.cpp - what random models must not break -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "OnnxFuzz.h"
#include "ckopt/Compiler/Phases.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Target/Targets.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"

#include <onnx/onnx_pb.h>
#include <random>
#include <sys/mman.h>
#include <unistd.h>

using namespace ckopt;

//===----------------------------------------------------------------------===//
// Entry point
//===----------------------------------------------------------------------===//

/// Larger models are imported only: planning them would slow down fuzzing.
static constexpr int64_t kMaxOps = 150, kMaxElements = 1 << 16;

static bool isSmall(mlir::ModuleOp module) {
  int64_t ops = 0, elements = 0;
  module.walk([&](mlir::Operation *op) {
    ++ops;
    for (mlir::Type type : op->getResultTypes())
      if (auto tensor = mlir::dyn_cast<mlir::RankedTensorType>(type))
        elements = std::max(elements, tensor.getNumElements());
  });
  return ops <= kMaxOps && elements <= kMaxElements;
}

/// Runs the phases up to `to`. Returns false if one fails, and sets `wrong` if
/// it does so without a message.
static bool runTo(mlir::ModuleOp module, const StepOptions &options,
                  const std::string &from, const std::string &to,
                  int64_t &messages, std::string &wrong) {
  PhaseControl control;
  control.from = from;
  control.to = to;
  messages = 0;
  llvm::Error error = runPhases(
      module, llvm::cantFail(buildPhases(options, cpuTarget())), control);
  if (!error)
    return true;
  if (takeErrorText(std::move(error)).text.empty() && !messages)
    wrong = "the phases up to " + to + " failed without a message";
  return false;
}

/// One context for all executions of a process: making one takes longer than
/// most models.
static mlir::MLIRContext &sharedContext() {
  static mlir::MLIRContext *made = [] {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    auto *context =
        new mlir::MLIRContext(registry, mlir::MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    return context;
  }();
  return *made;
}

FuzzReach ckopt::fuzzOnnx(const uint8_t *data, size_t size,
                          std::string &wrong) {
  int file = memfd_create("model.onnx", 0);
  if (file < 0 || write(file, data, size) != ssize_t(size)) {
    wrong = "no file for the model";
    return FuzzReach::Refused;
  }
  std::string path = "/proc/self/fd/" + std::to_string(file);
  mlir::MLIRContext &context = sharedContext();
  int64_t messages = 0;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &) {
    ++messages;
    return mlir::success();
  });
  onnx_frontend::ImportOptions import;
  import.batch = 2;
  auto model = onnx_frontend::importModel(path, import, context);
  close(file);
  if (!model) {
    if (takeErrorText(model.takeError()).text.empty())
      wrong = "the import failed without a message";
    return FuzzReach::Refused;
  }
  mlir::ModuleOp module = *model->module;
  if (!isSmall(module))
    return FuzzReach::Imported;
  StepOptions options;
  if (!model->endsInLoss)
    options.loss.emplace_back().kind = "mse";
  options.remat.budget.kind = MemoryBudget::Kind::Minimum;
  options.remat.search.workLimit = 20000;
  if (!runTo(module, options, "", "optimizer", messages, wrong))
    return FuzzReach::Imported;
  if (!runTo(module, options, "fuse", "plan-memory", messages, wrong))
    return FuzzReach::Differentiated;
  auto step = module.lookupSymbol<mlir::func::FuncOp>("step");
  if (!step || !step->hasAttr(attrs::kArenaBytes))
    wrong = "a planned step has no arena";
  return FuzzReach::Planned;
}

//===----------------------------------------------------------------------===//
// Mutations
//===----------------------------------------------------------------------===//

namespace {

class Mutator {
public:
  Mutator(onnx::ModelProto &model, uint64_t seed)
      : model(model), graph(*model.mutable_graph()), random(seed) {}

  void edit() {
    switch (draw(14)) {
    case 0:
      if (auto *node = pickNode())
        node->set_op_type(operatorName());
      break;
    case 1: // replace an operand
      if (auto *node = pickNode(); node && node->input_size())
        node->set_input(int(draw(node->input_size())), valueName());
      break;
    case 2: // remove or add an operand
      if (auto *node = pickNode()) {
        if (node->input_size() && draw(2))
          node->mutable_input()->RemoveLast();
        else
          node->add_input(draw(3) ? valueName() : "");
      }
      break;
    case 3:
    case 4:
      if (auto *node = pickNode())
        editAttribute(*node);
      break;
    case 5: // change a shape
      if (graph.input_size())
        editShape(*graph.mutable_input(int(draw(graph.input_size()))));
      break;
    case 6:
      if (graph.initializer_size())
        editTensor(
            *graph.mutable_initializer(int(draw(graph.initializer_size()))));
      break;
    case 7: // remove a node
      if (graph.node_size())
        graph.mutable_node()->DeleteSubrange(int(draw(graph.node_size())), 1);
      break;
    case 8: // duplicate a node under another name
      if (auto *node = pickNode()) {
        auto copy = *node;
        for (auto &output : *copy.mutable_output())
          output += "_copy";
        *graph.add_node() = copy;
        if (copy.output_size() && graph.output_size())
          graph.mutable_output(0)->set_name(copy.output(0));
      }
      break;
    case 9: // swap two nodes
      if (graph.node_size() > 1)
        graph.mutable_node()->SwapElements(int(draw(graph.node_size())),
                                           int(draw(graph.node_size())));
      break;
    case 10:
      for (auto &import : *model.mutable_opset_import())
        import.set_version(int64_t(draw(30)));
      break;
    case 11: // turn an initializer into an input, or the reverse
      if (graph.initializer_size())
        graph.mutable_initializer()->DeleteSubrange(
            int(draw(graph.initializer_size())), 1);
      break;
    case 12: // choose another output
      if (graph.output_size())
        graph.mutable_output(0)->set_name(valueName());
      break;
    case 13: // append a new unary node
      if (auto *node = graph.add_node()) {
        node->set_op_type(operatorName());
        node->add_input(valueName());
        node->add_output("fuzzed" + std::to_string(graph.node_size()));
        if (graph.output_size())
          graph.mutable_output(0)->set_name(node->output(0));
      }
      break;
    }
  }

private:
  uint64_t draw(uint64_t count) { return random() % count; }

  onnx::NodeProto *pickNode() {
    return graph.node_size() ? graph.mutable_node(int(draw(graph.node_size())))
                             : nullptr;
  }

  std::string operatorName() {
    static const std::vector<onnx_frontend::SupportedOp> ops =
        onnx_frontend::listSupportedOps();
    if (auto *node = draw(4) ? nullptr : pickNode())
      return node->op_type();
    return ops[draw(ops.size())].name;
  }

  std::string valueName() {
    std::vector<std::string> names;
    for (const auto &input : graph.input())
      names.push_back(input.name());
    for (const auto &tensor : graph.initializer())
      names.push_back(tensor.name());
    for (const auto &node : graph.node())
      for (const auto &output : node.output())
        names.push_back(output);
    return names.empty() ? "x" : names[draw(names.size())];
  }

  int64_t number() {
    static const int64_t interesting[] = {0,           1,         -1,
                                          2,           -2,        3,
                                          4,           5,         7,
                                          8,           16,        31,
                                          64,          127,       255,
                                          1 << 16,     1LL << 31, 1LL << 40,
                                          INT64_MAX,   INT64_MIN, INT64_MAX - 1,
                                          -(1LL << 31)};
    return draw(3) ? int64_t(draw(6))
                   : interesting[draw(std::size(interesting))];
  }
  double real() {
    static const double interesting[] = {0,    -0.0,  1,     -1,       0.5,
                                         1e30, -1e30, 1e-30, INFINITY, NAN};
    return interesting[draw(std::size(interesting))];
  }

  void editAttribute(onnx::NodeProto &node) {
    static const char *const names[] = {
        "axis",      "axes",         "keepdims",  "kernel_shape",
        "strides",   "pads",         "dilations", "group",
        "perm",      "epsilon",      "alpha",     "mode",
        "ceil_mode", "num_outputs",  "to",        "training_mode",
        "reduction", "ignore_index", "direction", "hidden_size",
        "largest",   "batch_dims",   "exclusive", "reverse"};
    if (node.attribute_size() && !draw(5)) {
      node.mutable_attribute()->RemoveLast();
      return;
    }
    if (!node.attribute_size() || !draw(6)) {
      auto *added = node.add_attribute();
      added->set_name(names[draw(std::size(names))]);
      added->set_type(draw(2) ? onnx::AttributeProto::INT
                              : onnx::AttributeProto::INTS);
      added->set_i(number());
      if (added->type() == onnx::AttributeProto::INTS)
        added->add_ints(number());
      return;
    }
    auto &attribute = *node.mutable_attribute(int(draw(node.attribute_size())));
    attribute.set_i(number());
    attribute.set_f(float(real()));
    if (attribute.ints_size() && draw(3))
      attribute.set_ints(int(draw(attribute.ints_size())), number());
    else if (draw(2))
      attribute.add_ints(number());
    if (attribute.has_t())
      editTensor(*attribute.mutable_t());
    if (!draw(12))
      attribute.set_type(onnx::AttributeProto::AttributeType(draw(15)));
    if (attribute.type() == onnx::AttributeProto::STRING && !draw(3))
      attribute.set_s("nonsense");
  }

  void editShape(onnx::ValueInfoProto &info) {
    auto *type = info.mutable_type()->mutable_tensor_type();
    auto *shape = type->mutable_shape();
    if (!draw(6))
      type->set_elem_type(int32_t(draw(24)));
    else if (shape->dim_size() && draw(3))
      shape->mutable_dim(int(draw(shape->dim_size())))->set_dim_value(number());
    else if (shape->dim_size() && draw(2))
      shape->mutable_dim()->RemoveLast();
    else
      shape->add_dim()->set_dim_value(number());
  }

  void editTensor(onnx::TensorProto &tensor) {
    switch (draw(6)) {
    case 0:
      tensor.set_data_type(int32_t(draw(24)));
      break;
    case 1:
      if (tensor.dims_size())
        tensor.set_dims(int(draw(tensor.dims_size())), number());
      break;
    case 2:
      tensor.add_dims(number());
      break;
    case 3:
      if (tensor.int64_data_size())
        tensor.set_int64_data(int(draw(tensor.int64_data_size())), number());
      else if (tensor.float_data_size())
        tensor.set_float_data(int(draw(tensor.float_data_size())),
                              float(real()));
      break;
    default:
      if (std::string *bytes = tensor.mutable_raw_data(); bytes->size() >= 8) {
        int64_t value = number();
        size_t at = draw(bytes->size() / 8) * 8;
        std::copy_n(reinterpret_cast<char *>(&value), 8, bytes->begin() + at);
      } else if (!bytes->empty()) {
        bytes->pop_back();
      }
    }
  }

  onnx::ModelProto &model;
  onnx::GraphProto &graph;
  std::mt19937_64 random;
};

} // namespace

std::string ckopt::mutateOnnx(const std::string &bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  onnx::ModelProto model;
  std::string result = bytes;
  if (random() % 16 && model.ParseFromString(bytes)) {
    Mutator mutator(model, random());
    for (uint64_t edits = 1 + random() % 4; edits; --edits)
      mutator.edit();
    return model.SerializeAsString();
  }
  for (uint64_t edits = 1 + random() % 8; edits && !result.empty(); --edits)
    result[random() % result.size()] = char(random());
  return result;
}
