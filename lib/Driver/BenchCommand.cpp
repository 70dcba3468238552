//===- BenchCommand.cpp - the time of a step ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Calibration.h"
#include "Commands.h"
#include "ModuleSums.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <map>

using namespace ckopt;
using runtime::TensorRole;

namespace {
/// Seconds of each kernel call, summed over the steps that were timed.
struct Profile {
  std::vector<double> seconds;
  bool on = false;

  static void add(void *self, int64_t call, double time) {
    auto *profile = static_cast<Profile *>(self);
    if (!profile->on)
      return;
    profile->seconds.resize(
        std::max(profile->seconds.size(), size_t(call) + 1));
    profile->seconds[size_t(call)] += time;
  }
  /// Seconds of each call of the function "step", of one step.
  std::vector<double> ofStep(const runtime::Manifest &manifest,
                             int64_t steps) const;
  void print(const runtime::Manifest &manifest, int64_t steps,
             llvm::raw_ostream &os) const;
  llvm::Error write(llvm::StringRef path, const runtime::Manifest &manifest,
                    int64_t steps) const;
};
} // namespace

std::vector<double> Profile::ofStep(const runtime::Manifest &manifest,
                                    int64_t steps) const {
  std::vector<double> result;
  for (size_t i = 0; i < seconds.size(); ++i)
    if (manifest.functions[size_t(manifest.calls[i].function)].name == "step")
      result.push_back(seconds[i] / double(steps));
  return result;
}

/// One line a kernel symbol, slowest first.
void Profile::print(const runtime::Manifest &manifest, int64_t steps,
                    llvm::raw_ostream &os) const {
  struct Line {
    double seconds = 0;
    int64_t calls = 0;
    std::string what, source;
  };
  std::map<std::string, Line> lines;
  double total = 0;
  for (size_t i = 0; i < seconds.size(); ++i) {
    const runtime::CallInfo &call = manifest.calls[i];
    Line &line = lines[call.kernel];
    line.seconds += seconds[i];
    total += seconds[i];
    line.calls += seconds[i] > 0;
    if (line.source.empty())
      line.source = call.source.substr(0, 60);
    if (call.primitive >= 0)
      line.what =
          runtime::describe(manifest.primitives[size_t(call.primitive)]);
  }
  std::vector<std::pair<std::string, Line>> sorted(lines.begin(), lines.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) {
    return std::pair(-a.second.seconds, a.first) <
           std::pair(-b.second.seconds, b.first);
  });
  TextTable table;
  for (const char *header : {"time a step", "share", "calls"})
    table.addColumn(header, TextTable::Right);
  for (const char *header : {"kernel", "primitive", "first source node"})
    table.addColumn(header);
  for (auto &[kernel, line] : sorted)
    table.addRow({formatSeconds(line.seconds / double(steps)),
                  formatPercent(line.seconds / total),
                  std::to_string(line.calls), kernel, line.what, line.source});
  os << "\n";
  table.print(os);
}

/// A ckopt-profile/1 file (CostProfile.h): the mean time of one call of each
/// kernel. Symbols do not depend on the budget, so it serves every plan.
llvm::Error Profile::write(llvm::StringRef path,
                           const runtime::Manifest &manifest,
                           int64_t steps) const {
  std::map<std::string, std::pair<double, int64_t>> kernels;
  for (size_t i = 0; i < seconds.size(); ++i) {
    auto &[sum, calls] = kernels[manifest.calls[i].kernel];
    sum += seconds[i];
    calls += seconds[i] > 0;
  }
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("format", "ckopt-profile/1");
      json.attributeArray("ops", [&] {
        for (const auto &[kernel, timed] : kernels)
          if (timed.second)
            json.object([&, &kernel = kernel, &timed = timed] {
              json.attribute("op", kernel);
              json.attribute("seconds",
                             jsonNumber(timed.first / double(timed.second) /
                                        double(steps)));
            });
      });
    });
  });
}

llvm::Error ckopt::runBench(DriverOptions &options) {
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  const Compilation &compilation = *planned->compilation;
  Session &session = *planned->session;
  // Without data: small deterministic numbers, labels within the classes.
  for (TensorRole role : {TensorRole::Input, TensorRole::Target})
    for (int64_t index : session.tensors(role)) {
      const runtime::TensorInfo &info = session.info_of(index);
      HostTensor value(info.dtype, info.shape);
      for (int64_t i = 0; i < value.numElements(); ++i)
        value.setDouble(i, isFloat(value.dtype())
                               ? double((i * 37 + 11) % 101) / 50.0 - 1.0
                               : double(i % 2));
      if (llvm::Error error = session.write(index, value))
        return error;
    }
  if (llvm::Error error =
          session.fill(TensorRole::LearningRate, options.train.schedule.base))
    return error;
  Profile profile;
  if (options.profile || !options.profileOut.empty() ||
      !options.calibrate.empty())
    if (auto status =
            ckrt_set_profile(session.handle(), Profile::add, &profile))
      return makeError(ExitInternal, ckrt_last_error() +
                                         (" (" + std::to_string(status) + ")"));
  std::vector<double> seconds;
  int64_t steps = options.steps ? options.steps : 10;
  for (int64_t i = 0; i < options.warmup + steps; ++i) {
    if (llvm::Error error = session.fill(TensorRole::Step, double(i + 1)))
      return error;
    profile.on = i >= options.warmup;
    auto start = std::chrono::steady_clock::now();
    if (llvm::Error error = session.run("step"))
      return error;
    if (i >= options.warmup)
      seconds.push_back(std::chrono::duration<double>(
                            std::chrono::steady_clock::now() - start)
                            .count());
  }
  std::sort(seconds.begin(), seconds.end());
  auto loss = readLoss(session);
  if (!loss)
    return loss.takeError();
  auto peak = session.measuredPeak();
  if (!peak)
    return peak.takeError();
  printPlan(compilation, options.out());
  options.out() << "\nstep: best " << formatSeconds(seconds.front())
                << ", median " << formatSeconds(seconds[seconds.size() / 2])
                << ", worst " << formatSeconds(seconds.back()) << " of "
                << steps << " (predicted "
                << formatSeconds(compilation.summary().figures.seconds)
                << "), loss " << formatNumber(*loss, 6) << ", measured peak "
                << formatBytesExact(*peak) << "\n";
  std::vector<ModuleSum> modules;
  if (options.profile) {
    profile.print(session.manifest(), steps, options.out());
    std::vector<double> times = profile.ofStep(session.manifest(), steps);
    modules = sumByModule(compilation, options.depth, &times);
    printModules(modules, "time a step", options.out());
  }
  if (!options.profileOut.empty())
    if (llvm::Error error =
            profile.write(options.profileOut, session.manifest(), steps))
      return error;
  tellWritten(options, options.profileOut);
  if (!options.calibrate.empty()) {
    Calibration calibration =
        calibrate(compilation, profile.ofStep(session.manifest(), steps));
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
      json.attribute("loss", jsonNumber(*loss));
      json.attribute("measured_peak", *peak);
    });
    if (options.profile)
      writeModules(modules, json);
  });
}
