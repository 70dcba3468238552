//===- MergedCalls.cpp - equal calls that became one ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: PyTorch's exporter optimizes for inference and merges calls of equal
// operands. Two modules that start with equal weights and read one value, the
// two norms of a parallel transformer block, become one; trained in that form,
// the file is another network. Method: the readers of a removed value still
// name it in their calls. If they now read the result of an equal call with
// parameters, and one module alone has parameters of the same names that no
// call mentions, then the nodes of that call are copied for this module and its
// readers read the copy. ExportMatcher decides which initializers the copy
// reads, as for any other merged initializer. Less clear cases stay unchanged,
// and ExportMatcher reports them as lost. Guarantee: outputs keep their bits,
// since the copy starts with equal weights. O(nodes * operands + merged calls *
// parameters).
//
//===----------------------------------------------------------------------===//
#include "MergedCalls.h"
#include "Reader/TorchMetadata.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;
using Entry = TorchSignature::Entry;

/// Returns how many enclosing modules both have in common.
static size_t commonDepth(StringRef a, StringRef b) {
  SmallVector<StringRef> left, right;
  a.split(left, '.');
  b.split(right, '.');
  size_t depth = 0;
  while (depth < left.size() && depth < right.size() &&
         left[depth] == right[depth])
    ++depth;
  return depth;
}

/// Replaces a name where it occurs as a whole after `%`.
static std::string renamed(StringRef text, StringRef from, StringRef to) {
  std::string result;
  std::string key = ("%" + from).str();
  while (true) {
    auto [before, after] = text.split(key);
    result += before;
    if (before.size() == text.size())
      return result;
    bool whole =
        after.empty() || !(llvm::isAlnum(after.front()) || after[0] == '_');
    result += whole ? ("%" + to).str() : key;
    text = after;
  }
}

MergedCalls::MergedCalls(const Graph &graph)
    : graph(graph), signature(readSignature(graph)) {
  for (const ValueInfo &input : graph.inputs)
    known.insert(input.name);
  for (const Tensor &tensor : graph.initializers) {
    known.insert(tensor.name);
    initializers.insert(tensor.name);
  }
  for (const std::string &input : signature.inputs)
    known.insert(input);
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    calls.push_back(readFxCall(node, signature));
    known.insert(calls.back().name);
    for (const std::string &output : node.outputs) {
      known.insert(output);
      producer[output] = i;
    }
    SmallVector<StringRef> frames;
    StringRef(node.sourceTrace).split(frames, '\n');
    for (StringRef line : frames)
      if (line = line.trim(); !line.starts_with("File "))
        lines.insert(line);
  }
  for (const FxCall &call : calls)
    for (const std::string &argument : call.args)
      mentioned.insert(argument);
}

std::vector<const Entry *> MergedCalls::unmentioned() const {
  std::vector<const Entry *> result;
  for (const Entry &entry : signature.entries)
    if (entry.isParameter && !mentioned.contains(entry.placeholder))
      result.push_back(&entry);
  return result;
}

/// Returns whether the operand has the position of the call's `argument`, and
/// its kind.
bool MergedCalls::standsFor(const std::string &operand,
                            StringRef argument) const {
  auto made = producer.find(operand);
  if (made == producer.end())
    return false;
  const FxCall &call = calls[made->second];
  StringRef kind = splitFxName(argument).first;
  return !call.guessed && !call.name.empty() && call.name != argument &&
         operand != argument &&
         (splitFxName(call.name).first == kind ||
          splitFxName(operand).first == kind);
}

/// One call may be several nodes (a stack is a concatenation of what it
/// unsqueezes): what the first of them reads.
const std::string &MergedCalls::heldThrough(const std::string &input,
                                            const FxCall &call) const {
  const std::string *held = &input;
  for (int most = 8; most > 0; --most) {
    auto made = producer.find(*held);
    if (made == producer.end() || calls[made->second].name != call.name ||
        graph.nodes[made->second].inputs.empty())
      break;
    held = &graph.nodes[made->second].inputs[0];
  }
  return *held;
}

