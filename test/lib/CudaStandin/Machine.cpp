//===- Machine.cpp - the device that the stand-in driver plays ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Machine.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sstream>
#include <thread>
#include <xmmintrin.h>

using namespace standin;

// Allocations are rounded up to this, as the driver does.
static constexpr int64_t kUnitBytes = 2 << 20;

static int64_t number(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

/// Puts the rank where a file's name has "%r", so that processes have files of
/// their own.
static std::string ofThisRank(std::string path) {
  size_t at = path.find("%r");
  if (at == std::string::npos)
    return path;
  const char *rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (!rank)
    rank = std::getenv("RANK");
  return path.replace(at, 2, rank ? rank : "0");
}

Machine &Machine::get() {
  static Machine machine;
  return machine;
}

Machine::Machine()
    : devices(static_cast<int>(number("CKOPT_STANDIN_DEVICES", 1))),
      capability(static_cast<int>(number("CKOPT_STANDIN_SM", 90))),
      version(static_cast<int>(number("CKOPT_STANDIN_DRIVER", 12040))),
      page(number("CKOPT_STANDIN_PAGE", 0)),
      totalBytes(number("CKOPT_STANDIN_MEMORY", int64_t(8) << 30)) {
  if (const char *path = std::getenv("CKOPT_STANDIN_LOG"); path && *path)
    file = std::fopen(ofThisRank(path).c_str(), "w");
  for (int device = 0; device < devices; ++device)
    visible.push_back(device);
  if (const char *list = std::getenv("CUDA_VISIBLE_DEVICES")) {
    visible.clear();
    // As in the driver: what stands behind a number that is none is not there.
    for (char *end = nullptr; *list; list = *end == ',' ? end + 1 : end) {
      long device = std::strtol(list, &end, 10);
      if (end == list || device < 0 || device >= devices)
        break;
      visible.push_back(static_cast<int>(device));
    }
    devices = static_cast<int>(visible.size());
  }
  if (const char *text = std::getenv("CKOPT_STANDIN_FAIL"); text && *text) {
    std::string all = text;
    size_t first = all.find(':');
    failing = all.substr(0, first);
    failAt = first == std::string::npos ? 1 : std::atoi(&all[first + 1]);
    size_t second =
        first == std::string::npos ? first : all.find(':', first + 1);
    size_t plus = first == std::string::npos ? first : all.find('+', first);
    failAlways = plus != std::string::npos && plus < second;
    if (second != std::string::npos)
      failCode = std::atoi(&all[second + 1]);
  }
  if (const char *given = std::getenv("CKOPT_STANDIN_NAME"); given && *given)
    name = given;
  slowMicroseconds = number("CKOPT_STANDIN_SLOW", 0);
  const char *order = std::getenv("CKOPT_STANDIN_ORDER");
  early = order && std::strcmp(order, "early") == 0;
  const char *sticky = std::getenv("CKOPT_STANDIN_STICKY");
  stickyProcess = sticky && std::strcmp(sticky, "process") == 0;
}

Machine::~Machine() {
  auto report = [&](const char *what, size_t count) {
    if (count)
      log("LEAK " + std::to_string(count) + " " + what);
  };
  report("contexts", contexts.size());
  report("modules", modules.size());
  report("streams", static_cast<size_t>(std::count_if(
                        streams.begin(), streams.end(), [](const auto &stream) {
                          return stream->number > 0;
                        })));
  report("events", events.size());
  report("graphs", graphs.size());
  report("executable graphs", executables.size());
  report("device allocations", deviceBlocks.size());
  report("host allocations", hostBlocks.size());
  log("end");
  for (auto *blocks : {&deviceBlocks, &hostBlocks})
    for (const Block &block : *blocks)
      std::free(block.memory);
  if (file)
    std::fclose(file);
}

/// Rounds f32 to bf16, to nearest, ties to even; a NaN stays one. The result
/// lies in the low bits of a vector register, as this float does.
extern "C" __attribute__((visibility("default"))) float
__truncsfbf2(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  bool isNan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  bits = isNan ? (bits >> 16) | 0x40u
               : (bits + 0x7FFFu + ((bits >> 16) & 1)) >> 16;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

void *Machine::openKernels() {
  const char *path = std::getenv("CKOPT_STANDIN_KERNELS");
  if (!path || !*path || runsPtx())
    return nullptr;
  // CPU code of the kernels calls __truncsfbf2 where the CPU has no instruction
  // for it, but Debian 12's libgcc lacks that function: load this library
  // globally, so that they find the one above.
  Dl_info self;
  if (dladdr(reinterpret_cast<void *>(&__truncsfbf2), &self) && self.dli_fname)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    std::fprintf(stderr,
                 "stand-in driver: CKOPT_STANDIN_KERNELS is neither 'ptx' nor "
                 "the path of a library, with a slash: %s\n",
                 dlerror());
    std::abort();
  }
  return library;
}

bool Machine::runsPtx() {
  const char *kernels = std::getenv("CKOPT_STANDIN_KERNELS");
  return kernels && std::strcmp(kernels, "ptx") == 0;
}

void Machine::log(const std::string &line) {
  if (!file)
    return;
  std::fprintf(file, "%s\n", line.c_str());
  std::fflush(file);
}

Result Machine::violation(const std::string &text) {
  log("VIOLATION " + text);
  return 1; // CUDA_ERROR_INVALID_VALUE
}

bool Machine::refuses(const std::string &library, bool counts) {
  std::string number = counts ? std::to_string(++asked[library]) : "-";
  const char *text = std::getenv("CKOPT_STANDIN_REFUSE");
  std::istringstream words(text ? text : "");
  for (std::string word; std::getline(words, word, ',');)
    if (word == library || word == library + ":" + number) {
      log("refuses " + library + " " + number);
      return true;
    }
  return false;
}

Result Machine::injected(const std::string &what) {
  if (failing != what)
    return kSuccess;
  ++failCount;
  return failCount == failAt || (failAlways && failCount > failAt) ? failCode
                                                                   : kSuccess;
}

Result Machine::enter(const std::string &call, const std::string &arguments,
                      bool needsContext) {
  log(call + (arguments.empty() ? "" : " " + arguments));
  Result result = injected(call);
  if (result == kSuccess && !initialized && call != "cuInit" &&
      call != "cuDriverGetVersion" && call.rfind("cuGetError", 0) != 0)
    result = 3; // CUDA_ERROR_NOT_INITIALIZED
  if (result == kSuccess && needsContext) {
    if (!current())
      result = 201; // CUDA_ERROR_INVALID_CONTEXT
    else if (current()->failure != kSuccess)
      result = current()->failure;
    else if (processFailure != kSuccess)
      result = processFailure;
  } else if (result == kSuccess && processFailure != kSuccess &&
             (call == "cuCtxCreate" || call == "cuDevicePrimaryCtxRetain")) {
    result = processFailure;
  }
  if (result != kSuccess)
    log("  fails with " + std::to_string(result));
  return result;
}

ContextStack &Machine::stack() const {
  static thread_local ContextStack contexts;
  return contexts;
}

Context Machine::current() const {
  return stack().empty() ? nullptr : stack().back();
}

bool Machine::usable(Context context, const char *what) {
  if (context == current())
    return true;
  violation(std::string("uses ") + what + " of another context");
  return false;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static bool holds(const Block &block, uint64_t address, size_t bytes) {
  auto begin = reinterpret_cast<uint64_t>(block.memory);
  return address >= begin && bytes <= block.bytes &&
         address - begin <= block.bytes - bytes;
}

const Block *Machine::deviceBlock(uint64_t address, size_t bytes) const {
  for (const Block &block : deviceBlocks)
    if (holds(block, address, bytes))
      return &block;
  return nullptr;
}

const Block *Machine::hostBlock(const void *address, size_t bytes) const {
  for (const Block &block : hostBlocks)
    if (holds(block, reinterpret_cast<uint64_t>(address), bytes))
      return &block;
  return nullptr;
}

std::string Machine::place(uint64_t address) const {
  for (const auto *blocks : {&deviceBlocks, &hostBlocks})
    for (const Block &block : *blocks)
      if (holds(block, address, 0))
        return block.name + "+" +
               std::to_string(address -
                              reinterpret_cast<uint64_t>(block.memory));
  return "?";
}

static int64_t roundUp(int64_t bytes) {
  return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes;
}

int64_t Machine::usedBytes() const {
  int64_t used = static_cast<int64_t>(contexts.size()) * kContextBytes;
  for (const Block &block : deviceBlocks)
    used += roundUp(static_cast<int64_t>(block.bytes));
  for (const auto &module : modules)
    used += roundUp(module->bytes);
  return used;
}

Result Machine::allocate(std::list<Block> &blocks, const char *letter,
                         size_t bytes, char *&memory) {
  if (bytes == 0)
    return violation("an allocation of 0 bytes");
  if (&blocks == &deviceBlocks &&
      roundUp(static_cast<int64_t>(bytes)) > totalBytes - usedBytes())
    return kOutOfMemory;
  memory =
      static_cast<char *>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  if (!memory)
    return kOutOfMemory;
  // Fill memory with a pattern that is neither zero nor a plausible number, so
  // that reads of unwritten memory are noticed.
  std::memset(memory, 0xFB, bytes);
  blocks.push_back(
      {letter + std::to_string(blocks.size() + 1), memory, bytes, current()});
  return kSuccess;
}

Result Machine::release(std::list<Block> &blocks, const void *memory) {
  for (auto it = blocks.begin(); it != blocks.end(); ++it)
    if (it->memory == memory) {
      std::free(it->memory);
      blocks.erase(it);
      return kSuccess;
    }
  return violation("free of what is not allocated");
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

Result Machine::enqueue(Stream stream, Launch launch) {
  std::set<std::string> &ran = stream->context->ran;
  std::string call = launch.name + " " + launch.shape;
  bool ofLibrary = (launch.body || launch.begin) && !launch.isCopy;
  bool isKernel = launch.function != nullptr;
  // The driver would let it begin when what is before has ended; whoever asks
  // for more is wrong about what that is.
  if (launch.early && !stream->behindKernel)
    return violation(launch.function->symbol +
                     " is to begin early behind what is no kernel");
  if (stream->capture && ofLibrary && !ran.count(call))
    return violation("captures the first call of " + call +
                     ": it may load code or allocate");
  if (stream->capture) {
    GraphPiece piece;
    piece.branch = stream->branch;
    piece.launch = std::move(launch);
    stream->capture->graph.pieces.push_back(std::move(piece));
    ++stream->capture->counts[stream->branch];
    stream->behindKernel = isKernel;
    return kSuccess;
  }
  launch.first = ofLibrary && !ran.count(call);
  if (launch.begin) {
    ran.insert(call);
    push(stream, launch.begin(stream));
    return kSuccess;
  }
  push(stream, [launch, call, context = stream->context] {
    if (launch.first)
      context->ran.insert(call);
    return Machine::get().execute(launch);
  });
  stream->behindKernel = isKernel;
  return kSuccess;
}

Result Machine::check(const Launch &launch) {
  const FunctionOpaque &function = *launch.function;
  const Entry &entry = *function.entry;
  if (launch.block > static_cast<unsigned>(entry.maxThreads) ||
      launch.grid == 0 || launch.block == 0 || launch.grid > 0x7FFFFFFFu)
    return violation(function.symbol + ": " + std::to_string(launch.grid) +
                     " blocks of " + std::to_string(launch.block) + " threads");
  for (size_t i = 0; i < entry.parameters.size(); ++i) {
    const Parameter &parameter = entry.parameters[i];
    if (!parameter.pointer)
      continue;
    uint64_t value = launch.values[i];
    if (!deviceBlock(value, 0) ||
        value % static_cast<uint64_t>(parameter.align) != 0)
      return violation(function.symbol + ": parameter " + std::to_string(i) +
                       " points outside of live memory, or is not aligned");
  }
  return kSuccess;
}

Result Machine::interpret(const Launch &launch) {
  std::vector<ptx::Region> regions;
  for (const Block &block : deviceBlocks)
    regions.push_back(
        {reinterpret_cast<uint64_t>(block.memory), block.bytes, block.name});
  memory.setRegions(regions);
  std::string wrong = ptx::launch(
      *launch.function->program, launch.function->symbol, launch.grid,
      launch.block, launch.values, memory, launch.sharedBytes, launch.early);
  if (wrong.empty()) {
    auto text = [](const char *kind, const ptx::Traffic &traffic) {
      return std::string(" ") + kind + " " + std::to_string(traffic.requests) +
             " sectors " + std::to_string(traffic.sectors) + " bytes " +
             std::to_string(traffic.bytes);
    };
    log("traffic " + launch.function->symbol + text("loads", memory.loads) +
        text("stores", memory.stores));
    return kSuccess;
  }
  std::fprintf(stderr, "stand-in driver: %s\n", wrong.c_str());
  (void)violation(wrong);
  return 719; // CUDA_ERROR_LAUNCH_FAILED
}

Result Machine::execute(const Launch &launch) {
  clock += std::max<int64_t>(slowMicroseconds, 1);
  if (slowMicroseconds > 0)
    std::this_thread::sleep_for(std::chrono::microseconds(slowMicroseconds));
  if (launch.body) {
    log((launch.first ? "first " : "execute ") + launch.name);
    if (Result result = injected("kernel=" + launch.name))
      return result;
    launch.body();
    return kSuccess;
  }
  const FunctionOpaque &function = *launch.function;
  std::string text = "execute " + function.symbol;
  for (size_t i = 0; i < launch.values.size(); ++i)
    text += " " + (function.entry->parameters[i].pointer
                       ? place(launch.values[i])
                       : std::to_string(int64_t(launch.values[i])));
  log(text);
  if (Result result = injected("kernel=" + function.symbol))
    return result;
  if (Result result = check(launch))
    return result;
  if (function.program)
    return interpret(launch);
  if (!function.code)
    return kSuccess;
  std::vector<uint64_t> values = launch.values;
  std::vector<void *> parameters;
  for (uint64_t &value : values)
    parameters.push_back(&value);
  unsigned saved = _mm_getcsr();
  if (function.entry->flushes)
    _mm_setcsr(saved | 0x8040);
  function.code(parameters.data());
  _mm_setcsr(saved);
  return kSuccess;
}
