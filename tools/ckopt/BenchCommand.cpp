//===- BenchCommand.cpp - the time of a step ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibration.h"
#include "Commands.h"
#include "ModuleSums.h"
#include "ckopt/Analysis/CostModel.h"
#include "ckopt/Base/KernelNames.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Runtime/StatusExit.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <map>
#include <utility>

using namespace ckopt;
using runtime::TensorRole;

/// Seconds of processor time of all threads so far: what other work on the
/// machine takes does not count.
static double processorSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

namespace {
/// What is said of all calls of one kernel.
struct KernelLine {
  double seconds = 0;   ///< of a step
  double processor = 0; ///< of them, of processor time of all threads
  int64_t calls = 0;
  std::string what, source;
};

/// Seconds of each kernel call: the least of the steps that were timed, which
/// other work on the machine disturbs least.
struct Profile {
  std::vector<double> seconds, processor;
  double used = 0; ///< processor time at the end of the last call
  bool on = false;

  static void add(void *self, int64_t call, double time) {
    auto &profile = *static_cast<Profile *>(self);
    double now = processorSeconds();
    if (profile.on) {
      keepLeast(profile.seconds, size_t(call), time);
      keepLeast(profile.processor, size_t(call), now - profile.used);
    }
    profile.used = now;
  }
  /// Of a device, by its own clock: the sum of a call's launches.
  static void addLaunch(void *self, int64_t call, int64_t, double time) {
    auto &profile = *static_cast<Profile *>(self);
    if (size_t(call) >= profile.seconds.size()) {
      profile.seconds.resize(size_t(call) + 1);
      profile.processor.resize(size_t(call) + 1);
    }
    profile.seconds[size_t(call)] += time;
  }
  static void keepLeast(std::vector<double> &times, size_t call, double time) {
    if (call >= times.size())
      times.resize(call + 1);
    times[call] = times[call] > 0 ? std::min(times[call], time) : time;
  }
  /// Seconds of each call of the function "step", of one step.
  std::vector<double> ofStep(const runtime::Manifest &manifest) const;
  /// One line a kernel symbol, slowest first.
  std::vector<std::pair<std::string, KernelLine>>
  byKernel(const runtime::Manifest &manifest) const;
  void print(const runtime::Manifest &manifest, llvm::raw_ostream &os) const;
  void writeKernels(const Compilation &compilation,
                    const runtime::Manifest &manifest,
                    llvm::json::OStream &json) const;
  llvm::Error write(llvm::StringRef path,
                    const runtime::Manifest &manifest) const;
};
} // namespace

std::vector<double> Profile::ofStep(const runtime::Manifest &manifest) const {
  std::vector<double> result;
  double parts = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::CallInfo &call = manifest.calls[i];
    if (manifest.functions[size_t(call.function)].name != "step")
      continue;
    parts += seconds[i];
    if (!manifest.isPart(call))
      result.push_back(std::exchange(parts, 0));
  }
  return result;
}

std::vector<std::pair<std::string, KernelLine>>
Profile::byKernel(const runtime::Manifest &manifest) const {
  std::map<std::string, KernelLine> lines;
  for (size_t i = 0; i < seconds.size(); ++i) {
    if (seconds[i] <= 0)
      continue;
    const runtime::CallInfo &call = manifest.calls[i];
    KernelLine &line = lines[call.kernel];
    line.seconds += seconds[i];
    line.processor += processor[i];
    line.calls += !manifest.isPart(call);
    if (line.source.empty())
      line.source = call.source.substr(0, 60);
    if (call.primitive >= 0)
      line.what =
          runtime::describe(manifest.primitives[size_t(call.primitive)]);
  }
  std::vector<std::pair<std::string, KernelLine>> sorted(lines.begin(),
                                                         lines.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) <
           std::pair(-b.second.seconds, b.first);
  });
  return sorted;
}

