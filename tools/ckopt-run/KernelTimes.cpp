//===- KernelTimes.cpp - which kernels take a device's time ---------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes the times of ckrt_time_launches as a file of ckopt-profile/1, one
// entry for each kernel symbol, which do not depend on the budget, but one for
// all kernels that join updates, whose symbols do; the list "launches" beside
// it, which plans do not read, tells each distinct launch.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"
#include "Loaded.h"

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Base/KernelNames.h"
#include "ckopt/Base/PrintableText.h"

#include <algorithm>
#include <cstdio>
#include <map>

using namespace ckopt;
using namespace ckopt::run;
using runtime::CallInfo;
using runtime::LaunchInfo;
using runtime::Manifest;

namespace {

// 4 warm up, 20 count.
constexpr int32_t kLaunches = 4, kReplays = 5;

struct KernelTime {
  double seconds = 0;
  int64_t calls = 0, bytes = 0; ///< bytes of all calls
};

struct Line {
  const CallInfo *call;
  const LaunchInfo *launch;
  int64_t index;
  double seconds;
  int64_t count;
};

struct Times {
  const Manifest &manifest;
  std::vector<std::string> own;              ///< ownKernels()
  std::map<std::string, KernelTime> kernels; ///< by the calls' symbol
  std::vector<Line> lines;
  /// Index of a launch in `lines`, by what tells launches apart in a report.
  std::map<std::vector<int64_t>, size_t> known;
  double total = 0;

  static void add(void *self, int64_t call, int64_t launch, double seconds);
  std::string json() const;
  void print() const;
};

/// Returns the bytes behind the pointers of a launch: at most so many are read
/// and written, once each.
int64_t bytesOf(const LaunchInfo &launch) {
  int64_t bytes = 0;
  for (const runtime::LaunchPointer &pointer : launch.pointers)
    bytes += pointer.bytes;
  return bytes;
}

/// Returns a JSON string; bytes beyond ASCII become question marks.
std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < 0x20 || c & 0x80 ? '?' : c;
  }
  return result + "\"";
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

std::string symbolOf(const Manifest &m, const LaunchInfo &launch) {
  return launch.kernel >= 0
             ? m.kernels[static_cast<size_t>(launch.kernel)].symbol
             : runtime::describe(
                   m.primitives[static_cast<size_t>(launch.primitive)]);
}

/// Returns the name by which plans know a call's kernel: they weigh collectives
/// before these are split into a start and a wait.
std::string plannedName(const Manifest &m, const CallInfo &call) {
  constexpr std::string_view kStart = "_start";
  std::string name = call.kernel;
  bool starts =
      call.primitive >= 0 &&
      m.primitives[static_cast<size_t>(call.primitive)].allReduce.started;
  if (starts && name.size() > kStart.size() &&
      name.compare(name.size() - kStart.size(), kStart.size(), kStart) == 0)
    name.resize(name.size() - kStart.size());
  return name;
}

} // namespace

void Times::add(void *self, int64_t call, int64_t launch, double seconds) {
  Times &times = *static_cast<Times *>(self);
  const CallInfo &info = times.manifest.calls[static_cast<size_t>(call)];
  const LaunchInfo &one =
      launchesOf(times.manifest, info, times.own)[static_cast<size_t>(launch)];
  KernelTime &kernel = times.kernels[plannedName(times.manifest, info)];
  kernel.calls += launch == 0 && !times.manifest.isPart(info);
  kernel.bytes += bytesOf(one);
  kernel.seconds += seconds;
  times.total += seconds;
  std::vector<int64_t> key = {one.kernel, one.primitive};
  key.insert(key.end(), one.scalars.begin(), one.scalars.end());
  for (const runtime::LaunchPointer &pointer : one.pointers)
    key.push_back(pointer.bytes);
  auto [at, isNew] = times.known.insert({key, times.lines.size()});
  if (isNew)
    times.lines.push_back({&info, &one, launch, seconds, 0});
  ++times.lines[at->second].count;
}

std::string Times::json() const {
  std::string text = "{\n  \"format\": \"ckopt-profile/1\",\n  \"ops\": [";
  const char *separator = "\n";
  KernelTime joined;
  for (const auto &[symbol, kernel] : kernels) {
    if (isJoinedKernel(symbol)) {
      joined.seconds += kernel.seconds;
      joined.bytes += kernel.bytes;
      continue;
    }
    text += separator + ("    {\"op\": " + quoted(symbol)) + ", \"seconds\": " +
            number(kernel.seconds / static_cast<double>(kernel.calls)) + "}";
    separator = ",\n";
  }
  text += "\n  ],";
  if (joined.bytes > 0)
    text += "\n  \"updates\": {\"bytes\": " + std::to_string(joined.bytes) +
            ", \"seconds\": " + number(joined.seconds) + "},";
  text += "\n  \"launches\": [";
  separator = "\n";
  for (const Line &line : lines) {
    const LaunchInfo &launch = *line.launch;
    text += separator + ("    {\"kernel\": " + quoted(line.call->kernel)) +
            ", \"launch\": " + std::to_string(line.index) +
            ", \"code\": " + quoted(symbolOf(manifest, launch)) +
            ", \"library\": " + (launch.kernel >= 0 ? "false" : "true");
    if (launch.kernel >= 0) {
      const auto &code = manifest.kernels[static_cast<size_t>(launch.kernel)];
      text += ", \"grid\": " + std::to_string(code.grid) +
              ", \"block\": " + std::to_string(code.block);
    }
    text += ", \"bytes\": " + std::to_string(bytesOf(launch)) +
            ", \"count\": " + std::to_string(line.count) +
            ", \"seconds\": " + number(line.seconds) +
            ", \"source\": " + quoted(line.call->source) + "}";
    separator = ",\n";
  }
  return text + "\n  ]\n}\n";
}

void Times::print() const {
  std::vector<const Line *> order;
  for (const Line &line : lines)
    order.push_back(&line);
  auto all = [](const Line *line) {
    return line->seconds * static_cast<double>(line->count);
  };
  std::sort(order.begin(), order.end(), [&](const Line *a, const Line *b) {
    return all(a) != all(b) ? all(a) > all(b) : a < b;
  });
  std::printf("%zu distinct launches, %.6f s a step one by one\n", order.size(),
              total);
  std::printf("%10s %6s %12s %10s  %s\n", "us a step", "count", "us", "GB/s",
              "kernel");
  for (size_t i = 0; i < order.size() && i < 20; ++i) {
    const Line &line = *order[i];
    double seconds = std::max(line.seconds, 1e-12);
    std::printf("%10.1f %6lld %12.2f %10.1f  %s (%s)\n", all(&line) * 1e6,
                static_cast<long long>(line.count), line.seconds * 1e6,
                static_cast<double>(bytesOf(*line.launch)) / seconds / 1e9,
                printable(symbolOf(manifest, *line.launch)).c_str(),
                printable(line.call->source.substr(0, 60)).c_str());
  }
}

int ckopt::run::timeKernels(Loaded &loaded, const Options &options) {
  Times times{loaded.manifest(), ownKernels(loaded), {}, {}, {}, 0};
  ckrt_status status =
      ckrt_time_launches(loaded.session, options.function.c_str(), kLaunches,
                         kReplays, Times::add, &times);
  if (status != CKRT_OK)
    return complain(status);
  times.print();
  std::string text = times.json(), error;
  // All ranks take part, and one of them writes.
  if (loaded.rank == 0 &&
      !writeFile(options.kernelTimes, {text.begin(), text.end()}, error))
    return complain(ExitIoError, error);
  return ExitOk;
}
