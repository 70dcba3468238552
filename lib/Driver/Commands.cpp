//===- Commands.cpp - what the subcommands share, and the short ones ------===//
#include "Commands.h"
#include "ckopt/Runtime/DeviceArtifact.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "ckopt/Support/Report.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace ckopt;
using runtime::TensorRole;

//===----------------------------------------------------------------------===//
// Shared beginnings
//===----------------------------------------------------------------------===//

llvm::Expected<std::unique_ptr<Compilation>>
ckopt::planModel(const DriverOptions &options) {
  CompileOptions compile = options.compile;
  compile.instrument |= options.checkFinite || options.verifyRemat ||
                        options.profile || !options.profileOut.empty();
  auto compilation = std::make_unique<Compilation>(std::move(compile));
  if (llvm::Error error = compilation->import())
    return std::move(error);
  if (!options.quiet && options.remarks)
    for (const std::string &remark : compilation->model().remarks)
      llvm::errs() << "remark: " << remark << "\n";
  if (llvm::Error error = judgeExport(options, *compilation))
    return std::move(error);
  if (options.command != Command::Run)
    if (llvm::Error error = settleLoss(*compilation, options))
      return std::move(error);
  llvm::Error error = compilation->plan();
  if (!error)
    return std::move(compilation);
  // What is known of a budget that nothing fits is worth a report.
  if (!compilation->summary().figures.hasPlan())
    error = joinErrors(std::move(error),
                       writeReports(options, *compilation, nullptr));
  return std::move(error);
}

llvm::Expected<DeviceProgram>
ckopt::loadDeviceProgram(const Compilation &compilation) {
  std::vector<uint8_t> manifest = runtime::serialize(compilation.manifest());
  const std::string &code = compilation.deviceStep().code.text;
  const ArtifactData &data = compilation.data();
  ckrt_program *program = nullptr;
  if (ckrt_program_load_device(manifest.data(), manifest.size(), code.data(),
                               code.size(), data.data(), data.size(), &program))
    return makeError(ExitInternal, ckrt_last_error());
  return DeviceProgram(program);
}

