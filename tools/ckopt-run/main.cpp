//===- main.cpp - ckopt-run: steps of a compiled artifact -----------------===//
//
// Loads step.so (or a folder: a step for a device), gives it inputs and
// weights, runs steps, prints the loss and writes what it made. It is both a
// tool and the shortest example of the C interface (Runtime/ckrt.h); it needs
// nothing but the runtime that the artifact needs.
//
//===----------------------------------------------------------------------===//
#include "HostFiles.h"
#include "RuntimeLibrary.h"

#include "ckopt/Runtime/Manifest.h"
#include "ckopt/Runtime/ckrt.h"
#include "ckopt/Support/ExitCodes.h"

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sys/stat.h>

using namespace ckopt;
using namespace ckopt::run;
using runtime::Manifest;
using runtime::TensorInfo;
using runtime::TensorRole;

namespace {

const char kUsage[] =
    "usage: ckopt-run STEP.so|FOLDER [options]\n"
    "  --function=NAME        function to run: step (default) or eval\n"
    "  --steps=N              how many times (default 1)\n"
    "  --input=NAME=FILE.npy  data for an input or target (repeat)\n"
    "  --weights=FILE         parameters, state: .safetensors\n"
    "  --seed=N               of initialization and dropout (default 0)\n"
    "  --lr=X                 learning rate (default 0.001)\n"
    "  --print-loss           print the loss after every step\n"
    "  --time                 print the best step's time\n"
    "  --measure              print planned and measured peak of memory\n"
    "  --check-arena          two runs over different patterns: fails unless "
    "they write\n"
    "                         exactly the planned bytes\n"
    "  --outputs=DIR          write outputs and gradients as .npy\n"
    "  --list                 list the artifact's tensors and functions\n"
    "for a step compiled for a device:\n"
    "  --device=cuda:N        which device (default cuda:0)\n"
    "  --one-by-one           wait for each kernel: names the one that fails\n"
    "  --lock=FILE            algorithms of cuBLASLt and cuDNN (default "
    "FOLDER.lock;\n"
    "                         empty: choose anew, write nothing)\n"
    "  --inspect              load it and print what the device and its driver "
    "take\n";

struct Options {
  std::string artifact, function = "step", weights, outputs, lock;
  std::vector<std::pair<std::string, std::string>> inputs;
  int64_t steps = 1;
  uint64_t seed = 0;
  double learningRate = 1e-3;
  bool printLoss = false, time = false, measure = false, list = false;
  bool checkArena = false, oneByOne = false, inspect = false;
  bool deviceGiven = false, lockGiven = false;
  int32_t device = 0;
};

int complain(int code, const std::string &text) {
  std::fprintf(stderr, "ckopt-run: error: %s\n", text.c_str());
  return code;
}

int usage(const std::string &text) {
  complain(ExitUsage, text);
  std::fputs(kUsage, stderr);
  return ExitUsage;
}

/// The tool's exit code for a status of the runtime.
int exitCode(ckrt_status status) {
  switch (status) {
  case CKRT_OK:
    return ExitOk;
  case CKRT_NON_FINITE:
    return ExitNonFinite;
  case CKRT_IO:
    return ExitIoError;
  case CKRT_NO_DEVICE:
    return ExitNoDevice;
  case CKRT_DEVICE_TOO_OLD:
    return ExitDeviceTooOld;
  case CKRT_DEVICE_MEMORY:
    return ExitDeviceMemory;
  case CKRT_DEVICE_CODE:
    return ExitDeviceCode;
  case CKRT_DEVICE_LOST:
    return ExitDeviceLost;
  case CKRT_KERNEL:
    return ExitKernelFailed;
  case CKRT_NO_LIBRARY:
    return ExitNoLibrary;
  case CKRT_LOCK:
    return ExitLock;
  case CKRT_INVALID_ARGUMENT:
  case CKRT_EXECUTION:
  case CKRT_VERIFY:
    return ExitInternal;
  case CKRT_BAD_ARTIFACT:
  case CKRT_WRONG_MACHINE:
  case CKRT_OUT_OF_MEMORY:
  case CKRT_NOT_FOUND:
  case CKRT_MISMATCH:
  case CKRT_UNSUPPORTED:
    break;
  }
  return ExitInputError;
}

int complain(ckrt_status status) {
  return complain(exitCode(status), ckrt_last_error());
}

template <typename T> bool parseInteger(const std::string &text, T &value) {
  char *end = nullptr;
  errno = 0;
  long long parsed = std::strtoll(text.c_str(), &end, 10);
  value = static_cast<T>(parsed);
  return !text.empty() && *end == '\0' && errno == 0 && parsed >= 0;
}

bool parseReal(const std::string &text, double &value) {
  char *end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value);
}

