//===- Cudnn.cpp - the stand-in's cuDNN -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A stand-in for cuDNN that runs convolutions of f32, f64 and halves (with sums
// of f32) with any strides in plain loops: forward, gradient of the input,
// gradient of the weights. Of the algorithms that it lists, the first is not
// deterministic and the second needs too much workspace; where TF32 is allowed,
// another one rounds operands to halves, and the last one to TF32.
//
//===----------------------------------------------------------------------===//
#include "../../../lib/Runtime/Cuda/Cudnn.h"
#include "Machine.h"
#include "Rounding.h"

#include <cstdlib>
#include <cstring>

using namespace standin;

#define STANDIN extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kBadParameter = 2000, kUnsupported = 3000, kFailed = 5000;
constexpr size_t kConvWorkspace = 512;
constexpr int kAlgorithm = 1;

using Ints = std::vector<int>;

struct Tensor {
  int type = 0;
  Ints sizes, strides;
};
struct Filter {
  int type = 0, format = kDnnNchw;
  Ints sizes;
  /// Returns the offset of element (k, c, tap).
  int64_t offset(int k, int c, const Ints &tap) const {
    int64_t point = 0, points = 1;
    for (size_t d = 0; d < tap.size(); ++d) {
      point = point * sizes[d + 2] + tap[d];
      points *= sizes[d + 2];
    }
    return format == kDnnNhwc ? (k * points + point) * sizes[1] + c
                              : (int64_t(k) * sizes[1] + c) * points + point;
  }
};
struct Conv {
  Ints pads, strides, dilations;
  int math = -1, groups = 1, compute = -1;
};

Stream current = nullptr; ///< the handle's stream

Ints copyOf(const int *values, int count) {
  return Ints(values, values + count);
}

/// Advances `index` through all points below `sizes`; false after the last.
bool next(Ints &index, const Ints &sizes) {
  for (size_t d = index.size(); d-- > 0;) {
    if (++index[d] < sizes[d])
      return true;
    index[d] = 0;
  }
  return false;
}

int64_t offset(const Tensor &t, int n, int c, const Ints &point) {
  int64_t at = int64_t(n) * t.strides[0] + int64_t(c) * t.strides[1];
  for (size_t d = 0; d < point.size(); ++d)
    at += int64_t(point[d]) * t.strides[d + 2];
  return at;
}

/// Calls fn(offset in x, offset in w, offset in y) for every product of the
/// convolution.
template <typename Fn>
void forEachProduct(const Tensor &x, const Filter &w, const Conv &conv,
                    const Tensor &y, Fn fn) {
  Ints outSizes(y.sizes.begin() + 2, y.sizes.end());
  Ints kernel(w.sizes.begin() + 2, w.sizes.end());
  int perGroup = y.sizes[1] / conv.groups;
  Ints out(outSizes.size(), 0);
  for (int n = 0; n < y.sizes[0]; ++n)
    for (int k = 0; k < y.sizes[1]; ++k)
      do {
        for (int c = 0; c < w.sizes[1]; ++c) {
          Ints tap(kernel.size(), 0);
          do {
            Ints in(tap.size());
            bool inside = true;
            for (size_t d = 0; d < tap.size(); ++d) {
              in[d] = out[d] * conv.strides[d] - conv.pads[d] +
                      tap[d] * conv.dilations[d];
              inside &= in[d] >= 0 && in[d] < x.sizes[d + 2];
            }
            if (inside)
              fn(offset(x, n, k / perGroup * w.sizes[1] + c, in),
                 w.offset(k, c, tap), offset(y, n, k, out));
          } while (next(tap, kernel));
        }
      } while (next(out, outSizes));
}

constexpr int kConvertingMath = 2;

int offer(void *convDesc, int most, int *count, DnnResult *results) {
  int math = static_cast<const Conv *>(convDesc)->math;
  Machine::get().log("cudnnGetConvolutionAlgorithm math " +
                     std::to_string(math));
  int own = math == kDnnFmaMath ? kDnnFmaMath : kDnnTensorMath;
  std::vector<DnnResult> all = {
      {0, 0, -1, 0, 0, own, {}},
      {2, 0, -1, size_t(1) << 40, kDnnDeterministic, own, {}},
      {kAlgorithm, 0, -1, kConvWorkspace, kDnnDeterministic, own, {}}};
  if (math != kDnnFmaMath)
    all.insert(all.begin(), {kAlgorithm,
                             0,
                             -1,
                             kConvWorkspace,
                             kDnnDeterministic,
                             kConvertingMath,
                             {}});
  *count = 0;
  if (Machine::get().refuses("cudnn"))
    return 0; // it lists none
  for (const DnnResult &result : all)
    if (*count < most)
      results[(*count)++] = result;
  return 0;
}

