//===- MergeCommand.cpp - adapters become part of weights -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: what was trained beside a model's products shall be in its weights,
// W + s B A (LoRA) or m / |V| V of each output with V = W + s B A (DoRA), for
// adapters of ckopt and of PEFT. Method: the products that the adapters name
// are found in the imported model as training finds them. The file is written
// in blocks of weights, each of which is computed when it is asked for, in
// double, and rounded once. Memory: the adapters, and a block. Time: elements
// times rank, twice for DoRA.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Dialect/Ckopt/Utils/FunctionEdit.h"
#include "ckopt/Normalize/Adapters.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/Safetensors.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

#include <cmath>
#include <map>
#include <optional>

using namespace ckopt;
using llvm::StringRef;

namespace {
/// An adapter's tensors, as they are found in the file.
struct Parts {
  const HostTensor *down = nullptr, *up = nullptr, *magnitude = nullptr;
};

/// What scales adapters, by PEFT's rules.
struct Scaling {
  std::optional<double> alpha;
  bool byRoot = false;                  ///< alpha / sqrt(rank)
  std::map<std::string, double> others; ///< ends of names with another alpha

  double of(StringRef name, int64_t rank) const {
    double value = *alpha;
    for (const auto &[end, other] : others)
      if (name == end || name.ends_with("." + end))
        value = other;
    return value / (byRoot ? std::sqrt(double(rank)) : double(rank));
  }
};

/// A stored matrix, whose new elements are computed row by row: `base` plus the
/// product of `left` [rows, rank] and `right` [rank, columns].
struct Merged {
  HostTensor base;
  int64_t rows = 0, columns = 0, rank = 0;
  std::vector<double> left, right;
  bool outputsFirst = false;
  std::vector<double> factors; ///< DoRA's, of outputs

  void addRow(int64_t row, std::vector<double> &values) const {
    values.resize(size_t(columns));
    for (int64_t c = 0; c < columns; ++c)
      values[size_t(c)] = base.getDouble(row * columns + c);
    for (int64_t k = 0; k < rank; ++k) {
      double scale = left[size_t(row * rank + k)];
      const double *from = right.data() + k * columns;
      for (int64_t c = 0; c < columns; ++c)
        values[size_t(c)] += scale * from[c];
    }
  }
  void scaleTo(const HostTensor &magnitude);
};

/// The model's new weights; those that are no products are given as they are.
class MergedParts : public TensorParts {
public:
  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) override;
  void add(StringRef name, Merged merged) {
    list.push_back(
        {name.str(), merged.base.dtype(), merged.base.shape().vec()});
    all.push_back(std::move(merged));
  }

private:
  std::vector<TensorSpec> list;
  std::vector<Merged> all;
};
} // namespace

void Merged::scaleTo(const HostTensor &magnitude) {
  std::vector<double> sums(size_t(outputsFirst ? rows : columns)), values;
  for (int64_t row = 0; row < rows; ++row) {
    addRow(row, values);
    for (int64_t c = 0; c < columns; ++c)
      sums[size_t(outputsFirst ? row : c)] +=
          values[size_t(c)] * values[size_t(c)];
  }
  for (auto [o, sum] : llvm::enumerate(sums))
    factors.push_back(sum > 0 ? magnitude.getDouble(int64_t(o)) / std::sqrt(sum)
                              : 0);
}

llvm::Expected<HostTensor> MergedParts::read(size_t number, int64_t begin,
                                             int64_t count) {
  const Merged &merged = all[number];
  HostTensor piece(merged.base.dtype(), {count});
  std::vector<double> values;
  for (int64_t at = begin; at < begin + count;) {
    int64_t row = at / merged.columns;
    merged.addRow(row, values);
    int64_t end = std::min((row + 1) * merged.columns, begin + count);
    for (; at < end; ++at) {
      int64_t c = at % merged.columns;
      double factor =
          merged.factors.empty()
              ? 1
              : merged.factors[size_t(merged.outputsFirst ? row : c)];
      piece.setDouble(at - begin, factor * values[size_t(c)]);
    }
  }
  return piece;
}

//===----------------------------------------------------------------------===//
// Adapters
//===----------------------------------------------------------------------===//