bool parseInput(const std::string &text, Options &options) {
  // The name ends at the first "=": file names may hold one, names do not.
  size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    return false;
  options.inputs.push_back({text.substr(0, equals), text.substr(equals + 1)});
  return true;
}

/// "cuda:0" or "cuda".
bool parseDevice(const std::string &text, Options &options) {
  const std::string prefix = "cuda";
  options.deviceGiven = true;
  if (text == prefix)
    return true;
  return text.compare(0, 5, prefix + ":") == 0 && text.size() <= 9 &&
         parseInteger(text.substr(5), options.device);
}

/// Empty, or what is wrong with `argument`.
std::string parseOption(const std::string &argument, Options &options) {
  size_t equals = argument.find('=');
  std::string key = argument.substr(0, equals);
  std::string value =
      equals == std::string::npos ? "" : argument.substr(equals + 1);
  bool sound = true;
  if (key == "--function")
    options.function = value;
  else if (key == "--steps")
    sound = parseInteger(value, options.steps);
  else if (key == "--input")
    sound = parseInput(value, options);
  else if (key == "--weights")
    options.weights = value;
  else if (key == "--seed")
    sound = parseInteger(value, options.seed);
  else if (key == "--lr")
    sound = parseReal(value, options.learningRate);
  else if (key == "--outputs")
    options.outputs = value;
  else if (argument == "--print-loss")
    options.printLoss = true;
  else if (argument == "--time")
    options.time = true;
  else if (argument == "--measure")
    options.measure = true;
  else if (argument == "--list")
    options.list = true;
  else if (argument == "--check-arena")
    options.checkArena = true;
  else if (argument == "--one-by-one")
    options.oneByOne = true;
  else if (argument == "--inspect")
    options.inspect = true;
  else if (key == "--lock")
    options.lock = value, options.lockGiven = true;
  else if (key == "--device")
    sound = parseDevice(value, options);
  else
    return "unknown option " + argument;
  return sound ? "" : "cannot read " + argument;
}

/// Releases program and session at the end.
struct Loaded {
  ckrt_program *program = nullptr;
  ckrt_session *session = nullptr;
  ~Loaded() {
    ckrt_session_destroy(session);
    ckrt_program_destroy(program);
  }
  const Manifest &manifest() const {
    return *static_cast<const Manifest *>(ckrt_program_manifest(program));
  }
};

int write(ckrt_session *session, int64_t tensor, const HostArray &array,
          const std::string &from) {
  int64_t rank = ckrt_tensor_rank(session, tensor);
  const int64_t *shape = ckrt_tensor_shape(session, tensor);
  std::vector<int64_t> expected(shape, shape + rank);
  if (expected != array.shape)
    return complain(ExitInputError,
                    from + ": shape " +
                        shapeText(array.shape.data(),
                                  static_cast<int64_t>(array.shape.size())) +
                        ", but '" + ckrt_tensor_name(session, tensor) +
                        "' is " + shapeText(shape, rank));
  ckrt_status status =
      ckrt_tensor_write(session, tensor, array.data.data(),
                        static_cast<ckrt_dtype>(array.dtype), array.elements());
  return status == CKRT_OK ? ExitOk : complain(status);
}

/// Parameters and state: from the file where it has them, else by rule.
int loadWeights(Loaded &loaded, const Options &options) {
  ckrt_status status = ckrt_init_parameters(loaded.session, options.seed);
  if (status != CKRT_OK)
    return complain(status);
  std::map<std::string, HostArray> file;
  if (!options.weights.empty()) {
    std::vector<char> bytes;
    std::vector<NamedArray> arrays;
    std::string error;
    if (!readFile(options.weights, bytes, error))
      return complain(ExitInputError, error);
    if (!parseSafetensors(bytes, arrays, error))
      return complain(ExitInputError, options.weights + ": " + error);
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
      if (int code = write(loaded.session, static_cast<int64_t>(i),
                           found->second, options.weights))
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
    if (int code = write(loaded.session, tensor, array, path))
      return code;
    given[name] = true;
  }
  std::string missing;
  for (const auto &f : loaded.manifest().functions)
    if (f.name == options.function)
      for (int32_t index : f.inputs) {
        const TensorInfo &t = loaded.manifest().tensors[index];
        if ((t.role == TensorRole::Input || t.role == TensorRole::Target) &&
            !given.count(t.name))
          missing += " --input=" + t.name + "=FILE.npy";
      }
  if (!missing.empty())
    return complain(ExitInputError, "data is missing; give" + missing);
  return ExitOk;
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

/// The loss of the function just run; false if it has none.
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

int runSteps(Loaded &loaded, const Options &options) {
  double best = INFINITY;
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
    best = std::min(best, took.count());
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
  if (options.time && options.steps > 0)
    std::printf("best step %.6f s\n", best);
  return ExitOk;
}

std::string fileNameOf(std::string tensor) {
  for (char &c : tensor)
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20)
      c = '_';
  return tensor[0] == '.' ? "_" + tensor : tensor;
}

