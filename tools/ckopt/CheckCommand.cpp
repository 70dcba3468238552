//===- CheckCommand.cpp - what exporting did to a model -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Prints only the diagnosis, on standard output: the form of export, missing
// operators, the loss, which parameters are trained, and warnings. The verdict
// vouches for what was compared, and says of what it does not speak. Exit code
// 0 says that the file can be trained, and as the model that was exported where
// it notes that model's calls; 1 that it cannot be read, lacks parameters or
// computes something else; 4 that operators are missing, that calls are not
// compared, or that weights are too narrow for updates.
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Dialect/Ckopt/IR/CkoptOps.h"
#include "ckopt/Losses/Loss.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/NameList.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using namespace mlir;
using llvm::StringRef;

namespace {
/// Number, elements and bytes of a function's arguments of one role.
struct RoleCount {
  int64_t count = 0, elements = 0, bytes = 0;
  std::vector<std::string> names;
};
} // namespace

static llvm::MapVector<StringRef, RoleCount> countRoles(func::FuncOp forward) {
  llvm::MapVector<StringRef, RoleCount> roles;
  for (unsigned i = 0; i < forward.getNumArguments(); ++i) {
    auto role = forward.getArgAttrOfType<StringAttr>(i, attrs::kRole);
    auto name = forward.getArgAttrOfType<StringAttr>(i, attrs::kName);
    auto type = cast<RankedTensorType>(forward.getArgument(i).getType());
    if (!role || !name)
      continue;
    RoleCount &entry = roles[role.getValue()];
    ++entry.count;
    entry.elements += type.getNumElements();
    entry.bytes += getByteSize(type);
    entry.names.push_back(name.getValue().str());
  }
  return roles;
}

static std::string counted(int64_t count, StringRef noun) {
  return std::to_string(count) + " " + noun.str() + (count == 1 ? "" : "s");
}

static void printRoles(func::FuncOp forward, size_t names,
                       llvm::raw_ostream &os) {
  for (const auto &[role, entry] : countRoles(forward)) {
    os << "  " << role << ": " << entry.count << " ("
       << counted(entry.elements, "element") << ", " << entry.bytes
       << " bytes)";
    if (names)
      os << ": " << listNames(entry.names, names);
    os << "\n";
  }
}

/// Lists parameters that may be buffers, judging by their names and use.
static void printUnclear(const Compilation &compilation, size_t names,
                         llvm::raw_ostream &os) {
  const auto &unclear = compilation.model().diagnosis.unclear;
  if (unclear.empty() || compilation.options().import.trainsNone)
    return;
  os << "trained, if they are no buffers (this form of export does "
        "not tell; --freeze=NAME): "
     << listNames(unclear, names) << "\n";
}

static void printLoss(func::FuncOp forward, llvm::raw_ostream &os) {
  os << "loss:";
  std::vector<LossTerm> terms(1);
  terms.front().kind = kOutputTerm.str();
  MessageText text;
  if (hasScalarOutput(forward)) {
    llvm::Error error = resolveLoss(forward, terms, text);
    if (!error) {
      os << " the model's own, '" << terms.front().output << "'\n";
      return;
    }
    // With several, --loss= has to name one.
    llvm::consumeError(std::move(error));
  }
  std::vector<LossTerm> own(1);
  own[0].kind = kOutputTerm.str();
  MessageText remark;
  if (llvm::Error error = resolveLoss(forward, own, remark)) {
    llvm::consumeError(std::move(error));
  } else {
    os << " the model's own, '" << own[0].output << "', its only scalar\n";
    return;
  }
  os << " none in the model; --loss= for the outputs";
  for (unsigned i = 0; i < forward.getNumResults(); ++i)
    if (auto name = forward.getResultAttrOfType<StringAttr>(i, attrs::kName))
      if (!forward.getResultAttr(i, attrs::kUpdates))
        os << " '" << name.getValue() << "' " << forward.getResultTypes()[i];
  os << "\n";
}

void ckopt::printSummary(const Compilation &compilation,
                         llvm::raw_ostream &os) {
  auto forward = compilation.module().lookupSymbol<func::FuncOp>("forward");
  if (!forward)
    return;
  llvm::MapVector<StringRef, int64_t> ops;
  for (Operation &op : forward.getBody().front().without_terminator())
    ++ops[op.getName().getStringRef()];
  int64_t count = 0;
  for (const auto &[name, number] : ops)
    count += number;
  os << "export: " << compilation.model().diagnosis.form << "\n"
     << "arguments:\n";
  printRoles(forward, /*names=*/0, os);
  printLoss(forward, os);
  os << "operations: " << count << "\n";
  llvm::sort(ops, [](const auto &a, const auto &b) {
    return std::make_pair(-a.second, a.first) <
           std::make_pair(-b.second, b.first);
  });
  for (const auto &[name, number] : ops)
    os << "  " << number << " " << name << "\n";
}

