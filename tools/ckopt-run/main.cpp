//===- main.cpp - ckopt-run: steps of a compiled artifact -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Loads step.so (or a folder: a step for a device), gives it inputs and
// weights, runs steps, prints the loss and writes results. It is both a tool
// and the shortest example of the C interface (Runtime/ckrt.h); it needs no
// library but the artifact's runtime.
//
//===----------------------------------------------------------------------===//
#include "Loaded.h"
#include "Results.h"
#include "RuntimeLibrary.h"

#include "ckopt/Base/ExitCodes.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Base/StandardStreams.h"
#include "ckopt/Base/Version.h"
#include "ckopt/Runtime/CudaSearch.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

using namespace ckopt;
using namespace ckopt::run;
using runtime::Manifest;
using runtime::TensorInfo;
using runtime::TensorRole;

namespace {

/// Takes this rank's part of data for all of them.
HostArray partOf(const Loaded &loaded, const TensorInfo &tensor,
                 HostArray whole) {
  int64_t parts = partsOf(loaded, tensor);
  if (parts == 1)
    return whole;
  whole.shape.front() /= parts;
  size_t bytes = whole.data.size() / static_cast<size_t>(parts);
  const char *first =
      whole.data.data() + static_cast<size_t>(loaded.rank) * bytes;
  whole.data = std::vector<char>(first, first + bytes);
  return whole;
}

/// Writes a whole tensor, or this rank's part of a batch.
int write(Loaded &loaded, int64_t tensor, HostArray array,
          const std::string &from) {
  const TensorInfo &info =
      loaded.manifest().tensors[static_cast<size_t>(tensor)];
  const std::vector<int64_t> &expected = info.fullShape();
  if (expected != array.shape)
    return complain(
        ExitInputError,
        from + ": shape " +
            shapeText(array.shape.data(),
                      static_cast<int64_t>(array.shape.size())) +
            ", but '" + info.name + "' is " +
            shapeText(expected.data(), static_cast<int64_t>(expected.size())));
  array = shardOf(loaded, info, std::move(array));
  ckrt_status status =
      ckrt_tensor_write(loaded.session, tensor, array.data.data(),
                        static_cast<ckrt_dtype>(array.dtype), array.elements());
  return status == CKRT_OK ? ExitOk : complain(status);
}

/// Initializes parameters and state from the file, or by rule if it lacks them.
int loadWeights(Loaded &loaded, const Options &options) {
  ckrt_status status = ckrt_init_parameters(loaded.session, options.seed);
  if (status != CKRT_OK)
    return complain(status);
  std::map<std::string, HostArray> file;
  if (!options.weights.empty()) {
    std::vector<NamedArray> arrays;
    std::string error;
    if (!readSafetensors(options.weights, arrays, error))
      return complain(ExitInputError, error);
    for (NamedArray &named : arrays)
      file[named.name] = std::move(named.array);
  }
  std::string missing;
  const auto &tensors = loaded.manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo &t = tensors[i];
    bool weight = t.role == TensorRole::Parameter ||
                  t.role == TensorRole::Frozen || t.role == TensorRole::State ||
                  t.role == TensorRole::OptimizerState ||
                  t.role == TensorRole::Constant;
    auto found = file.find(t.name);
    if (weight && found != file.end()) {
      if (int code = write(loaded, static_cast<int64_t>(i),
                           std::move(found->second), options.weights))
        return code;
    } else if (weight && t.init.empty() && t.dataOffset < 0 &&
               t.role != TensorRole::State &&
               t.role != TensorRole::OptimizerState) {
      missing += " '" + t.name + "'";
    }
  }
  if (!missing.empty())
    return complain(ExitInputError,
                    "no values for" + missing +
                        (options.weights.empty()
                             ? "; give --weights=FILE.safetensors"
                             : "; " + options.weights + " does not hold them"));
  return ExitOk;
}

std::string fileNameOf(std::string tensor) {
  for (char &c : tensor)
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20)
      c = '_';
  return tensor[0] == '.' ? "_" + tensor : tensor;
}

/// The end of a range from 0 on that labels and indices may be drawn from.
std::string endOfIntegers(const ckopt::IntegerLimits &limits) {
  int64_t end = limits.classes ? limits.classes : 2;
  if (limits.rows)
    end = limits.classes ? std::min(end, limits.rows) : limits.rows;
  return std::to_string(end);
}

