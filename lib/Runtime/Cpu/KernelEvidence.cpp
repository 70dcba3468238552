//===- KernelEvidence.cpp - which of oneDNN's kernels are right -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: every release of oneDNN has kernels that give wrong numbers, read
// what nobody wrote, or end the process, for shapes that nobody tried. A list
// of those is never complete.
//
// Method: a list of what is known to be right. A sweep (LibrarySweep) runs each
// kernel on random shapes, results and workspace full of NaN, and compares it
// with plain loops; what it found right stands in KernelSweeps.inc, by version,
// instruction set, kind, type, kernel, and the traits of the shapes. A kernel
// is taken where a row has all traits of a shape; else another kernel, in the
// library's order, and our own or none where no row vouches for any.
//
// On an instruction set that no row is of, a newer CPU's, the library is held
// to the largest set below it that has rows.
//
//===----------------------------------------------------------------------===//
#include "KernelEvidence.h"

#include "CpuFeatures.h"
#include "PlacedProduct.h"

#include <algorithm>
#include <cstdlib>
#include <dnnl.h>

using namespace ckopt::runtime;

KernelEvidence::~KernelEvidence() = default;

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

/// Returns whether some tap of the dimension lies in padding for all outputs.
static bool hasBlindTap(const ConvDesc &c, int64_t d) {
  for (int64_t k = 0; k < c.kernel[d]; ++k) {
    int64_t first = k * c.dilations[d] - c.padsLo[d]; // what output 0 reads
    int64_t skipped =
        first >= 0 ? 0 : (-first + c.strides[d] - 1) / c.strides[d];
    if (skipped >= c.out[d] || first + skipped * c.strides[d] >= c.in[d])
      return true;
  }
  return false;
}

static std::vector<std::string_view> convTraits(const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  static constexpr std::string_view kRanks[] = {"rank1", "rank2", "rank3"};
  std::vector<std::string_view> traits{kRanks[c.rank - 1]};
  auto add = [&](bool has, std::string_view name) {
    if (has)
      traits.push_back(name);
  };
  bool point = true, strided = false, dilated = false, blind = false;
  for (int64_t d = 0; d < c.rank; ++d) {
    point &= c.kernel[d] == 1;
    strided |= c.strides[d] != 1;
    dilated |= c.dilations[d] != 1 && c.kernel[d] != 1;
    blind |= hasBlindTap(c, d);
  }
  bool grouped = c.groups > 1;
  int64_t channels = c.inChannels / c.groups,
          filters = c.outChannels / c.groups;
  add(grouped && channels != 1, "grouped");
  add(grouped && channels == 1, "depthwise");
  add(point, "point");
  add(strided, "strided");
  add(dilated, "dilated");
  add(blind, "blind"); // a tap that meets no data
  add(c.channelsLast, "channels-last");
  add(c.weightsLast, "weights-last");
  add(desc.wideResult, "wide");
  // Traits that kernels have been seen to get wrong only together.
  add(point && filters % 2 != 0, "odd-point");
  add(point && strided && channels % 16 != 0, "strided-tail");
  add(grouped && dilated, "grouped-dilated");
  return traits;
}

static std::vector<std::string_view> productTraits(const PrimitiveDesc &desc) {
  PlacedProduct p(desc);
  std::vector<std::string_view> traits;
  auto add = [&](bool has, std::string_view name) {
    if (has)
      traits.push_back(name);
  };
  bool broadcast = false, gaps = false;
  for (const PlacedOperand *o : {&p.a, &p.b})
    for (int d = 0; d < 2; ++d)
      broadcast |= p.batch[d] > 1 && o->batch[d] == 0;
  auto isApart = [](const PlacedOperand &o, int64_t rows, int64_t cols) {
    return std::max(rows * o.row, cols * o.col) != rows * cols;
  };
  gaps = isApart(p.a, p.m, p.k) || isApart(p.b, p.k, p.n) ||
         isApart(p.c, p.m, p.n);
  add(p.batch[1] > 1, "batched");
  add(p.batch[0] > 1, "batched-twice");
  add(broadcast, "broadcast");
  add(p.a.col != 1, "left-transposed");
  add(p.b.col != 1, "right-transposed");
  add(gaps, "gaps");
  add(p.m == 1 || p.n == 1, "vector");
  add(desc.accumulate, "added");
  add(desc.form == LibraryForm::Packed, "packed");
  add(desc.wideResult, "wide");
  add(p.k % 32 == 31, "long-tail");
  return traits;
}

std::vector<std::string_view>
ckopt::runtime::traitsOf(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::MatMul ? productTraits(desc)
                                            : convTraits(desc);
}