/// Reads scaling from what PEFT writes beside its tensors.
static llvm::Error readConfig(StringRef path, Scaling &scaling) {
  auto text = readInput(path);
  if (!text)
    return text.takeError();
  auto json = llvm::json::parse((*text)->getBuffer());
  if (!json)
    return inputError("'" + path +
                      "': " + takeErrorText(json.takeError()).text);
  const llvm::json::Object *config = json->getAsObject();
  if (!config)
    return inputError("'" + path + "' is no configuration of an adapter");
  if (auto type = config->getString("peft_type"); type && *type != "LORA")
    return makeError(ExitUnsupported, "'" + path +
                                          "': an adapter of the kind " +
                                          type->str() + "; LORA can be merged");
  if (auto alpha = config->getNumber("lora_alpha"))
    scaling.alpha = *alpha;
  scaling.byRoot = config->getBoolean("use_rslora").value_or(false);
  if (const auto *others = config->getObject("alpha_pattern"))
    for (const auto &[name, value] : *others)
      if (auto alpha = value.getAsNumber())
        scaling.others[name.str()] = *alpha;
  return llvm::Error::success();
}

static llvm::Expected<Scaling> findScaling(const DriverOptions &options,
                                           StringRef path,
                                           const StringMetadata &metadata) {
  Scaling scaling;
  llvm::SmallString<128> config(path);
  llvm::sys::path::remove_filename(config);
  llvm::sys::path::append(config, "adapter_config.json");
  auto known = metadata.find("ckopt.lora_alpha");
  double alpha = 0;
  if (known != metadata.end() && !StringRef(known->second).getAsDouble(alpha))
    scaling.alpha = alpha;
  else if (llvm::sys::fs::exists(config))
    if (llvm::Error error = readConfig(config, scaling))
      return std::move(error);
  if (options.compile.flags.count("lora-alpha"))
    scaling.alpha = options.compile.lora.alpha;
  if (!scaling.alpha)
    return inputError("'" + path +
                      "' does not say its alpha, and there is no "
                      "adapter_config.json beside it; give " +
                      Setting("lora-alpha", "X"));
  return scaling;
}

/// Finds the product of that name, or the only one of which one name is the
/// other's end: modules that were exported in a wrapper have longer names.
static llvm::Expected<const AdapterTarget *>
findProduct(llvm::ArrayRef<AdapterTarget> targets, StringRef name) {
  std::vector<const AdapterTarget *> near;
  std::vector<std::string> names;
  for (const AdapterTarget &target : targets) {
    StringRef other = target.name;
    if (other == name)
      return &target;
    names.push_back(target.name);
    if (other.ends_with(("." + name).str()) ||
        name.ends_with(("." + other).str()))
      near.push_back(&target);
  }
  if (near.size() == 1)
    return near.front();
  return inputError("the adapter of '" + name + "' is for " +
                    (near.empty() ? "no product" : "more than one product") +
                    " of the model; its products: " + listNames(names));
}

static llvm::Expected<Merged> merge(const AdapterTarget &target,
                                    const Parts &parts, double scaling,
                                    const HostTensor &base) {
  int64_t rank = parts.down->dim(0);
  int64_t inputs = target.inputs(), outputs = target.outputs();
  if (parts.down->shape() != llvm::ArrayRef<int64_t>{rank, inputs} ||
      parts.up->shape() != llvm::ArrayRef<int64_t>{outputs, rank} ||
      (parts.magnitude && parts.magnitude->numElements() != outputs))
    return inputError("the adapter of '" + target.name + "' has shapes " +
                      shapeString(parts.down->shape()) + " and " +
                      shapeString(parts.up->shape()) + ", its weight has " +
                      llvm::Twine(outputs) + " outputs and " +
                      llvm::Twine(inputs) + " inputs");
  Merged merged;
  merged.base = base;
  merged.rank = rank;
  merged.outputsFirst = target.outputsFirst != target.isSwapped;
  merged.rows = merged.outputsFirst ? outputs : inputs;
  merged.columns = merged.outputsFirst ? inputs : outputs;
  auto fill = [](std::vector<double> &to, const HostTensor &from, double scale,
                 bool transposed) {
    int64_t rows = from.dim(0), columns = from.dim(1);
    to.resize(size_t(rows * columns));
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < columns; ++c)
        to[size_t(transposed ? c * rows + r : r * columns + c)] =
            scale * from.getDouble(r * columns + c);
  };
  if (merged.outputsFirst) {
    fill(merged.left, *parts.up, scaling, /*transposed=*/false);
    fill(merged.right, *parts.down, 1, /*transposed=*/false);
  } else {
    fill(merged.left, *parts.down, scaling, /*transposed=*/true);
    fill(merged.right, *parts.up, 1, /*transposed=*/true);
  }
  if (parts.magnitude)
    merged.scaleTo(*parts.magnitude);
  return std::move(merged);
}

