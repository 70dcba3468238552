//===- PrimitiveDesc.cpp - what is said of library kernels ----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Properties of library kernels that need no library: names, sizes, whether the
// numbers are consistent. Constant time each.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/Primitive.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

using namespace ckopt::runtime;

static constexpr std::array<std::string_view, kNumProductPrecisions>
    kPrecisions = {"f32", "tf32", "bf16", "f16"};

std::string_view
ckopt::runtime::productPrecisionName(ProductPrecision precision) {
  auto index = static_cast<uint32_t>(precision);
  return index < kNumProductPrecisions ? kPrecisions[index] : "unknown";
}

std::optional<ProductPrecision>
ckopt::runtime::parseProductPrecision(std::string_view name) {
  for (uint32_t i = 0; i < kNumProductPrecisions; ++i)
    if (name == kPrecisions[i])
      return static_cast<ProductPrecision>(i);
  return std::nullopt;
}

std::string_view ckopt::runtime::libraryFormName(LibraryForm form) {
  static constexpr std::array<std::string_view, kNumLibraryForms> kNames = {
      "default", "convolution", "in-place", "packed", "openblas"};
  auto index = static_cast<uint32_t>(form);
  return index < kNumLibraryForms ? kNames[index] : "unknown";
}

bool ckopt::runtime::isPointwise(const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  bool single = isConvolution(desc.kind) && c.channelsLast && c.groups == 1;
  for (int64_t d = 0; single && d < c.rank; ++d)
    single = c.kernel[d] == 1 && c.strides[d] == 1 && c.padsLo[d] == 0 &&
             c.padsHi[d] == 0;
  return single;
}

bool ckopt::runtime::isMiscomputed(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::ConvInputGrad &&
         desc.dtype == DType::BF16 && isPointwise(desc) &&
         desc.conv.outChannels % 2 != 0;
}

PrimitiveDesc ckopt::runtime::productOf(const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  int64_t points = c.batch;
  for (int64_t d = 0; d < c.rank; ++d)
    points *= c.in[d];
  PrimitiveDesc product;
  product.dtype = desc.dtype;
  product.wideResult = desc.wideResult;
  MatMulDesc &m = product.matmul;
  m.aCol = m.bCol = m.cCol = 1;
  if (desc.kind == PrimitiveKind::ConvForward) {
    m.m = points, m.n = c.outChannels, m.k = c.inChannels;
    m.aRow = c.inChannels, m.cRow = c.outChannels;
    m.bRow = 1, m.bCol = c.inChannels;
  } else if (desc.kind == PrimitiveKind::ConvInputGrad) {
    m.m = points, m.n = c.inChannels, m.k = c.outChannels;
    m.aRow = c.outChannels, m.bRow = m.cRow = c.inChannels;
  } else {
    // The product is x^T dy, the transpose of the weights' gradient.
    m.m = c.inChannels, m.n = c.outChannels, m.k = points;
    m.aRow = 1, m.aCol = c.inChannels;
    m.bRow = c.outChannels;
    m.cRow = 1, m.cCol = c.inChannels;
  }
  return product;
}

static std::string product(const int64_t *values, int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i)
    text += (i ? "x" : "") + std::to_string(values[i]);
  return text;
}

static std::string describeRanks(const PrimitiveDesc &desc) {
  static constexpr std::array<const char *, 7> kNames = {
      "sum",       "number of one", "gathering", "scattered sum",
      "broadcast", "own rows",      "wait"};
  const AllReduceDesc &a = desc.allReduce;
  std::string text =
      std::string(a.started ? "start of " : "") +
      kNames[size_t(desc.kind) - size_t(PrimitiveKind::AllReduce)];
  if (desc.kind == PrimitiveKind::CollectiveWait)
    return text + " for " + std::to_string(a.ranks) + " ranks";
  if (desc.kind == PrimitiveKind::Rank)
    return text + " of " + std::to_string(a.ranks) + " ranks";
  int64_t elements = 0;
  for (int64_t count : a.elements)
    elements += count;
  return text + " over " + std::to_string(a.ranks) + " ranks " +
         std::string(dtypeName(desc.dtype)) + " " + std::to_string(elements) +
         " elements in " + std::to_string(a.elements.size()) + " tensors";
}

