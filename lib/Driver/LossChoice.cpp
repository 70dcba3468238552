//===- LossChoice.cpp - what is trained: the loss of a run ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Settles, after import and before planning, what --loss left open: which
// outputs, whether targets are labels or probabilities, where the classes lie.
// The data's arrays decide where there are data; else documented rules do, with
// a remark where another reading was possible (docs/losses.md).
//
//===----------------------------------------------------------------------===//
#include "LossChoice.h"
#include "Commands.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace ckopt;
using namespace ckopt::autodiff;
using llvm::StringRef;

namespace {
/// What is known of one attached loss.
struct Attached {
  const LossTerm *term;
  const LossKind *kind;
  std::vector<int64_t> shape; ///< of its output
};

class LossChooser {
public:
  LossChooser(Compilation &compilation, const DataOptions &data)
      : compilation(compilation), data(data), step(compilation.options().step),
        forward(
            compilation.module().lookupSymbol<mlir::func::FuncOp>("forward")) {}

  llvm::Error run();

private:
  llvm::Error settleClasses(llvm::ArrayRef<Attached> losses);
  llvm::Expected<int64_t> chooseAxis(const Attached &loss,
                                     const HostTensor *targets);
  void settleEvaluation(llvm::ArrayRef<Attached> losses);

  Compilation &compilation;
  const DataOptions &data;
  StepOptions &step;
  mlir::func::FuncOp forward;
};
} // namespace

/// The axis of the classes, from the targets where they are known.
llvm::Expected<int64_t> LossChooser::chooseAxis(const Attached &loss,
                                                const HostTensor *targets) {
  if (targets && targets->rank() > 0 && isInteger(targets->dtype())) {
    std::vector<int64_t> batch = targets->shape().vec();
    if (!loss.shape.empty())
      batch[0] = loss.shape[0];
    auto axis = resolveClassAxis(loss.shape, batch);
    if (axis)
      return axis;
    return withContext(axis.takeError(), "--loss=" + loss.term->kind);
  }
  auto axis = defaultClassAxis(loss.shape, step.lossSettings.softTargets);
  if (axis && loss.shape.size() == 3 && !targets)
    compilation.remark("classes of '" + loss.term->output + "' " +
                       shapeString(loss.shape) +
                       " along its last axis, for want of data to look at "
                       "(--class-axis=1 for [N, C, T])");
  return axis;
}

/// One axis for all terms, counted from whichever end they agree on.
llvm::Error LossChooser::settleClasses(llvm::ArrayRef<Attached> losses) {
  LossSettings &settings = step.lossSettings;
  std::optional<int64_t> front, back;
  bool frontAgrees = true, backAgrees = true, any = false;
  for (const Attached &loss : losses) {
    if (!loss.kind->labels)
      continue;
    std::optional<HostTensor> targets;
    if (!data.path.empty()) {
      auto array = targetArrayOf(data, loss.term->output);
      if (!array)
        return array.takeError();
      // What cannot be read is reported, with all else, when data are loaded.
      if (auto reader = NpzReader::open(data.path)) {
        auto read = reader->read(*array);
        if (read)
          targets = std::move(*read);
        else
          llvm::consumeError(read.takeError());
      } else {
        llvm::consumeError(reader.takeError());
      }
    }
    const HostTensor *known = targets ? &*targets : nullptr;
    if (known && (loss.kind->settings & LossKind::SoftTargets) &&
        isFloat(known->dtype()) &&
        known->rank() == int64_t(loss.shape.size()) &&
        known->shape().drop_front() ==
            llvm::ArrayRef<int64_t>(loss.shape).drop_front()) {
      if (!settings.softTargets)
        compilation.remark("targets of '" + loss.term->output +
                           "' are probabilities: they are floats in its shape");
      settings.softTargets = true;
    }
    if (settings.classAxis)
      continue;
    auto axis = chooseAxis(loss, known);
    if (!axis)
      return axis.takeError();
    int64_t last = *axis - int64_t(loss.shape.size());
    frontAgrees &= !any || front == *axis;
    backAgrees &= !any || back == last;
    front = *axis;
    back = last;
    any = true;
  }
  if (!any)
    return llvm::Error::success();
  if (!frontAgrees && !backAgrees)
    return inputError("the losses have their classes along different axes, "
                      "and one --class-axis is for all of them");
  settings.classAxis = frontAgrees ? front : back;
  return llvm::Error::success();
}

/// The host computes the two plain losses itself, over samples of any number;
/// all others it takes from the evaluation function, whole batches alone.
void LossChooser::settleEvaluation(llvm::ArrayRef<Attached> losses) {
  const LossSettings &settings = step.lossSettings;
  bool single = losses.size() == 1 && step.loss.size() == 1 &&
                losses.front().term->weight == 1;
  bool plain = single && settings.reduction == "mean" &&
               !settings.softTargets && settings.labelSmoothing == 0 &&
               settings.classWeights.empty() &&
               (losses.front().term->kind == "cross_entropy" ||
                losses.front().term->kind == "mse");
  step.evaluateLoss = !plain;
}