/// Refuses a weight that has no element of its own for each of the matrix, or
/// that others would find changed.
static llvm::Error checkStored(const AdapterTarget &target, StringRef stored) {
  std::string what = "the adapter of '" + target.name + "' cannot be merged: ";
  if (!target.stored || !target.isPlain)
    return makeError(
        ExitUnsupported,
        what + "its weight is computed from " +
            (stored.empty() ? "constants" : "'" + stored.str() + "'") +
            " (quantized, or a part of it); merge it into the "
            "model with float weights");
  if (!target.isAlone)
    return makeError(ExitUnsupported, what + "others read its weight '" +
                                          stored.str() +
                                          "', too (tied), and would change");
  return llvm::Error::success();
}

/// Sorts the file's tensors by what they are for.
static llvm::Error sortTensors(const TensorMap &tensors,
                               const std::map<std::string, HostTensor> &weights,
                               llvm::MapVector<StringRef, Parts> &adapters,
                               MergedParts &result) {
  std::vector<std::string> unknown;
  for (const auto &[full, value] : tensors) {
    StringRef name = full;
    name.consume_front(kAdapterPrefix);
    if (tensors.contains(StringRef(full).rsplit('/').first) &&
        StringRef(full).contains('/'))
      continue; // a checkpoint's state of the optimizer
    StringRef module = name;
    module.consume_back(".weight");
    if (name.ends_with(kDownSuffix) && value.rank() == 2)
      adapters[name.drop_back(kDownSuffix.size())].down = &value;
    else if (name.ends_with(kUpSuffix) && value.rank() == 2)
      adapters[name.drop_back(kUpSuffix.size())].up = &value;
    else if (module.consume_back(kMagnitudeSuffix))
      adapters[module].magnitude = &value;
    else if (auto weight = weights.find(name.str());
             weight != weights.end() && weight->second.shape() == value.shape())
      result.add(name, {value, 1, value.numElements(), 0, {}, {}, false, {}});
    else
      unknown.push_back(full);
  }
  if (!unknown.empty())
    return inputError("the file has tensors that are neither of an adapter nor "
                      "weights of the model: " +
                      listNames(unknown));
  if (adapters.empty())
    return inputError("the file has no adapter");
  return llvm::Error::success();
}

llvm::Error ckopt::runMerge(DriverOptions &options) {
  if (options.weights.empty())
    return usageError("merge needs " + Setting("weights", "ADAPTER") +
                      ": a .safetensors, or a folder of PEFT");
  if (!StringRef(options.output).ends_with(".onnx"))
    return usageError("merge needs -o FILE.onnx");
  std::string path = options.weights;
  if (llvm::sys::fs::is_directory(path))
    path += "/adapter_model.safetensors";
  auto file = readSafetensors(path);
  if (!file)
    return file.takeError();
  auto scaling = findScaling(options, path, file->metadata);
  if (!scaling)
    return scaling.takeError();
  CompileOptions compile = compileOptions(options);
  compile.remarks = false;
  compile.lost = LostParameters::Ignore;
  compile.import.allowUnread = true;
  std::unique_ptr<Compilation> compilation;
  bool guessedBatch = false;
  if (llvm::Error error =
          importWithAnyBatch(compilation, compile, guessedBatch))
    return error;
  auto forward =
      compilation->module().lookupSymbol<mlir::func::FuncOp>("forward");
  const auto &weights = compilation->model().weights;
  std::vector<AdapterTarget> targets = findAdapterTargets(forward);
  llvm::MapVector<StringRef, Parts> adapters;
  MergedParts merged;
  if (llvm::Error error = sortTensors(file->tensors, weights, adapters, merged))
    return withContext(std::move(error), "'" + path + "'");
  for (const auto &[name, parts] : adapters) {
    if (!parts.down || !parts.up)
      return inputError("'" + path + "': the adapter of '" + name +
                        "' lacks lora_A or lora_B");
    auto target = findProduct(targets, name);
    if (!target)
      return withContext(target.takeError(), "'" + path + "'");
    std::string stored =
        (*target)->stored
            ? argumentName(forward, (*target)->stored.getArgNumber())
            : "";
    if (llvm::Error error = checkStored(**target, stored))
      return error;
    auto value = weights.find(stored);
    if (value == weights.end())
      return inputError("the model has no values of '" + stored + "'");
    auto one = merge(**target, parts, scaling->of(name, parts.down->dim(0)),
                     value->second);
    if (!one)
      return withContext(one.takeError(), "'" + path + "'");
    merged.add(stored, std::move(*one));
  }
  if (llvm::Error error =
          onnx_frontend::exportModel(compile.model, options.output, merged,
                                     {{}, compilation->model().writeBack}))
    return error;
  options.out() << adapters.size() << " adapters merged\n";
  tellWritten(options, options.output);
  return llvm::Error::success();
}
