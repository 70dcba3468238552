//===- ManifestValidate.cpp - what the runtime relies on ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Checks once, at load time, every bound that later code relies on: offsets
// inside the arena, strides inside a tensor's bytes, indices inside tables.
// Linear in the manifest; all arithmetic is checked for overflow.
//
//===----------------------------------------------------------------------===//
#include "DeviceFlights.h"
#include "InitRule.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Runtime/CudaLibraries.h"
#include "ckopt/Runtime/DeviceCollectives.h"
#include "ckopt/Runtime/Manifest.h"

#include <algorithm>
#include <array>
#include <set>

using namespace ckopt::runtime;

namespace {

// Above any real memory, yet small enough that sums cannot overflow.
constexpr int64_t kMaxBytes = int64_t(1) << 50;
constexpr size_t kMaxRank = 32;

constexpr std::array<std::string_view, kNumTensorRoles> kRoles = {
    "parameter", "frozen", "state", "optimizer_state", "input", "target",
    "constant",  "seed",   "step",  "learning_rate",   "loss",  "output",
    "gradient",  "copy"};

bool fail(std::string &error, std::string text) {
  error = "manifest: " + std::move(text);
  return false;
}

bool inArena(const Manifest &m, int64_t offset, int64_t bytes) {
  return offset >= 0 && bytes >= 0 && bytes <= m.arenaBytes &&
         offset <= m.arenaBytes - bytes;
}

/// Returns the bytes from a tensor's first to its last element, or -1 on
/// overflow.
int64_t spanBytes(const TensorInfo &t) {
  int64_t last = 0;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] == 0)
      return 0;
    int64_t step;
    if (__builtin_mul_overflow(t.shape[d] - 1, t.strides[d], &step) ||
        __builtin_add_overflow(last, step, &last) || last > kMaxBytes)
      return -1;
  }
  return (last + 1) * dtypeSize(t.dtype);
}

/// Tells whether the limits are those of integers, of parts that exist.
bool validLimits(const TensorInfo &t) {
  auto valid = [](const ckopt::IntegerLimits &l) {
    return l.classes >= 0 && l.rows >= 0 && (!l.hasIgnored || l.classes > 0);
  };
  for (const ckopt::PartLimits &part : t.limits.parts)
    if (part.axis < 0 || static_cast<size_t>(part.axis) >= t.shape.size() ||
        part.low < 0 || part.high <= part.low ||
        part.high >
            ckopt::elementsFrom(t.shape, static_cast<size_t>(part.axis)) ||
        !part.limits.exist() || !valid(part.limits))
      return false;
  return valid(t.limits.all) && (!t.limits.exist() || !isFloat(t.dtype));
}

bool validateTensor(const Manifest &m, const TensorInfo &t,
                    std::string &error) {
  auto bad = [&](const std::string &what) {
    return fail(error, "tensor '" + t.name + "': " + what);
  };
  if (t.name.empty())
    return fail(error, "a tensor has no name");
  if (std::string fault = ckopt::faultOfName(t.name); !fault.empty())
    return fail(error, fault);
  if (static_cast<uint32_t>(t.role) >= kNumTensorRoles)
    return bad("unknown role");
  if (!isDType(t.dtype))
    return bad("unknown element type");
  if (t.shape.size() != t.strides.size() || t.shape.size() > kMaxRank)
    return bad("shape and strides disagree in rank");
  int64_t elements = 1;
  // Strides of an empty tensor are products of extents, some of which are 0.
  bool empty = std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end();
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] < 0 || t.strides[d] < 0)
      return bad("negative extent or stride");
    if (!empty && t.shape[d] > 1 && t.strides[d] == 0)
      return bad("stride 0");
    if (__builtin_mul_overflow(elements, t.shape[d], &elements) ||
        elements > kMaxBytes)
      return bad("too many elements");
  }
  int64_t span = spanBytes(t);
  if (span < 0 || span > t.bytes || elements > t.bytes / dtypeSize(t.dtype))
    return bad("its elements do not fit in its bytes");
  if (!inArena(m, t.offset, t.bytes))
    return bad("lies outside the arena");
  if (t.offset % dtypeSize(t.dtype) != 0)
    return bad("offset is not aligned to its element type");
  static const std::set<std::string_view> kRandom = {"kaiming", "xavier",
                                                     "normal"};
  if (!initialNumber(t.init) && !kRandom.count(t.init))
    return bad("unknown initialization '" + t.init + "'");
  if (t.fanIn < 0 || t.fanOut < 0 || t.dataOffset < -1 ||
      t.dataOffset > kMaxBytes)
    return bad("negative or wild fan or data offset");
  if (t.shards < 1 || t.shards > (1 << 16) || t.wholeShape.size() > kMaxRank ||
      (t.shards == 1) != t.wholeShape.empty())
    return bad("no possible number of shards");
  int64_t whole = t.shards > 1 ? 1 : 0, data = 0;
  if (__builtin_mul_overflow(t.bytes, t.shards, &data) || data > kMaxBytes)
    return bad("too many bytes of all shards");
  for (int64_t size : t.wholeShape)
    if (size < 0 || __builtin_mul_overflow(whole, size, &whole) ||
        whole > kMaxBytes)
      return bad("too many elements of all shards");
  if ((whole + t.shards - 1) / t.shards > elements)
    return bad("its shards are not the whole tensor");
  if (!validLimits(t))
    return bad("no possible limits of its integers");
  if (static_cast<uint32_t>(t.values) >= kNumTargetValues)
    return bad("unknown kind of values");
  return true;
}

