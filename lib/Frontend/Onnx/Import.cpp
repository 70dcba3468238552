//===- Import.cpp - from a file to a verified module ----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Imports a model. First decides the roles and shapes of the graph's inputs and
// weights; then imports the graph once, or, to change a batch size that the
// file has fixed, once at the file's own size and once at the wanted one.
//
//===----------------------------------------------------------------------===//
#include "Export/ExportAnalysis.h"
#include "GraphImporter.h"
#include "NodeImporter.h"
#include "Reader/TorchMetadata.h"
#include "Reader/WriteBack.h"
#include "UnreadInputs.h"
#include "ckopt/Dialect/Ckopt/Utils/SettingDiagnostic.h"
#include "ckopt/Reference/Folding.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Regex.h"
#include <set>

using namespace mlir;
using namespace ckopt;
using namespace ckopt::onnx_frontend;

namespace {
class ModelImporter {
public:
  ModelImporter(StringRef path, const ImportOptions &options,
                MLIRContext &context)
      : path(path), options(options), context(context) {}

  llvm::Expected<ImportedModel> run();

  ConstantsByName constants; ///< of the graph, once it is imported

private:
  llvm::Error checkOpsets() const;
  llvm::Error takeConstants();
  llvm::Error findInputs(std::vector<const ValueInfo *> &data,
                         std::vector<const ValueInfo *> &others) const;
  llvm::Error checkRead(ArrayRef<const ValueInfo *> data) const;
  llvm::Error checkValues(ArrayRef<const ValueInfo *> weights) const;
  bool feedsLoss(StringRef name) const;
  int64_t sizeOf(const Dim &dim, bool leading) const;
  llvm::Error fixShape(const ValueInfo &input, std::string &open);
  llvm::Error checkDims(ArrayRef<const ValueInfo *> data) const;
  llvm::Error fixShapes(ArrayRef<const ValueInfo *> data);
  llvm::Error findWeights(ArrayRef<const ValueInfo *> others);
  void settleNumbers();
  void applyAnalysis(llvm::function_ref<bool(llvm::StringRef)> isFrozen);
  llvm::Expected<ImportedModel> import(BatchScaling *scaling,
                                       BatchScaling::Shapes *shapes);
  void addRemarks(ImportedModel &result) const;
  llvm::Error importWhole();
  llvm::Error fail(const MessageText &message) const {
    return inputError("'" + path + "': " + message);
  }

  StringRef path;
  const ImportOptions &options;
  MLIRContext &context;
  Model model;
  ExportAnalysis analysis;
  ExportDiagnosis diagnosis;
  ImportPlan plan;
  std::vector<std::vector<int64_t>> bakedShapes; ///< of the data inputs
  std::string batchSymbol; ///< of the first data input's first dimension
  int64_t bakedBatch = 0;  ///< the fixed batch to be changed; 0 if none
  int64_t batch = 0;
  std::optional<ConstantsByName> whole; ///< of the whole batch
};
} // namespace

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

llvm::Error ModelImporter::checkOpsets() const {
  llvm::Error errors = llvm::Error::success();
  auto add = [&](const Twine &message) {
    errors = llvm::joinErrors(
        std::move(errors),
        makeError(ExitUnsupported, "'" + path + "': " + message));
  };
  bool outside = false;
  forEachNode(model.graph.nodes, [&](const Node &node) {
    if (outside || !node.domain.empty() ||
        (node.opset >= firstOpset && node.opset <= lastOpset))
      return;
    outside = true;
    add("opset " + Twine(node.opset) +
        " is not supported; ckopt reads opsets " + Twine(firstOpset) + " to " +
        Twine(lastOpset));
  });
  // Unsupported operators of subgraphs are reported where they are imported,
  // since a branch that is never taken may hold any.
  for (const Node &node : model.graph.nodes) {
    if (findHandler(node.domain, node.op, node.opset))
      continue;
    bool known = isKnownOperator(node.domain, node.op);
    add("unsupported operator " + node.op + " (domain '" +
        (node.domain.empty() ? "ai.onnx" : node.domain) + "', opset " +
        Twine(node.opset) + ") at node '" + node.name + "'" +
        (known ? ": ckopt knows it from a later opset on" : ""));
  }
  return errors;
}