std::string ckopt::runtime::describe(const PrimitiveDesc &desc) {
  std::string type(dtypeName(desc.dtype));
  if (desc.precision != ProductPrecision::F32)
    type += " by " + std::string(productPrecisionName(desc.precision));
  if (desc.wideResult)
    type += " to f32";
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    std::string text = "matmul " + type + " ";
    if (m.batch[0] != 1 || m.batch[1] != 1)
      text += product(m.batch, 2) + ": ";
    return text + std::to_string(m.m) + "x" + std::to_string(m.n) + "x" +
           std::to_string(m.k) + (desc.accumulate ? ", added" : "") +
           (desc.hasBias ? ", bias" : "");
  }
  if (isAttention(desc.kind)) {
    const AttentionDesc &a = desc.attention;
    std::string text = desc.kind == PrimitiveKind::Attention
                           ? "attention "
                           : "attention gradient ";
    text += type + " " + std::to_string(a.batch) + "x" +
            std::to_string(a.heads) + ": " + std::to_string(a.queries) + "x" +
            std::to_string(a.keys) + ", heads of " + std::to_string(a.depth);
    if (a.width != a.depth)
      text += " and " + std::to_string(a.width);
    if (a.keyHeads != a.heads)
      text += ", " + std::to_string(a.keyHeads) + " key heads";
    return text + (a.causal ? ", causal" : "") +
           (a.hasWindow ? ", window " + std::to_string(a.window) : "") +
           (a.hasSegments ? ", segments" : "") + (a.hasBias ? ", bias" : "") +
           (a.hasMask ? ", mask" : "") + (a.hasDropout ? ", dropout" : "") +
           (a.cap ? ", capped" : "");
  }
  if (isOfRanks(desc.kind))
    return describeRanks(desc);
  const ConvDesc &c = desc.conv;
  static constexpr std::array<const char *, 4> kNames = {
      "", "convolution ", "convolution input gradient ",
      "convolution weight gradient "};
  auto kind = static_cast<uint32_t>(desc.kind);
  int64_t rank = c.rank < 1 || c.rank > 3 ? 0 : c.rank;
  return (kind < 4 ? kNames[kind] : "unknown kind ") + type + " " +
         std::to_string(c.batch) + "x" + std::to_string(c.inChannels) + "x" +
         product(c.in, rank) + " to " + std::to_string(c.outChannels) + "x" +
         product(c.out, rank) + ", kernel " + product(c.kernel, rank) +
         ", strides " + product(c.strides, rank) + ", groups " +
         std::to_string(c.groups) +
         (c.channelsLast ? ", channels last" : ", channels first") +
         (c.weightsLast ? ", in weights, too" : "");
}