bool validateFunctions(const Manifest &m, std::string &error) {
  std::set<std::string_view> names;
  for (const FunctionInfo &f : m.functions) {
    if (std::string fault = ckopt::faultOfName(f.name); !fault.empty())
      return fail(error, fault);
    if (f.name.empty() || f.symbol.empty() || !names.insert(f.name).second)
      return fail(error, "function '" + f.name +
                             "': no symbol, no name, or "
                             "there twice");
    for (const auto *indices : {&f.inputs, &f.outputs})
      for (int32_t index : *indices)
        if (index < 0 || static_cast<size_t>(index) >= m.tensors.size())
          return fail(error,
                      "function '" + f.name + "': tensor index out of range");
  }
  return true;
}

bool validateCalls(const Manifest &m, std::string &error) {
  for (size_t i = 0; i < m.calls.size(); ++i) {
    const CallInfo &c = m.calls[i];
    auto bad = [&](const std::string &what) {
      return fail(error,
                  "call " + std::to_string(i) + " (" + c.source + "): " + what);
    };
    if (c.function < 0 || static_cast<size_t>(c.function) >= m.functions.size())
      return bad("function index out of range");
    if (c.primitive < -1 ||
        c.primitive >= static_cast<int64_t>(m.primitives.size()))
      return bad("primitive index out of range");
    if (c.originalCall < -1 || c.originalCall >= static_cast<int64_t>(i))
      return bad("repeats a call that does not come before it");
    if (!inArena(m, c.workspaceOffset, c.workspaceBytes))
      return bad("workspace outside the arena");
    for (const CallResult &r : c.results)
      if (!isDType(r.dtype) || !inArena(m, r.offset, r.bytes) ||
          r.bytes % dtypeSize(r.dtype) != 0 ||
          r.offset % dtypeSize(r.dtype) != 0)
        return bad("a result lies outside the arena or is not aligned");
    if (c.originalCall >= 0) {
      const CallInfo &o = m.calls[c.originalCall];
      bool same = o.results.size() == c.results.size();
      for (size_t r = 0; same && r < c.results.size(); ++r)
        same = o.results[r].bytes == c.results[r].bytes ||
               c.results[r].bytes == 0; // a clone may drop results
      if (!same || o.function != c.function)
        return bad("differs in results from the call that it repeats");
    }
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

// Limits of every architecture from sm_80 on, and of PTX.
constexpr int64_t kMaxGrid = 0x7FFFFFFF, kMaxBlock = 1024;
constexpr int64_t kMaxParameterBytes = 4096;

bool isIdentifier(std::string_view text) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9'))
      return false;
  return !text.empty() && letter(text[0]);
}

bool validateKernels(const Manifest &m, std::string &error) {
  std::set<std::string_view> symbols;
  for (const KernelInfo &k : m.kernels) {
    auto bad = [&](const std::string &what) {
      return fail(error, "kernel '" + k.symbol + "': " + what);
    };
    if (!isIdentifier(k.symbol) || !symbols.insert(k.symbol).second)
      return bad("its symbol is no identifier, or there twice");
    if (k.grid < 1 || k.grid > kMaxGrid || k.block < 1 || k.block > kMaxBlock)
      return bad(std::to_string(k.grid) + " blocks of " +
                 std::to_string(k.block) + " threads");
    if (k.sharedBytes < 0 || k.sharedBytes > mostSharedBytes(m.device.sm))
      return bad(std::to_string(k.sharedBytes) + " bytes of shared memory");
    if (k.pointers < 0 || k.scalars < 0 ||
        (int64_t(k.pointers) + k.scalars + 1) * 8 > kMaxParameterBytes)
      return bad("more parameters than a launch can pass");
  }
  return true;
}

/// Returns "", or what is wrong with a launch of an op of several ranks.
std::string checkRankLaunch(const PrimitiveDesc &desc, const CallInfo &call,
                            const LaunchInfo &l) {
  if (l.pointers.size() != argumentCount(desc) ||
      l.scalars.size() != kRankScalars)
    return "a launch's parameters are not its op's";
  for (size_t i = 0; i < l.pointers.size(); ++i)
    if (l.pointers[i].bytes < argumentElements(desc, i) * dtypeSize(desc.dtype))
      return "a tensor that ranks share is too small";
  if (desc.allReduce.started && l.scratchOffset != l.pointers.back().offset)
    return "a collective that only begins works outside of its last result";
  auto phase = static_cast<RankPhase>(l.scalars[0]);
  if (!isDeviceSum(desc))
    return phase == RankPhase::Whole ? ""
                                     : "an op that adds nothing has pieces";
  if (!desc.allReduce.started && call.workspaceBytes < deviceWorkspace(desc))
    return "a sum over ranks has too small a workspace";
  for (const SumPiece &piece : sumPieces(desc))
    if (piece.from == l.scalars[1] && piece.count == l.scalars[2] &&
        (phase == RankPhase::Exchange || phase == RankPhase::Spread))
      return "";
  return "no such piece of a sum over ranks";
}

/// Returns "", or what is wrong with the launch.
std::string checkLaunch(const Manifest &m, const CallInfo &call,
                        const LaunchInfo &l) {
  auto known = [](int32_t index, size_t count) {
    return index >= 0 && static_cast<size_t>(index) < count;
  };
  if ((l.kernel == -1) == (l.primitive == -1))
    return "a launch needs a kernel or a primitive";
  if (l.kernel == -1 ? !known(l.primitive, m.primitives.size())
                     : !known(l.kernel, m.kernels.size()))
    return "a launch's kernel or primitive is out of range";
  size_t pointers = 0, scalars = 0;
  if (l.kernel < 0) {
    pointers = cudaLibraryArguments(m.primitives[l.primitive]);
  } else {
    pointers = static_cast<size_t>(m.kernels[l.kernel].pointers);
    scalars = static_cast<size_t>(m.kernels[l.kernel].scalars);
  }
  bool ofRanks = l.primitive >= 0 && isOfRanks(m.primitives[l.primitive].kind);
  if (ofRanks) {
    if (std::string what = checkRankLaunch(m.primitives[l.primitive], call, l);
        !what.empty())
      return what;
  } else if (l.pointers.size() != pointers || l.scalars.size() != scalars)
    return "a launch's parameters are not its kernel's";
  for (const LaunchPointer &p : l.pointers)
    if (!inArena(m, p.offset, p.bytes) || p.offset % 64 != 0)
      return "a parameter lies outside the arena or is not aligned to 64 bytes";
  int64_t scratch = l.kernel >= 0 ? 0 : call.workspaceBytes;
  if (!inArena(m, l.scratchOffset, scratch) || l.scratchOffset % 64 != 0)
    return "scratch outside the arena or not aligned to 64 bytes";
  return "";
}

/// Returns "", or what is wrong with the launches of a call.
std::string checkLaunches(const Manifest &m, const CallInfo &call) {
  for (const LaunchInfo &l : call.launches)
    if (std::string what = checkLaunch(m, call, l); !what.empty())
      return what;
  if (!call.ownLaunches.empty() &&
      (call.launches.size() != 1 || m.libraryPrimitive(call) < 0))
    return "kernels in the place of a library's, and no launch of one";
  for (const LaunchInfo &l : call.ownLaunches)
    if (std::string what = l.kernel < 0 ? "a library's in its own place"
                                        : checkLaunch(m, call, l);
        !what.empty())
      return what;
  return call.ownScratchBytes < 0 || call.ownScratchBytes > call.workspaceBytes
             ? "scratch beyond the workspace"
             : "";
}

bool validateDevice(const Manifest &m, std::string &error) {
  const DeviceInfo &d = m.device;
  if (m.target == Target::Cpu) {
    bool launches = false;
    for (const CallInfo &c : m.calls)
      launches |= !c.launches.empty() || !c.ownLaunches.empty();
    if (launches || !m.kernels.empty() || d.sm || d.ptxIsa || d.minDriver ||
        d.precision != ProductPrecision::F32 || d.multiprocessors ||
        d.programmatic)
      return fail(error, "made for the CPU, but with device code");
    return true;
  }
  if (d.sm < 50 || d.sm > 999 || d.ptxIsa < 10 || d.ptxIsa > 999 ||
      d.minDriver < 1000 || d.minDriver > 999999)
    return fail(error, "no architecture, PTX version or driver version");
  if (d.codeBytes < 0 || d.codeBytes > kMaxBytes || d.dataBytes < 0 ||
      d.dataBytes > kMaxBytes)
    return fail(error, "negative or wild size of code or data");
  if (d.programmatic && d.sm < 90)
    return fail(error, "programmatic launches below sm_90");
  if (d.multiprocessors < 0)
    return fail(error, "a negative number of multiprocessors");
  if (static_cast<uint32_t>(d.precision) >= kNumProductPrecisions)
    return fail(error, "unknown precision of products");
  bool forms = false;
  for (const PrimitiveDesc &primitive : m.primitives)
    forms |= primitive.form != LibraryForm::Default;
  if (m.threads != 1 || !m.cpuFeatures.empty() || forms)
    return fail(error, "made for a device, but with CPU features, threads or "
                       "forms of primitives");
  if (!validateKernels(m, error))
    return false;
  for (size_t i = 0; i < m.calls.size(); ++i)
    if (std::string what = checkLaunches(m, m.calls[i]); !what.empty())
      return fail(error, "call " + std::to_string(i) + " (" +
                             m.calls[i].source + "): " + what);
  std::string unpaired;
  (void)startsOfWaits(m, unpaired);
  return unpaired.empty() || fail(error, unpaired);
}

/// Checks that what is fed has two places in the arena, side by side, if it has
/// a second one.
bool validateFed(const Manifest &m) {
  const DeviceInfo &device = m.device;
  const int64_t bytes = device.fedEnd - device.fedBegin;
  return device.fedShift == 0 ||
         (m.target == Target::Cuda && device.fedBegin >= 0 &&
          device.fedBegin < device.fedEnd && device.fedShift >= bytes &&
          device.fedEnd <= m.arenaBytes &&
          device.fedShift <= m.arenaBytes - device.fedEnd &&
          device.fedBegin % 64 == 0 && device.fedShift % 64 == 0);
}

} // namespace