//===----------------------------------------------------------------------===//
// Inputs
//===----------------------------------------------------------------------===//

/// Returns whether the graph input holds the labels of a loss node.
bool ModelImporter::feedsLoss(StringRef name) const {
  return llvm::any_of(model.graph.nodes, [&](const Node &node) {
    return (node.op == "SoftmaxCrossEntropyLoss" ||
            node.op == "NegativeLogLikelihoodLoss") &&
           node.inputs.size() > 1 && node.inputs[1] == name;
  });
}

llvm::Error
ModelImporter::findInputs(std::vector<const ValueInfo *> &data,
                          std::vector<const ValueInfo *> &others) const {
  llvm::StringSet<> initializers, named;
  for (const Tensor &tensor : model.graph.initializers)
    initializers.insert(tensor.name);
  for (const std::string &name : options.inputs)
    named.insert(name);
  std::string all;
  llvm::StringSet<> seen;
  for (const ValueInfo &input : model.graph.inputs) {
    if (input.name.empty() || !seen.insert(input.name).second)
      return fail("graph input '" + input.name +
                  "' has no name or is there twice");
    if (initializers.contains(input.name))
      continue;
    bool isData =
        !options.inputs.empty() ? named.contains(input.name)
        : initializers.empty()
            ? data.empty() || llvm::is_contained(options.arrays, input.name)
            : true;
    // Labels are data even if the user does not name them.
    isData |= feedsLoss(input.name);
    (isData ? data : others).push_back(&input);
    if (seen.size() < 20)
      all += (all.empty() ? "'" : ", '") + input.name + "'";
  }
  for (const std::string &name : options.arrays)
    if (options.needValues && initializers.empty() &&
        llvm::none_of(data, [&](auto *input) { return input->name == name; }))
      return fail("the file has no weights, and no input for the array '" +
                  name + "' of the data; its inputs are " + all + " (" +
                  Setting("inputs", "") + ")");
  for (const std::string &name : options.inputs)
    if (llvm::none_of(data, [&](auto *input) { return input->name == name; }))
      return fail("there is no graph input '" + name + "'; there are " +
                  (all.empty() ? "none" : all));
  return llvm::Error::success();
}

llvm::Error ModelImporter::checkRead(ArrayRef<const ValueInfo *> data) const {
  for (const std::string &name : options.unusedInputs)
    if (llvm::none_of(data, [&](auto *input) { return input->name == name; }))
      return usageError(Setting("unused-inputs") +
                        ": there is no data input '" + name + "'");
  std::string names, list;
  for (const std::string &name : findUnread(model.graph, data.vec())) {
    if (options.allowUnread || llvm::is_contained(options.unusedInputs, name))
      continue;
    names += (names.empty() ? "'" : ", '") + name + "'";
    list += (list.empty() ? "" : ",") + name;
  }
  if (names.empty())
    return llvm::Error::success();
  bool several = StringRef(list).contains(',');
  return fail(names + (several ? " have" : " has") +
              " no effect: no node that leads to an output reads " +
              (several ? "them" : "it") +
              "; was the model exported with one tensor for two inputs (give "
              "it a copy of its own), or is this wanted (" +
              Setting("unused-inputs", list) + ")?");
}

/// Refuses weights without a value where numbers are wanted, not a plan.
llvm::Error
ModelImporter::checkValues(ArrayRef<const ValueInfo *> weights) const {
  if (!options.needValues || weights.empty())
    return llvm::Error::success();
  constexpr size_t shown = 5;
  std::string names;
  for (const ValueInfo *weight : weights.take_front(shown))
    names += (names.empty() ? "'" : ", '") + weight->name + "'";
  if (weights.size() > shown)
    names += " and " + std::to_string(weights.size() - shown) + " more";
  return fail("the file has no values for the weights " + names +
              ", and the data no arrays of these names; give them as data (" +
              Setting("inputs", "") + "), as weights (" +
              Setting("weights", "FILE") + "), or random ones (" +
              Setting("init", "auto") + ")");
}