namespace {

// Products of two such numbers and of an element's size fit an int64.
constexpr int64_t kMaxExtent = int64_t(1) << 40;
constexpr int64_t kMaxRanks = 1 << 16;
constexpr int64_t kMaxAttentionExtent = int64_t(1) << 30;

bool multiply(int64_t &total, int64_t factor) {
  return !__builtin_mul_overflow(total, factor, &total) && total <= kMaxExtent;
}

std::string checkMatMul(const MatMulDesc &m) {
  for (int64_t extent : {m.batch[0], m.batch[1], m.m, m.n, m.k})
    if (extent < 1 || extent > kMaxExtent)
      return "extents must be positive";
  for (int64_t stride :
       {m.aBatch[0], m.aBatch[1], m.aRow, m.aCol, m.bBatch[0], m.bBatch[1],
        m.bRow, m.bCol, m.cBatch[0], m.cBatch[1], m.cRow, m.cCol})
    if (stride < 0 || stride > kMaxExtent)
      return "strides must not be negative";
  int64_t elements[3] = {m.m, m.k, m.m};
  if (!multiply(elements[0], m.k) || !multiply(elements[1], m.n) ||
      !multiply(elements[2], m.n))
    return "too large";
  for (int i = 0; i < 2; ++i)
    if (m.batch[i] > 1 && m.cBatch[i] == 0)
      return "the result's batch stride is 0";
  auto needsStride = [](int64_t extent, int64_t stride) {
    return extent > 1 && stride == 0;
  };
  if (needsStride(m.m, m.cRow) || needsStride(m.n, m.cCol))
    return "the result has a stride 0";
  return "";
}

std::string checkConv(const ConvDesc &c) {
  if (c.batch < 1 || c.inChannels < 1 || c.outChannels < 1 || c.groups < 1)
    return "extents must be positive";
  if (c.inChannels % c.groups || c.outChannels % c.groups)
    return "channels are not a multiple of groups";
  if (c.weightsLast && !c.channelsLast)
    return "weights are channels-last, activations are not";
  int64_t inputs = c.batch, outputs = c.batch, weights = c.outChannels;
  bool fits = multiply(inputs, c.inChannels) &&
              multiply(outputs, c.outChannels) &&
              multiply(weights, c.inChannels / c.groups);
  for (int64_t d = 0; fits && d < c.rank; ++d) {
    for (int64_t extent :
         {c.in[d], c.out[d], c.kernel[d], c.strides[d], c.dilations[d]})
      if (extent < 1 || extent > kMaxExtent)
        return "extents, strides and dilations must be positive";
    for (int64_t pad : {c.padsLo[d], c.padsHi[d]})
      if (pad < 0 || pad > kMaxExtent)
        return "padding must not be negative";
    int64_t reach;
    if (__builtin_mul_overflow(c.kernel[d] - 1, c.dilations[d], &reach) ||
        reach > kMaxExtent)
      return "kernel too large";
    int64_t room = c.in[d] + c.padsLo[d] + c.padsHi[d] - reach - 1;
    if (room < 0 || room / c.strides[d] + 1 != c.out[d])
      return "output extent " + std::to_string(c.out[d]) + " of dimension " +
             std::to_string(d) + " does not follow from input " +
             std::to_string(c.in[d]) + ", kernel, strides and padding";
    fits = multiply(inputs, c.in[d]) && multiply(outputs, c.out[d]) &&
           multiply(weights, c.kernel[d]);
  }
  return fits ? "" : "too large";
}

std::string checkAttention(const PrimitiveDesc &desc) {
  const AttentionDesc &a = desc.attention;
  if (!isFloat(desc.dtype))
    return "attention is of floating-point numbers";
  for (int64_t extent :
       {a.batch, a.heads, a.keyHeads, a.queries, a.keys, a.depth, a.width})
    if (extent < 1 || extent > kMaxAttentionExtent)
      return "extents must be positive and below 2^30";
  if (double ratio = std::bit_cast<double>(a.ratio); !(ratio >= 0 && ratio < 1))
    return "the ratio of a dropout lies in [0, 1)";
  if (double cap = std::bit_cast<double>(a.cap);
      a.cap && !(cap > 0 && std::isfinite(cap)))
    return "scores are capped at a positive number";
  if (a.heads % a.keyHeads)
    return "query heads are not a multiple of key heads";
  if (a.offset < -kMaxAttentionExtent || a.offset > kMaxAttentionExtent)
    return "the causal offset is too large";
  if (a.window < -kMaxAttentionExtent || a.window > kMaxAttentionExtent)
    return "the window is too large";
  if (a.hasSegments && a.queries != a.keys)
    return "segments need as many queries as keys";
  if (a.segments < 0 || a.segments > kMaxExtent)
    return "strides must not be negative";
  auto strided = [](const int64_t *strides, int count) {
    for (int i = 0; i < count; ++i)
      if (strides[i] < 0 || strides[i] > kMaxExtent)
        return false;
    return true;
  };
  for (const int64_t *strides :
       {a.q, a.k, a.v, a.o, a.grad, a.qGrad, a.kGrad, a.vGrad})
    if (!strided(strides, 3))
      return "strides must not be negative";
  if (!strided(a.bias, 4) || !strided(a.mask, 4))
    return "strides must not be negative";
  if (a.bias[3] > 1 || a.mask[3] > 1)
    return "bias and mask must lie key by key";
  int64_t elements = a.batch;
  if (!multiply(elements, a.heads) || !multiply(elements, a.queries) ||
      !multiply(elements, std::max(a.depth, a.width)))
    return "too large";
  elements = a.batch;
  if (!multiply(elements, a.heads) || !multiply(elements, a.keys) ||
      !multiply(elements, std::max(a.depth, a.width)))
    return "too large";
  return "";
}

std::string checkRanks(const PrimitiveDesc &desc) {
  const AllReduceDesc &a = desc.allReduce;
  bool isSum = desc.kind == PrimitiveKind::AllReduce ||
               desc.kind == PrimitiveKind::ReduceScatter;
  bool hasRows = desc.kind == PrimitiveKind::AllGather ||
                 desc.kind == PrimitiveKind::ReduceScatter ||
                 desc.kind == PrimitiveKind::OwnRows;
  if (isSum && desc.dtype != DType::F32 && desc.dtype != DType::F64)
    return "sums over ranks are of f32 or f64";
  if (desc.kind == PrimitiveKind::Rank &&
      (desc.dtype != DType::I64 || !a.elements.empty()))
    return "the number of a rank is one i64";
  if (a.ranks < 1 || a.ranks > kMaxRanks || a.groups < 1 ||
      a.groups > kMaxRanks || a.stride < 1 || a.groups % a.stride != 0)
    return "there are 1 to " + std::to_string(kMaxRanks) + " ranks";
  if (a.root < 0 || a.root >= a.ranks)
    return "no such rank sends";
  if (desc.kind == PrimitiveKind::CollectiveWait && !a.elements.empty())
    return "a wait has no tensors of its own";
  if (a.started && !(isSum || desc.kind == PrimitiveKind::AllGather ||
                     desc.kind == PrimitiveKind::Broadcast))
    return "only collectives are started";
  if (a.shares.size() != (hasRows ? a.elements.size() : 0))
    return "ranks have rows of each tensor";
  int64_t total = 0;
  for (size_t i = 0; i < a.elements.size(); ++i) {
    int64_t count = a.elements[i];
    if (count < 0 || count > kMaxExtent)
      return "a tensor has no or too many elements";
    if (hasRows && (a.shares[i] < (count + a.ranks - 1) / a.ranks ||
                    a.shares[i] > kMaxExtent))
      return "ranks' rows are not the whole tensor";
    total += std::max(count, hasRows ? a.shares[i] * a.ranks : 0);
    if (total > kMaxExtent)
      return "too large";
  }
  return "";
}

/// Whether a descriptor can have the form that it asks for.
bool fitsForm(const PrimitiveDesc &desc) {
  bool narrow = (desc.dtype == DType::F32 || desc.dtype == DType::BF16) &&
                desc.precision == ProductPrecision::F32;
  bool product = desc.kind == PrimitiveKind::MatMul || isPointwise(desc);
  switch (desc.form) {
  case LibraryForm::Default:
    return true;
  case LibraryForm::Convolution:
    return narrow && isConvolution(desc.kind) && !isMiscomputed(desc);
  case LibraryForm::InPlace:
  case LibraryForm::Packed:
    return narrow && product;
  case LibraryForm::OpenBlas:
    return narrow && desc.dtype == DType::F32 && product;
  }
  return false;
}

} // namespace