std::string_view ckopt::runtime::targetName(Target target) {
  return target == Target::Cpu    ? "cpu"
         : target == Target::Cuda ? "cuda"
                                  : "unknown";
}

std::string_view ckopt::runtime::roleName(TensorRole role) {
  auto index = static_cast<uint32_t>(role);
  return index < kNumTensorRoles ? kRoles[index] : "unknown";
}

bool ckopt::runtime::parseRole(std::string_view name, TensorRole &role) {
  for (uint32_t i = 0; i < kNumTensorRoles; ++i)
    if (kRoles[i] == name) {
      role = static_cast<TensorRole>(i);
      return true;
    }
  return false;
}

bool ckopt::runtime::validate(const Manifest &m, std::string &error) {
  if (m.abiVersion != kAbiVersion)
    return fail(error,
                "made for interface version " + std::to_string(m.abiVersion));
  if (static_cast<uint32_t>(m.target) >= kNumTargets)
    return fail(error, "unknown target");
  if (m.threads < 1 || m.threads > 4096)
    return fail(error, std::to_string(m.threads) + " threads");
  if (m.arenaBytes < 0 || m.arenaBytes > kMaxBytes)
    return fail(error, "arena of " + std::to_string(m.arenaBytes) + " bytes");
  int64_t most = m.target == Target::Cuda ? kDeviceAlignment : 64;
  if (m.alignment < 1 || m.alignment > most ||
      (m.alignment & (m.alignment - 1)) != 0)
    return fail(error, "alignment is not a power of two up to " +
                           std::to_string(most));
  if (!validateFed(m))
    return fail(error, "the places of what is fed to steps are none of it");
  for (const TensorInfo &t : m.tensors)
    if (!validateTensor(m, t, error))
      return false;
  if (!validateFunctions(m, error))
    return false;
  for (size_t i = 0; i < m.primitives.size(); ++i) {
    std::string wrong = check(m.primitives[i]);
    // All operands of f32 must have one precision, or bits would depend on
    // which products run in libraries.
    const PrimitiveDesc &desc = m.primitives[i];
    if (wrong.empty() && desc.dtype == DType::F32 && !isOfRanks(desc.kind) &&
        desc.precision != m.device.precision)
      wrong = describe(desc) + ": another precision than the step's";
    if (!wrong.empty())
      return fail(error, "primitive " + std::to_string(i) + ": " + wrong);
  }
  return validateCalls(m, error) && validateDevice(m, error);
}