/// Says which data are missing, by the line to type.
int complainOfMissing(const std::vector<const TensorInfo *> &missing,
                      const Options &options) {
  std::string names, files, random;
  for (const TensorInfo *t : missing) {
    std::string shape =
        shapeText(t->shape.data(), static_cast<int64_t>(t->shape.size()));
    bool real = t->dtype == DType::F64 || t->dtype == DType::F32 ||
                t->dtype == DType::F16 || t->dtype == DType::BF16;
    names += (names.empty() ? "'" : ", '") + t->name + "' (" +
             std::string(dtypeName(t->dtype)) + " " + shape + ")";
    files += " " + shellWord("--input=" + t->name + "=" + fileNameOf(t->name) +
                             ".npy");
    std::string range = real ? ":-1:1" : ":0:" + endOfIntegers(t->limits.all);
    random += " " + shellWord("--random=" + t->name + range);
  }
  return complain(ExitInputError,
                  "no data for " + names +
                      "; with files of numpy, type\n  "
                      "ckopt-run" +
                      options.line + files +
                      "\nor, with random numbers,\n  ckopt-run" + options.line +
                      random);
}

int loadInputs(Loaded &loaded, const Options &options) {
  std::map<std::string, bool> given;
  for (const auto &[name, path] : options.inputs) {
    int64_t tensor = ckrt_tensor_find_in(
        loaded.session, options.function.c_str(), name.c_str());
    if (tensor < 0)
      return complain(ExitInputError, options.function + " has no input '" +
                                          name + "' (--list shows them)");
    std::vector<char> bytes;
    HostArray array;
    std::string error;
    if (!readFile(path, bytes, error))
      return complain(ExitInputError, error);
    if (!parseNpy(bytes, array, error))
      return complain(ExitInputError, path + ": " + error);
    loaded.batch.add(array.data.data(), array.data.size());
    const TensorInfo &info =
        loaded.manifest().tensors[static_cast<size_t>(tensor)];
    int64_t parts = partsOf(loaded, info);
    if (parts > 1 && (array.shape.empty() ||
                      array.shape.front() != parts * info.shape.front()))
      return complain(ExitInputError,
                      path + ": shape " +
                          shapeText(array.shape.data(),
                                    static_cast<int64_t>(array.shape.size())) +
                          ", but the " + std::to_string(parts) +
                          " ranks take " +
                          std::to_string(parts * info.shape.front()) +
                          " samples of '" + name + "', each its part");
    if (int code =
            write(loaded, tensor, partOf(loaded, info, std::move(array)), path))
      return code;
    given[name] = true;
  }
  for (const RandomInput &input : options.random)
    given[input.name] = true;
  std::vector<const TensorInfo *> missing;
  for (const auto &f : loaded.manifest().functions)
    if (f.name == options.function)
      for (int32_t index : f.inputs) {
        const TensorInfo &t = loaded.manifest().tensors[index];
        if ((t.role == TensorRole::Input || t.role == TensorRole::Target) &&
            !given.count(t.name))
          missing.push_back(&t);
      }
  return missing.empty() ? int(ExitOk) : complainOfMissing(missing, options);
}

/// Sets every tensor of a role to one value.
int fillRole(Loaded &loaded, TensorRole role, double value) {
  const auto &tensors = loaded.manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].role != role)
      continue;
    ckrt_status status =
        ckrt_tensor_fill(loaded.session, static_cast<int64_t>(i), value);
    if (status != CKRT_OK)
      return complain(status);
  }
  return ExitOk;
}

int writeSeed(Loaded &loaded, uint64_t seed) {
  const auto &tensors = loaded.manifest().tensors;
  auto value = static_cast<int64_t>(seed);
  for (size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].role == TensorRole::Seed) {
      ckrt_status status = ckrt_tensor_write(
          loaded.session, static_cast<int64_t>(i), &value, CKRT_I64, 1);
      if (status != CKRT_OK)
        return complain(status);
    }
  return ExitOk;
}

/// Reads the loss of the function just run; false if it has none.
bool readLoss(Loaded &loaded, const Options &options, double &loss) {
  for (const auto &f : loaded.manifest().functions)
    if (f.name == options.function)
      for (int32_t index : f.outputs)
        if (loaded.manifest().tensors[index].role == TensorRole::Loss &&
            ckrt_tensor_read(loaded.session, index, &loss, CKRT_F64, 1) ==
                CKRT_OK)
          return true;
  return false;
}

