//===- LossTerms.cpp - which outputs a loss is made of --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reads the loss terms that the user wrote, and chooses the model outputs that
// they apply to. An output is chosen by name, or because only one is possible:
// the rules never guess between two.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Shape.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Support/ClassAxis.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/FlagTable.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace ckopt;

using llvm::ArrayRef;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

/// Returns whether `text` begins with a term: a loss, then its output, its
/// weight, the next term or nothing.
static bool beginsTerm(StringRef text) {
  StringRef kind = text.ltrim().take_until(
      [](char c) { return c == ':' || c == '*' || c == '+' || c == ' '; });
  return kind == kOutputTerm || findLossKind(kind);
}

static llvm::Expected<LossTerm> parseTerm(StringRef text) {
  LossTerm term;
  StringRef rest = text.trim();
  // A star that no number follows belongs to the output's name.
  if (auto [name, weight] = rest.rsplit('*');
      name.size() != rest.size() && flag::parseReal(weight.trim(), term.weight))
    rest = name.rtrim();
  auto [kind, output] = rest.split(':');
  term.kind = kind.trim().str();
  term.output = output.trim().str();
  if (term.kind != kOutputTerm && !findLossKind(term.kind))
    return usageError("unknown loss '" + term.kind + "'; expected " +
                      listLossKinds() +
                      ", or output:NAME, a scalar output of the model itself");
  if (rest.contains(':') && term.output.empty())
    return usageError("'" + text.trim() + "' names no output behind the colon");
  return term;
}

llvm::Expected<std::vector<LossTerm>> ckopt::parseLoss(StringRef text) {
  std::vector<LossTerm> terms;
  StringRef rest = text;
  while (true) {
    size_t end = rest.find('+');
    while (end != StringRef::npos && !beginsTerm(rest.drop_front(end + 1)))
      end = rest.find('+', end + 1);
    auto term = parseTerm(rest.take_front(end));
    if (!term)
      return term.takeError();
    terms.push_back(std::move(*term));
    if (end == StringRef::npos)
      return terms;
    rest = rest.drop_front(end + 1);
  }
}

/// Prints the fewest digits that give the same number when read back.
static std::string shortest(double value) {
  for (int digits = 1; digits < 17; ++digits) {
    double read;
    std::string text = formatNumber(value, digits);
    if (flag::parseReal(text, read) && read == value)
      return text;
  }
  return formatNumber(value, 17);
}

