//===- Evaluation.cpp - metrics on held-out samples -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the "eval" function batch by batch. Where the loss is an attached one
// the host computes it from the output, so that padding of the last batch does
// not count; a loss of the model's own is read, from whole batches alone.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Losses/Loss.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Train/Feeding.h"
#include "ckopt/Train/Validation.h"

using namespace ckopt;
using runtime::TensorRole;

/// The evaluation function, or null.
static const runtime::FunctionInfo *findEval(const Session &session) {
  for (const runtime::FunctionInfo &function : session.manifest().functions)
    if (function.name == "eval")
      return &function;
  return nullptr;
}

llvm::Error ckopt::checkEvaluates(const Session &session) {
  if (findEval(session))
    return llvm::Error::success();
  return makeError(ExitInfeasible,
                   "the step was compiled without its evaluation, of which no "
                   "plan fits the budget: compile it with more (" +
                       Setting("memory-budget") + ")");
}

/// Which of the fields is the target of the attached loss; none: numFields().
static llvm::Expected<size_t> findTargetField(const Session &session,
                                              const Feeder &feeder,
                                              const StepData &options) {
  for (size_t field = 0; field < feeder.numFields(); ++field) {
    const std::string &name = feeder.spec(field).name;
    auto index = session.find(name);
    if (!index)
      return index.takeError();
    if (session.infoOf(*index).role == TensorRole::Target &&
        (options.targetOutputs.empty() || options.targetOutputs.count(name)))
      return field;
  }
  return feeder.numFields();
}

/// The evaluation's output of this role, and, if given, this name; or -1.
static int32_t findOutput(const Session &session,
                          const runtime::FunctionInfo &eval, TensorRole role,
                          llvm::StringRef name = "") {
  for (int32_t index : eval.outputs) {
    const runtime::TensorInfo &info = session.infoOf(index);
    if (info.role == role && (name.empty() || info.name == name))
      return index;
  }
  return -1;
}

/// What the host reads to compare scores with targets: these, or the losses of
/// labels and their ranks.
struct Compared {
  int32_t scores = -1, losses = -1, ranks = -1;
  bool exist() const { return scores >= 0 || losses >= 0; }
};

/// The host's metrics of one batch: loss and accuracy, or the squared error.
static llvm::Expected<MetricSums>
hostMetrics(Session &session, const Compared &from, const HostTensor &given,
            const FieldSpec &spec, const StepData &options,
            llvm::ArrayRef<uint8_t> mask) {
  auto output = session.read(from.scores >= 0 ? from.scores : from.losses);
  if (!output)
    return output.takeError();
  auto target = given.convertTo(spec.dtype);
  if (!target)
    return target.takeError();
  if (!classifies(options))
    return squaredErrorMetrics(*output, *target, mask);
  auto axis = options.classAxis;
  if (axis && *axis < 0)
    *axis += output->rank();
  int64_t topK = 1;
  for (const Metric &metric : options.metrics)
    topK = std::max(topK, metric.k);
  const IntegerLimits &labels = spec.limits.all;
  auto ignored =
      labels.hasIgnored ? std::optional(labels.ignored) : std::nullopt;
  if (from.scores < 0) {
    auto ranks = session.read(from.ranks);
    if (!ranks)
      return ranks.takeError();
    return rankedMetrics(*output, *ranks, *target, ignored, mask, topK);
  }
  return crossEntropyMetrics(*output, *target, ignored, mask, axis, topK);
}

static bool asksFor(const StepData &options, Metric::Kind kind) {
  return llvm::any_of(options.metrics, [&](const Metric &metric) {
    return metric.kind == kind;
  });
}

/// Without a name any output may have the scores.
static bool isScores(const runtime::TensorInfo &info, llvm::StringRef name) {
  return name.empty() || info.name == name;
}

static bool hasTargetsLike(const Session &session, llvm::StringRef output) {
  for (int64_t index : session.tensors(TensorRole::Output))
    for (int64_t target : session.tensors(TensorRole::Target))
      if (isScores(session.infoOf(index), output) &&
          session.infoOf(index).shape == session.infoOf(target).shape)
        return true;
  return false;
}

/// What a metric lacks, or "".
static std::string whatLacks(const Session &session, const StepData &options,
                             const Metric &metric) {
  using Kind = Metric::Kind;
  bool classified = classifies(options);
  // A loss of the model's own, or several.
  bool own = options.loss == HostLoss::None && options.scores.empty();
  bool single = own && options.targetOutputs.empty();
  if (metric.kind == Kind::Loss ||
      (metric.kind == Kind::Perplexity && (classified || single)))
    return "";
  if (metric.kind == Kind::SquaredError)
    return !classified && !own && hasTargetsLike(session, options.scores)
               ? ""
               : "one output with targets in its shape";
  if (!classified || own)
    return "one output whose targets are labels";
  for (int64_t index : session.tensors(TensorRole::Output)) {
    const runtime::TensorInfo &info = session.infoOf(index);
    if (!isScores(info, options.scores) || info.shape.empty())
      continue;
    int64_t axis = options.classAxis.value_or(-1);
    int64_t classes =
        info.shape[size_t(axis < 0 ? axis + int64_t(info.shape.size()) : axis)];
    if (metric.k > classes)
      return "as many classes, and '" + info.name + "' has " +
             std::to_string(classes);
  }
  // Where scores are no output, labels still say how many there are.
  for (int64_t index : session.tensors(TensorRole::Target))
    if (int64_t classes = session.infoOf(index).limits.all.classes;
        classes && metric.k > classes)
      return "as many classes, and there are " + std::to_string(classes);
  return "";
}