/// Says which updates were skipped (docs/precision.md), if any were.
void tellSkipped(Loaded &loaded, const Options &options) {
  double scale = 0, skipped = 0;
  const auto &tensors = loaded.manifest().tensors;
  for (size_t i = 0; i < tensors.size(); ++i)
    for (auto [name, value] : {std::pair("optimizer/loss_scale", &scale),
                               {"optimizer/skipped_updates", &skipped}})
      if (tensors[i].role == TensorRole::OptimizerState &&
          tensors[i].name == name &&
          ckrt_tensor_read(loaded.session, static_cast<int64_t>(i), value,
                           CKRT_F64, 1) != CKRT_OK)
        return;
  if (skipped > 0)
    std::fprintf(stderr,
                 "%g of %lld updates skipped: their gradients overflowed; the "
                 "loss scale is now %g\n",
                 skipped, static_cast<long long>(options.steps), scale);
}

int runSteps(Loaded &loaded, const Options &options) {
  std::vector<double> times;
  for (int64_t step = 1; step <= options.steps; ++step) {
    if (int code =
            fillRole(loaded, TensorRole::Step, static_cast<double>(step)))
      return code;
    auto start = std::chrono::steady_clock::now();
    ckrt_status status = ckrt_run(loaded.session, options.function.c_str());
    if (status == CKRT_OK)
      status = ckrt_synchronize(loaded.session);
    std::chrono::duration<double> took =
        std::chrono::steady_clock::now() - start;
    times.push_back(took.count());
    if (status != CKRT_OK)
      return complain(status);
    double loss;
    if (!readLoss(loaded, options, loss))
      continue;
    if (options.printLoss)
      std::printf("step %lld loss %.9g\n", static_cast<long long>(step), loss);
    if (!std::isfinite(loss))
      return complain(ExitNonFinite,
                      "the loss is not finite at step " + std::to_string(step));
  }
  tellSkipped(loaded, options);
  if (options.time && !times.empty()) {
    std::sort(times.begin(), times.end());
    std::printf("best step %.6f s, median %.6f s\n", times.front(),
                times[times.size() / 2]);
  }
  return ExitOk;
}

int writeOutputs(Loaded &loaded, const Options &options) {
  if (loaded.rank == 0 && mkdir(options.outputs.c_str(), 0777) != 0 &&
      errno != EEXIST)
    return complain(ExitIoError, options.outputs + ": " + std::strerror(errno));
  for (const auto &f : loaded.manifest().functions) {
    if (f.name != options.function)
      continue;
    for (int32_t index : f.outputs) {
      const TensorInfo &t = loaded.manifest().tensors[index];
      HostArray array;
      if (int code = readTensor(loaded, index, array))
        return code;
      if (loaded.rank > 0) // it had a part to give
        continue;
      std::string error;
      if (!writeFile(options.outputs + "/" + fileNameOf(t.name) + ".npy",
                     formatNpy(array), error))
        return complain(ExitIoError, error);
    }
  }
  return ExitOk;
}

void list(const Manifest &m) {
  std::printf("made by %s\n", printable(m.producer).c_str());
  if (m.target == runtime::Target::Cuda)
    std::printf("for CUDA devices of compute capability %d.%d or higher, with "
                "a driver for CUDA %d.%d or later\n%zu kernels\n",
                m.device.sm / 10, m.device.sm % 10, m.device.minDriver / 1000,
                m.device.minDriver % 1000 / 10, m.kernels.size());
  else
    std::printf("threads %d\n", m.threads);
  if (int64_t ranks = ranksOf(m); ranks > 1)
    std::printf("ranks %lld\n", static_cast<long long>(ranks));
  std::printf("arena %lld bytes\n", static_cast<long long>(m.arenaBytes));
  for (const TensorInfo &t : m.tensors) {
    const std::vector<int64_t> &shape = t.fullShape();
    std::printf(
        "%-15s %-5s %-16s %s\n", std::string(roleName(t.role)).c_str(),
        std::string(dtypeName(t.dtype)).c_str(),
        shapeText(shape.data(), static_cast<int64_t>(shape.size())).c_str(),
        (printable(t.name) +
         (t.shards > 1 ? " (shared by " + std::to_string(t.shards) + " ranks)"
                       : ""))
            .c_str());
  }
  for (const auto &f : m.functions)
    std::printf("function %s: %zu inputs, %zu outputs\n",
                printable(f.name).c_str(), f.inputs.size(), f.outputs.size());
}