/// Rounds an operand as the math type does.
float operand(const Conv &conv, float value) {
  return rounded(value,
                 conv.math == kDnnFmaMath ? Rounding::None : Rounding::TF32);
}
double operand(const Conv &, double value) { return value; }
float operand(const Conv &, F16 value) { return value.toFloat(); }
float operand(const Conv &, BF16 value) { return value.toFloat(); }

int workspaceOf(int algorithm, size_t *bytes) {
  if (Machine::get().refuses("cudnn", /*counts=*/false))
    return kUnsupported;
  *bytes = algorithm == 2 ? size_t(1) << 40 : kConvWorkspace;
  return algorithm == 2 || algorithm == kAlgorithm ? 0 : kUnsupported;
}

/// True if activations and weights are in the same order, which the library's
/// gradients ask for.
bool sameOrder(const Tensor &t, const Filter &w) {
  bool last = t.sizes[1] > 1 && t.strides[1] == 1 &&
              (t.strides[t.strides.size() - 2] > 1 || t.strides.back() > 1);
  bool first = t.sizes[1] > 1 && t.strides[1] > 1;
  return w.format == kDnnNhwc ? !first : !last;
}

int launch(const char *name, int algorithm, const Conv &conv, const Tensor &x,
           const Filter &w, void *workspace, size_t bytes,
           std::function<void()> body) {
  Machine &machine = Machine::get();
  if (machine.enter(name, ""))
    return kFailed;
  int type = x.type;
  bool half = type == kDnnHalf || type == kDnnBFloat16;
  if (!sameOrder(x, w)) {
    machine.violation("mixes orders of activations and weights");
    return kUnsupported;
  }
  // Where TF32 is allowed, the algorithm is listed for that math only.
  if (algorithm != kAlgorithm || bytes < kConvWorkspace ||
      (conv.math != kDnnFmaMath && conv.math != kDnnTensorMath) ||
      (type != kDnnFloat && type != kDnnDouble && !half) ||
      conv.compute != (half ? kDnnFloat : type) || w.type != type || !current ||
      !machine.deviceBlock(reinterpret_cast<uint64_t>(workspace), bytes)) {
    machine.violation("a convolution by an algorithm or a math type that was "
                      "not offered, or with a workspace that is none");
    return kBadParameter;
  }
  machine.log(std::string(name) + " math " + std::to_string(conv.math));
  Launch made;
  made.name = name;
  for (const Ints *sizes : {&x.sizes, &w.sizes})
    for (int size : *sizes)
      made.shape += std::to_string(size) + "x";
  made.body = std::move(body);
  return machine.enqueue(current, std::move(made)) ? kBadParameter : 0;
}

/// Tells which of the elements of x, w and y are factors and which is the sum.
struct Roles {
  int first, second, sum;
};

template <typename T>
void convolve(const Tensor &x, const Filter &w, const Conv &conv,
              const Tensor &y, Roles roles, const void *first,
              const void *second, void *result) {
  auto *from = static_cast<const T *>(first);
  auto *by = static_cast<const T *>(second);
  auto *to = static_cast<T *>(result);
  const Ints *sizes[3] = {&x.sizes, &w.sizes, &y.sizes};
  int64_t all = 1;
  for (int size : *sizes[roles.sum])
    all *= size;
  using Sum = decltype(operand(conv, T()));
  std::vector<Sum> sums(size_t(all), Sum(0)); // tensors are dense
  forEachProduct(x, w, conv, y, [&](int64_t i, int64_t k, int64_t o) {
    int64_t at[3] = {i, k, o};
    sums[size_t(at[roles.sum])] += operand(conv, from[at[roles.first]]) *
                                   operand(conv, by[at[roles.second]]);
  });
  for (size_t i = 0; i < sums.size(); ++i)
    to[i] = T(sums[i]);
}