std::vector<MergedCalls::Read> MergedCalls::reads() const {
  std::vector<Read> result, indirect;
  for (auto [i, node] : llvm::enumerate(graph.nodes)) {
    const FxCall &call = calls[i];
    if (call.guessed || call.name.empty())
      continue;
    bool positional = node.inputs.size() == call.args.size();
    for (auto [place, argument] : llvm::enumerate(call.args)) {
      if (known.contains(argument) || signature.placeholder(argument))
        continue;
      for (auto [operand, input] : llvm::enumerate(node.inputs)) {
        const std::string &held = heldThrough(input, call);
        bool here = positional ? operand == place
                               : !llvm::is_contained(call.args, held);
        bool isDirect = held == input;
        if (here && standsFor(held, argument))
          (isDirect ? result : indirect)
              .push_back({i, operand, argument, held, isDirect});
      }
    }
  }
  // Other nodes of a call that reads the value itself only go on from there.
  size_t numDirect = result.size();
  for (Read &read : indirect)
    if (llvm::none_of(ArrayRef(result).take_front(numDirect),
                      [&](const Read &direct) {
                        return direct.value == read.value &&
                               calls[direct.node].name == calls[read.node].name;
                      }))
      result.push_back(std::move(read));
  return result;
}

std::vector<std::string>
MergedCalls::unplaced(llvm::ArrayRef<Read> reads,
                      llvm::ArrayRef<const Entry *> left) const {
  std::set<std::string> result;
  for (const FxCall &call : calls)
    for (const std::string &argument : call.args) {
      if (call.guessed || known.contains(argument) ||
          signature.placeholder(argument) ||
          llvm::any_of(
              reads, [&](const Read &read) { return read.value == argument; }))
        continue;
      StringRef kind = splitFxName(argument).first;
      if (llvm::any_of(calls, [&](const FxCall &other) {
            return splitFxName(other.name).first == kind &&
                   hasTwinNames(other, left);
          }))
        result.insert(argument);
    }
  return {result.begin(), result.end()};
}

/// Whether some line of Python names the module of a parameter ("n2" of
/// "net.n2.weight", "branches" of "branches.1.weight"), or, of one that is the
/// model's own, the parameter itself. A module that nothing names may be
/// unused.
bool MergedCalls::isNamedInSource(StringRef target) const {
  StringRef module = moduleOf(target);
  while (!module.empty() && llvm::all_of(leafOf(module), llvm::isDigit))
    module = moduleOf(module);
  StringRef name = module.empty() ? leafOf(target) : leafOf(module);
  return llvm::any_of(lines, [&](const auto &line) {
    return hasIdentifier(line.first(), name);
  });
}

/// Returns the entries that a copy of the call reads instead of the call's
/// parameters, in their order; none if that is ambiguous.
std::vector<const Entry *>
MergedCalls::twinOf(const FxCall &call,
                    llvm::ArrayRef<const Entry *> left) const {
  std::vector<const Entry *> own, twin;
  for (const std::string &argument : call.args)
    if (const Entry *entry = signature.placeholder(argument))
      own.push_back(entry);
  bool any =
      llvm::any_of(own, [](const Entry *entry) { return entry->isParameter; });
  StringRef module = own.empty() ? StringRef() : moduleOf(own[0]->target);
  if (!any || StringRef(call.op).contains("batch_norm") ||
      llvm::any_of(own, [&](const Entry *entry) {
        return moduleOf(entry->target) != module || !entry->isParameter;
      }))
    return {};
  // Find the nearest other module with parameters of the same names.
  size_t nearest = 0, count = 0;
  StringRef found;
  for (const Entry *entry : left) {
    StringRef other = moduleOf(entry->target);
    if (leafOf(entry->target) != leafOf(own[0]->target) || other == module)
      continue;
    size_t depth = commonDepth(module, other);
    count = depth > nearest || !count ? 1 : count + (depth == nearest);
    if (depth > nearest || found.empty())
      found = other;
    nearest = std::max(nearest, depth);
  }
  if (count == 1) {
    for (const Entry *entry : own) {
      const auto *match = llvm::find_if(left, [&](const Entry *other) {
        return moduleOf(other->target) == found &&
               leafOf(other->target) == leafOf(entry->target);
      });
      if (match == left.end())
        return {};
      twin.push_back(*match);
    }
    if (!isNamedInSource(twin[0]->target))
      return {};
    return twin;
  }
  // Else it may be another parameter of the same module.
  if (count == 0 && own.size() == 1 && left.size() == 1 &&
      moduleOf(left[0]->target) == module &&
      llvm::any_of(lines, [&](const auto &line) {
        return hasIdentifier(line.first(), leafOf(left[0]->target));
      }))
    return {left[0]};
  return {};
}