/// Turns inputs with a fixed value into initializers that are not trained.
llvm::Error ModelImporter::takeConstants() {
  for (const auto &[name, value] : options.constants) {
    const ValueInfo *found = nullptr;
    for (const ValueInfo &input : model.graph.inputs)
      if (input.name == name)
        found = &input;
    if (!found)
      return fail("there is no graph input '" + name + "' to be a constant");
    if (!found->dtype)
      return fail("input '" + name + "' is of type " + found->typeText +
                  ", which ckopt does not handle");
    auto converted = value.convertTo(*found->dtype);
    if (!converted)
      return withContext(converted.takeError(),
                         "'" + path + "': the constant '" + name + "'");
    llvm::erase_if(model.graph.initializers,
                   [&](const Tensor &tensor) { return tensor.name == name; });
    model.graph.initializers.push_back({name, std::move(*converted)});
  }
  return llvm::Error::success();
}

/// Returns the size of one dimension, or -1 if nothing determines it.
int64_t ModelImporter::sizeOf(const Dim &dim, bool leading) const {
  if (dim.size >= 0)
    return dim.size;
  auto given = options.dims.find(dim.symbol);
  if (!dim.symbol.empty() && given != options.dims.end())
    return given->second;
  // A leading dimension without a number is the batch.
  bool isBatch = leading || (!dim.symbol.empty() && dim.symbol == batchSymbol);
  return isBatch ? options.batch.value_or(-1) : -1;
}

/// Computes the shape of a data input; symbols without a size are added to
/// `open`.
llvm::Error ModelImporter::fixShape(const ValueInfo &input, std::string &open) {
  if (!input.dtype)
    return makeError(ExitUnsupported, "'" + path + "': input '" + input.name +
                                          "' is of type " + input.typeText +
                                          ", which ckopt does not handle");
  auto given = options.shapes.find(input.name);
  bool isGiven = given != options.shapes.end();
  if (!input.shape && !isGiven)
    return fail("input '" + input.name + "' has no shape; give it (" +
                Setting("shape", input.name + "=2x3") + ")");
  if (isGiven && input.shape && input.shape->size() != given->second.size())
    return fail("input '" + input.name + "' has rank " +
                Twine(input.shape->size()) + ", not the shape " +
                shapeString(given->second));
  std::vector<Dim> dims = input.shape.value_or(std::vector<Dim>());
  dims.resize(isGiven ? given->second.size() : dims.size());
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (!isGiven || dim.size == given->second[i])
      continue;
    if (dim.size >= 0)
      return fail("input '" + input.name + "' has " + Twine(dim.size) +
                  " entries in dimension " + Twine(i) + ", not the shape " +
                  shapeString(given->second));
    dim = {given->second[i], ""};
  }
  std::vector<int64_t> shape;
  for (auto [i, dim] : llvm::enumerate(dims)) {
    bool isFirst = i == 0 && plan.inputs.empty();
    if (isFirst && dim.size < 0)
      batchSymbol = dim.symbol;
    int64_t size = sizeOf(dim, i == 0);
    if (isFirst) {
      batch = size;
      if (dim.size >= 0 && options.batch && *options.batch != size)
        bakedBatch = size;
    }
    if (size < 0 && i == 0)
      return fail((dim.symbol.empty()
                       ? "the file leaves the first dimension of input '" +
                             input.name + "' open"
                       : "the model has a symbolic batch dimension '" +
                             dim.symbol + "'") +
                  "; give its size (" + Setting("batch", "N") + ")");
    if (size < 0)
      open += (open.empty() ? "'" : ", '") +
              (dim.symbol.empty() ? "(unnamed)" : dim.symbol) + "' of '" +
              input.name + "'";
    // Unknown sizes fail in the end.
    shape.push_back(std::max<int64_t>(size, 0));
  }
  auto count = checkedNumElements(shape, 8);
  if (!count)
    return withContext(count.takeError(),
                       "'" + path + "': input '" + input.name + "'");
  bakedShapes.push_back(shape);
  plan.inputs.push_back({input.name, *input.dtype, shape});
  return llvm::Error::success();
}