std::function<void()> bodyOf(void *xDesc, void *wDesc, void *convDesc,
                             void *yDesc, Roles roles, const void *first,
                             const void *second, void *result) {
  Tensor x = *static_cast<Tensor *>(xDesc), y = *static_cast<Tensor *>(yDesc);
  Filter w = *static_cast<Filter *>(wDesc);
  Conv conv = *static_cast<Conv *>(convDesc);
  auto run = x.type == kDnnDouble     ? convolve<double>
             : x.type == kDnnHalf     ? convolve<F16>
             : x.type == kDnnBFloat16 ? convolve<BF16>
                                      : convolve<float>;
  return [=] { run(x, w, conv, y, roles, first, second, result); };
}

} // namespace

STANDIN int cudnnCreate(void **handle) {
  if (Machine::get().enter("cudnnCreate", ""))
    return 1001;
  *handle = &current;
  return 0;
}
STANDIN int cudnnDestroy(void *) {
  Machine::get().log("cudnnDestroy");
  return 0;
}
STANDIN size_t cudnnGetVersion() {
  const char *text = std::getenv("CKOPT_STANDIN_LIBRARY");
  return text ? static_cast<size_t>(std::atoll(text)) : 120400;
}
STANDIN const char *cudnnGetErrorString(int status) {
  return status == kUnsupported ? "CUDNN_STATUS_NOT_SUPPORTED"
                                : "CUDNN_STATUS_OF_STANDIN";
}
STANDIN int cudnnSetStream(void *, Stream stream) {
  current = stream;
  return 0;
}

STANDIN int cudnnCreateTensorDescriptor(void **tensor) {
  *tensor = new Tensor;
  return 0;
}
STANDIN int cudnnDestroyTensorDescriptor(void *tensor) {
  delete static_cast<Tensor *>(tensor);
  return 0;
}
STANDIN int cudnnSetTensorNdDescriptor(void *tensor, int type, int rank,
                                       const int *sizes, const int *strides) {
  if (rank < 4)
    return kUnsupported;
  *static_cast<Tensor *>(tensor) = {type, copyOf(sizes, rank),
                                    copyOf(strides, rank)};
  return 0;
}

STANDIN int cudnnTransformTensor(void *, const void *, void *fromDesc,
                                 const void *from, const void *, void *toDesc,
                                 void *to) {
  Machine &machine = Machine::get();
  if (machine.enter("cudnnTransformTensor", ""))
    return kFailed;
  Tensor source = *static_cast<Tensor *>(fromDesc);
  Tensor target = *static_cast<Tensor *>(toDesc);
  if (source.sizes != target.sizes || !current)
    return kBadParameter;
  Launch made;
  made.name = "cudnnTransformTensor";
  made.body = [=] {
    Ints index(source.sizes.size(), 0);
    do {
      int64_t i = 0, o = 0;
      for (size_t d = 0; d < index.size(); ++d) {
        i += int64_t(index[d]) * source.strides[d];
        o += int64_t(index[d]) * target.strides[d];
      }
      size_t bytes = source.type == kDnnDouble  ? 8
                     : source.type == kDnnFloat ? 4
                                                : 2;
      std::memcpy(static_cast<char *>(to) + size_t(o) * bytes,
                  static_cast<const char *>(from) + size_t(i) * bytes, bytes);
    } while (next(index, source.sizes));
  };
  return machine.enqueue(current, std::move(made)) ? kBadParameter : 0;
}

STANDIN int cudnnCreateFilterDescriptor(void **filter) {
  *filter = new Filter;
  return 0;
}
STANDIN int cudnnDestroyFilterDescriptor(void *filter) {
  delete static_cast<Filter *>(filter);
  return 0;
}
STANDIN int cudnnSetFilterNdDescriptor(void *filter, int type, int format,
                                       int rank, const int *sizes) {
  if (rank < 4)
    return kUnsupported;
  *static_cast<Filter *>(filter) = {type, format, copyOf(sizes, rank)};
  return 0;
}

