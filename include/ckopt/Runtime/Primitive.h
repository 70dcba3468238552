//===- Primitive.h - matmuls and convolutions by libraries ------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Vendor libraries run matmuls and convolutions with their two gradients. A
// descriptor is plain data. The compiler asks for its workspace while planning,
// the runtime makes it into a primitive when a step is loaded, and generated
// code runs it by index.
//
// Guarantees: the workspace is exactly what execution touches; an execution
// allocates nothing of the size of a tensor; for one descriptor, number of
// threads and machine, the bits of the result are always the same.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_PRIMITIVE_H
#define CKOPT_RUNTIME_PRIMITIVE_H

#include "ckopt/Base/DType.h"
#include "ckopt/Base/MessageText.h"
#include "ckopt/Runtime/Export.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ckopt::runtime {

using ckopt::DType;
using ckopt::dtypeName;
using ckopt::dtypeSize;

/// The format to which f32 operands of matmuls and convolutions are rounded (to
/// nearest) before they are multiplied on tensor cores; sums are f32. TF32 has
/// the range of f32 and 10 bits of fraction, and ties go away from zero. BF16
/// has 7 bits, F16 10 bits and no finite value beyond 65504 (larger operands
/// become infinite), and ties go to even. F32 rounds nothing and uses no tensor
/// cores.
enum class ProductPrecision : uint8_t { F32 = 0, TF32, BF16, F16 };
inline constexpr uint32_t kNumProductPrecisions = 4;

/// Returns "f32", "tf32", "bf16", "f16"; "unknown" for other numbers.
CKRT_EXPORT std::string_view productPrecisionName(ProductPrecision precision);
/// Parses such a name; returns nothing for other names.
CKRT_EXPORT std::optional<ProductPrecision>
parseProductPrecision(std::string_view name);

enum class PrimitiveKind : uint32_t {
  MatMul = 0,     ///< args: a, b, [addend], [bias], c
  ConvForward,    ///< args: x, w, y
  ConvInputGrad,  ///< args: dy, w, dx
  ConvWeightGrad, ///< args: x, dy, dw
  Attention,      ///< args: q, k, v, [bias], [mask], [segments], [seed, step],
                  ///< o, lse
  AttentionGrad,  ///< args: q, k, v, [bias], [mask], [segments], [seed, step],
                  ///< o, lse, do, dq, dk, dv
  AllReduce,      ///< args: tensors, then their sums over ranks
  Rank,           ///< args: the number of the rank, i64
  AllGather,      ///< args: each rank's rows of tensors, then the whole tensors
  ReduceScatter,  ///< args: whole tensors, then the rank's rows of their sums
  Broadcast,      ///< args: tensors, then the root's tensors
  OwnRows,        ///< args: whole tensors, then the rank's rows of them
  CollectiveWait, ///< args: the first result of the start, then anything
};
inline constexpr uint32_t kNumPrimitiveKinds = 13;

/// Returns whether the kind is one of the convolutions.
constexpr bool isConvolution(PrimitiveKind kind) {
  return kind == PrimitiveKind::ConvForward ||
         kind == PrimitiveKind::ConvInputGrad ||
         kind == PrimitiveKind::ConvWeightGrad;
}
/// Returns whether the kind is a collective.
constexpr bool isOfRanks(PrimitiveKind kind) {
  return kind >= PrimitiveKind::AllReduce &&
         kind <= PrimitiveKind::CollectiveWait;
}
/// Returns whether the kind is attention or its gradient.
constexpr bool isAttention(PrimitiveKind kind) {
  return kind == PrimitiveKind::Attention ||
         kind == PrimitiveKind::AttentionGrad;
}

/// How a matmul or a pointwise convolution of f32 or bf16 is computed on the
/// CPU, if there is a choice (LibraryTable.h). It decides the bits of the
/// result.
enum class LibraryForm : uint8_t {
  Default = 0, ///< as the built-in table says, or the only form there is
  Convolution, ///< oneDNN's convolution
  InPlace,     ///< oneDNN's matmul, operands read as they lie
  Packed,      ///< oneDNN's matmul, the right operand packed first
  OpenBlas,    ///< OpenBLAS's matmul; only f32
};
inline constexpr uint32_t kNumLibraryForms = 5;

/// Returns "default", "convolution", "in-place", "packed", "openblas";
/// "unknown" for other numbers.
CKRT_EXPORT std::string_view libraryFormName(LibraryForm form);