/// Checks that sizes which the user gives belong to existing symbols, and
/// agree.
llvm::Error ModelImporter::checkDims(ArrayRef<const ValueInfo *> data) const {
  std::set<std::string> symbols;
  for (const ValueInfo *input : data)
    for (const Dim &dim : input->shape.value_or(std::vector<Dim>()))
      if (dim.size < 0 && !dim.symbol.empty())
        symbols.insert(dim.symbol);
  for (const auto &[name, size] : options.dims)
    if (!symbols.count(name))
      return fail("the data inputs have no dimension '" + name + "' (" +
                  Setting("dim") + "); " +
                  (symbols.empty()
                       ? "all of theirs are numbers"
                       : "theirs are '" + llvm::join(symbols, "', '") + "'"));
  for (const auto &[name, shape] : options.shapes)
    if (llvm::none_of(data, [&, &name = name](const ValueInfo *input) {
          return input->name == name;
        }))
      return fail("the model has no data input '" + name + "' (" +
                  Setting("shape") + ")");
  if (data.empty() || !data[0]->shape || data[0]->shape->empty())
    return llvm::Error::success();
  auto given = options.dims.find(data[0]->shape->front().symbol);
  if (data[0]->shape->front().size < 0 && given != options.dims.end() &&
      options.batch && *options.batch != given->second)
    return fail(Setting("batch", Twine(*options.batch)) + " and " +
                Setting("dim", given->first + "=" + Twine(given->second)) +
                " give the batch two sizes");
  return llvm::Error::success();
}

llvm::Error ModelImporter::fixShapes(ArrayRef<const ValueInfo *> data) {
  if (options.batch && *options.batch < 1)
    return usageError("the batch size must be positive, not " +
                      Twine(*options.batch));
  if (llvm::Error error = checkDims(data))
    return error;
  std::string open;
  for (const ValueInfo *input : data)
    if (llvm::Error error = fixShape(*input, open))
      return error;
  if (!open.empty())
    return fail("the model has symbolic dimensions " + open +
                "; give their sizes (" + Setting("dim", "NAME=N") + ")");
  if (!bakedBatch)
    return llvm::Error::success();
  batch = *options.batch;
  for (DataInput &input : plan.inputs) {
    if (!input.shape.empty() && input.shape[0] == bakedBatch)
      input.shape[0] = batch;
    auto count = checkedNumElements(input.shape, 8);
    if (!count)
      return withContext(count.takeError(),
                         "'" + path + "': input '" + input.name + "'");
  }
  return llvm::Error::success();
}

/// Returns whether --train names the weight in full, not by a pattern that
/// happens to match: "logit_scale|.*".
static bool isNamed(StringRef regex, StringRef name) {
  SmallVector<StringRef> alternatives;
  regex.split(alternatives, '|');
  return llvm::any_of(alternatives, [&](StringRef alternative) {
    return alternative == name || alternative == llvm::Regex::escape(name);
  });
}

llvm::Error ModelImporter::findWeights(ArrayRef<const ValueInfo *> others) {
  std::vector<WeightSource> sources;
  for (const Tensor &tensor : model.graph.initializers)
    sources.push_back(
        {tensor.name, tensor.value.dtype(), tensor.value.shape().vec(), true});
  for (const ValueInfo *input : others) {
    if (!input->dtype || !isFloat(*input->dtype))
      return fail("input '" + input->name + "' is of type " + input->typeText +
                  " and not named as data; name all data inputs (" +
                  Setting("inputs", "") + ")");
    WeightSource source{input->name, *input->dtype, {}, false};
    bool known = input->shape.has_value();
    for (size_t i = 0; known && i < input->shape->size(); ++i) {
      known &= (*input->shape)[i].size > 0;
      source.shape.push_back((*input->shape)[i].size);
    }
    auto count = checkedNumElements(source.shape, 8);
    if (!known || !count) {
      if (!count)
        llvm::consumeError(count.takeError());
      return fail("input '" + input->name +
                  "' is taken for a parameter, but its shape is not fixed; if "
                  "it is data, name all data inputs (" +
                  Setting("inputs", "") + ")");
    }
    sources.push_back(std::move(source));
  }
  std::string freezeText = options.freezeRegex, trainText = options.trainRegex;
  for (const std::string *text : {&freezeText, &trainText}) {
    std::string error;
    if (!text->empty() && !llvm::Regex(*text).isValid(error))
      return usageError("malformed regular expression '" + Twine(*text) +
                        "': " + error);
  }
  llvm::Regex freeze("^(" + freezeText + ")$"), train("^(" + trainText + ")$");
  auto isFrozen = [&](llvm::StringRef name) {
    return options.trainsNone ||
           (analysis.frozen && analysis.frozen->contains(name) &&
            !isNamed(trainText, name)) ||
           (!freezeText.empty() && freeze.match(name)) ||
           (!trainText.empty() && !train.match(name));
  };
  plan.weights = findWeightRoles(model.graph, sources, isFrozen);
  for (const auto &[name, value] : options.constants)
    plan.weights[name].role.clear();
  for (const WeightSource &source : sources)
    plan.weightOrder.push_back(source.name);
  settleNumbers();
  applyAnalysis(isFrozen);
  return llvm::Error::success();
}