llvm::Expected<LoadedStep> ckopt::loadStep(Compilation &compilation,
                                           const DriverOptions &options) {
  if (llvm::Error error = compilation.emit())
    return std::move(error);
  LoadedStep loaded;
  ckrt_program *handle = nullptr;
  if (compilation.onDevice()) {
    auto program = loadDeviceProgram(compilation);
    if (!program)
      return program.takeError();
    loaded.deviceProgram = std::move(*program);
    handle = loaded.deviceProgram.get();
  } else {
    auto program = JitProgram::create(compilation.object());
    if (!program)
      return program.takeError();
    loaded.program = std::move(*program);
    handle = loaded.program->program();
  }
  SessionOptions sessionOptions;
  sessionOptions.checkFinite = options.checkFinite;
  sessionOptions.verifyRemat = options.verifyRemat;
  sessionOptions.keepValues = options.keepValues;
  sessionOptions.device = options.compile.device.ordinal;
  auto session = Session::create(handle, sessionOptions);
  if (!session)
    return session.takeError();
  loaded.session = std::move(*session);
  TensorMap weights = compilation.weights();
  if (!options.weights.empty()) {
    auto file = readSafetensors(options.weights);
    if (!file)
      return file.takeError();
    for (auto &[name, value] : file->tensors)
      weights.set(name, value);
  }
  if (llvm::Error error = loaded.session->initialize(weights, options.seed))
    return std::move(error);
  return std::move(loaded);
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
  Compilation compilation(options.compile);
  if (llvm::Error error = compilation.import())
    return error;
  if (!options.quiet)
    for (const std::string &remark : compilation.model().remarks)
      llvm::errs() << "remark: " << remark << "\n";
  if (llvm::Error error = judgeExport(options, compilation))
    return error;
  if (options.summary) {
    printSummary(compilation);
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
  if (curve) { // Many budgets: no single plan to speak of.
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
  printPlan(**compilation, llvm::outs());
  if (options.chart)
    printChart(options, **compilation);
  if (wantsPlanningGraph(options))
    if (llvm::Error error = runPlanModes(options, **compilation))
      return error;
  if (!options.output.empty())
    if (llvm::Error error = writeModule(**compilation, options.output))
      return error;
  return writeReports(options, **compilation, nullptr);
}

static llvm::Error writeArtifact(const Compilation &compilation,
                                 const std::string &path) {
  if (!compilation.onDevice())
    return linkSharedLibrary(compilation.object(), path);
  std::string problem;
  const ArtifactData &data = compilation.data();
  if (!runtime::writeDeviceArtifact(path, compilation.manifest(),
                                    compilation.deviceStep().code.text,
                                    data.data(), data.size(), problem))
    return ioError(problem);
  return llvm::Error::success();
}

llvm::Error ckopt::runCompile(DriverOptions &options) {
  options.compile.embedWeights = true;
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (!options.compile.phases.to.empty())
    return writeModule(**compilation, options.output);
  if (options.output.empty())
    return usageError((*compilation)->onDevice() ? "compile needs -o FOLDER"
                                                 : "compile needs -o FILE.so");
  if (llvm::Error error = (*compilation)->emit())
    return error;
  if (llvm::Error error = writeArtifact(**compilation, options.output))
    return error;
  printPlan(**compilation, llvm::outs());
  if ((*compilation)->onDevice())
    printDeviceCode(**compilation, llvm::outs());
  return writeReports(options, **compilation, nullptr);
}

//===----------------------------------------------------------------------===//
// grad
//===----------------------------------------------------------------------===//

/// The indices 0 to the batch size; fewer samples are an error.
static llvm::Expected<std::vector<int64_t>> firstBatch(const Session &session,
                                                       const Dataset &data) {
  int64_t batch = batchSize(session.manifest());
  if (data.numSamples() < batch)
    return inputError(
        "the model's batch is " + llvm::Twine(batch) + ", the data has " +
        llvm::Twine(data.numSamples()) +
        " samples; give --batch=" + llvm::Twine(data.numSamples()));
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < batch; ++i)
    samples.push_back(i);
  return samples;
}

llvm::Error ckopt::needData(const DriverOptions &options) {
  if (options.data.path.empty())
    return usageError("give --data=FILE.npz");
  return llvm::Error::success();
}

namespace {
/// A loaded step and the data that it will be fed.
struct FedStep {
  PlannedStep planned;
  Dataset data;
};
} // namespace

llvm::Error ckopt::readConstants(DriverOptions &options) {
  if (options.constants.empty())
    return llvm::Error::success();
  if (llvm::Error error = needData(options))
    return error;
  auto reader = NpzReader::open(options.data.path);
  if (!reader)
    return reader.takeError();
  for (const ArrayMapping &constant : options.constants) {
    auto value = reader->read(constant.array);
    if (!value)
      return value.takeError();
    options.compile.import.constants[constant.name] = std::move(*value);
  }
  return llvm::Error::success();
}

llvm::Expected<PlannedStep> ckopt::prepareStep(DriverOptions &options) {
  PlannedStep planned;
  if (llvm::Error error = readConstants(options))
    return std::move(error);
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  planned.compilation = std::move(*compilation);
  auto loaded = loadStep(*planned.compilation, options);
  if (!loaded)
    return loaded.takeError();
  planned.step = std::move(*loaded);
  describeTargets(*planned.compilation, options.data);
  return std::move(planned);
}

/// Plans, loads and reads the data, checked against the model's labels.
static llvm::Expected<FedStep> prepareWithData(DriverOptions &options) {
  auto planned = prepareStep(options);
  if (!planned)
    return planned.takeError();
  FedStep fed{std::move(*planned), {}};
  auto data = loadDataset(*fed.planned.step.session, options.data);
  if (!data)
    return data.takeError();
  fed.data = std::move(*data);
  return std::move(fed);
}

llvm::Error ckopt::runGrad(DriverOptions &options) {
  if (llvm::Error error = needData(options))
    return error;
  if (options.output.empty())
    return usageError("grad needs -o FILE.npz");
  options.compile.step.optimizer.kind.clear();
  options.compile.step.evaluation = false;
  auto fed = prepareWithData(options);
  if (!fed)
    return fed.takeError();
  Session &session = *fed->planned.step.session;
  const Dataset &data = fed->data;
  auto samples = firstBatch(session, data);
  if (!samples)
    return samples.takeError();
  if (llvm::Error error = feed(session, data, *samples))
    return error;
  if (llvm::Error error = setSeed(session, options.seed))
    return error;
  if (llvm::Error error = session.fill(TensorRole::Step, 1))
    return error;
  if (llvm::Error error = session.run("step"))
    return error;
  TensorMap result;
  std::string notFinite; // the first one's name
  for (TensorRole role : {TensorRole::Loss, TensorRole::Gradient})
    for (int64_t index : session.tensors(role)) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      for (int64_t i = 0; notFinite.empty() && i < value->numElements(); ++i)
        if (!std::isfinite(value->getDouble(i)))
          notFinite = session.info_of(index).name;
      result.set(session.info_of(index).name, std::move(*value));
    }
  if (llvm::Error error = writeNpz(options.output, result))
    return error;
  if (!notFinite.empty())
    return makeError(ExitNonFinite,
                     "'" + notFinite + "' is not finite; the numbers are in '" +
                         options.output + "' as they are");
  return llvm::Error::success();
}