int writeOutputs(Loaded &loaded, const Options &options) {
  if (mkdir(options.outputs.c_str(), 0777) != 0 && errno != EEXIST)
    return complain(ExitIoError, options.outputs + ": " + std::strerror(errno));
  for (const auto &f : loaded.manifest().functions) {
    if (f.name != options.function)
      continue;
    for (int32_t index : f.outputs) {
      const TensorInfo &t = loaded.manifest().tensors[index];
      HostArray array;
      // numpy has no bf16.
      array.dtype =
          t.dtype == runtime::DType::BF16 ? runtime::DType::F32 : t.dtype;
      array.shape = t.shape;
      array.data.resize(static_cast<size_t>(array.elements() *
                                            runtime::dtypeBytes(array.dtype)));
      ckrt_status status = ckrt_tensor_read(
          loaded.session, index, array.data.data(),
          static_cast<ckrt_dtype>(array.dtype), array.elements());
      if (status != CKRT_OK)
        return complain(status);
      std::string error;
      if (!writeFile(options.outputs + "/" + fileNameOf(t.name) + ".npy",
                     formatNpy(array), error))
        return complain(ExitIoError, error);
    }
  }
  return ExitOk;
}

void list(const Manifest &m) {
  std::printf("made by %s\n", m.producer.c_str());
  if (m.target == runtime::Target::Cuda)
    std::printf("for CUDA devices of compute capability %d.%d or higher, with "
                "a driver for CUDA %d.%d or later\n%zu kernels\n",
                m.device.sm / 10, m.device.sm % 10, m.device.minDriver / 1000,
                m.device.minDriver % 1000 / 10, m.kernels.size());
  else
    std::printf("threads %d\n", m.threads);
  std::printf("arena %lld bytes\n", static_cast<long long>(m.arenaBytes));
  for (const TensorInfo &t : m.tensors)
    std::printf(
        "%-15s %-5s %-16s %s\n", std::string(roleName(t.role)).c_str(),
        std::string(dtypeName(t.dtype)).c_str(),
        shapeText(t.shape.data(), static_cast<int64_t>(t.shape.size())).c_str(),
        t.name.c_str());
  for (const auto &f : m.functions)
    std::printf("function %s: %zu inputs, %zu outputs\n", f.name.c_str(),
                f.inputs.size(), f.outputs.size());
}

int printMeasurement(Loaded &loaded) {
  int64_t peak = 0;
  ckrt_status status = ckrt_measured_peak(loaded.session, &peak);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("planned peak %lld bytes\nmeasured peak %lld bytes\n",
              static_cast<long long>(ckrt_arena_bytes(loaded.session)),
              static_cast<long long>(peak));
  if (loaded.manifest().target == runtime::Target::Cuda)
    return ExitOk; // the device's allocations are known: --inspect
  ckrt_allocation_stats stats = {};
  stats.size = sizeof(stats);
  status = ckrt_allocations(loaded.session, &stats);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("allocations of 64 KiB or more during steps: %lld",
              static_cast<long long>(stats.large));
  if (stats.large)
    std::printf(" (largest %lld bytes, by %s)",
                static_cast<long long>(stats.largest), stats.largest_by);
  std::printf("\n");
  return ExitOk;
}

/// The steps ran over one pattern; runs once more over another, so that a byte
/// which happened to equal the first one shows.
int checkArena(Loaded &loaded, const Options &options) {
  int64_t peak = 0, planned = ckrt_arena_bytes(loaded.session);
  ckrt_status status = ckrt_pattern_refill(loaded.session, 2);
  if (status == CKRT_OK)
    status = ckrt_run(loaded.session, options.function.c_str());
  if (status == CKRT_OK)
    status = ckrt_measured_peak(loaded.session, &peak);
  if (status != CKRT_OK)
    return complain(status);
  std::printf("planned peak %lld bytes\nhighest byte written plus one %lld\n",
              static_cast<long long>(planned), static_cast<long long>(peak));
  if (peak == planned)
    return ExitOk;
  return complain(ExitInternal, "the step does not use exactly the bytes that "
                                "were planned");
}

