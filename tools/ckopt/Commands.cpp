//===- Commands.cpp - what the subcommands share, and the short ones ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Compiler/LossChoice.h"
#include "ckopt/Compiler/Together.h"
#include "ckopt/Ranks/Ranks.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Train/RunChecks.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using runtime::TensorRole;

//===----------------------------------------------------------------------===//
// Setup that commands share
//===----------------------------------------------------------------------===//

/// Writes --plan-out and --plan-report, also if no plan fits the budget.
static llvm::Error writePlanning(const DriverOptions &options,
                                 const Compilation &compilation) {
  const RematResult &planned = compilation.planned();
  const RematPlan *main = planned.mainPlan();
  if (!options.planOut.empty() && main)
    if (llvm::Error error =
            writeFileAtomically(options.planOut, printStoredPlan(*main)))
      return error;
  if (options.planReport.empty() || planned.plans.empty())
    return llvm::Error::success();
  return writeRematReport(options.planReport, planned.plans);
}

llvm::Expected<std::unique_ptr<Compilation>>
ckopt::planModel(DriverOptions &options,
                 std::unique_ptr<Compilation> *refused) {
  if (llvm::Error error = readPlanning(options))
    return std::move(error);
  if (options.quiet)
    options.data.messages = [](const Message &message) {
      if (message.severity != Message::Severity::Remark)
        printMessage(message);
    };
  auto compilation = std::make_unique<Compilation>(compileOptions(options));
  llvm::Error error = joinErrors(ckopt::plan(*compilation, options.data),
                                 writePlanning(options, *compilation));
  if (!error)
    return std::move(compilation);
  // If no plan fits the budget, the report still contains bounds.
  if (compilation->wasPlanned() && !compilation->summary().figures.hasPlan()) {
    if (refused)
      *refused = std::move(compilation);
    else
      error = joinErrors(std::move(error),
                         writeReports(options, *compilation, nullptr));
  }
  return std::move(error);
}

/// Refuses weights that a checkpoint would replace, all of them.
static llvm::Error checkWeightsRead(const DriverOptions &options,
                                    const Session &session) {
  if (options.weights.empty() || options.train.resume.empty() ||
      !session.tensors(runtime::TensorRole::Frozen).empty())
    return llvm::Error::success();
  return usageError(Setting("weights") +
                    " is for runs that begin, and for frozen weights, which " +
                    Setting("resume") +
                    " does not hold: this run has none, and nothing reads it");
}

llvm::Expected<PlannedStep>
ckopt::prepareStep(DriverOptions &options,
                   std::unique_ptr<Compilation> *refused) {
  if (llvm::Error error = readConstants(options))
    return std::move(error);
  auto load = readLoadOptions(options);
  if (!load)
    return load.takeError();
  if (llvm::Error error = agreeOnWeights(options.compile.ranks, load->weights))
    return std::move(error);
  auto compilation = planModel(options, refused);
  if (!compilation)
    return compilation.takeError();
  PlannedStep planned{std::move(*compilation), nullptr, {}};
  planned.data = describeData(*planned.compilation, options.data);
  if (llvm::Error error = emitOnMain(*planned.compilation))
    return std::move(error);
  auto session = ckopt::load(*planned.compilation, *load);
  if (!session)
    return session.takeError();
  planned.session = std::move(*session);
  if (llvm::Error error = checkWeightsRead(options, *planned.session))
    return std::move(error);
  return std::move(planned);
}

//===----------------------------------------------------------------------===//
// import, plan, compile
//===----------------------------------------------------------------------===//

static llvm::Error writeModule(const Compilation &compilation,
                               const std::string &path) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  compilation.module().print(stream, flags);
  if (path.empty() || path == "-") {
    llvm::outs() << text;
    return llvm::Error::success();
  }
  return writeFileAtomically(path, text);
}

llvm::Error ckopt::runImport(DriverOptions &options) {
  if (options.listOps) {
    onnx_frontend::printSupportedOps(llvm::outs());
    return llvm::Error::success();
  }
  Compilation compilation(compileOptions(options));
  if (llvm::Error error = compilation.import())
    return error;
  if (options.summary) {
    printSummary(compilation, options.out());
    return llvm::Error::success();
  }
  const std::string &to = options.compile.phases.to;
  if (!to.empty() && to != "import")
    if (llvm::Error error = compilation.plan())
      return error;
  return writeModule(compilation, options.output);
}

llvm::Error ckopt::runPlan(DriverOptions &options) {
  options.compile.keepGraph = wantsPlanningGraph(options);
  bool curve = options.paretoPoints > 0;
  if (curve) { // With many budgets there is no single plan to print.
    options.compile.phases.to = "fuse";
    options.compile.phases.dumpDirectory.clear();
  }
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (curve)
    return runPlanModes(options, **compilation);
  if (!options.compile.phases.to.empty())
    return writeModule(**compilation, options.output);
  printPlan(**compilation, options.out());
  if (wantsPlanningGraph(options))
    if (llvm::Error error = runPlanModes(options, **compilation))
      return error;
  if (!options.output.empty())
    if (llvm::Error error = writeModule(**compilation, options.output))
      return error;
  return writeReports(options, **compilation, nullptr);
}