llvm::Error ckopt::importWithAnyBatch(std::unique_ptr<Compilation> &compilation,
                                      const CompileOptions &options,
                                      bool &guessedBatch) {
  compilation = std::make_unique<Compilation>(options);
  llvm::Error error = compilation->import();
  if (!error || options.import.batch)
    return error;
  ErrorText text = takeErrorText(std::move(error));
  if (!StringRef(text.text).contains("symbolic batch dimension"))
    return makeError(text.code, text.text);
  CompileOptions with = options;
  with.import.batch = 2;
  guessedBatch = true;
  compilation = std::make_unique<Compilation>(with);
  return compilation->import();
}

/// Says of what the notes in a file never speak.
constexpr const char kNotCovered[] =
    "hooks on gradients, backward() of one's own (found by nodes of its "
    "forward(), where the optimizer left one)";

/// Prints the verdict if nothing speaks against training; else returns what
/// does.
static llvm::Error verdict(const onnx_frontend::ExportDiagnosis &diagnosis,
                           StringRef path, ErrorText problem,
                           llvm::raw_ostream &os) {
  llvm::Error errors = llvm::Error::success();
  if (problem.code != ExitOk)
    errors = makeError(problem.code, problem.text);
  if (diagnosis.isAnother())
    errors = llvm::joinErrors(
        std::move(errors),
        inputError(onnx_frontend::describeLost(diagnosis, path)));
  if (!diagnosis.uncompared.empty()) {
    std::string text = ("'" + path + "': check cannot vouch for these: ").str();
    for (const std::string &sentence : diagnosis.uncompared)
      text += "\n  not compared: " + sentence;
    errors =
        llvm::joinErrors(std::move(errors), makeError(ExitUnsupported, text));
  }
  if (errors)
    return errors;
  if (!diagnosis.numCompared) {
    os << "verdict: can be trained as the file says; it notes no calls of the "
          "model that was exported, so that nothing was compared with that\n";
    return errors;
  }
  os << "verdict: can be trained as the model that was exported\n"
     << "compared: " << counted(int64_t(diagnosis.numCompared), "call")
     << " that the exporter noted, with what the nodes do\n"
     << "not covered, since no file tells: "
     << (diagnosis.notesFrozen ? "" : "requires_grad (--freeze), ")
     << kNotCovered << "\n";
  if (!diagnosis.removed.empty())
    os << "not covered: calls that the exporter's optimizer removed or merged ("
       << llvm::join(diagnosis.removed, ", ")
       << "); where one is of a torch.autograd.Function: "
       << onnx_frontend::kExportLine << "\n";
  for (const std::string &name : diagnosis.partial)
    os << "'" << name
       << "' is trained in part: the file holds the entries that the model "
          "reads\n";
  return errors;
}

llvm::Error ckopt::runCheck(DriverOptions &options) {
  llvm::raw_ostream &os = options.out();
  const std::string &path = options.compile.model;
  auto diagnosis = onnx_frontend::diagnoseExport(path);
  if (!diagnosis)
    return diagnosis.takeError();
  os << "export: " << diagnosis->form << "\n";
  CompileOptions quiet = options.compile; // the diagnosis is printed below
  quiet.remarks = false;
  quiet.lost = LostParameters::Ignore;
  std::unique_ptr<Compilation> compilation;
  bool guessedBatch = false;
  ErrorText problem;
  if (llvm::Error error = importWithAnyBatch(compilation, quiet, guessedBatch))
    problem = takeErrorText(std::move(error));
  bool unsupported = problem.code == ExitUnsupported;
  os << "operators: "
     << (unsupported ? "not all are supported" : "all supported") << "\n";
  if (problem.code == ExitOk) {
    if (llvm::Error error = compilation->checkTrainedTypes())
      problem = takeErrorText(std::move(error));
    auto forward = compilation->module().lookupSymbol<func::FuncOp>("forward");
    if (guessedBatch)
      os << "batch: symbolic (--batch=N); 2 for this check\n";
    printLoss(forward, os);
    os << "arguments:\n";
    size_t names = compilation->options().import.namesInRemarks;
    printRoles(forward, names, os);
    llvm::ArrayRef constants(compilation->model().diagnosis.constants);
    for (const auto &[name, reason] : constants.take_front(names))
      os << "not trained: '" << name << "': " << reason.inShell() << "\n";
    if (constants.size() > names)
      os << "not trained: " << constants.size() - names
         << " more (--verbose)\n";
    printUnclear(*compilation, names, os);
    if (options.compile.lora.rank)
      for (const std::string &line : compilation->trained())
        os << line << "\n";
    for (const MessageText &note : compilation->model().notes)
      os << "note: " << note.inShell() << "\n";
  }
  for (const std::string &note : diagnosis->notes)
    os << "mended: " << note << "\n";
  if (!diagnosis->hasDropout)
    os << "dropout: none in the file\n";
  os.flush();
  return verdict(*diagnosis, path, std::move(problem), os);
}