STANDIN int cudnnCreateConvolutionDescriptor(void **conv) {
  *conv = new Conv;
  return 0;
}
STANDIN int cudnnDestroyConvolutionDescriptor(void *conv) {
  delete static_cast<Conv *>(conv);
  return 0;
}
STANDIN int cudnnSetConvolutionNdDescriptor(void *conv, int rank,
                                            const int *pads, const int *strides,
                                            const int *dilations, int mode,
                                            int compute) {
  if (mode != kDnnCrossCorrelation)
    return kBadParameter;
  auto *c = static_cast<Conv *>(conv);
  c->pads = copyOf(pads, rank), c->strides = copyOf(strides, rank);
  c->dilations = copyOf(dilations, rank);
  c->compute = compute;
  return 0;
}
STANDIN int cudnnSetConvolutionMathType(void *conv, int math) {
  static_cast<Conv *>(conv)->math = math;
  return 0;
}
STANDIN int cudnnSetConvolutionGroupCount(void *conv, int groups) {
  static_cast<Conv *>(conv)->groups = groups;
  return 0;
}

STANDIN int cudnnGetConvolutionForwardAlgorithm_v7(void *, void *, void *,
                                                   void *conv, void *, int most,
                                                   int *count,
                                                   DnnResult *results) {
  return offer(conv, most, count, results);
}
STANDIN int cudnnGetConvolutionBackwardDataAlgorithm_v7(void *, void *, void *,
                                                        void *conv, void *,
                                                        int most, int *count,
                                                        DnnResult *results) {
  return offer(conv, most, count, results);
}
STANDIN int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void *, void *,
                                                          void *, void *conv,
                                                          void *, int most,
                                                          int *count,
                                                          DnnResult *results) {
  return offer(conv, most, count, results);
}
STANDIN int cudnnGetConvolutionForwardWorkspaceSize(void *, void *, void *,
                                                    void *, void *,
                                                    int algorithm,
                                                    size_t *bytes) {
  return workspaceOf(algorithm, bytes);
}
STANDIN int cudnnGetConvolutionBackwardDataWorkspaceSize(void *, void *, void *,
                                                         void *, void *,
                                                         int algorithm,
                                                         size_t *bytes) {
  return workspaceOf(algorithm, bytes);
}
STANDIN int cudnnGetConvolutionBackwardFilterWorkspaceSize(
    void *, void *, void *, void *, void *, int algorithm, size_t *bytes) {
  return workspaceOf(algorithm, bytes);
}

STANDIN int cudnnConvolutionForward(void *, const void *, void *xDesc,
                                    const void *x, void *wDesc, const void *w,
                                    void *convDesc, int algorithm,
                                    void *workspace, size_t bytes, const void *,
                                    void *yDesc, void *y) {
  return launch("cudnnConvolutionForward", algorithm,
                *static_cast<Conv *>(convDesc), *static_cast<Tensor *>(xDesc),
                *static_cast<Filter *>(wDesc), workspace, bytes,
                bodyOf(xDesc, wDesc, convDesc, yDesc, {0, 1, 2}, x, w, y));
}

STANDIN int cudnnConvolutionBackwardData(void *, const void *, void *wDesc,
                                         const void *w, void *dyDesc,
                                         const void *dy, void *convDesc,
                                         int algorithm, void *workspace,
                                         size_t bytes, const void *,
                                         void *dxDesc, void *dx) {
  return launch("cudnnConvolutionBackwardData", algorithm,
                *static_cast<Conv *>(convDesc), *static_cast<Tensor *>(dxDesc),
                *static_cast<Filter *>(wDesc), workspace, bytes,
                bodyOf(dxDesc, wDesc, convDesc, dyDesc, {2, 1, 0}, dy, w, dx));
}

STANDIN int cudnnConvolutionBackwardFilter(void *, const void *, void *xDesc,
                                           const void *x, void *dyDesc,
                                           const void *dy, void *convDesc,
                                           int algorithm, void *workspace,
                                           size_t bytes, const void *,
                                           void *dwDesc, void *dw) {
  return launch("cudnnConvolutionBackwardFilter", algorithm,
                *static_cast<Conv *>(convDesc), *static_cast<Tensor *>(xDesc),
                *static_cast<Filter *>(dwDesc), workspace, bytes,
                bodyOf(xDesc, dwDesc, convDesc, dyDesc, {0, 2, 1}, x, dy, dw));
}