std::vector<NodeCopy> MergedCalls::copyFor(StringRef value, size_t node,
                                           const FxCall &call,
                                           llvm::ArrayRef<const Entry *> twin) {
  std::vector<NodeCopy> copies;
  llvm::StringMap<std::string> names;
  std::vector<std::pair<std::string, std::string>> placeholders;
  size_t next = 0;
  for (const std::string &argument : call.args)
    if (signature.placeholder(argument))
      placeholders.push_back({argument, twin[next++]->placeholder});
  for (const Node &original : graph.nodes) {
    if (calls[size_t(&original - graph.nodes.data())].name != call.name)
      continue;
    if (llvm::any_of(original.attributes, [](const NodeAttribute &attribute) {
          return bool(attribute.graph);
        }))
      return {};
    NodeCopy copy{original.outputs[0], original};
    Node &made = copy.node;
    for (std::string &input : made.inputs)
      if (auto own = names.find(input); own != names.end())
        input = own->second;
    for (std::string &output : made.outputs) {
      if (output.empty())
        continue;
      std::string name = output == graph.nodes[node].outputs[0]
                             ? value.str()
                             : output + "." + value.str();
      while (!known.insert(name).second)
        name += ".copy";
      output = names[output] = name;
    }
    made.name = made.outputs[0];
    made.fxNode = renamed(made.fxNode, call.name, value);
    for (const auto &[from, to] : placeholders)
      made.fxNode = renamed(made.fxNode, from, to);
    StringRef module = moduleOf(twin[0]->target);
    if (!made.scopes.empty() && !module.empty())
      made.scopes.back() = module.str();
    copies.push_back(std::move(copy));
  }
  return copies;
}

/// Returns whether parameters that no call mentions have the names of the
/// call's own.
bool MergedCalls::hasTwinNames(const FxCall &call,
                               llvm::ArrayRef<const Entry *> left) const {
  std::vector<const Entry *> own = signature.parametersOf(call);
  return !own.empty() && llvm::all_of(own, [&](const Entry *entry) {
    return llvm::any_of(left, [&](const Entry *other) {
      return leafOf(other->target) == leafOf(entry->target) ||
             moduleOf(other->target) == moduleOf(entry->target);
    });
  });
}

/// The program numbers its calls of one kind. Returns whether a number is
/// missing below a higher one.
bool MergedCalls::isNumberMissing(StringRef kind) const {
  std::set<unsigned> numbers;
  auto note = [&](StringRef name) {
    auto [base, number] = splitFxName(name);
    if (base == kind)
      numbers.insert(number);
  };
  for (const FxCall &call : calls)
    note(call.name);
  for (const auto &name : mentioned)
    note(name.first());
  return !numbers.empty() && numbers.size() != *numbers.rbegin() + 1;
}

const Entry *MergedCalls::equalBuffer(const FxCall &call) const {
  for (const Entry *own : signature.parametersOf(call))
    for (const Entry &entry : signature.entries)
      if (!entry.isParameter && !mentioned.contains(entry.placeholder) &&
          moduleOf(entry.target) == moduleOf(own->target) &&
          leafOf(entry.target) != "num_batches_tracked")
        return &entry;
  return nullptr;
}

bool MergedCalls::isSuspect(StringRef value, size_t node,
                            llvm::ArrayRef<const Entry *> left) const {
  if (hasTwinNames(calls[node], left))
    return true;
  // A call without parameters may read values that were merged before.
  constexpr size_t most = 64;
  SmallVector<size_t> work{node};
  for (size_t i = 0; i < work.size() && work.size() < most; ++i) {
    const FxCall &call = calls[work[i]];
    if (hasTwinNames(call, left)) {
      if (isNumberMissing(splitFxName(call.name).first) ||
          llvm::any_of(left, [&](const Entry *entry) {
            return isNamedInSource(entry->target);
          }))
        return true;
      continue;
    }
    for (const std::string &input : graph.nodes[work[i]].inputs)
      if (auto made = producer.find(input);
          made != producer.end() && !llvm::is_contained(work, made->second))
        work.push_back(made->second);
  }
  return false;
}

/// Returns the removed results of the program. A result is named after its
/// call. If another call makes it, or none, its own call was merged, or removed
/// because its operands made it an identity ("x * scale" with a scale of 1).
std::vector<std::string>
MergedCalls::lostOutputs(llvm::ArrayRef<const Entry *> left) const {
  std::vector<std::string> result;
  bool named = llvm::any_of(
      calls, [](const FxCall &call) { return !call.name.empty(); });
  for (const auto &output : signature.outputs) {
    StringRef name = output.first(), op = splitFxName(name).first;
    bool mayVanish = isViewCall(op) || op == "getitem" || op == "dropout" ||
                     op == "detach" || op == "_to_copy";
    bool isCall = llvm::any_of(
        calls, [&](const FxCall &call) { return call.name == name; });
    if (named && !name.empty() && !isCall && !mayVanish && !left.empty() &&
        !signature.placeholder(name))
      result.push_back(name.str());
  }
  llvm::sort(result);
  return result;
}