std::string_view ckopt::runtime::kernelKindName(PrimitiveKind kind) {
  static constexpr std::string_view kNames[] = {
      "matmul", "convolution", "input-gradient", "weight-gradient"};
  auto index = static_cast<uint32_t>(kind);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

bool ckopt::runtime::readsUnwritten(const PrimitiveDesc &desc) {
  // Weight gradients of bf16 add it to the gradient where strides leave a tap
  // without data (2.6 and 3.2 alike).
  return desc.kind == PrimitiveKind::ConvWeightGrad &&
         desc.dtype == DType::BF16;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

static bool lists(std::string_view list, std::string_view word) {
  for (size_t at = list.find(word); at != list.npos;
       at = list.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') &&
        (end == list.size() || list[end] == ' '))
      return true;
  }
  return false;
}

std::optional<KernelEvidence::Finding>
EvidenceTable::find(const PrimitiveDesc &desc, std::string_view kernel) const {
  std::vector<std::string_view> traits = traitsOf(desc);
  for (const EvidenceRow &row : rows)
    if (row.version == version && row.isa == isa &&
        row.kind == kernelKindName(desc.kind) &&
        row.dtype == dtypeName(desc.dtype) &&
        (row.kernels == "*" || lists(row.kernels, kernel)) &&
        std::all_of(traits.begin(), traits.end(),
                    [&](auto trait) { return lists(row.traits, trait); }))
      return Finding{std::string(row.source), readsUnwritten(desc)};
  return std::nullopt;
}

const std::vector<EvidenceRow> &ckopt::runtime::evidenceRows() {
  static const std::vector<EvidenceRow> rows = {
#include "KernelSweeps.inc"
  };
  return rows;
}

//===----------------------------------------------------------------------===//
// This library on this machine
//===----------------------------------------------------------------------===//

std::string ckopt::runtime::dnnlVersion() {
  const dnnl_version_t *v = dnnl_version();
  return std::to_string(v->major) + "." + std::to_string(v->minor) + "." +
         std::to_string(v->patch);
}

namespace {
struct InstructionSet {
  std::string_view name;
  dnnl_cpu_isa_t isa;
  std::vector<std::string> features; ///< beyond those of sets before it
};
} // namespace

/// Returns the sets in the order of what they hold.
static const std::vector<InstructionSet> &instructionSets() {
  static const std::vector<InstructionSet> sets = {
      {"SSE41", dnnl_cpu_isa_sse41, {"sse4_1"}},
      {"AVX", dnnl_cpu_isa_avx, {"avx"}},
      {"AVX2", dnnl_cpu_isa_avx2, {"avx2", "fma"}},
      {"AVX2_VNNI", dnnl_cpu_isa_avx2_vnni, {"avx_vnni"}},
      {"AVX512_CORE",
       dnnl_cpu_isa_avx512_core,
       {"avx512f", "avx512bw", "avx512vl", "avx512dq"}},
      {"AVX512_CORE_VNNI", dnnl_cpu_isa_avx512_core_vnni, {"avx512_vnni"}},
      {"AVX512_CORE_BF16", dnnl_cpu_isa_avx512_core_bf16, {"avx512_bf16"}},
      {"AVX512_CORE_AMX",
       dnnl_cpu_isa_avx512_core_amx,
       {"avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"}},
  };
  return sets;
}

/// Returns whether this CPU has all features of the set.
static bool isHere(const InstructionSet &wanted) {
  for (const InstructionSet &set : instructionSets()) {
    bool optional = set.name == "AVX2_VNNI" && wanted.name != set.name;
    if (!optional && !missingCpuFeatures(set.features).empty())
      return false;
    if (set.name == wanted.name)
      return true;
  }
  return false;
}

static void holdToSweptSet() {
  for (const char *variable : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    if (std::getenv(variable))
      return;
  std::string version = dnnlVersion();
  const auto &sets = instructionSets();
  for (auto set = sets.rbegin(); set != sets.rend(); ++set) {
    bool swept = std::any_of(
        evidenceRows().begin(), evidenceRows().end(), [&](const auto &row) {
          return row.version == version && row.isa == set->name;
        });
    if (swept && isHere(*set)) {
      dnnl_set_max_cpu_isa(set->isa); // refused after the library's first use
      return;
    }
  }
}

std::string ckopt::runtime::dnnlInstructionSet() {
  static const std::string name = [] {
    holdToSweptSet();
    dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
    for (const InstructionSet &set : instructionSets())
      if (set.isa == isa)
        return std::string(set.name);
    return "set " + std::to_string(static_cast<int>(isa));
  }();
  return name;
}

const KernelEvidence &ckopt::runtime::builtInEvidence() {
  static const EvidenceTable table(evidenceRows(), dnnlVersion(),
                                   dnnlInstructionSet());
  return table;
}