/// c[i,j,:,:] = a[i,j,:,:] * b[i,j,:,:] over two batch dimensions (1 where
/// absent; fill from the right: a single batch dimension is batch[1]). All
/// strides are in elements; an operand's batch stride 0 broadcasts it. Two
/// batch dimensions allow heads to stay where a [B,T,H,D] tensor has them.
struct MatMulDesc {
  int64_t batch[2] = {1, 1};
  int64_t m = 0, n = 0, k = 0;
  int64_t aBatch[2] = {0, 0}, aRow = 0, aCol = 0; ///< a is m x k
  int64_t bBatch[2] = {0, 0}, bRow = 0, bCol = 0; ///< b is k x n
  int64_t cBatch[2] = {0, 0}, cRow = 0, cCol = 0; ///< c is m x n
  bool operator==(const MatMulDesc &) const = default;
};

/// A convolution of 1, 2 or 3 spatial dimensions (`rank`; entries beyond it are
/// ignored). Weights are [outChannels, inChannels/groups, kernel...]; the
/// library's own order is only used in the workspace. `dilations` are as in
/// ONNX: 1 is dense.
struct ConvDesc {
  int64_t rank = 2;
  int64_t batch = 0, inChannels = 0, outChannels = 0, groups = 1;
  int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  int64_t strides[3] = {1, 1, 1}, dilations[3] = {1, 1, 1};
  int64_t padsLo[3] = {0, 0, 0}, padsHi[3] = {0, 0, 0};
  /// Order of both activations: [N, spatial..., C] if set, else [N, C, ...].
  bool channelsLast = false;
  /// Order of weights: [outChannels, kernel..., inChannels/groups] if set, and
  /// then activations are channels-last, too; else row-major.
  bool weightsLast = false;
  bool operator==(const ConvDesc &) const = default;
};

/// Attention over [batch, heads, rows, columns]: query head h reads the key
/// head h / (heads / keyHeads). A score is scale * q . k + bias where the mask
/// allows the key, else `fill`. Causality allows key j in row i where j <= i +
/// offset, a window where j > i - window, segments (i64, dense, [keys] of each
/// sample, or of all if their stride is 0) where row and key have one number;
/// elsewhere scores are -inf. Strides are in elements, for batch, head and row;
/// columns have stride 1. Those of bias and mask (bytes, 0 or 1) are for batch,
/// query head, row and key, 0 where they broadcast. lse is dense [batch, heads,
/// queries, 2], or with `planes`, on GPUs alone, [2, batch, heads, queries]:
/// the log of the row's sum, and its rounding error; f32 if dtype is f16 or
/// bf16.
///
/// With a dropout, probabilities are kept and divided by 1 - ratio if
/// ckrt_dropout_uniform(seed, step, site, element) is no less than the ratio;
/// elements count [batch, heads, queries, keys] row by row. A last argument,
/// after all tensors, is then the address of the site (int64_t).
struct AttentionDesc {
  int64_t batch = 0, heads = 0, keyHeads = 0;
  int64_t queries = 0, keys = 0, depth = 0, width = 0; ///< width: of v's rows
  int64_t q[3] = {0, 0, 0}, k[3] = {0, 0, 0}, v[3] = {0, 0, 0};
  int64_t o[3] = {0, 0, 0},
          grad[3] = {0, 0, 0}; ///< grad: strides of o's gradient
  int64_t qGrad[3] = {0, 0, 0}, kGrad[3] = {0, 0, 0}, vGrad[3] = {0, 0, 0};
  bool hasBias = false, hasMask = false;
  int64_t bias[4] = {0, 0, 0, 0}, mask[4] = {0, 0, 0, 0};
  bool causal = false, hasWindow = false, hasSegments = false;
  int64_t offset = 0, window = 0;
  int64_t segments = 0;       ///< stride of samples
  bool zeroEmptyRows = false; ///< rows without keys: zeros, else NaN
  bool planes = false;        ///< of lse
  bool hasDropout = false;
  /// The bits of doubles; cap: scores s become cap * tanh(s / cap), 0: they do
  /// not.
  uint64_t scale = 0, cap = 0, fill = 0, ratio = 0;
  bool operator==(const AttentionDesc &) const = default;
};

/// Sums of tensors over ranks, element by element in memory order, added in the
/// order of the ranks; a sum may be stored in its tensor's bytes. Other
/// collectives have the same description. A group has `ranks` members, `stride`
/// ranks apart, and there are `groups` of them (Base/Shards.h).
struct AllReduceDesc {
  int64_t ranks = 1, groups = 1, stride = 1;
  int64_t root = 0;              ///< for Broadcast: the member that sends
  std::vector<int64_t> elements; ///< elements of each whole tensor
  std::vector<int64_t> shares; ///< elements of each rank's rows, if it has rows
  /// Only starts: a last argument is the workspace, and all arguments are in
  /// use until the CollectiveWait whose first argument is the start's first
  /// result.
  bool started = false;
  bool operator==(const AllReduceDesc &) const = default;
};

