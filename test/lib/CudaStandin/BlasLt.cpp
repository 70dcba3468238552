//===- BlasLt.cpp - the stand-in's cuBLASLt -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for cuBLASLt that runs column-major products in plain loops:
// handles, descriptors, three algorithms of which one is usable, and launches
// into the stand-in's streams. Sums go in the order of k, in the type of the
// compute mode; operands are rounded where that mode allows it. Halves are
// summed in f32.
//
//===----------------------------------------------------------------------===//
#include "../../../lib/Runtime/Cuda/BlasLt.h"
#include "Machine.h"
#include "Rounding.h"

#include <cstdlib>
#include <cstring>
#include <optional>

using namespace standin;

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalid = 7, kUnsupported = 15;

struct Layout {
  int type = 0;
  int64_t rows = 0, cols = 0, leading = 0, batchOffset = 0;
  int32_t batch = 1;
};
struct Desc {
  int compute = 0, scale = 0;
  int32_t turn[2] = {0, 0};
  uint32_t epilogue = 1; ///< nothing
  const void *bias = nullptr;
  bool hasBias() const { return epilogue == kLtEpilogueBias; }
};
struct Preference {
  uint64_t workspace = 0;
  uint32_t reductions = 7, alignment = 256;
};

int handles = 0;

/// An algorithm is identified by a number; only 7 works.
LtAlgorithm algorithmOf(uint64_t number) {
  LtAlgorithm algorithm = {};
  algorithm.data[0] = number;
  return algorithm;
}

constexpr size_t kWorkspace = 1024;

/// Returns how a compute mode rounds operands of f32; nothing for unknown
/// modes.
std::optional<Rounding> roundingOf(int compute) {
  switch (compute) {
  case kLtComputeF32:
    return Rounding::None;
  case kLtComputeFastTF32:
    return Rounding::TF32;
  case kLtComputeFastBF16:
    return Rounding::BF16;
  case kLtComputeFastF16:
    return Rounding::F16;
  default:
    return std::nullopt;
  }
}

/// Checks the library's table of types: a product's three matrices have one
/// type, but for results of f32 from halves, and few types of sums and scalars
/// go with it.
bool supported(const Desc &desc, const Layout &a, const Layout &b,
               const Layout &d) {
  bool half = a.type == kLtTypeF16 || a.type == kLtTypeBF16;
  if (a.type != b.type || (a.type != d.type && !(half && d.type == kLtTypeF32)))
    return false;
  switch (a.type) {
  case kLtTypeF64:
    return desc.compute == kLtComputeF64 && desc.scale == kLtTypeF64;
  case kLtTypeF32:
    return roundingOf(desc.compute) && desc.scale == kLtTypeF32;
  case kLtTypeF16:
  case kLtTypeBF16:
    return desc.compute == kLtComputeF32 && desc.scale == kLtTypeF32;
  default:
    return false;
  }
}

double take(double value, Rounding) { return value; }
float take(float value, Rounding rounding) { return rounded(value, rounding); }
float take(F16 value, Rounding) { return value.toFloat(); }
float take(BF16 value, Rounding) { return value.toFloat(); }

template <typename T, typename Result>
void multiply(const Desc &desc, const Layout &a, const Layout &b,
              const Layout &d, const void *first, const void *second,
              const void *addend, void *result) {
  auto *x = static_cast<const T *>(first), *y = static_cast<const T *>(second);
  auto *c = static_cast<const Result *>(addend);
  auto *z = static_cast<Result *>(result);
  auto *bias =
      static_cast<const Result *>(desc.hasBias() ? desc.bias : nullptr);
  Rounding rounding = roundingOf(desc.compute).value_or(Rounding::None);
  int64_t inner = desc.turn[0] ? a.rows : a.cols;
  for (int64_t batch = 0; batch < d.batch; ++batch)
    for (int64_t j = 0; j < d.cols; ++j)
      for (int64_t i = 0; i < d.rows; ++i) {
        decltype(take(T(), rounding)) sum = 0;
        for (int64_t k = 0; k < inner; ++k) {
          int64_t left = desc.turn[0] ? k + i * a.leading : i + k * a.leading;
          int64_t right = desc.turn[1] ? j + k * b.leading : k + j * b.leading;
          sum += take(x[batch * a.batchOffset + left], rounding) *
                 take(y[batch * b.batchOffset + right], rounding);
        }
        int64_t at = batch * d.batchOffset + i + j * d.leading;
        if (bias)
          sum += take(bias[i], Rounding::None);
        if (addend)
          sum += take(c[at], Rounding::None);
        z[at] = Result(sum);
      }
}

