//===- ManifestValidate.cpp - what the runtime relies on ------------------===//
//
// Every bound that later code takes for granted is checked here once: places
// inside the arena, strides inside a tensor's bytes, indices inside tables.
// Linear in the manifest; all arithmetic is checked for overflow.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Manifest.h"

#include <array>
#include <set>

using namespace ckopt::runtime;

namespace {

// Far above any memory, far below where sums of two overflow.
constexpr int64_t kMaxBytes = int64_t(1) << 50;
constexpr size_t kMaxRank = 32;

constexpr std::array<std::string_view, kNumTensorRoles> kRoles = {
    "parameter", "frozen", "state", "optimizer_state", "input", "target",
    "constant",  "seed",   "step",  "learning_rate",   "loss",  "output",
    "gradient"};

bool fail(std::string &error, std::string text) {
  error = "manifest: " + std::move(text);
  return false;
}

bool inArena(const Manifest &m, int64_t offset, int64_t bytes) {
  return offset >= 0 && bytes >= 0 && bytes <= m.arenaBytes &&
         offset <= m.arenaBytes - bytes;
}

bool validDType(DType dtype) {
  return static_cast<uint32_t>(dtype) < kNumDTypes;
}

/// Bytes from a tensor's first to its last element, or -1 on overflow.
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
  return (last + 1) * dtypeBytes(t.dtype);
}

bool validateTensor(const Manifest &m, const TensorInfo &t,
                    std::string &error) {
  auto bad = [&](const std::string &what) {
    return fail(error, "tensor '" + t.name + "': " + what);
  };
  if (t.name.empty() || t.name.find('\0') != std::string::npos)
    return fail(error, "a tensor has no usable name");
  if (static_cast<uint32_t>(t.role) >= kNumTensorRoles)
    return bad("unknown role");
  if (!validDType(t.dtype))
    return bad("unknown element type");
  if (t.shape.size() != t.strides.size() || t.shape.size() > kMaxRank)
    return bad("shape and strides disagree in rank");
  int64_t elements = 1;
  for (size_t d = 0; d < t.shape.size(); ++d) {
    if (t.shape[d] < 0 || t.strides[d] < 0)
      return bad("negative extent or stride");
    if (t.shape[d] > 1 && t.strides[d] == 0)
      return bad("stride 0");
    if (__builtin_mul_overflow(elements, t.shape[d], &elements) ||
        elements > kMaxBytes)
      return bad("too many elements");
  }
  int64_t span = spanBytes(t);
  if (span < 0 || span > t.bytes || elements > t.bytes / dtypeBytes(t.dtype))
    return bad("its elements do not fit in its bytes");
  if (!inArena(m, t.offset, t.bytes))
    return bad("lies outside the arena");
  if (t.offset % dtypeBytes(t.dtype) != 0)
    return bad("offset is not aligned to its element type");
  static const std::set<std::string_view> kRules = {
      "", "zeros", "ones", "kaiming", "xavier", "normal"};
  if (!kRules.count(t.init))
    return bad("unknown initialization '" + t.init + "'");
  if (t.fanIn < 0 || t.fanOut < 0 || t.dataOffset < -1 ||
      t.dataOffset > kMaxBytes)
    return bad("negative or wild fan or data offset");
  return true;
}

bool validateFunctions(const Manifest &m, std::string &error) {
  std::set<std::string_view> names;
  for (const FunctionInfo &f : m.functions) {
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
      if (!validDType(r.dtype) || !inArena(m, r.offset, r.bytes) ||
          r.bytes % dtypeBytes(r.dtype) != 0 ||
          r.offset % dtypeBytes(r.dtype) != 0)
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

} // namespace

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
  if (m.threads < 1 || m.threads > 4096)
    return fail(error, std::to_string(m.threads) + " threads");
  if (m.arenaBytes < 0 || m.arenaBytes > kMaxBytes)
    return fail(error, "arena of " + std::to_string(m.arenaBytes) + " bytes");
  if (m.alignment < 1 || m.alignment > 64 ||
      (m.alignment & (m.alignment - 1)) != 0)
    return fail(error, "alignment is not a power of two up to 64");
  for (const TensorInfo &t : m.tensors)
    if (!validateTensor(m, t, error))
      return false;
  if (!validateFunctions(m, error))
    return false;
  for (size_t i = 0; i < m.primitives.size(); ++i) {
    std::string wrong = check(m.primitives[i]);
    if (!wrong.empty())
      return fail(error, "primitive " + std::to_string(i) + ": " + wrong);
  }
  return validateCalls(m, error);
}