void Profile::print(const runtime::Manifest &manifest,
                    llvm::raw_ostream &os) const {
  double total = 0;
  for (double time : seconds)
    total += time;
  TextTable table;
  for (const char *header : {"time a step", "share", "calls"})
    table.addColumn(header, TextTable::Right);
  for (const char *header : {"kernel", "primitive", "first source node"})
    table.addColumn(header);
  for (auto &[kernel, line] : byKernel(manifest))
    table.addRow({formatSeconds(line.seconds),
                  formatPercent(line.seconds / total),
                  std::to_string(line.calls), kernel, line.what, line.source});
  os << "\n";
  table.print(os);
}

/// Writes the member "kernels" of the current JSON object, with the bytes that
/// a call has to read and write: what a roofline needs.
void Profile::writeKernels(const Compilation &compilation,
                           const runtime::Manifest &manifest,
                           llvm::json::OStream &json) const {
  auto bytesOf = [&](llvm::StringRef kernel) {
    auto function =
        compilation.module().lookupSymbol<mlir::func::FuncOp>(kernel);
    return function && !function.isDeclaration()
               ? int64_t(kernelWork(function).bytes)
               : 0;
  };
  json.attributeArray("kernels", [&] {
    for (const auto &[kernel, line] : byKernel(manifest))
      json.object([&, &kernel = kernel, &line = line] {
        json.attribute("kernel", kernel);
        json.attribute("calls", line.calls);
        json.attribute("seconds", jsonNumber(line.seconds));
        json.attribute("processor_seconds", jsonNumber(line.processor));
        json.attribute("bytes_a_call", bytesOf(kernel));
        json.attribute("primitive", line.what);
        json.attribute("source", jsonString(line.source));
      });
  });
}

/// Returns the bytes that a call's launches read and write, at most.
static double bytesOfLaunches(const runtime::CallInfo &call) {
  double bytes = 0;
  for (const runtime::LaunchInfo &launch : call.launches)
    for (const runtime::LaunchPointer &pointer : launch.pointers)
      bytes += double(pointer.bytes);
  return bytes;
}

/// A ckopt-profile/1 file (CostProfile.h): the mean time of the calls of each
/// kernel. Symbols do not depend on the budget, so it serves every plan; of
/// kernels that join updates they do, and these have one line for all.
llvm::Error Profile::write(llvm::StringRef path,
                           const runtime::Manifest &manifest) const {
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-profile/1");
      json.attributeArray("ops", [&] {
        for (const auto &[kernel, line] : byKernel(manifest))
          if (!isJoinedKernel(kernel))
            json.object([&, &kernel = kernel, &line = line] {
              json.attribute("op", kernel);
              json.attribute("seconds",
                             jsonNumber(line.seconds / double(line.calls)));
            });
      });
      double joinedBytes = 0, joinedSeconds = 0;
      for (size_t i = 0; i < seconds.size(); ++i)
        if (isJoinedKernel(manifest.calls[i].kernel)) {
          joinedBytes += bytesOfLaunches(manifest.calls[i]);
          joinedSeconds += seconds[i];
        }
      if (joinedBytes > 0 && joinedSeconds > 0)
        json.attributeObject("updates", [&] {
          json.attribute("bytes", joinedBytes);
          json.attribute("seconds", jsonNumber(joinedSeconds));
        });
    });
  });
}

/// Small deterministic numbers as data, labels within the classes.
static llvm::Error fillData(Session &session) {
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.infoOf(index);
      HostTensor value(info.dtype, info.shape);
      for (int64_t i = 0; i < value.numElements(); ++i)
        value.setDouble(i, isFloat(value.dtype())
                               ? double((i * 37 + 11) % 101) / 50.0 - 1.0
                               : double(i % 2));
      if (llvm::Error error = session.write(index, value))
        return error;
    }
  return llvm::Error::success();
}