int inspect(Loaded &loaded) {
  ckrt_device_report r = {};
  r.size = sizeof(r);
  if (ckrt_status status = ckrt_device(loaded.session, &r))
    return complain(status);
  auto line = [](const char *what, int64_t bytes) {
    std::printf("%-42s %14lld bytes\n", what, static_cast<long long>(bytes));
  };
  std::printf("cuda:%d %s, compute capability %d.%d, %d multiprocessors\n"
              "driver for CUDA %d.%d\n",
              r.ordinal, r.name, r.compute_capability / 10,
              r.compute_capability % 10, r.multiprocessors,
              r.driver_version / 1000, r.driver_version % 1000 / 10);
  line("memory of the device", r.total_bytes);
  line("in use before loading (context, others)", r.context_bytes);
  line("taken by the code", r.code_bytes);
  line("taken by cuBLASLt and cuDNN", r.library_bytes);
  line("planned arena", ckrt_arena_bytes(loaded.session));
  line("taken by the arena", r.arena_bytes);
  line("taken by the graphs", r.graph_bytes);
  line("pinned host memory", r.pinned_bytes);
  line("most local memory of a thread", r.local_bytes);
  std::printf("%d kernels, at most %d registers a thread\n", r.kernels,
              r.registers);
  return ExitOk;
}

int runArtifact(const Options &options) {
  Loaded loaded;
  std::string error;
  if (!openRuntime(options.artifact, error))
    return complain(ExitInputError, error);
  ckrt_status status =
      ckrt_program_load_file(options.artifact.c_str(), &loaded.program);
  if (status != CKRT_OK)
    return complain(status);
  if (loaded.manifest().target == runtime::Target::Cpu &&
      (options.deviceGiven || options.oneByOne || options.inspect))
    return complain(ExitInputError, options.artifact +
                                        " is compiled for the CPU: it runs on "
                                        "no device");
  if (options.list) {
    list(loaded.manifest());
    return ExitOk;
  }
  ckrt_session_options session = {};
  session.size = sizeof(session);
  session.pattern_fill = options.measure || options.checkArena;
  session.count_allocations = options.measure;
  session.pattern_seed = 1;
  session.device = options.device;
  session.one_by_one = options.oneByOne;
  session.lock_file = options.lockGiven ? options.lock.c_str() : nullptr;
  status = ckrt_session_create(loaded.program, &session, &loaded.session);
  if (status != CKRT_OK)
    return complain(status);
  if (options.inspect)
    return inspect(loaded);
  int code = loadWeights(loaded, options);
  if (!code)
    code = loadInputs(loaded, options);
  if (!code)
    code = writeSeed(loaded, options.seed);
  if (!code)
    code = fillRole(loaded, TensorRole::LearningRate, options.learningRate);
  if (!code)
    code = runSteps(loaded, options);
  if (!code && options.measure)
    code = printMeasurement(loaded);
  if (!code && options.checkArena)
    code = checkArena(loaded, options);
  if (!code && !options.outputs.empty())
    code = writeOutputs(loaded, options);
  return code;
}

} // namespace

int main(int argc, char **argv) {
  // As in tools/ckopt: idle threads sleep soon, unless the user says otherwise.
  if (!std::getenv("GOMP_SPINCOUNT") && !std::getenv("OMP_WAIT_POLICY") &&
      setenv("GOMP_SPINCOUNT", "20000", 1) == 0)
    execv("/proc/self/exe", argv);
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      std::fputs(kUsage, stdout);
      return ExitOk;
    }
    // `--input NAME=FILE` as two words, as users type it.
    if (argument == "--input" && i + 1 < argc)
      argument += std::string("=") + argv[++i];
    if (argument.compare(0, 2, "--") == 0) {
      std::string wrong = parseOption(argument, options);
      if (!wrong.empty())
        return usage(wrong);
    } else if (options.artifact.empty()) {
      options.artifact = argument;
    } else {
      return usage("two artifacts: " + options.artifact + ", " + argument);
    }
  }
  if (options.artifact.empty())
    return usage("no artifact");
  return runArtifact(options);
}