/// A number without dimensions, or what an op must know, is a constant in files
/// that do not list their parameters, unless --train names it.
void ModelImporter::settleNumbers() {
  for (const std::string &name : plan.weightOrder) {
    WeightRole &role = plan.weights.find(name)->second;
    if (!role.role.empty() || analysis.isSigned ||
        analysis.parameters.contains(name) || !ckopt::isFloat(role.dtype))
      continue;
    if (isNamed(options.trainRegex, name))
      role.role = "parameter";
    else if (role.isFactor)
      diagnosis.constants.push_back(
          {name, "a number without dimensions; " +
                     Setting("train", inQuotes(name + "|.*")) +
                     " trains it, too"});
  }
}

/// The exporter's metadata take precedence over roles derived from operators.
void ModelImporter::applyAnalysis(
    llvm::function_ref<bool(llvm::StringRef)> isFrozen) {
  for (const std::string &name : plan.weightOrder) {
    WeightRole &role = plan.weights.find(name)->second;
    if (analysis.parameters.contains(name) && ckopt::isFloat(role.dtype))
      role.role = isFrozen(name) ? "frozen" : "parameter";
    auto constant = analysis.constants.find(name);
    if (constant == analysis.constants.end() ||
        (role.role != "parameter" && role.role != "frozen"))
      continue;
    if (!options.trainRegex.empty() && !isFrozen(name) &&
        analysis.likelyConstants.contains(name))
      continue;
    role.role = "";
    diagnosis.constants.push_back(*constant);
  }
}

//===----------------------------------------------------------------------===//
// The import
//===----------------------------------------------------------------------===//

/// Returns "node 'n' (Conv): " for locations of nodes.
static std::string locationText(Location loc) {
  auto name = dyn_cast<NameLoc>(loc);
  if (!name)
    return "";
  auto op = dyn_cast<NameLoc>(name.getChildLoc());
  std::string text = (op ? "node '" : "'") + name.getName().str() + "'";
  return text + (op ? " (" + op.getName().str() + "): " : ": ");
}

llvm::Expected<ImportedModel>
ModelImporter::import(BatchScaling *scaling, BatchScaling::Shapes *shapes) {
  ImportedModel result;
  std::vector<MessageText> messages;
  LogicalResult done = failure();
  bool unsupported = false;
  {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        messages.push_back(locationText(diagnostic.getLocation()) +
                           textOf(diagnostic));
      return success();
    });
    GraphImporter importer(model, plan, context, result, scaling);
    importer.wholeConstants = whole && !shapes ? &*whole : nullptr;
    done = importer.run();
    unsupported = importer.sawUnsupported;
    if (options.neededConstants)
      options.neededConstants->insert(importer.neededConstants.begin(),
                                      importer.neededConstants.end());
    if (succeeded(done) && shapes)
      *shapes = std::move(importer.shapes);
    constants = std::move(importer.constants);
    if (succeeded(done))
      done = verify(*result.module);
  }
  if (succeeded(done))
    return std::move(result);
  constexpr size_t shown = 20;
  if (messages.size() > shown) {
    size_t more = messages.size() - shown;
    messages.resize(shown);
    messages.push_back("and " + std::to_string(more) + " errors more");
  }
  if (messages.empty())
    messages.push_back("cannot be imported");
  llvm::Error errors = llvm::Error::success();
  for (const MessageText &message : messages)
    errors = llvm::joinErrors(
        std::move(errors),
        makeError(unsupported ? ExitUnsupported : ExitInputError,
                  "'" + path + "': " + message));
  return std::move(errors);
}

