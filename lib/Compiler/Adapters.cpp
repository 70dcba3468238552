//===- Adapters.cpp - adapters of an imported model -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Gives --lora's adapters to a model. DoRA's magnitudes start with the norms of
// the model's weights, which are computed here once, also through what their
// stored form is dequantized by. What is not trained keeps its state: norms use
// their running statistics.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Normalize/Adapters.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Normalize.h"
#include "ckopt/Reference/Interpreter.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/Report.h"

#include <cmath>

using namespace mlir;
using namespace ckopt;

/// Computes what depends on weights and constants alone. Memory: the values on
/// the way, as doubles.
static llvm::Expected<reference::Tensor>
evaluateWeight(Value value, func::FuncOp function,
               const std::map<std::string, HostTensor> &weights) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    std::string name = argumentName(function, argument.getArgNumber());
    auto found = weights.find(name);
    if (found == weights.end())
      return inputError(Setting("dora") + " needs the values of '" + name +
                        "', and the model has none");
    return reference::Tensor::fromHost(
        found->second, cast<RankedTensorType>(argument.getType()));
  }
  Operation *op = value.getDefiningOp();
  SmallVector<reference::Tensor> operands, results;
  SmallVector<const reference::Tensor *> pointers;
  for (Value operand : op->getOperands()) {
    auto made = evaluateWeight(operand, function, weights);
    if (!made)
      return made;
    operands.push_back(std::move(*made));
  }
  for (const reference::Tensor &operand : operands)
    pointers.push_back(&operand);
  if (failed(reference::evaluateOp(op, pointers, results)))
    return toldError(ExitInputError, "a weight cannot be computed");
  return std::move(results[cast<OpResult>(value).getResultNumber()]);
}

/// Computes the norms of a target's rows.
static llvm::Expected<HostTensor>
rowNorms(const AdapterTarget &target, func::FuncOp function,
         const std::map<std::string, HostTensor> &weights, DType type) {
  auto matrix = evaluateWeight(target.weight, function, weights);
  if (!matrix)
    return matrix.takeError();
  int64_t outputs = target.outputs(), inputs = target.inputs();
  HostTensor norms(type, {outputs});
  for (int64_t o = 0; o < outputs; ++o) {
    double sum = 0;
    for (int64_t i = 0; i < inputs; ++i) {
      double w =
          matrix->get(target.outputsFirst ? o * inputs + i : i * outputs + o);
      sum += w * w;
    }
    norms.setDouble(o, std::sqrt(sum));
  }
  return std::move(norms);
}

llvm::Error Compilation::addAdapters() {
  auto forward = module().lookupSymbol<func::FuncOp>("forward");
  if (!opts.lora.rank || !forward)
    return llvm::Error::success();
  AdapterOptions adapters = opts.lora;
  adapters.freezes = opts.import.trainsNone;
  unsigned before = forward.getNumArguments();
  std::vector<AdapterTarget> all = findAdapterTargets(forward);
  auto targets = ckopt::addAdapters(forward, all, adapters);
  if (!targets)
    return targets.takeError();
  int64_t numbers = 0;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    if (argumentRole(forward, i) == roles::kState)
      forward.setArgAttr(i, kFrozenAttr, UnitAttr::get(context.get()));
    if (i >= before && argumentRole(forward, i) == roles::kParameter)
      numbers += cast<RankedTensorType>(forward.getArgument(i).getType())
                     .getNumElements();
  }
  std::vector<std::string> names;
  for (const AdapterTarget &target : *targets) {
    AdapterNote note = {target.name, "", ""};
    if (target.stored)
      note.weight = argumentName(forward, target.stored.getArgNumber());
    if (adapters.dora) {
      note.magnitude = (kAdapterPrefix + target.name + kMagnitudeSuffix).str();
      auto norms = rowNorms(target, forward, imported.weights,
                            opts.import.f64 ? DType::F64 : DType::F32);
      if (!norms)
        return norms.takeError();
      imported.weights[note.magnitude] = std::move(*norms);
      forward.removeArgAttr(*findArgument(forward, note.magnitude),
                            attrs::kInit);
    }
    adapterNotes.push_back(std::move(note));
    names.push_back(target.name);
  }
  trainedLines.push_back(
      std::string(adapters.dora ? "dora: " : "lora: ") +
      std::to_string(names.size()) + " adapters of rank " +
      std::to_string(adapters.rank) + ", " + groupDigits(numbers) +
      " numbers: " + listNames(names, opts.import.namesInRemarks));
  std::vector<std::string> others;
  for (const AdapterTarget &target : all)
    if (!llvm::is_contained(names, target.name))
      others.push_back(target.name + (target.isBuffer ? " (a constant)"
                                      : target.isHead ? " (an output head)"
                                                      : ""));
  if (!others.empty())
    trainedLines.push_back("products without one: " +
                           listNames(others, opts.import.namesInRemarks));
  if (!findFrozenNorms(forward).empty())
    opts.step.freezeNorms = true;
  return llvm::Error::success();
}
