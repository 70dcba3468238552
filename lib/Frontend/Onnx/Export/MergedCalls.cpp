//===- MergedCalls.cpp - equal calls that became one ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: PyTorch's exporter optimizes for inference and merges calls of equal
// operands. Two modules that start with equal weights and read one value, the
// two norms of a parallel transformer block, become one; trained in that form,
// the file is another network. Method: the readers of a removed value still
// name it in their calls. Nothing in the file tells which module's call it was:
// where a parameter that no call mentions, or one that starts equal, may have
// been read, the value is a suspect or lost, and the file is refused.
// O(nodes * operands + merged calls * parameters).
//
//===----------------------------------------------------------------------===//
#include "MergedCalls.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace ckopt;
using namespace ckopt::onnx_frontend;
using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::StringRef;

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
  }
  for (const FxCall &call : calls)
    for (const std::string &argument : call.args)
      mentioned.insert(argument);
}

std::vector<const TorchSignature::Entry *> MergedCalls::unmentioned() const {
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
              .push_back({i, argument, held, isDirect});
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

std::vector<std::string> MergedCalls::unplaced(ArrayRef<Read> reads,
                                               Entries left) const {
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

/// Returns whether parameters that no call mentions have the names of the
/// call's own.
bool MergedCalls::hasTwinNames(const FxCall &call, Entries left) const {
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

const TorchSignature::Entry *
MergedCalls::equalBuffer(const FxCall &call) const {
  for (const Entry *own : signature.parametersOf(call))
    for (const Entry &entry : signature.entries)
      if (!entry.isParameter && !mentioned.contains(entry.placeholder) &&
          moduleOf(entry.target) == moduleOf(own->target) &&
          leafOf(entry.target) != "num_batches_tracked")
        return &entry;
  return nullptr;
}

std::vector<size_t> MergedCalls::behind(size_t node, size_t reader) const {
  constexpr size_t most = 64;
  std::vector<size_t> work{node};
  for (size_t i = 0; i < work.size() && work.size() < most; ++i)
    for (const std::string &input : graph.nodes[work[i]].inputs)
      if (auto made = producer.find(input);
          made != producer.end() && !llvm::is_contained(work, made->second) &&
          mayBeGone(splitFxName(calls[made->second].name).first, reader))
        work.push_back(made->second);
  return work;
}

bool MergedCalls::isSuspect(size_t node, size_t reader, Entries left) const {
  return llvm::any_of(behind(node, reader), [&](size_t each) {
    return hasTwinNames(calls[each], left);
  });
}

/// Returns the removed results of the program. A result is named after its
/// call. If another call makes it, or none, its own call was merged, or removed
/// because its operands made it an identity ("x * scale" with a scale of 1).
std::vector<std::string> MergedCalls::lostOutputs(Entries left) const {
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

MergedValues MergedCalls::find() const {
  MergedValues result;
  std::vector<const Entry *> left = unmentioned();
  std::vector<Read> all = reads();
  llvm::MapVector<StringRef, const Read *> values;
  for (const Read &read : all)
    values.insert({read.value, &read});
  for (const auto &[name, read] : values) {
    size_t node = producer.lookup(read->held);
    result.gone.push_back(name.str());
    if (const Entry *buffer = equalBuffer(calls[node]))
      result.lost.push_back("'" + name.str() +
                            "': merged when exporting with an equal call of '" +
                            calls[node].op + "'; it may have read buffer '" +
                            buffer->target +
                            "' in place of a parameter of the same numbers");
    std::string twins = sharedTwins(node, read->node);
    if (twins.empty())
      twins = foldedTwins(node, read->node);
    if (!twins.empty())
      result.lost.push_back("'" + name.str() +
                            "': merged when exporting with an equal call of '" +
                            calls[node].op + "'; it may have read " + twins);
    if (!left.empty() && isSuspect(node, read->node, left))
      result.suspects.push_back(name.str());
  }
  if (left.empty())
    return result;
  llvm::append_range(result.suspects, unplaced(all, left));
  llvm::append_range(result.suspects, lostOutputs(left));
  return result;
}