void ModelImporter::addRemarks(ImportedModel &result) const {
  std::vector<MessageText> remarks;
  for (const DataInput &input : plan.inputs) {
    bool isBatched = input.shape.empty() || input.shape[0] == batch;
    remarks.push_back("data input: '" + input.name + "' " +
                      dtypeName(input.dtype) + " " + shapeString(input.shape) +
                      (isBatched ? "" : ", the same for every batch"));
  }
  llvm::MapVector<StringRef, std::vector<std::string>> byRole;
  for (StringRef role : {"parameter", "frozen", "state"})
    byRole[role];
  for (const std::string &name : plan.weightOrder) {
    const WeightRole &role = plan.weights.find(name)->second;
    byRole[role.role.empty() ? StringRef("constant") : role.role].push_back(
        name);
  }
  for (auto &[role, names] : byRole)
    if (!names.empty())
      remarks.push_back(role.str() + " (" + std::to_string(names.size()) +
                        "): " + listNames(names, options.namesInRemarks));
  for (const std::string &note : diagnosis.notes)
    remarks.push_back("export: " + note);
  MessageText untrained;
  ArrayRef constants(diagnosis.constants);
  for (const auto &[name, reason] :
       constants.take_front(options.namesInRemarks))
    untrained +=
        (untrained.empty() ? "'" : ", '") + name + "' (" + reason + ")";
  if (constants.size() > options.namesInRemarks)
    untrained += " and " +
                 std::to_string(constants.size() - options.namesInRemarks) +
                 " more";
  if (!untrained.empty())
    remarks.push_back("not trained: " + untrained);
  if (!diagnosis.hasDropout)
    remarks.push_back("no dropout: the model has none, or was exported in "
                      "evaluation mode");
  if (bakedBatch)
    remarks.push_back("batch changed from " + std::to_string(bakedBatch) +
                      " to " + std::to_string(batch));
  result.notes = result.remarks;
  llvm::append_range(remarks, result.remarks);
  result.remarks = std::move(remarks);
}

/// Finds the constants of the graph with the whole batch, of which this one is
/// a part.
llvm::Error ModelImporter::importWhole() {
  ImportOptions other = options;
  other.batch = batch * options.parts;
  other.parts = 1;
  other.neededConstants = nullptr;
  ModelImporter importer(path, other, context);
  if (auto imported = importer.run(); !imported)
    return imported.takeError();
  whole = std::move(importer.constants);
  return llvm::Error::success();
}

static ExportDiagnosis diagnosisOf(const ExportAnalysis &analysis) {
  ExportDiagnosis diagnosis;
  diagnosis.form = analysis.form;
  diagnosis.lost = analysis.lost;
  diagnosis.differing = analysis.differing;
  diagnosis.uncompared = analysis.uncompared;
  diagnosis.numCompared = analysis.numCompared;
  diagnosis.removed = analysis.removed;
  diagnosis.partial = analysis.partial;
  diagnosis.notes = analysis.notes;
  diagnosis.tied = analysis.tied;
  diagnosis.unclear = analysis.unclear;
  diagnosis.hasDropout = analysis.hasDropout;
  diagnosis.notesFrozen = analysis.frozen.has_value();
  return diagnosis;
}

llvm::Expected<ExportDiagnosis> onnx_frontend::diagnoseExport(StringRef path) {
  auto model = readModel(path);
  if (!model)
    return model.takeError();
  return diagnosisOf(analyzeExport(*model));
}

static std::string listed(StringRef label, ArrayRef<std::string> sentences) {
  constexpr size_t shown = 12;
  std::string text;
  for (const std::string &sentence : sentences.take_front(shown))
    text += ("\n  " + label + ": " + sentence).str();
  if (sentences.size() > shown)
    text += "\n  and " + std::to_string(sentences.size() - shown) + " more";
  return text;
}