/// Returns the loops for types of operands and results.
auto multiplyOf(int type, int result) {
  bool wide = result == kLtTypeF32;
  switch (type) {
  case kLtTypeF64:
    return multiply<double, double>;
  case kLtTypeF16:
    return wide ? multiply<F16, float> : multiply<F16, F16>;
  case kLtTypeBF16:
    return wide ? multiply<BF16, float> : multiply<BF16, BF16>;
  default:
    return multiply<float, float>;
  }
}

size_t bytesOf(const Layout &l, int64_t elements) {
  return static_cast<size_t>(elements) * (l.type == kLtTypeF64   ? 8
                                          : l.type == kLtTypeF32 ? 4
                                                                 : 2);
}

/// Returns the bytes from the first to the last element.
size_t span(const Layout &l) {
  return bytesOf(l, (l.batch - 1) * l.batchOffset + (l.cols - 1) * l.leading +
                        l.rows);
}

} // namespace

STANDIN int cublasLtCreate(void **handle) {
  Machine &machine = Machine::get();
  if (machine.enter("cublasLtCreate", ""))
    return 1;
  *handle = &handles;
  ++handles;
  return 0;
}

STANDIN int cublasLtDestroy(void *) {
  Machine::get().log("cublasLtDestroy");
  --handles;
  return 0;
}

STANDIN size_t cublasLtGetVersion() {
  const char *text = std::getenv("CKOPT_STANDIN_LIBRARY");
  return text ? static_cast<size_t>(std::atoll(text)) : 120400;
}

STANDIN const char *cublasLtGetStatusName(int status) {
  return status == kUnsupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
                                : "CUBLAS_STATUS_OF_STANDIN";
}

STANDIN int cublasLtMatmulDescCreate(void **desc, int compute, int scale) {
  Machine::get().log("cublasLtMatmulDescCreate compute " +
                     std::to_string(compute));
  if (compute != kLtComputeF64 && !roundingOf(compute))
    return kInvalid;
  auto *made = new Desc;
  made->compute = compute, made->scale = scale;
  *desc = made;
  return 0;
}
STANDIN int cublasLtMatmulDescDestroy(void *desc) {
  delete static_cast<Desc *>(desc);
  return 0;
}
STANDIN int cublasLtMatmulDescSetAttribute(void *desc, int attribute,
                                           const void *value, size_t size) {
  auto *d = static_cast<Desc *>(desc);
  if ((attribute == kLtDescTransA || attribute == kLtDescTransB) && size == 4)
    std::memcpy(&d->turn[attribute - kLtDescTransA], value, 4);
  else if (attribute == kLtDescEpilogue && size == 4)
    std::memcpy(&d->epilogue, value, 4);
  else if (attribute == kLtDescBiasPointer && size == sizeof(d->bias))
    std::memcpy(&d->bias, value, size);
  else
    return kInvalid;
  return d->epilogue == 1 || d->hasBias() ? 0 : kInvalid;
}

STANDIN int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows,
                                       uint64_t cols, int64_t leading) {
  auto *made = new Layout;
  made->type = type, made->leading = leading;
  made->rows = static_cast<int64_t>(rows);
  made->cols = static_cast<int64_t>(cols);
  *layout = made;
  return leading >= made->rows ? 0 : kInvalid;
}
STANDIN int cublasLtMatrixLayoutDestroy(void *layout) {
  delete static_cast<Layout *>(layout);
  return 0;
}
STANDIN int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute,
                                             const void *value, size_t size) {
  auto *l = static_cast<Layout *>(layout);
  if (attribute == kLtLayoutBatchCount && size == 4)
    std::memcpy(&l->batch, value, 4);
  else if (attribute == kLtLayoutBatchOffset && size == 8)
    std::memcpy(&l->batchOffset, value, 8);
  else
    return kInvalid;
  return 0;
}

STANDIN int cublasLtMatmulPreferenceCreate(void **preference) {
  *preference = new Preference;
  return 0;
}
STANDIN int cublasLtMatmulPreferenceDestroy(void *preference) {
  delete static_cast<Preference *>(preference);
  return 0;
}
STANDIN int cublasLtMatmulPreferenceSetAttribute(void *preference,
                                                 int attribute,
                                                 const void *value,
                                                 size_t size) {
  auto *p = static_cast<Preference *>(preference);
  if (attribute == kLtPrefMaxWorkspace && size == 8)
    std::memcpy(&p->workspace, value, 8);
  else if (attribute == kLtPrefReductionMask && size == 4)
    std::memcpy(&p->reductions, value, 4);
  else if (attribute >= kLtPrefMinAlignmentA &&
           attribute < kLtPrefMinAlignmentA + 4 && size == 4)
    std::memcpy(&p->alignment, value, 4);
  else
    return kInvalid;
  return 0;
}