llvm::Error ckopt::runBench(DriverOptions &options) {
  options.compile.step.evaluation = false;
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  planned->compilation->releaseWeights();
  const Compilation &compilation = *planned->compilation;
  Session &session = *planned->session;
  if (llvm::Error error = fillData(session))
    return error;
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, options.train.schedule.base))
    return error;
  Profile profile;
  bool profiles = options.profile || !options.profileOut.empty() ||
                  !options.calibrate.empty();
  // A device times its launches itself, after the steps: between kernels the
  // host could only time how long it waits and copies.
  bool onDevice = session.manifest().target == runtime::Target::Cuda;
  if (profiles && !onDevice)
    if (auto status =
            ckrt_set_profile(session.handle(), Profile::add, &profile))
      return makeError(ExitInternal, ckrt_last_error() +
                                         (" (" + std::to_string(status) + ")"));
  std::vector<double> seconds, processor;
  int64_t steps = options.steps ? options.steps : 10;
  for (int64_t i = 0; i < options.warmup + steps; ++i) {
    if (llvm::Error error = session.fill(TensorRole::Step, double(i + 1)))
      return error;
    profile.on = i >= options.warmup;
    double used = profile.used = processorSeconds();
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = session.run("step"))
      return error;
    if (auto status = ckrt_synchronize(session.handle())) // a device may work
      return makeError(exitCodeOf(status), ckrt_last_error());
    if (i < options.warmup)
      continue;
    std::chrono::duration<double> time =
        std::chrono::steady_clock::now() - start;
    seconds.push_back(time.count());
    processor.push_back(processorSeconds() - used);
  }
  std::sort(seconds.begin(), seconds.end());
  std::sort(processor.begin(), processor.end());
  auto loss = readLoss(session);
  if (!loss)
    return loss.takeError();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  if (profiles && onDevice)
    if (auto status = ckrt_time_launches(session.handle(), "step", 4, 5,
                                         Profile::addLaunch, &profile))
      return makeError(exitCodeOf(status), ckrt_last_error());
  printPlan(compilation, options.out());
  options.out() << "\nstep: best " << formatSeconds(seconds.front())
                << ", median " << formatSeconds(seconds[seconds.size() / 2])
                << ", worst " << formatSeconds(seconds.back()) << " of "
                << steps << " (predicted "
                << formatSeconds(compilation.summary().figures.seconds)
                << "), processor time " << formatSeconds(processor.front())
                << ", loss " << formatNumber(*loss, 6) << ", measured peak "
                << formatBytesExact(*peak) << "\n";
  std::vector<ModuleSum> modules;
  if (options.profile) {
    profile.print(session.manifest(), options.out());
    std::vector<double> times = profile.ofStep(session.manifest());
    modules = sumByModule(compilation, options.depth, &times);
    printModules(modules, "time a step", options.out());
  }
  if (!options.profileOut.empty())
    if (llvm::Error error =
            profile.write(options.profileOut, session.manifest()))
      return error;
  tellWritten(options, options.profileOut);
  if (!options.calibrate.empty()) {
    Calibration calibration =
        calibrate(compilation, profile.ofStep(session.manifest()));
    calibration.print(options.out());
    if (llvm::Error error = calibration.write(options.calibrate))
      return error;
    tellWritten(options, options.calibrate);
  }
  return writeReports(options, compilation, nullptr, [&](auto &json) {
    json.attributeObject("times", [&] {
      json.attribute("steps", steps);
      json.attribute("best_seconds", jsonNumber(seconds.front()));
      json.attribute("median_seconds", jsonNumber(seconds[seconds.size() / 2]));
      json.attribute("worst_seconds", jsonNumber(seconds.back()));
      json.attribute("processor_seconds", jsonNumber(processor.front()));
      json.attribute("loss", jsonNumber(*loss));
      json.attribute("measured_peak", *peak);
    });
    if (options.profile) {
      writeModules(modules, json);
      profile.writeKernels(compilation, session.manifest(), json);
    }
  });
}