int checkFunction(const runtime::Manifest &manifest, const std::string &name) {
  std::string all;
  for (const auto &function : manifest.functions) {
    if (function.name == name)
      return ExitOk;
    all += (all.empty() ? "" : ", ") + function.name;
  }
  return complain(ExitInputError,
                  "no function '" + name + "'; the artifact has " + all);
}

int runArtifact(Loaded &loaded, Options &options) {
  std::string error;
  if (!openRuntime(options.artifact, error))
    return complain(ExitInputError, error);
  ckrt_status status =
      ckrt_program_load_file(options.artifact.c_str(), &loaded.program);
  if (status != CKRT_OK)
    return complain(status);
  if (loaded.manifest().target == runtime::Target::Cpu &&
      (options.deviceGiven || options.oneByOne || options.inspect ||
       !options.kernelTimes.empty()))
    return complain(ExitInputError, options.artifact +
                                        " is compiled for the CPU: it runs on "
                                        "no device");
  if (options.list) {
    list(loaded.manifest());
    return ExitOk;
  }
  if (int code = checkFunction(loaded.manifest(), options.function))
    return code;
  runtime::chooseCudaLibraries(loaded.manifest());
  if (int code = joinRanks(loaded, options))
    return code;
  ckrt_session_options session = {};
  session.size = sizeof(session);
  session.pattern_fill = options.measure || options.checkArena;
  session.count_allocations = options.measure;
  session.pattern_seed = 1;
  session.device = options.deviceGiven ? options.device : -1;
  session.one_by_one = options.oneByOne;
  session.lock_file = options.lockGiven ? options.lock.c_str() : nullptr;
  status = ckrt_session_create(loaded.program, &session, &loaded.session);
  if (status != CKRT_OK)
    return complain(status);
  if (std::string devices = ckrt_rank_devices(loaded.session); !devices.empty())
    std::printf("devices: %s\n", devices.c_str());
  if (options.inspect)
    return inspect(loaded);
  int code = loadWeights(loaded, options);
  if (!code)
    code = loadInputs(loaded, options);
  if (!code)
    code = drawInputs(loaded, options);
  if (!code)
    code = writeSeed(loaded, options.seed);
  if (!code)
    code = fillRole(loaded, TensorRole::LearningRate, options.learningRate);
  if (!code)
    code = compareRanks(loaded, options);
  if (!code)
    code = runSteps(loaded, options);
  if (!code && options.measure)
    code = printMeasurement(loaded);
  if (!code && options.hash)
    code = printHash(loaded, options);
  if (!code && options.checkArena)
    code = checkArena(loaded, options);
  if (!code && !options.outputs.empty())
    code = writeOutputs(loaded, options);
  // Last, since it loses all values.
  if (!code && !options.kernelTimes.empty())
    code = timeKernels(loaded, options);
  return code;
}

int runTool(int argc, char **argv) {
  Options options;
  std::string wrong = parseArguments(argc, argv, options);
  if (options.help || options.helpAll) {
    std::fputs(helpText(options.helpAll).c_str(), stdout);
    return ExitOk;
  }
  if (options.version) {
    std::puts(versionLine("ckopt-run").c_str());
    return ExitOk;
  }
  if (!wrong.empty()) {
    complain(ExitUsage, wrong);
    std::fputs("ckopt-run --help shows the flags\n", stderr);
    return ExitUsage;
  }
  // Everything on standard output was asked for by another flag.
  if (options.quiet && !std::freopen("/dev/null", "w", stdout))
    return complain(ExitIoError, "/dev/null cannot be opened");
  Loaded loaded;
  int code = runArtifact(loaded, options);
  leaveRanks(loaded, code);
  return code;
}

} // namespace

int main(int argc, char **argv) {
  // As in tools/ckopt, idle threads go to sleep soon, unless the user says
  // otherwise.
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY") &&
      setenv("GOMP_SPINCOUNT", "20000", 1) == 0)
    execv("/proc/self/exe", argv);
  guardStreams();
  int code = runTool(argc, argv);
  // What is printed may be written at the end only.
  if (std::fflush(stdout) == 0 && !std::ferror(stdout))
    return code;
  int failed = complain(ExitIoError, "cannot write to standard output");
  return code ? code : failed;
}
