//===- BenchCollectives.cpp - the time of messages between ranks ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Times the runtime's own collectives among the ranks that mpirun started, by
// op and size, and writes them as a profile: plans then weigh messages by what
// this machine, its network and its MPI take. A time is the median of a rank's
// runs, of the slowest rank. All ranks make the same runs.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Base/Shards.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Runtime/Primitive.h"
#include "ckopt/Runtime/World.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>

using namespace ckopt;
using runtime::PrimitiveDesc;
using runtime::PrimitiveKind;
using runtime::World;

namespace {

constexpr std::pair<const char *, PrimitiveKind> kOps[] = {
    {"all_reduce", PrimitiveKind::AllReduce},
    {"reduce_scatter", PrimitiveKind::ReduceScatter},
    {"all_gather", PrimitiveKind::AllGather},
    {"broadcast", PrimitiveKind::Broadcast}};

/// Bytes of whole tensors: from what latency alone takes to several pieces.
constexpr int64_t kLeastBytes = 1024, kMostBytes = int64_t(16) << 20;
/// Bytes that the runs of one size move, at most; and the runs.
constexpr int64_t kBytesOfRuns = int64_t(64) << 20;
constexpr int64_t kLeastRuns = 5, kMostRuns = 50;

/// Memory as the arena gives it.
class Buffer {
public:
  explicit Buffer(int64_t bytes) : storage(size_t(bytes) + 64) {}
  void *data() {
    auto address = reinterpret_cast<uintptr_t>(storage.data());
    return reinterpret_cast<void *>((address + 63) / 64 * 64);
  }

private:
  std::vector<char> storage;
};

PrimitiveDesc describeOp(PrimitiveKind kind, int64_t ranks, int64_t bytes) {
  PrimitiveDesc desc;
  desc.kind = kind;
  int64_t elements = bytes / int64_t(sizeof(float));
  desc.allReduce.ranks = ranks;
  desc.allReduce.elements = {elements};
  if (kind == PrimitiveKind::AllGather || kind == PrimitiveKind::ReduceScatter)
    desc.allReduce.shares = {(elements + ranks - 1) / ranks};
  return desc;
}

llvm::Error fail(const std::string &why) { return makeError(ExitRank, why); }

/// Returns the seconds of one op of this size, equal on all ranks.
llvm::Expected<double> timeOf(World &world, PrimitiveKind kind, int64_t bytes) {
  std::string error;
  PrimitiveDesc desc = describeOp(kind, world.size(), bytes);
  auto op = runtime::Primitive::create(desc, 1, error);
  if (!op)
    return fail(error);
  Buffer in(bytes), out(bytes), workspace(op->workspaceBytes());
  void *args[] = {in.data(), out.data()};
  std::vector<double> times;
  int64_t runs = std::clamp(kBytesOfRuns / bytes, kLeastRuns, kMostRuns);
  for (int64_t run = -1; run < runs; ++run) {
    // Ranks begin together: what they wait for each other is no message's time.
    char here = 0;
    std::vector<char> all(size_t(world.size()));
    if (!world.gatherAll(&here, 1, all.data(), error))
      return fail(error);
    auto start = std::chrono::steady_clock::now();
    if (!op->execute(args, workspace.data(), error))
      return fail(error);
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    if (run >= 0) // the first one touches memory for the first time
      times.push_back(time.count());
  }
  std::sort(times.begin(), times.end());
  double own = times[times.size() / 2];
  std::vector<double> all(size_t(world.size()));
  if (!world.gatherAll(&own, sizeof(own), all.data(), error))
    return fail(error);
  return *std::max_element(all.begin(), all.end());
}

struct Curve {
  const char *op = "";
  std::vector<std::pair<int64_t, double>> points;
};

void print(const std::vector<Curve> &curves, int64_t ranks,
           llvm::raw_ostream &os) {
  TextTable table;
  table.addColumn("among " + std::to_string(ranks) + " ranks");
  for (const char *header : {"bytes", "seconds", "bytes a second"})
    table.addColumn(header, TextTable::Right);
  for (const Curve &curve : curves)
    for (auto [bytes, seconds] : curve.points)
      table.addRow({curve.op, groupDigits(bytes), formatSeconds(seconds),
                    formatBytes(int64_t(double(bytes) / seconds))});
  table.print(os);
}

llvm::Error write(llvm::StringRef path, const std::vector<Curve> &curves,
                  int64_t ranks) {
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-profile/1");
      json.attributeArray("collectives", [&] {
        for (const Curve &curve : curves)
          json.object([&] {
            json.attribute("op", curve.op);
            json.attribute("ranks", ranks);
            json.attributeArray("points", [&] {
              for (auto [bytes, seconds] : curve.points)
                json.array([&] {
                  json.value(bytes);
                  json.value(jsonNumber(seconds));
                });
            });
          });
      });
    });
  });
}

} // namespace

llvm::Error ckopt::runCollectivesBench(DriverOptions &options) {
  World &world = options.compile.ranks.world();
  std::vector<Curve> curves;
  for (auto [name, kind] : kOps) {
    Curve &curve = curves.emplace_back();
    curve.op = name;
    for (int64_t bytes = kLeastBytes; bytes <= kMostBytes; bytes *= 4) {
      auto seconds = timeOf(world, kind, bytes);
      if (!seconds)
        return seconds.takeError();
      curve.points.emplace_back(bytes, *seconds);
    }
  }
  if (!world.isMain())
    return llvm::Error::success();
  print(curves, world.size(), options.out());
  if (llvm::Error error = write(options.collectives, curves, world.size()))
    return error;
  tellWritten(options, options.collectives);
  return llvm::Error::success();
}
