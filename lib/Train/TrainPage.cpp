//===- TrainPage.cpp - a training run as one page -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TrainPage.h"
#include "ckopt/Compiler/Reports.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/RunCurve.h"
#include "ckopt/Train/Progress.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using llvm::StringRef;

static constexpr const char *pageHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<style>
body { font-family: Inter, Helvetica, Arial, "DejaVu Sans", sans-serif;
       color: #1f2933; max-width: 1040px; margin: 2em auto; }
table { border-collapse: collapse; margin: 1em 0; }
td { padding: 0.15em 1.5em 0.15em 0; vertical-align: top; }
td:first-child { color: #66717d; }
pre { background: #f6f8fa; padding: 1em; overflow-x: auto; }
svg { max-width: 100%; height: auto; }
</style>
)";

static std::string escaped(StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  llvm::printHTMLEscaped(text, os);
  return result;
}

namespace {
class PageWriter {
public:
  PageWriter(const Compilation &compilation, const DataOptions &data,
             const TrainOptions &options, const TrainResult &result,
             llvm::raw_ostream &os)
      : compilation(compilation), data(data), options(options), result(result),
        os(os) {}
  void write();

private:
  void row(StringRef name, StringRef value) {
    os << "<tr><td>" << escaped(name) << "</td><td>" << escaped(value)
       << "</td></tr>\n";
  }
  void writeOutcome();
  void writeLoss();
  void writeMetrics();
  void writePlan();
  void writeOptions();
  void writeTimes();

  const Compilation &compilation;
  const DataOptions &data;
  const TrainOptions &options;
  const TrainResult &result;
  llvm::raw_ostream &os;
};
} // namespace

void PageWriter::writeOutcome() {
  os << "<h1>" << escaped(compilation.given().title()) << "</h1>\n<table>\n";
  row("steps", std::to_string(result.steps));
  if (!result.losses.empty())
    row("loss", formatNumber(result.firstLoss, 6) + " → " +
                    formatNumber(result.finalLoss, 6));
  if (result.evaluated)
    row("validation at the end",
        "loss " + formatNumber(result.evaluation.meanLoss(), 6) +
            describeMetrics(result.evaluation, result.classified,
                            data.metrics) +
            " (" + std::to_string(result.evaluated) + " samples)");
  if (const auto &best = result.best)
    row("best", best->metric + " " + options.bestBy.format(best->value) +
                    ", after step " + std::to_string(best->step));
  if (result.stoppedEarly)
    row("stopped early", "the last " + std::to_string(result.best->since) +
                             " evaluations were not better");
  if (result.divergedAt)
    row("diverged", "after step " + std::to_string(result.divergedAt));
  row("memory", formatBytesExact(result.measuredPeak) +
                    " measured peak; beside it, the data: " +
                    formatBytesExact(result.dataBytes));
  if (!result.classes.empty())
    row("classes", llvm::join(result.classes, ", "));
  os << "</table>\n";
}

void PageWriter::writeLoss() {
  RunCurve curve;
  curve.title = "Loss";
  RunSeries &training = curve.series.emplace_back();
  training.name = "training";
  int64_t before = result.steps - int64_t(result.losses.size());
  for (size_t i = 0; i < result.losses.size(); ++i)
    training.points.push_back({before + int64_t(i) + 1, result.losses[i]});
  if (before > 0)
    curve.subtitle =
        "from step " + std::to_string(before + 1) + " on: a resumed run";
  RunSeries &validation = curve.series.emplace_back();
  validation.name = "validation";
  validation.dots = true;
  for (const ValidationPoint &point : result.validations)
    if (point.sums.count)
      validation.points.push_back({point.step, point.sums.meanLoss()});
  os << "<h2>Training</h2>\n" << runCurveSvg(curve);
}

void PageWriter::writeMetrics() {
  std::vector<Metric> metrics = data.metrics;
  Metric accuracy{Metric::Kind::Accuracy};
  if (result.classified && !llvm::is_contained(metrics, accuracy))
    metrics.insert(metrics.begin(), accuracy);
  for (const Metric &metric : metrics) {
    RunCurve curve;
    curve.title = "Validation: " + metric.name();
    curve.percent = metric.isShare();
    RunSeries &series = curve.series.emplace_back();
    series.name = metric.name();
    series.dots = true;
    for (const ValidationPoint &point : result.validations)
      series.points.push_back({point.step, metric.of(point.sums)});
    if (!series.points.empty())
      os << runCurveSvg(curve);
  }
}

/// The line of a plan's table that a clock gives.
static constexpr StringRef planTime = "time to plan";

void PageWriter::writePlan() {
  os << "<h2>Memory</h2>\n"
     << timelineSvg(memoryTimeline(compilation)) << "<pre>";
  std::string table;
  llvm::raw_string_ostream stream(table);
  printPlan(compilation, stream);
  llvm::SmallVector<StringRef> lines;
  StringRef(table).rtrim().split(lines, '\n');
  for (StringRef line : lines)
    if (!line.starts_with(planTime))
      os << escaped(line) << "\n";
  os << "</pre>\n";
}

void PageWriter::writeOptions() {
  os << "<h2>Options</h2>\n<table>\n";
  for (const auto &[name, value] : options.identity)
    if (!value.empty())
      row(name, value);
  os << "</table>\n";
}

void PageWriter::writeTimes() {
  os << "<section id=\"times\">\n<h2>Times</h2>\n<table>\n";
  row("step (median, without feeding)", formatSeconds(result.stepSeconds));
  row(planTime, formatSeconds(compilation.summary().planSeconds));
  os << "</table>\n</section>\n";
}

void PageWriter::write() {
  os << pageHead << "<title>" << escaped(compilation.given().title())
     << "</title>\n</head>\n<body>\n";
  writeOutcome();
  writeLoss();
  writeMetrics();
  writePlan();
  writeOptions();
  writeTimes();
  os << "</body>\n</html>\n";
}

std::string ckopt::trainPage(const Compilation &compilation,
                             const DataOptions &data,
                             const TrainOptions &options,
                             const TrainResult &result) {
  std::string text;
  llvm::raw_string_ostream os(text);
  PageWriter(compilation, data, options, result, os).write();
  return text;
}