std::string ckopt::formatLoss(ArrayRef<LossTerm> terms) {
  std::string text;
  for (const LossTerm &term : terms) {
    text += (text.empty() ? "" : "+") + term.kind;
    if (!term.output.empty())
      text += ":" + term.output;
    if (term.weight != 1)
      text += "*" + shortest(term.weight);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Outputs
//===----------------------------------------------------------------------===//

namespace {
struct Output {
  std::string name;
  RankedTensorType type; ///< null: not a tensor
  bool isFloat = false;
  bool isOne = false; ///< a single element
  /// A single element that is not a prediction for a single sample.
  bool isScalar = false;
  bool fromLoss = false; ///< a loss operator made it
};
} // namespace

/// Returns the leading dimension of the first data input that has one.
static int64_t batchOf(func::FuncOp function) {
  for (unsigned i = 0; i < function.getNumArguments(); ++i) {
    auto type = dyn_cast<RankedTensorType>(function.getArgumentTypes()[i]);
    if (argumentRole(function, i) == roles::kInput && type && type.getRank())
      return type.getDimSize(0);
  }
  return 0;
}

static std::vector<Output> listOutputs(func::FuncOp function) {
  std::vector<Output> outputs;
  int64_t batch = batchOf(function);
  for (unsigned i = 0; i < function.getNumResults(); ++i) {
    if (function.getResultAttr(i, attrs::kUpdates))
      continue;
    Output &output = outputs.emplace_back();
    output.name = resultName(function, i);
    output.type = dyn_cast<RankedTensorType>(function.getResultTypes()[i]);
    auto role = function.getResultAttrOfType<StringAttr>(i, attrs::kRole);
    output.fromLoss = role && role.getValue() == "loss";
    output.isFloat =
        output.type && isa<FloatType>(output.type.getElementType());
    output.isOne = output.isFloat && output.type.getNumElements() == 1;
    output.isScalar =
        output.isOne && (output.type.getRank() == 0 || batch != 1 ||
                         output.name == "loss" || output.fromLoss);
  }
  return outputs;
}

static std::string typeText(const Output &output) {
  if (!output.type)
    return "no tensor";
  std::string text;
  llvm::raw_string_ostream os(text);
  os << output.type.getElementType();
  return text + " " + shapeString(output.type.getShape());
}

static std::string listNames(ArrayRef<const Output *> outputs,
                             bool types = false) {
  std::string text;
  for (const Output *output : outputs)
    text += (text.empty() ? "'" : ", '") + output->name + "'" +
            (types ? " " + typeText(*output) : "");
  return text.empty() ? "none" : text;
}

static std::vector<const Output *> pointers(ArrayRef<Output> outputs) {
  std::vector<const Output *> result;
  for (const Output &output : outputs)
    result.push_back(&output);
  return result;
}

static llvm::Expected<const Output *> findOutput(ArrayRef<Output> outputs,
                                                 StringRef name) {
  for (const Output &output : outputs)
    if (output.name == name)
      return &output;
  return inputError("no output is named '" + name + "'; outputs are " +
                    listNames(pointers(outputs)));
}

/// Chooses the scalar output for a term that names none.
static llvm::Expected<const Output *> chooseScalar(ArrayRef<Output> outputs) {
  std::vector<const Output *> scalars, fromLoss;
  for (const Output &output : outputs) {
    if (!output.isScalar)
      continue;
    if (output.name == "loss")
      return &output;
    scalars.push_back(&output);
    if (output.fromLoss)
      fromLoss.push_back(&output);
  }
  if (fromLoss.size() == 1)
    return fromLoss.front();
  if (scalars.size() == 1)
    return scalars.front();
  if (scalars.empty())
    return usageError(
        "the model holds no loss: that would be an output of one floating-point"
        " number, and its outputs are " +
        listNames(pointers(outputs), /*types=*/true) +
        "; attach a loss to an output, as " + Setting("loss", "cross_entropy") +
        " or " + Setting("loss", "mse:NAME"));
  return usageError(
      "several outputs could be the loss: " + listNames(scalars) +
      "; say which (" + Setting("loss", "output:" + scalars[0]->name) +
      "), or how they add up (" +
      Setting("loss", "'output:" + scalars[0]->name +
                          "*1+output:" + scalars[1]->name + "*0.5'") +
      ")");
}

static llvm::Expected<const Output *> chooseScores(ArrayRef<Output> outputs,
                                                   StringRef kind) {
  std::vector<const Output *> scalars;
  for (const Output &output : outputs) {
    if (output.isFloat && !output.isScalar)
      return &output;
    if (output.isScalar)
      scalars.push_back(&output);
  }
  if (!scalars.empty())
    return usageError("the model has no output that " + Setting("loss", kind) +
                      " could take: " + listNames(scalars) +
                      (scalars.size() == 1 ? " is" : " are") +
                      " one number, a loss already; leave out " +
                      Setting("loss") + ", or give " +
                      Setting("loss", "output:" + scalars[0]->name));
  return inputError("no output to take the loss of: a loss needs a "
                    "floating-point output, and outputs are " +
                    listNames(pointers(outputs), /*types=*/true));
}

static llvm::Expected<const Output *> resolveTerm(ArrayRef<Output> outputs,
                                                  const LossTerm &term) {
  if (term.output.empty())
    return term.attaches() ? chooseScores(outputs, term.kind)
                           : chooseScalar(outputs);
  auto found = findOutput(outputs, term.output);
  if (!found)
    return found;
  if (!(*found)->isFloat)
    return inputError("the loss needs a floating-point output, but '" +
                      term.output + "' is " + typeText(**found));
  if (!term.attaches() && !(*found)->isOne)
    return inputError(
        "output '" + term.output + "' is " + typeText(**found) +
        ": a loss is one number; attach one that takes targets (" +
        Setting("loss", "mse:" + term.output) + "), or reduce it in the model");
  return found;
}

llvm::Error ckopt::resolveLoss(func::FuncOp function,
                               std::vector<LossTerm> &terms,
                               MessageText &remark) {
  std::vector<Output> outputs = listOutputs(function);
  llvm::SmallPtrSet<const Output *, 4> used;
  bool chosen = false;
  for (LossTerm &term : terms) {
    auto output = resolveTerm(outputs, term);
    if (!output)
      return output.takeError();
    chosen |= term.output.empty();
    term.output = (*output)->name;
    used.insert(*output);
  }
  std::vector<const Output *> rest, scalars;
  for (const Output &output : outputs)
    if (!used.contains(&output))
      (output.isScalar ? scalars : rest).push_back(&output);
  if (chosen && outputs.size() > 1)
    remark = "loss: " + formatLoss(terms) + ", of the outputs " +
             listNames(pointers(outputs));
  // The user may have forgotten a second head, so say that it is not trained.
  // Scores from which the model computed the chosen loss are not such a head.
  bool attached =
      llvm::any_of(terms, [](const LossTerm &term) { return term.attaches(); });
  if (attached)
    llvm::append_range(scalars, rest);
  if (!scalars.empty())
    remark += (remark.empty() ? "the" : "; the") +
              MessageText(" loss does not take ") + listNames(scalars) +
              (chosen ? " (" + Setting("loss", "'A:NAME*1+B:NAME*0.5'") +
                            " takes several outputs)"
                      : "");
  return llvm::Error::success();
}

bool ckopt::hasScalarOutput(func::FuncOp function) {
  return llvm::any_of(listOutputs(function),
                      [](const Output &output) { return output.isScalar; });
}

llvm::Expected<int64_t> ckopt::defaultClassAxis(ArrayRef<int64_t> shape,
                                                bool softTargets) {
  int64_t rank = int64_t(shape.size());
  if (rank < 2)
    return inputError("classes need scores of rank 2 or more ([N, C], "
                      "[B, T, V], [N, C, ...]), got " +
                      shapeString(shape));
  if (rank == 3 && softTargets)
    return inputError(
        "probabilities for scores of shape " + shapeString(shape) +
        " do not say where the classes lie: give " +
        Setting("class-axis", "1") + " ([N, C, T], as PyTorch) or " +
        Setting("class-axis", "2") + " ([B, T, V])");
  if (rank > 2 && !softTargets && isClassAxisAmbiguous(shape))
    return ambiguousClassAxis(shape);
  return rank == 3 ? 2 : 1;
}
