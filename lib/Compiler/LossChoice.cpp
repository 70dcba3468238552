//===- LossChoice.cpp - what is trained: the loss of a run ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Decides, after import and before planning, what --loss left open: which
// outputs, whether targets are labels or probabilities, where the classes lie.
// The data's arrays decide if there are data; else documented rules do, with a
// remark if another choice was possible (docs/losses.md).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Support/Error.h"

using namespace ckopt;
using namespace ckopt::autodiff;
using llvm::StringRef;

namespace {
/// Facts about one attached loss.
struct Attached {
  const LossTerm *term;
  const LossKind *kind;
  std::vector<int64_t> shape; ///< shape of its output
};

/// Type and shape of an array of targets, with all samples or one batch.
struct TargetType {
  DType dtype = DType::F32;
  std::vector<int64_t> shape;
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
  llvm::Expected<std::optional<TargetType>> findTargets(const Attached &loss,
                                                        bool alone) const;
  llvm::Expected<int64_t> chooseAxis(const Attached &loss,
                                     const TargetType *targets);
  void settleEvaluation(llvm::ArrayRef<Attached> losses);

  Compilation &compilation;
  const DataOptions &data;
  StepOptions &step;
  mlir::func::FuncOp forward;
};
} // namespace

/// The targets of a loss as the data have them, where there are data. What
/// cannot be read is reported, with all else, when data are loaded.
llvm::Expected<std::optional<TargetType>>
LossChooser::findTargets(const Attached &loss, bool alone) const {
  for (const SourceField &field : data.fields)
    if (field.name == (alone ? "target" : "target." + loss.term->output)) {
      TargetType type{field.dtype, field.shape};
      type.shape.insert(type.shape.begin(), 1);
      return type;
    }
  if (!data.images.empty())
    return TargetType{DType::I64, {1}};
  if (!data.namesFiles())
    return std::nullopt;
  auto array = targetArrayOf(data, loss.term->output);
  if (!array)
    return array.takeError();
  auto files = openFiles(data);
  if (!files) {
    llvm::consumeError(files.takeError());
    return std::nullopt;
  }
  auto read = files->front().read(*array);
  if (!read) {
    llvm::consumeError(read.takeError());
    return std::nullopt;
  }
  return TargetType{read->dtype, read->shape};
}

/// The axis of the classes, from the targets where they are known.
llvm::Expected<int64_t> LossChooser::chooseAxis(const Attached &loss,
                                                const TargetType *targets) {
  if (targets && !targets->shape.empty() && isInteger(targets->dtype)) {
    std::vector<int64_t> batch = targets->shape;
    if (!loss.shape.empty())
      batch[0] = loss.shape[0];
    auto axis = resolveClassAxis(loss.shape, batch);
    if (axis)
      return axis;
    return withContext(axis.takeError(), Setting("loss", loss.term->kind));
  }
  auto axis = defaultClassAxis(loss.shape, step.lossSettings.softTargets);
  if (axis && loss.shape.size() == 3 && !targets)
    compilation.remark("classes of '" + loss.term->output + "' " +
                       shapeString(loss.shape) +
                       " along its last axis, for want of data to look at (" +
                       Setting("class-axis", "1") + " for [N, C, T])");
  return axis;
}

/// Finds one axis for all terms, counted from the end on which they agree.
llvm::Error LossChooser::settleClasses(llvm::ArrayRef<Attached> losses) {
  LossSettings &settings = step.lossSettings;
  std::optional<int64_t> front, back;
  bool frontAgrees = true, backAgrees = true, any = false;
  for (const Attached &loss : losses) {
    if (!loss.kind->labels)
      continue;
    auto targets = findTargets(loss, losses.size() == 1);
    if (!targets)
      return targets.takeError();
    const TargetType *known = *targets ? &**targets : nullptr;
    if (known && (loss.kind->settings & LossKind::SoftTargets) &&
        isFloat(known->dtype) && !loss.shape.empty() &&
        known->shape.size() == loss.shape.size() &&
        llvm::ArrayRef<int64_t>(known->shape).drop_front() ==
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
    return inputError(
        "the losses have their classes along different axes, and one " +
        Setting("class-axis") + " is for all of them");
  settings.classAxis = frontAgrees ? front : back;
  return llvm::Error::success();
}

/// Decides who evaluates. The host computes the two plain losses itself, over
/// any number of samples; for all others it runs the evaluation function, which
/// needs whole batches.
void LossChooser::settleEvaluation(llvm::ArrayRef<Attached> losses) {
  const LossSettings &settings = step.lossSettings;
  bool single = losses.size() == 1 && step.loss.size() == 1 &&
                losses.front().term->weight == 1;
  bool plain = single && settings.reduction == Reduction::Mean &&
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
  MessageText text;
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
  if (losses.size() > 1 && data.namesFiles() &&
      data.targets.find('=') == std::string::npos)
    return usageError("several losses take targets: give " +
                      Setting("targets", losses[0].term->output + "=ARRAY," +
                                             losses[1].term->output +
                                             "=ARRAY"));
  if (llvm::Error error = settleClasses(losses))
    return error;
  settleEvaluation(losses);
  return llvm::Error::success();
}

llvm::Error ckopt::settleLoss(Compilation &compilation,
                              const DataOptions &data) {
  return LossChooser(compilation, data).run();
}

StepData ckopt::describeData(const Compilation &compilation, DataOptions from) {
  StepData data;
  static_cast<DataOptions &>(data) = std::move(from);
  const StepOptions &step = compilation.options().step;
  data.warn = [messages =
                   compilation.options().messages](const std::string &text) {
    messages({Message::Severity::Warning, "", text});
  };
  data.targetOutputs = compilation.targetOutputs();
  data.classAxis = step.lossSettings.classAxis;
  if (step.loss.size() != 1 || !step.loss.front().attaches())
    return data;
  const LossTerm &term = step.loss.front();
  data.scores = term.output;
  data.classify =
      findLossKind(term.kind)->labels && !step.lossSettings.softTargets;
  if (!step.evaluateLoss)
    data.loss = *parseChoice<HostLoss>(term.kind); // settleEvaluation()
  return data;
}
