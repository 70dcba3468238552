//===- LogCheck.cpp - what a device did against what was planned ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: find which functions of the manifest a log of launches shows.
// Method: the log is cut into runs of functions greedily: the first launch of a
// run gives the candidate functions, and each further launch removes the
// candidates whose table goes on differently. Kernels of calls that exchange
// messages between ranks, which are a stream of their own, are such a list for
// themselves. Before all runs, each library call runs once, before anything is
// captured. Complexity: linear in the log times the number of functions.
//
//===----------------------------------------------------------------------===//
#include "LogCheck.h"

#include "../../../lib/Runtime/Cuda/AttentionParts.h"

#include <algorithm>
#include <sstream>
#include <vector>

using namespace ckopt::runtime;
using namespace standin;

namespace {

bool startsWith(const std::string &text, const std::string &start) {
  return text.rfind(start, 0) == 0;
}

/// Returns the line that the stand-in logs for a launch; for a library's
/// launch, without addresses.
std::string lineOf(const Manifest &m, const LaunchInfo &launch) {
  if (launch.kernel < 0)
    return m.primitives[launch.primitive].kind == PrimitiveKind::MatMul
               ? "execute cublasLtMatmul"
               : "execute cudnnBackendExecute";
  std::string line = "execute " + m.kernels[launch.kernel].symbol;
  auto place = [&](int64_t offset) { line += " D1+" + std::to_string(offset); };
  for (const LaunchPointer &pointer : launch.pointers)
    place(pointer.offset);
  for (int64_t scalar : launch.scalars)
    line += " " + std::to_string(scalar);
  place(launch.scratchOffset);
  return line;
}

/// Returns how often the library runs for one launch. It has one batch
/// dimension, so a product with two that cannot be merged in all its matrices
/// is a loop over the outer one, and attention is one over its parts.
int64_t executionsOf(const Manifest &m, const LaunchInfo &launch) {
  if (launch.kernel >= 0)
    return 1;
  const PrimitiveDesc &desc = m.primitives[launch.primitive];
  if (isAttention(desc.kind)) {
    cuda::AttentionParts parts = cuda::attentionParts(desc);
    return desc.attention.batch / parts.samples * desc.attention.keyHeads /
           parts.keyHeads;
  }
  if (desc.kind != PrimitiveKind::MatMul)
    return 1;
  const MatMulDesc &d = m.primitives[launch.primitive].matmul;
  bool folds = true;
  for (const int64_t *batch : {d.aBatch, d.bBatch, d.cBatch})
    folds = folds && batch[0] == batch[1] * d.batch[1];
  return folds || d.batch[1] == 1 ? 1 : d.batch[0];
}

/// The launches of one stream, cut into runs of functions.
class Launches {
public:
  struct Execution {
    std::string line;
    bool last; ///< the last line of its launch
  };

  explicit Launches(size_t functions) : functions(functions) {}
  void expect(int32_t function, Execution execution) {
    functions[static_cast<size_t>(function)].push_back(std::move(execution));
  }
  /// Returns whether a function goes on, or begins, with this line.
  bool take(const std::string &line);
  /// Ends the current run if one of its candidates has no launch left.
  bool finish();
  bool isOpen() const { return !open.empty(); }
  int64_t runs = 0, launches = 0;

private:
  struct Position {
    size_t function, next;
  };
  std::vector<std::vector<Execution>> functions;
  std::vector<Position> open; ///< candidates for the current run
};

class Checker {
public:
  Checker(const Manifest &m, bool pattern, const std::set<int32_t> &own,
          LogFacts &facts);

  /// Checks a line; returns "" or what is wrong with it.
  std::string line(const std::string &text);
  std::string end();

private:
  std::string execute(const std::string &text);
  std::string copy(const std::string &text);
  std::string allocate(const std::string &text);

  const Manifest &m;
  bool pattern;
  LogFacts &facts;
  Launches kernels, sums;        ///< sums: of calls of several ranks
  std::set<std::string> ofRanks; ///< symbols of kernels of such calls
  std::set<std::pair<int64_t, int64_t>> tensors;
  std::vector<std::string> once; ///< library calls that run before all runs
  size_t ranOnce = 0;            ///< how many of these have run
  int arenas = 0, pinned = 0;
  bool ended = false;
};

} // namespace

bool Launches::take(const std::string &line) {
  if (open.empty())
    for (size_t f = 0; f < functions.size(); ++f)
      if (!functions[f].empty())
        open.push_back({f, 0});
  std::vector<Position> left;
  for (Position p : open)
    if (p.next < functions[p.function].size() &&
        functions[p.function][p.next].line == line)
      left.push_back({p.function, p.next + 1});
  if (left.empty())
    return finish() && take(line); // it may be the first of another run
  open = std::move(left);
  launches += functions[open[0].function][open[0].next - 1].last;
  // If one candidate is the beginning of another, it is known to have run once
  // the next launch is not the other's.
  bool all = std::all_of(open.begin(), open.end(), [&](const Position &p) {
    return p.next == functions[p.function].size();
  });
  if (all)
    finish();
  return true;
}

bool Launches::finish() {
  bool ends = std::any_of(open.begin(), open.end(), [&](const Position &p) {
    return p.next == functions[p.function].size();
  });
  if (ends) {
    ++runs;
    open.clear();
  }
  return ends;
}