std::string onnx_frontend::describeLost(const ExportDiagnosis &diagnosis,
                                        StringRef path) {
  std::string differing = listed("differs", diagnosis.differing);
  if (diagnosis.lost.empty())
    return ("'" + path + "' is not the model that was exported (" +
            diagnosis.form +
            "): the exporter has no form for what its notes say of these" +
            differing)
        .str();
  return ("'" + path + "' was exported for inference (" + diagnosis.form +
          "): what is lost cannot be trained as in the model" +
          listed("lost", diagnosis.lost) + differing +
          "\n  export again: " + kExportLine)
      .str();
}

llvm::Expected<ImportedModel> ModelImporter::run() {
  auto read = readModel(path);
  if (!read)
    return read.takeError();
  model = std::move(*read);
  analysis = analyzeExport(model);
  diagnosis = diagnosisOf(analysis);
  auto writeBack = std::make_shared<const WriteBack>(
      path, analysis.edits, model.graph, /*keepsValues=*/false);
  applyEdits(analysis.edits, model.graph);
  std::vector<ValueInfo> taken;
  if (options.paramsFromConstants)
    taken = takeConstantWeights(model.graph);
  if (llvm::Error error = checkOpsets())
    return std::move(error);
  if (llvm::Error error = takeConstants())
    return std::move(error);
  std::vector<const ValueInfo *> data, others;
  if (llvm::Error error = findInputs(data, others))
    return std::move(error);
  if (llvm::Error error = checkRead(data))
    return std::move(error);
  if (llvm::Error error = checkValues(others))
    return std::move(error);
  for (const ValueInfo &weight : taken)
    others.push_back(&weight);
  if (llvm::Error error = fixShapes(data))
    return std::move(error);
  if (llvm::Error error = findWeights(others))
    return std::move(error);
  plan.trainMode = options.trainMode;
  forEachNode(model.graph.nodes, [&](const Node &node) {
    bool norm = node.op == "BatchNormalization" && node.opset >= 14;
    plan.trainingForm |= node.op == "BatchNormalization" &&
                         normTrains(readFxCall(node, {})).value_or(false);
    for (const NodeAttribute &attribute : node.attributes)
      plan.trainingForm |=
          norm && attribute.name == "training_mode" && attribute.i != 0;
    plan.trainingForm |= node.op == "Dropout" && node.opset >= 12 &&
                         node.inputs.size() > 2 && !node.inputs[2].empty();
  });
  plan.f64 = options.f64;
  plan.hasOpenSize = options.hasOpenSize;

  if (options.parts > 1 && batch)
    if (llvm::Error error = importWhole())
      return std::move(error);
  std::optional<BatchScaling> scaling;
  if (bakedBatch) {
    std::vector<DataInput> wanted = plan.inputs;
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      plan.inputs[i].shape = bakedShapes[i];
    BatchScaling::Shapes shapes;
    auto base = import(nullptr, &shapes);
    if (!base)
      return base.takeError();
    plan.inputs = std::move(wanted);
    scaling.emplace(bakedBatch, *options.batch, std::move(shapes));
    for (size_t i = 0; i < plan.inputs.size(); ++i)
      if (ArrayRef<int64_t>(plan.inputs[i].shape) !=
          ArrayRef<int64_t>(bakedShapes[i]))
        scaling->recordInput(plan.inputs[i].name);
  }
  auto result = import(scaling ? &*scaling : nullptr, nullptr);
  if (!result)
    return result;
  result->batch = batch;
  addRemarks(*result);
  result->diagnosis = std::move(diagnosis);
  result->writeBack = std::move(writeBack);
  result->externalFiles = model.externalFiles;
  return result;
}

llvm::Expected<ImportedModel>
onnx_frontend::importModel(StringRef path, const ImportOptions &options,
                           MLIRContext &context) {
  DialectRegistry registry;
  registry.insert<CkoptDialect, func::FuncDialect>();
  registerReferenceFolding(registry);
  context.appendDialectRegistry(registry);
  context.loadDialect<CkoptDialect, func::FuncDialect>();
  return ModelImporter(path, options, context).run();
}
