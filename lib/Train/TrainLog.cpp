//===- TrainLog.cpp - a training run, line by line ------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "TrainLog.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace ckopt;

static constexpr const char *columns =
    "step,epoch,loss,learning_rate,seconds,validation_loss,"
    "validation_accuracy";

/// Lines that follow must have the columns of those before.
static llvm::Error checkHeader(const std::string &path,
                               llvm::StringRef header) {
  auto file = readInput(path, /*endsWithZero=*/true);
  if (!file)
    return file.takeError();
  llvm::StringRef first = (*file)->getBuffer().split('\n').first.rtrim('\r');
  if (first == header)
    return llvm::Error::success();
  return inputError(path + ": the log has the columns '" + first +
                    "', this run's are '" + header + "'; give the " +
                    Setting("metrics") +
                    " that it was begun with, or another " + Setting("log"));
}

/// The step that a line of a log is of; nothing: it is of none.
static std::optional<int64_t> stepOf(llvm::StringRef line) {
  int64_t step = 0;
  (void)line.consume_front("{\"step\":");
  if (line.consumeInteger(10, step) || !line.starts_with(","))
    return std::nullopt;
  return step;
}

/// Takes away lines of steps behind `after`, and what a crash left of one.
static llvm::Error cutLines(const std::string &path, int64_t after) {
  auto file = readInput(path);
  if (!file)
    return file.takeError();
  llvm::StringRef text = (*file)->getBuffer(), rest = text;
  std::string kept;
  while (rest.contains('\n')) {
    size_t end = rest.find('\n') + 1;
    llvm::StringRef line = rest.take_front(end);
    rest = rest.drop_front(end);
    if (std::optional<int64_t> step = stepOf(line); !step || *step <= after)
      kept += line;
  }
  return kept == text ? llvm::Error::success()
                      : writeFileAtomically(path, kept);
}

llvm::Expected<std::unique_ptr<TrainLog>>
TrainLog::open(const std::string &path, llvm::ArrayRef<Metric> metrics,
               bool scales, std::optional<int64_t> after) {
  if (path.empty())
    return nullptr;
  std::unique_ptr<TrainLog> log(new TrainLog);
  log->path = path;
  std::string header = columns;
  for (const Metric &metric : metrics)
    if (metric.kind != Metric::Kind::Loss &&
        metric.kind != Metric::Kind::Accuracy) {
      log->metrics.push_back(metric);
      header += ",validation_" + metric.name();
    }
  log->scales = scales;
  if (scales)
    header += ",loss_scale,skipped";
  log->isCsv = llvm::StringRef(path).ends_with(".csv");
  if (!log->isCsv && !llvm::StringRef(path).ends_with(".jsonl"))
    return usageError(Setting("log") + " must end in .csv or .jsonl, got '" +
                      path + "'");
  uint64_t size = 0;
  bool goesOn = after && !llvm::sys::fs::file_size(path, size) && size > 0;
  if (goesOn && log->isCsv)
    if (llvm::Error error = checkHeader(path, header))
      return std::move(error);
  if (goesOn)
    if (llvm::Error error = cutLines(path, *after))
      return std::move(error);
  std::error_code code;
  log->stream = std::make_unique<llvm::raw_fd_ostream>(
      path, code,
      goesOn ? llvm::sys::fs::CD_OpenAlways : llvm::sys::fs::CD_CreateAlways,
      llvm::sys::fs::FA_Write,
      goesOn ? llvm::sys::fs::OF_Append : llvm::sys::fs::OF_None);
  if (code)
    return ioError("cannot write '" + path + "': " + code.message());
  if (log->isCsv && !goesOn)
    if (llvm::Error error = log->write(header + "\n"))
      return std::move(error);
  return std::move(log);
}

llvm::Error TrainLog::write(const std::string &line) {
  *stream << line;
  stream->flush();
  if (!stream->has_error())
    return llvm::Error::success();
  std::string problem = stream->error().message();
  stream->clear_error();
  return ioError("cannot write '" + path + "': " + problem);
}

/// As many digits as tell any two numbers apart.
static std::string exactly(double value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.17g", value);
  return text;
}

llvm::Error TrainLog::add(const StepReport &step) {
  std::string line;
  llvm::raw_string_ostream os(line);
  const std::optional<MetricSums> &found = step.validation;
  bool hasLoss = found && found->count > 0;
  bool hasAccuracy = hasLoss && step.classified;
  if (isCsv) {
    os << step.step << "," << step.position.epoch + 1 << ","
       << exactly(step.loss) << "," << exactly(step.learningRate) << ","
       << exactly(step.seconds) << ","
       << (hasLoss ? exactly(found->meanLoss()) : "") << ","
       << (hasAccuracy ? exactly(found->accuracy()) : "");
    for (const Metric &metric : metrics)
      os << "," << (hasLoss ? exactly(metric.of(*found)) : "");
    if (scales)
      os << "," << exactly(step.lossScale->scale) << "," << int(step.skipped);
    os << "\n";
    return write(line);
  }
  llvm::json::OStream json(os);
  json.object([&] {
    json.attribute("step", step.step);
    json.attribute("epoch", step.position.epoch + 1);
    json.attribute("loss", jsonNumber(step.loss));
    json.attribute("learning_rate", jsonNumber(step.learningRate));
    json.attribute("seconds", jsonNumber(step.seconds));
    if (scales) {
      json.attribute("loss_scale", jsonNumber(step.lossScale->scale));
      json.attribute("skipped", step.skipped);
    }
    if (hasLoss)
      json.attribute("validation_loss", jsonNumber(found->meanLoss()));
    if (hasAccuracy)
      json.attribute("validation_accuracy", jsonNumber(found->accuracy()));
    if (hasLoss)
      for (const Metric &metric : metrics)
        json.attribute("validation_" + metric.name(),
                       jsonNumber(metric.of(*found)));
  });
  os << "\n";
  return write(line);
}