Checker::Checker(const Manifest &m, bool pattern, const std::set<int32_t> &own,
                 LogFacts &facts)
    : m(m), pattern(pattern), facts(facts), kernels(m.functions.size()),
      sums(m.functions.size()) {
  std::set<int32_t> known;
  for (const CallInfo &call : m.calls) {
    bool between =
        call.primitive >= 0 &&
        isOfRanks(m.primitives[static_cast<size_t>(call.primitive)].kind);
    for (const LaunchInfo &launch : own.count(m.libraryPrimitive(call))
                                        ? call.ownLaunches
                                        : call.launches) {
      // What moves between ranks depends on the rank; the stand-in's NCCL
      // checks it itself.
      if (launch.kernel < 0 && isOfRanks(m.primitives[launch.primitive].kind))
        continue;
      if (launch.kernel < 0 && known.insert(launch.primitive).second)
        once.insert(once.end(), size_t(executionsOf(m, launch)),
                    lineOf(m, launch));
      if (between)
        ofRanks.insert(m.kernels[launch.kernel].symbol);
      for (int64_t i = executionsOf(m, launch); i-- > 0;)
        (between ? sums : kernels)
            .expect(call.function, {lineOf(m, launch), i == 0});
    }
  }
  // What is fed is copied to its second place.
  const DeviceInfo &d = m.device;
  for (const TensorInfo &t : m.tensors)
    tensors.insert({t.offset >= d.fedBegin && t.offset + t.bytes <= d.fedEnd
                        ? t.offset + d.fedShift
                        : t.offset,
                    t.bytes});
}

std::string Checker::execute(const std::string &text) {
  // Of ops of several ranks: messages, copies, zeros. Attention has zeros, too.
  if (startsWith(text, "execute ncclGroup") ||
      startsWith(text, "execute cuMem"))
    return "";
  if (pattern && startsWith(text, "execute ckopt_runtime_"))
    return "";
  if (ranOnce < once.size())
    return once[ranOnce++] == text ? "" : "libraries did not run once before";
  std::string symbol = text.substr(8, text.find(' ', 8) - 8);
  return (ofRanks.count(symbol) ? sums : kernels).take(text)
             ? ""
             : "no function goes on with this launch";
}

std::string Checker::copy(const std::string &text) {
  std::istringstream in(text);
  std::string call, first, second;
  int64_t bytes = 0;
  in >> call >> first >> second >> bytes;
  const std::string &device = startsWith(first, "D1+") ? first : second;
  if (!startsWith(device, "D1+"))
    return "copies outside of the arena";
  int64_t offset = std::stoll(device.substr(3));
  if (tensors.count({offset, bytes})) {
    ++facts.copies;
    return "";
  }
  bool block = startsWith(first, "pageable") || startsWith(second, "pageable");
  return pattern && block ? "" : "copies what is no tensor's";
}

std::string Checker::allocate(const std::string &text) {
  if (startsWith(text, "cuMemHostAlloc ") && ++pinned > 1)
    return "a second piece of pinned memory";
  if (!startsWith(text, "cuMemAlloc "))
    return "";
  int64_t bytes = std::stoll(text.substr(11));
  int64_t used = (std::max<int64_t>(m.arenaBytes, 1) + 63) / 64 * 64;
  if (++arenas > 1)
    return "a second allocation of the device";
  // The pattern behind it, and a mark for each MiB of both.
  const int64_t tail = 64 << 10;
  const int64_t marks = ((m.arenaBytes + tail + (1 << 20) - 1) >> 20) + 1;
  return bytes == used + (pattern ? tail + 4 * marks : 0)
             ? ""
             : "an allocation that is not the arena's";
}

std::string Checker::line(const std::string &text) {
  if (startsWith(text, "VIOLATION") || startsWith(text, "LEAK"))
    return "refused, or not given back";
  if (startsWith(text, "  fails"))
    return "a call that failed";
  // This is the device's first call with these extents.
  if (startsWith(text, "first "))
    return ranOnce < once.size() ? execute("execute " + text.substr(6))
                                 : "libraries did not run once before";
  if (startsWith(text, "execute "))
    return execute(text);
  if (startsWith(text, "cuMemcpyDtoD"))
    return "";
  if (startsWith(text, "cuMemcpy"))
    return copy(text);
  ended |= text == "end";
  return allocate(text);
}

std::string Checker::end() {
  for (Launches *one : {&kernels, &sums}) {
    one->finish();
    if (one->isOpen())
      return "a function stops in the middle";
    facts.launches += one->launches;
  }
  facts.runs = kernels.runs;
  if (arenas != 1)
    return "no arena was allocated";
  return ended ? "" : "the log has no end";
}

std::string standin::checkLog(const Manifest &manifest, const std::string &log,
                              bool pattern, const std::set<int32_t> &own,
                              LogFacts &facts) {
  facts = {};
  Checker checker(manifest, pattern, own, facts);
  std::istringstream in(log);
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (std::string wrong = checker.line(text); !wrong.empty())
      return "line " + std::to_string(number) + " (" + text + "): " + wrong;
  }
  return checker.end();
}