/// A library kernel on tensors of one type.
struct PrimitiveDesc {
  PrimitiveKind kind = PrimitiveKind::MatMul;
  DType dtype = DType::F32; ///< f64, f32, bf16 (sums in f32)
  /// Only for dtypes BF16 and F16: the sums are stored unrounded, in f32.
  bool wideResult = false;
  /// Only for MatMul: c = addend + a * b. The addend has c's strides, and may
  /// be c itself.
  bool accumulate = false;
  /// Only with `accumulate`, on CUDA: c = addend + (a * b + bias). The bias is
  /// one row of c's type, for all rows of c, which is one row-major matrix.
  bool hasBias = false;
  MatMulDesc matmul;       ///< for MatMul
  ConvDesc conv;           ///< for convolutions
  AttentionDesc attention; ///< for attention and its gradient
  AllReduceDesc allReduce; ///< for collectives; Rank is i64
  /// Other than F32 only on CUDA, for dtype F32.
  ProductPrecision precision = ProductPrecision::F32;
  /// Other than Default only on the CPU, and only a form that the kind has.
  LibraryForm form = LibraryForm::Default;
  bool operator==(const PrimitiveDesc &) const = default;
};

/// Returns whether this is a convolution over channels-last activations that is
/// a matmul: one group, kernel 1, stride 1, no padding.
CKRT_EXPORT bool isPointwise(const PrimitiveDesc &desc);

/// Returns whether oneDNN's convolution is wrong, so that a matmul has to
/// compute it. oneDNN 2.6 reads the channels of pointwise input gradients of
/// bf16 in pairs; if their number is odd, it reads those of the next point for
/// some sizes (a multiple of 30 points among them).
CKRT_EXPORT bool isMiscomputed(const PrimitiveDesc &desc);

/// Returns a pointwise convolution as a matmul with the same arguments in the
/// same order, of form Default.
CKRT_EXPORT PrimitiveDesc productOf(const PrimitiveDesc &desc);

/// Describes a primitive in messages and tables: "matmul f32 2x12x256x256x64",
/// or "matmul f32 by tf32 ..." with a precision other than f32.
CKRT_EXPORT std::string describe(const PrimitiveDesc &desc);

/// Checks sizes against each other (a convolution's output extent, positive
/// sizes, no overflow). Returns empty text if the descriptor is valid, else a
/// description of the defect.
CKRT_EXPORT std::string check(const PrimitiveDesc &desc);

/// Returns the bytes of workspace that an execution by \p threads threads needs
/// at an address that is 64-byte aligned, or -1 with the reason in \p error.
/// Deterministic on one machine. Call outside of parallel regions; results are
/// cached.
CKRT_EXPORT int64_t primitiveWorkspace(const PrimitiveDesc &desc,
                                       int32_t threads, std::string &error);

/// Decides whether cuBLASLt and cuDNN can run a descriptor on any device:
/// returns empty text, or the reason why they cannot. Only looks at the
/// descriptor, so that a compiler may decide by it; only when the artifact is
/// loaded is it known whether the installed libraries have an algorithm.
CKRT_EXPORT std::string cudaLibraryRefuses(const PrimitiveDesc &desc);

/// Returns the words that follow "planned for" if this number of threads is not
/// available here; "" if it is. OpenMP ends the process if it cannot make a
/// thread, so call this before making or running primitives. Call outside of
/// parallel regions.
CKRT_EXPORT MessageText refusesTeam(int32_t threads);

/// A primitive ready to run. Make it outside of parallel regions; run it from
/// one thread at a time.
class CKRT_EXPORT Primitive {
public:
  virtual ~Primitive();
  /// Makes a primitive; null with the reason in \p error if the library cannot
  /// run the descriptor.
  static std::unique_ptr<Primitive> create(const PrimitiveDesc &desc,
                                           int32_t threads, std::string &error);
  /// Bytes that execute() needs at `workspace`; equal to primitiveWorkspace().
  virtual int64_t workspaceBytes() const = 0;
  /// Runs on `args` (operands, then the result; order in PrimitiveKind).
  /// `workspace` is 64-byte aligned. Returns false with a reason on failure.
  virtual bool execute(void *const *args, void *workspace,
                       std::string &error) = 0;
  /// The status of an execution that failed.
  virtual int32_t failure() const;
  /// Names the library and the algorithm, for `inspect` and reports.
  virtual std::string implementation() const = 0;
};

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_PRIMITIVE_H
