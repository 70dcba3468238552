//===- LossFlags.cpp - flags of losses ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Settings/Flags.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace ckopt;
using llvm::StringRef;

using namespace ckopt::takers;

/// Weights, as a list ("0.5,1,2") or from a file (text, .npy).
static llvm::Error readNumbers(StringRef flag, StringRef text,
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
      return withContext(array.takeError(), Setting::ofFlag(flag));
    numbers.clear();
    for (int64_t i = 0; i < array->numElements(); ++i)
      numbers.push_back(array->getDouble(i));
  } else if (!isList) {
    auto file = openInputBuffer(text, /*endsWithZero=*/true);
    bool isRead = !llvm::errorToBool(file.takeError());
    if (!isRead || !parse((*file)->getBuffer()))
      return usageError(Setting::ofFlag(flag) + ": '" + text +
                        "' is neither a list of numbers (0.5,1,2) nor a file "
                        "of them (text, .npy)");
  }
  for (double value : numbers)
    if (!(value >= 0) || std::isinf(value))
      return usageError(Setting::ofFlag(flag) +
                        ": weights are numbers from 0 on");
  return llvm::Error::success();
}

void DriverFlags::addLossFlags() {
  table.beginSection("The loss");
  readBy("autodiff");
  StepOptions &step = o.compile.step;
  LossSettings &set = step.lossSettings;
  unsigned training = Stepping | Grad;
  add("loss", "TERMS", training | Run,
      "what is trained: output:NAME, a scalar of the model's own (default: "
      "'loss', or the only one), or a loss attached to an output, KIND or "
      "KIND:NAME; 'A:NAME*1+B:NAME*0.5' adds several. Kinds: " +
          listLossKinds() + " (docs/losses.md)",
      [&step](StringRef text) -> llvm::Error {
        auto terms = parseLoss(text);
        if (!terms)
          return withContext(terms.takeError(), Setting("loss"));
        step.loss = std::move(*terms);
        return llvm::Error::success();
      });
  add("reduction", "HOW", training,
      "of attached losses: mean (default), sum; of kl also batchmean",
      flag::oneOf("reduction", set.reduction));
  add("class-axis", "N", training,
      "dimension of the classes, negative from the end (default: by the shape "
      "of the targets; without data 1, of three the last)",
      [&set](StringRef text) -> llvm::Error {
        int64_t axis = 0;
        if (llvm::Error error =
                flag::number<int64_t>("class-axis", axis, -64, 63)(text))
          return error;
        set.classAxis = axis;
        return llvm::Error::success();
      });
  add("ignore-index", "N", training, "label that does not count (default -100)",
      flag::number<int64_t>("ignore-index", set.ignoreIndex, INT64_MIN));
  add("label-smoothing", "X", training,
      "cross_entropy: share of the uniform distribution in the targets",
      flag::number<double>("label-smoothing", set.labelSmoothing, 0, 1));
  auto weights = [](StringRef name, std::vector<double> &list) {
    return
        [name, &list](StringRef text) { return readNumbers(name, text, list); };
  };
  add("class-weights", "LIST", training,
      "cross_entropy, nll, multi_margin: a weight for each class, 0.5,1,2 or a "
      "file (text, .npy)",
      weights("class-weights", set.classWeights));
  add("pos-weight", "LIST", training,
      "bce_logits: weight of positive targets, one or one for each column",
      weights("pos-weight", set.posWeight));
  add("soft-targets", "", training,
      "cross_entropy: targets are probabilities (data say so themselves)",
      flag::turnOn(set.softTargets));
  add("beta", "X", training, "smooth_l1: where it becomes linear (default 1)",
      flag::number<double>("beta", set.beta, 0));
  add("delta", "X", training, "huber: where it becomes linear (default 1)",
      flag::number<double>("delta", set.delta, 0,
                           std::numeric_limits<double>::max()));
  add("margin", "X", training,
      "hinge, hinge_embedding, multi_margin (default 1)",
      flag::number<double>("margin", set.margin));
  readBy("");
}