llvm::Error LossChooser::run() {
  if (!forward || step.forwardOnly ||
      !compilation.options().phases.from.empty())
    return llvm::Error::success();
  if (step.loss.empty())
    step.loss.emplace_back().kind = kOutputTerm.str();
  std::string text;
  if (llvm::Error error = resolveLoss(forward, step.loss, text))
    return error;
  if (!text.empty())
    compilation.remark(text);
  std::vector<Attached> losses;
  for (const LossTerm &term : step.loss) {
    if (!term.attaches())
      continue;
    Attached &loss = losses.emplace_back();
    loss.term = &term;
    loss.kind = findLossKind(term.kind);
    for (unsigned i = 0; i < forward.getNumResults(); ++i)
      if (resultName(forward, i) == term.output)
        loss.shape =
            llvm::cast<mlir::RankedTensorType>(forward.getResultTypes()[i])
                .getShape()
                .vec();
  }
  if (losses.size() > 1 && !data.path.empty() &&
      data.targets.find('=') == std::string::npos)
    return usageError("several losses take targets: give --targets=" +
                      losses[0].term->output + "=ARRAY," +
                      losses[1].term->output + "=ARRAY");
  if (llvm::Error error = settleClasses(losses))
    return error;
  settleEvaluation(losses);
  return llvm::Error::success();
}

llvm::Error ckopt::settleLoss(Compilation &compilation,
                              const DataOptions &data) {
  return LossChooser(compilation, data).run();
}

void ckopt::describeTargets(const Compilation &compilation, DataOptions &data) {
  const StepOptions &step = compilation.options().step;
  data.labels = compilation.labels();
  data.signs = compilation.signs();
  data.tableRows = compilation.tableRows();
  data.targetOutputs = compilation.targetOutputs();
  data.classAxis = step.lossSettings.classAxis;
  data.ignoreIndex = step.lossSettings.ignoreIndex;
  data.loss.clear();
  if (step.loss.size() != 1 || !step.loss.front().attaches())
    return;
  const LossTerm &term = step.loss.front();
  data.scores = term.output;
  data.classify =
      findLossKind(term.kind)->labels && !step.lossSettings.softTargets;
  if (!step.evaluateLoss)
    data.loss = term.kind;
}

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

llvm::Error ckopt::readNumbers(StringRef flag, StringRef text,
                               std::vector<double> &numbers) {
  auto parse = [&](StringRef list) {
    numbers.clear();
    llvm::SmallVector<StringRef> parts;
    llvm::SplitString(list, parts, ", \t\r\n");
    for (StringRef part : parts)
      if (double value; flag::parseReal(part, value))
        numbers.push_back(value);
      else
        return false;
    return !numbers.empty();
  };
  bool isList = parse(text);
  if (!isList && text.ends_with(".npy")) {
    auto array = readNpy(text);
    if (!array)
      return withContext(array.takeError(), "--" + flag);
    numbers.clear();
    for (int64_t i = 0; i < array->numElements(); ++i)
      numbers.push_back(array->getDouble(i));
  } else if (!isList) {
    auto file = llvm::MemoryBuffer::getFile(text);
    if (!file || !parse((*file)->getBuffer()))
      return usageError("--" + flag + ": '" + text +
                        "' is neither a list of numbers (0.5,1,2) nor a file "
                        "of them (text, .npy)");
  }
  for (double value : numbers)
    if (!(value >= 0) || std::isinf(value))
      return usageError("--" + flag + ": weights are numbers from 0 on");
  return llvm::Error::success();
}

llvm::Error ckopt::checkLossFlags(const DriverOptions &options,
                                  const std::set<std::string> &given) {
  static const std::pair<StringRef, unsigned> settings[] = {
      {"class-axis", LossKind::ClassAxis},
      {"ignore-index", LossKind::IgnoreIndex},
      {"label-smoothing", LossKind::LabelSmoothing},
      {"class-weights", LossKind::ClassWeights},
      {"pos-weight", LossKind::PosWeight},
      {"beta", LossKind::Beta},
      {"delta", LossKind::Delta},
      {"margin", LossKind::Margin},
      {"soft-targets", LossKind::SoftTargets},
      {"reduction", ~0u},
  };
  const std::vector<LossTerm> &terms = options.compile.step.loss;
  const LossSettings &set = options.compile.step.lossSettings;
  for (auto [flag, setting] : settings) {
    if (!given.count(flag.str()))
      continue;
    bool read = false;
    for (const LossTerm &term : terms)
      read |= term.attaches() &&
              (setting == ~0u || findLossKind(term.kind)->settings & setting);
    if (read)
      continue;
    std::string takers;
    for (const LossKind &kind : lossKinds())
      if (setting != ~0u && kind.settings & setting)
        takers += (takers.empty() ? "" : ", ") + kind.name.str();
    return usageError("--" + flag +
                      " is for losses that are attached (--loss=" +
                      (takers.empty() ? "KIND" : takers) +
                      "); a loss that the model holds has its own");
  }
  if (set.softTargets && given.count("ignore-index"))
    return usageError("--ignore-index is for labels, and --soft-targets takes "
                      "none: leave out one of the two");
  if (set.reduction == "batchmean")
    for (const LossTerm &term : terms)
      if (term.attaches() &&
          !(findLossKind(term.kind)->settings & LossKind::BatchMean))
        return usageError("--reduction=batchmean is for --loss=kl");
  return llvm::Error::success();
}