/// Says which settings the artifact does not have: whoever runs it gives them.
static void noteNotCompiled(const DriverOptions &options,
                            const Compilation &compilation) {
  std::string names;
  for (llvm::StringRef flag :
       {"lr", "lr-schedule", "lr-unit", "warmup-steps", "min-lr-ratio",
        "lr-gamma", "lr-step-size", "lr-milestones", "lr-pct-start",
        "lr-div-factor", "lr-final-div-factor", "lr-anneal", "seed"})
    if (options.compile.flags.count(flag.str()))
      names += (names.empty() ? "--" : ", --") + flag.str();
  if (!names.empty())
    compilation.remark("not in the compiled step: " + names +
                       "; whoever runs it gives learning rate and seed at each "
                       "step (ckopt-run --lr=X --seed=N)");
}

llvm::Error ckopt::runCompile(DriverOptions &options) {
  options.compile.embedWeights = true;
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (!options.compile.phases.to.empty())
    return writeModule(**compilation, options.output);
  if (options.output.empty())
    return usageError(options.target->traits.writesFolder
                          ? "compile needs -o FOLDER"
                          : "compile needs -o FILE.so");
  if (llvm::Error error = (*compilation)->emit())
    return error;
  const StepCode &code = *(*compilation)->code();
  if (llvm::Error error = code.write(options.output))
    return error;
  noteNotCompiled(options, **compilation);
  printPlan(**compilation, options.out());
  code.print(options.out());
  return writeReports(options, **compilation, nullptr);
}

//===----------------------------------------------------------------------===//
// grad
//===----------------------------------------------------------------------===//

llvm::Error ckopt::needData(const DriverOptions &options) {
  if (!options.data.namesFiles())
    return usageError("give --data=FILE.npz");
  return llvm::Error::success();
}

/// A file without weights does not tell its data from its weights: the arrays
/// that the user has do.
static void noteArrays(DriverOptions &options) {
  const DataOptions &data = options.data;
  if (!data.inputs.empty() || data.path.empty() || data.isStream())
    return;
  auto files = openFiles(data);
  if (!files)
    return llvm::consumeError(files.takeError()); // reported when it is read
  auto isTaken = [&](llvm::StringRef array) {
    bool isConstant = llvm::any_of(options.constants, [&](const auto &mapping) {
      return mapping.array == array;
    });
    llvm::SmallVector<llvm::StringRef> targets;
    llvm::StringRef(data.targets.empty() ? "y" : data.targets)
        .split(targets, ',');
    return isConstant || llvm::any_of(targets, [&](llvm::StringRef target) {
             return target == array || target.split('=').second == array;
           });
  };
  for (const std::string &array : files->front().arrays)
    if (!isTaken(array))
      options.compile.import.arrays.push_back(array);
}

llvm::Error ckopt::readConstants(DriverOptions &options) {
  noteArrays(options);
  if (options.constants.empty())
    return llvm::Error::success();
  if (llvm::Error error = needData(options))
    return error;
  auto files = openFiles(options.data);
  if (!files)
    return files.takeError();
  for (const ArrayMapping &constant : options.constants) {
    auto value = files->front().read(constant.array);
    if (!value)
      return value.takeError();
    options.compile.import.constants[constant.name] = value->tensor();
  }
  return llvm::Error::success();
}

/// Feeds the first batch of the data; fewer samples are an error.
static llvm::Error feedFirstBatch(Session &session, const StepData &data) {
  auto source = openSource(session, data, DatasetSource::Order::AsStored);
  if (!source)
    return source.takeError();
  if (llvm::Error error = (*source)->seek(/*seed=*/0, {}))
    return error;
  auto count = feed(session, **source, data);
  if (!count)
    return count.takeError();
  int64_t batch = batchSize(session.manifest());
  if (*count == 0)
    return inputError("the data has no samples");
  if (*count < batch)
    return inputError("the model's batch is " + llvm::Twine(batch) +
                      ", the data has " + llvm::Twine(*count) +
                      " samples; give --batch=" + llvm::Twine(*count));
  return llvm::Error::success();
}

llvm::Error ckopt::runGrad(DriverOptions &options) {
  if (llvm::Error error = needData(options))
    return error;
  if (options.output.empty())
    return usageError("grad needs -o FILE.npz");
  options.compile.step.optimizer.kind.clear();
  options.compile.step.evaluation = false;
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  planned->compilation->releaseWeights();
  Session &session = *planned->session;
  if (llvm::Error error = feedFirstBatch(session, planned->data))
    return error;
  if (llvm::Error error = setSeed(session, options.seed))
    return error;
  if (llvm::Error error = session.fill(TensorRole::Step, 1))
    return error;
  if (llvm::Error error = session.run("step"))
    return error;
  TensorMap result;
  for (TensorRole role : {TensorRole::Loss, TensorRole::Gradient})
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      result.set(session.infoOf(index).name, std::move(*value));
    }
  if (llvm::Error error = writeNpz(options.output, result))
    return error;
  return checkGradients(result, options.compile.step.precision,
                        "; the numbers are in '" + options.output +
                            "' as they are");
}