llvm::Error ckopt::checkMetrics(const Session &session,
                                const StepData &options) {
  std::optional<int64_t> k;
  for (const Metric &metric : options.metrics) {
    std::string lacks = whatLacks(session, options, metric);
    if (!lacks.empty())
      return usageError("the metric '" + metric.name() + "' needs " + lacks);
    if (metric.kind != Metric::Kind::TopK)
      continue;
    if (k && *k != metric.k)
      return usageError("top" + llvm::Twine(*k) + " and top" +
                        llvm::Twine(metric.k) + ": one of them at a time");
    k = metric.k;
  }
  return llvm::Error::success();
}

namespace {
/// What an evaluation reads.
struct Evaluator {
  Session &session;
  Feeder feeder;
  const StepData &options;
  Compared compared;
  int32_t loss;
  size_t targetField;
  bool byHost;    ///< the host computes the loss
  bool hostReads; ///< the host looks at the scores

  llvm::Expected<MetricSums> measure(int64_t valid);
};
} // namespace

/// Runs the function on the loaded batch.
llvm::Expected<MetricSums> Evaluator::measure(int64_t valid) {
  if (llvm::Error error = feeder.write())
    return std::move(error);
  if (llvm::Error error = session.run("eval"))
    return std::move(error);
  MetricSums metrics;
  metrics.count = valid;
  if (hostReads && compared.exist() && targetField < feeder.numFields()) {
    std::vector<uint8_t> mask(size_t(feeder.batchSize()), 0);
    std::fill_n(mask.begin(), valid, uint8_t(1));
    auto host = hostMetrics(session, compared, feeder.value(targetField),
                            feeder.spec(targetField), options, mask);
    if (!host)
      return host.takeError();
    metrics = *host;
    if (!byHost && !classifies(options))
      metrics.count = valid; // the loss counts samples, not elements
  }
  if (!byHost) {
    auto value = session.read(loss);
    if (!value)
      return value.takeError();
    metrics.loss = value->getDouble(0) * double(metrics.count);
  }
  return metrics;
}

llvm::Expected<Evaluation> ckopt::evaluate(Session &session,
                                           BatchSource &source,
                                           const StepData &dataOptions) {
  Evaluation result;
  const runtime::FunctionInfo *eval = findEval(session);
  auto feeder = Feeder::create(session, source, dataOptions);
  if (!feeder)
    return feeder.takeError();
  auto targetField = findTargetField(session, *feeder, dataOptions);
  if (!targetField)
    return targetField.takeError();
  if (!eval)
    return checkEvaluates(session);
  auto output = [&](llvm::StringRef name) {
    return findOutput(session, *eval, TensorRole::Output, name);
  };
  Compared compared{-1, output(kLabelLosses), output(kLabelRanks)};
  if (compared.losses < 0)
    compared.scores = output(dataOptions.scores);
  int32_t loss = findOutput(session, *eval, TensorRole::Loss);
  // What the step's own loss is cannot leave padded samples out.
  bool byHost = dataOptions.loss != HostLoss::None;
  if (byHost ? !compared.exist() || *targetField == feeder->numFields()
             : loss < 0)
    return result;
  bool hostReads = byHost || dataOptions.classify ||
                   asksFor(dataOptions, Metric::Kind::SquaredError);
  Evaluator run{session, std::move(*feeder), dataOptions, compared,
                loss,    *targetField,       byHost,      hostReads};
  if (llvm::Error error = source.seek(/*seed=*/0, {}))
    return std::move(error);
  int64_t batch = run.feeder.batchSize(), valid = batch;
  DataPosition at;
  for (int64_t number = 1; valid == batch; ++number, at.position += valid) {
    auto given = run.feeder.load(at);
    if (!given)
      return given.takeError();
    valid = *given;
    if (valid == 0 || (!byHost && valid != batch))
      break;
    // Models that draw random numbers draw others for each batch, the same in
    // every evaluation.
    if (llvm::Error error = session.fill(TensorRole::Step, double(number)))
      return std::move(error);
    auto metrics = run.measure(valid);
    if (!metrics)
      return metrics.takeError();
    result.sums += *metrics;
    result.samples += valid;
  }
  if (!result.sums.count) {
    result.allIgnored = result.samples > 0;
    result.samples = 0;
  }
  return result;
}
