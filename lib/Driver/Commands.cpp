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
  const std::string &to = options.compile.phases.to;
  if (!to.empty() && to != "import")
    if (llvm::Error error = compilation.plan())
      return error;
  return writeModule(compilation, options.output);
}

llvm::Error ckopt::runPlan(DriverOptions &options) {
  if (options.paretoPoints > 0) // Many budgets: no single plan to speak of.
    return runPlanModes(options);
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  if (!options.compile.phases.to.empty())
    return writeModule(**compilation, options.output);
  printPlan(**compilation, llvm::outs());
  if (options.chart)
    printChart(options, **compilation);
  if (wantsPlanningGraph(options))
    if (llvm::Error error = runPlanModes(options))
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
// run, grad
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

static llvm::Error needData(const DriverOptions &options) {
  if (options.data.path.empty())
    return usageError("give --data=FILE.npz");
  return llvm::Error::success();
}

namespace {
/// A loaded step and the data that it will be fed.
struct FedStep {
  std::unique_ptr<Compilation> compilation;
  LoadedStep step;
  Dataset data;
};
} // namespace

/// Plans, loads and reads the data, checked against the model's labels.
static llvm::Expected<FedStep> prepareWithData(DriverOptions &options) {
  FedStep fed;
  auto compilation = planModel(options);
  if (!compilation)
    return compilation.takeError();
  fed.compilation = std::move(*compilation);
  auto loaded = loadStep(*fed.compilation, options);
  if (!loaded)
    return loaded.takeError();
  fed.step = std::move(*loaded);
  describeTargets(*fed.compilation, options.data);
  auto data = loadDataset(*fed.step.session, options.data);
  if (!data)
    return data.takeError();
  fed.data = std::move(*data);
  return std::move(fed);
}

llvm::Error ckopt::runForward(DriverOptions &options) {
  if (llvm::Error error = needData(options))
    return error;
  options.compile.import.trainMode = true;
  options.compile.step.loss.clear();
  options.compile.step.forwardOnly = true;
  auto fed = prepareWithData(options);
  if (!fed)
    return fed.takeError();
  Session &session = *fed->step.session;
  const Dataset &data = fed->data;
  int64_t batch = batchSize(session.manifest());
  std::vector<int64_t> all(size_t(data.numSamples()));
  for (size_t i = 0; i < all.size(); ++i)
    all[i] = int64_t(i);
  // Outputs of all batches, one after another along the first dimension.
  std::vector<std::vector<HostTensor>> outputs;
  std::vector<int64_t> valid;
  const runtime::FunctionInfo &eval = session.manifest().functions.front();
  for (const EvalBatch &part : evaluationBatches(all, batch)) {
    if (llvm::Error error = feed(session, data, part.indices))
      return error;
    if (llvm::Error error = session.run("eval"))
      return error;
    outputs.emplace_back();
    valid.push_back(part.valid);
    for (int32_t index : eval.outputs) {
      auto value = session.read(index);
      if (!value)
        return value.takeError();
      outputs.back().push_back(std::move(*value));
    }
  }
  TensorMap result;
  for (size_t k = 0; k < eval.outputs.size(); ++k) {
    const runtime::TensorInfo &info = session.info_of(eval.outputs[k]);
    bool batched = !info.shape.empty() && info.shape[0] == batch;
    if (!batched) {
      result.set(info.name, outputs.front()[k]);
      continue;
    }
    std::vector<int64_t> shape = info.shape;
    shape[0] = data.numSamples();
    HostTensor whole(hostType(info.dtype), shape);
    char *to = static_cast<char *>(whole.mutableRawData());
    for (size_t b = 0; b < outputs.size(); ++b) {
      size_t bytes = size_t(outputs[b][k].sizeInBytes() / batch * valid[b]);
      std::memcpy(to, outputs[b][k].rawData(), bytes);
      to += bytes;
    }
    result.set(info.name, std::move(whole));
  }
  if (options.output.empty()) {
    for (auto &[name, value] : result)
      llvm::outs() << name << ": " << value.typeString() << "\n";
    return llvm::Error::success();
  }
  return writeNpz(options.output, result);
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
  Session &session = *fed->step.session;
  const Dataset &data = fed->data;
  auto samples = firstBatch(session, data);
  if (!samples)
    return samples.takeError();
  if (llvm::Error error = feed(session, data, *samples))
    return error;
  for (int64_t index : session.tensors(TensorRole::Seed))
    if (llvm::Error error = session.write(
            index, HostTensor::scalar<int64_t>(int64_t(options.seed))))
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
