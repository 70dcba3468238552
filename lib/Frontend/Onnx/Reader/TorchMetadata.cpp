//===- TorchMetadata.cpp - what PyTorch's exporter notes in files ---------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The exporter writes the signature of the exported program into the graph's
// metadata and each node's call into the node's, as text for people. It is read
// with a scanner that skips unknown text, so that a file of another version of
// PyTorch at worst gives less information. Linear in the text.
//
//===----------------------------------------------------------------------===//
#include "TorchMetadata.h"
#include "ckopt/Base/PrintableText.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::StringRef;

const TorchSignature::Entry *TorchSignature::placeholder(StringRef name) const {
  auto found = byPlaceholder.find(name);
  return found == byPlaceholder.end() ? nullptr : &entries[found->second];
}

const TorchSignature::Entry *TorchSignature::target(StringRef name) const {
  auto found = byTarget.find(name);
  return found == byTarget.end() ? nullptr : &entries[found->second];
}

std::vector<const TorchSignature::Entry *>
TorchSignature::parametersOf(const FxCall &call) const {
  std::vector<const Entry *> result;
  for (const std::string &argument : call.args)
    if (const Entry *entry = placeholder(argument); entry && entry->isParameter)
      result.push_back(entry);
  return result;
}

/// Returns the text after `key`, which ends in a quote, up to the next one, or
/// to the end of the line: names get into messages, which have lines.
static StringRef quotedAfter(StringRef text, StringRef key) {
  size_t at = text.find(key);
  if (at == StringRef::npos)
    return {};
  return text.substr(at + key.size()).take_until([](char c) {
    return c == '\'' || isControl(c);
  });
}

static void addEntry(TorchSignature &signature, StringRef placeholder,
                     StringRef target, bool isParameter) {
  if (placeholder.empty() || target.empty())
    return;
  size_t number = signature.entries.size();
  if (!signature.byTarget.try_emplace(target, number).second)
    return;
  signature.byPlaceholder.try_emplace(placeholder, number);
  signature.entries.push_back({placeholder.str(), target.str(), isParameter});
}

/// Reads a line "p_0_weight: PARAMETER target='0.weight'" (PyTorch 2.7 on).
static void readLine(TorchSignature &signature, StringRef line) {
  auto [placeholder, rest] = line.split(": ");
  bool isParameter = rest.starts_with("PARAMETER ");
  if (rest.starts_with("USER_INPUT"))
    signature.inputs.push_back(placeholder.trim().str());
  if (!isParameter && !rest.starts_with("BUFFER ") &&
      !rest.starts_with("CONSTANT_TENSOR "))
    return;
  addEntry(signature, placeholder.trim(), quotedAfter(rest, "target='"),
           isParameter);
}

/// Reads "InputSpec(kind=<InputKind.PARAMETER: 2>,
/// arg=TensorArgument(name='p'), target='t', ...)", as Python prints it (before
/// PyTorch 2.7).
static void readSpecs(TorchSignature &signature, StringRef text) {
  for (text = text.split("InputSpec(kind=<InputKind.").second; !text.empty();) {
    auto [spec, rest] = text.split("InputSpec(kind=<InputKind.");
    bool isParameter = spec.starts_with("PARAMETER");
    if (spec.starts_with("USER_INPUT"))
      signature.inputs.push_back(quotedAfter(spec, "name='").str());
    if (isParameter || spec.starts_with("BUFFER") ||
        spec.starts_with("CONSTANT_TENSOR"))
      addEntry(signature, quotedAfter(spec, "name='"),
               quotedAfter(spec, "target='"), isParameter);
    text = rest;
  }
}

/// Reads "getitem_3: BUFFER_MUTATION target='bn.running_mean'", and before
/// PyTorch 2.7 "OutputSpec(kind=<OutputKind.BUFFER_MUTATION: 3>,
/// arg=TensorArgument(name='getitem_3'), target='bn.running_mean')".
static void readMutations(TorchSignature &signature, StringRef text) {
  for (StringRef kind : {"BUFFER_MUTATION", "PARAMETER_MUTATION"})
    for (auto [before, rest] = text.split(kind); !rest.empty();
         std::tie(before, rest) = rest.split(kind)) {
      StringRef value = before.ends_with("OutputKind.")
                            ? quotedAfter(rest, "name='")
                            : before.rsplit('\n').second.split(':').first;
      StringRef target = quotedAfter(rest, "target='");
      if (!target.empty())
        signature.mutations.push_back({value.trim().str(), target.str()});
    }
}

TorchSignature onnx_frontend::readSignature(const Graph &graph) {
  TorchSignature signature;
  auto found =
      graph.metadata.find("pkg.torch.export.ExportedProgram.graph_signature");
  if (found == graph.metadata.end())
    return signature;
  auto [text, outputs] = StringRef(found->second).split("# outputs");
  readMutations(signature, found->second);
  for (; !outputs.empty(); outputs = outputs.split('\n').second)
    signature.outputs.insert(outputs.split('\n').first.split(':').first.trim());
  if (text.contains("InputSpec(kind=<InputKind.")) {
    readSpecs(signature, text);
    return signature;
  }
  for (; !text.empty(); text = text.split('\n').second)
    readLine(signature, text.split('\n').first);
  return signature;
}

static bool isNamePart(char c) { return llvm::isAlnum(c) || c == '_'; }