STANDIN int cublasLtMatmulAlgoGetHeuristic(void *, void *desc, void *aLayout,
                                           void *bLayout, void *, void *dLayout,
                                           void *preference, int most,
                                           LtResult *results, int *count) {
  Machine &machine = Machine::get();
  auto *p = static_cast<Preference *>(preference);
  auto *d = static_cast<Desc *>(desc);
  machine.log("cublasLtMatmulAlgoGetHeuristic workspace " +
              std::to_string(p->workspace) + " alignment " +
              std::to_string(p->alignment) + (d->hasBias() ? " bias" : ""));
  // The library takes the alignment from the address.
  auto address = reinterpret_cast<uint64_t>(d->bias);
  if (d->hasBias() && (!address || address % p->alignment))
    machine.violation("a bias of another alignment");
  if (p->reductions & 1) // the library may add into the result
    machine.violation("asks for algorithms whose order is not fixed");
  *count = 0;
  if (machine.refuses("cublaslt"))
    return kUnsupported;
  if (!supported(*d, *static_cast<Layout *>(aLayout),
                 *static_cast<Layout *>(bLayout),
                 *static_cast<Layout *>(dLayout)))
    return kUnsupported;
  // The first algorithm needs too much workspace, the second does not work.
  const LtResult all[3] = {{algorithmOf(1), size_t(1) << 40, 0, 1, {}},
                           {algorithmOf(2), 0, kUnsupported, 1, {}},
                           {algorithmOf(7), kWorkspace, 0, 1, {}}};
  for (const LtResult &result : all)
    if (*count < most)
      results[(*count)++] = result;
  return 0;
}

STANDIN int cublasLtMatmulAlgoCheck(void *, void *, void *, void *, void *,
                                    void *, const LtAlgorithm *algorithm,
                                    LtResult *result) {
  Machine::get().log("cublasLtMatmulAlgoCheck");
  if (Machine::get().refuses("cublaslt") || algorithm->data[0] != 7)
    return kUnsupported;
  result->workspace = kWorkspace;
  return 0;
}

STANDIN int cublasLtMatmul(void *, void *desc, const void *alpha, const void *a,
                           void *aLayout, const void *b, void *bLayout,
                           const void *beta, const void *c, void *cLayout,
                           void *d, void *dLayout, const LtAlgorithm *algorithm,
                           void *workspace, size_t workspaceBytes,
                           Stream stream) {
  Machine &machine = Machine::get();
  if (machine.enter("cublasLtMatmul", ""))
    return 14; // CUBLAS_STATUS_INTERNAL_ERROR
  Desc product = *static_cast<Desc *>(desc);
  Layout left = *static_cast<Layout *>(aLayout);
  Layout right = *static_cast<Layout *>(bLayout);
  Layout result = *static_cast<Layout *>(dLayout);
  bool isF64 = product.scale == kLtTypeF64;
  double scale = isF64 ? *static_cast<const double *>(alpha)
                       : *static_cast<const float *>(alpha);
  double kept = isF64 ? *static_cast<const double *>(beta)
                      : *static_cast<const float *>(beta);
  auto inside = [&](const void *at, size_t bytes) {
    return machine.deviceBlock(reinterpret_cast<uint64_t>(at), bytes) !=
           nullptr;
  };
  if (algorithm->data[0] != 7 || workspaceBytes < kWorkspace ||
      reinterpret_cast<uint64_t>(workspace) % 256 != 0 ||
      !inside(a, span(left)) || !inside(b, span(right)) ||
      !inside(d, span(result)) || (kept != 0 && !inside(c, span(result))) ||
      (product.hasBias() &&
       !inside(product.bias, bytesOf(result, result.rows))) ||
      !inside(workspace, workspaceBytes)) {
    machine.violation("a product outside of live memory, or by an algorithm "
                      "that was not offered");
    return kInvalid;
  }
  Launch launch;
  launch.name = "cublasLtMatmul";
  launch.shape = std::to_string(result.rows) + "x" +
                 std::to_string(result.cols) + "x" +
                 std::to_string(product.turn[0] ? left.rows : left.cols);
  // What is added lies as the result does.
  if (scale != 1 || (kept != 0 && kept != 1) || cLayout != dLayout ||
      !supported(product, left, right, result))
    return kUnsupported;
  launch.body = [=, run = multiplyOf(left.type, result.type)] {
    run(product, left, right, result, a, b, kept == 0 ? nullptr : c, d);
  };
  return machine.enqueue(stream, std::move(launch)) ? kInvalid : 0;
}