std::string ckopt::runtime::check(const PrimitiveDesc &desc) {
  if (static_cast<uint32_t>(desc.kind) >= kNumPrimitiveKinds)
    return "unknown kind of primitive";
  if (!isDType(desc.dtype))
    return "unknown element type";
  if (static_cast<uint32_t>(desc.precision) >= kNumProductPrecisions)
    return "unknown precision of products";
  if (desc.precision != ProductPrecision::F32 && desc.dtype != DType::F32)
    return describe(desc) + ": only operands of f32 are rounded";
  if (desc.wideResult && desc.dtype != DType::BF16 && desc.dtype != DType::F16)
    return describe(desc) +
           ": only products of f16 or bf16 have a wider result";
  if (desc.accumulate && desc.kind != PrimitiveKind::MatMul)
    return describe(desc) + ": only matrix products are added to a tensor";
  const MatMulDesc &m = desc.matmul;
  if (desc.hasBias &&
      (!desc.accumulate || m.cCol != 1 || m.batch[0] != 1 || m.batch[1] != 1))
    return describe(desc) + ": a bias is added to the rows of one matrix, "
                            "together with a tensor";
  if (isConvolution(desc.kind) && (desc.conv.rank < 1 || desc.conv.rank > 3))
    return describe(desc) +
           ": convolutions have 1 to 3 spatial dimensions, "
           "not " +
           std::to_string(desc.conv.rank);
  if (!fitsForm(desc))
    return describe(desc) + ": cannot be computed as '" +
           std::string(libraryFormName(desc.form)) + "'";
  std::string wrong = desc.kind == PrimitiveKind::MatMul
                          ? checkMatMul(desc.matmul)
                      : isAttention(desc.kind) ? checkAttention(desc)
                      : isOfRanks(desc.kind)   ? checkRanks(desc)
                                               : checkConv(desc.conv);
  return wrong.empty() ? wrong : describe(desc) + ": " + wrong;
}