/// Splits text at commas outside of brackets, up to the bracket that closes
/// the list; `text` becomes the rest after it.
static llvm::SmallVector<StringRef> readList(StringRef &text) {
  llvm::SmallVector<StringRef> items;
  int depth = 0;
  size_t begin = 0, at = 0;
  auto take = [&] {
    if (StringRef item = text.slice(begin, at).trim(); !item.empty())
      items.push_back(item);
    begin = at + 1;
  };
  for (; at < text.size() && depth >= 0; ++at) {
    char c = text[at];
    depth += c == '(' || c == '[' || c == '{';
    depth -= c == ')' || c == ']' || c == '}';
    if (depth < 0 || (c == ',' && depth == 0))
      take();
  }
  text = text.substr(at);
  return items;
}

/// Reads "%x, [%a, %b], None, 1e-05), kwargs = {...})": values at any depth,
/// and texts by position and by name.
static void readArguments(StringRef text, FxCall &call) {
  for (StringRef rest = text.split('%').second; !rest.empty();
       rest = rest.split('%').second)
    call.args.push_back(rest.take_while(isNamePart).str());
  for (StringRef item : readList(text)) {
    StringRef name = item;
    bool isValue = name.consume_front("%") && llvm::all_of(name, isNamePart);
    call.positions.push_back(isValue ? name.str() : std::string());
    call.texts.push_back(item.str());
  }
  if (!text.consume_front(", kwargs = {"))
    return;
  for (StringRef item : readList(text)) {
    auto [name, value] = item.split(": ");
    call.keywords[name.trim().str()] = value.trim().str();
  }
}

/// Returns "linear" for "torch.ops.aten.linear.default".
static std::string operatorName(StringRef target) {
  target.consume_front("torch.ops.");
  StringRef rest = target.split('.').second;
  return (rest.empty() ? target : rest).split('.').first.str();
}

/// Makes a call of which only the name and the module are known.
static FxCall guessCall(const Node &node, const TorchSignature &signature) {
  FxCall call;
  call.guessed = true;
  call.name = node.fxName;
  call.op = operatorName(node.fxTarget);
  call.target = StringRef(node.fxTarget).ltrim().str();
  std::string prefix;
  if (!node.scopes.empty() && !node.scopes.back().empty())
    prefix = node.scopes.back() + ".";
  for (const TorchSignature::Entry &entry : signature.entries) {
    StringRef leaf = entry.target;
    if (leaf.consume_front(prefix) && !leaf.contains('.'))
      call.args.push_back(entry.placeholder);
  }
  auto find = [&](const char *leaf) {
    const auto *entry = signature.target(prefix + leaf);
    return entry ? entry->placeholder : std::string();
  };
  StringRef op = call.op;
  if (op.contains("batch_norm"))
    call.positions = {"", find("weight"), find("bias"), find("running_mean"),
                      find("running_var")};
  else if (op == "linear" || op == "prelu" || op.starts_with("conv"))
    call.positions = {"", find("weight"), find("bias")};
  else if (op.contains("_norm"))
    call.positions = {"", "", find("weight"), find("bias")};
  else if (op == "addmm")
    call.positions = {find("bias"), "", find("weight")};
  else if (op == "embedding")
    call.positions = {find("weight"), ""};
  return call;
}

FxCall onnx_frontend::readFxCall(const Node &node,
                                 const TorchSignature &signature) {
  StringRef text = node.fxNode;
  if (!text.consume_front("%"))
    return guessCall(node, signature);
  FxCall call;
  call.name = text.take_while(isNamePart).str();
  auto [head, arguments] = text.split("](args = (");
  StringRef target = head.rsplit("target=").second;
  call.op = operatorName(target);
  target.consume_front("torch.ops.");
  call.target = target.str();
  readArguments(arguments, call);
  return call;
}

std::optional<bool> onnx_frontend::normTrains(const FxCall &call) {
  StringRef op = call.op;
  if (op == "instance_norm") // written as a batch norm only if it evaluates
    return false;
  if (!op.contains("batch_norm"))
    return std::nullopt;
  if (op.ends_with("no_training") || op.ends_with("no_update"))
    return false;
  if (op.ends_with("with_update"))
    return true;
  size_t place = StringRef(call.target).ends_with(".no_stats") ? 3 : 5;
  if (place >= call.texts.size())
    return std::nullopt;
  return call.texts[place] == "True";
}

std::pair<StringRef, unsigned> onnx_frontend::splitFxName(StringRef name) {
  auto [base, digits] = name.rsplit('_');
  unsigned number = 0;
  if (digits.empty() || digits.getAsInteger(10, number))
    return {name, 0};
  return {base, number};
}

bool onnx_frontend::isViewCall(StringRef op) {
  return llvm::StringSwitch<bool>(op)
      .Cases({"t", "transpose", "permute", "view", "reshape", "unsqueeze",
              "squeeze", "expand", "slice", "alias", "clone", "contiguous",
              "numpy_T", "expand_as", "repeat"},
             true)
      .Default(false);
}

std::optional<StringRef> onnx_frontend::foldedFrom(const Graph &graph,
                                                   StringRef constant) {
  auto note = graph.metadata.find(
      ("pkg.onnxscript.optimizer.folded_from " + constant).str());
  if (note == graph.metadata.end())
    return std::nullopt;
  return StringRef(note->second);
}

StringRef onnx_frontend::moduleOf(StringRef target) {
  return target.contains('.') ? target.rsplit('.').first : StringRef();
}

StringRef onnx_frontend::leafOf(StringRef target) {
  return target.contains('.') ? target.rsplit('.').second : target;
}
