//===- Cudnn.cpp - convolutions by cuDNN ----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations have the order that the plan gave them; cuDNN's gradients need
// weights in the same order, but ckopt's weights are row-major. So for
// channels-last activations the weights are copied to that order at the front
// of the workspace, before the convolution (or back, after it, for their
// gradient). The heuristics list algorithms in the library's own order; the
// first that is deterministic and fits into the rest of the workspace is taken.
// Padding that differs at both ends is refused, because cuDNN's descriptor has
// one number a dimension. cuDNN may round f32 to TF32 and to no other type.
// 16-bit tensors may use tensor cores, with sums in f32. Which of their
// convolutions cuDNN supports depends on algorithm, order and device, so cuDNN
// is used for them only if our own kernels can replace it.
//
//===----------------------------------------------------------------------===//
#include "Cudnn.h"

#include "Library.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <dlfcn.h>
#include <vector>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

// CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_BAD_PARAM.
constexpr int kNotSupported = 3000, kBadParameter = 2000;

int typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return kDnnDouble;
  case DType::F16:
    return kDnnHalf;
  case DType::BF16:
    return kDnnBFloat16;
  default:
    return kDnnFloat;
  }
}

bool isHalf(const PrimitiveDesc &desc) {
  return desc.dtype == DType::F16 || desc.dtype == DType::BF16;
}

/// Returns the bytes of the copy of the weights, in units of 256; 0 if both
/// orders are the same in memory.
int64_t bytesOfCopiedWeights(const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  int64_t channels = c.inChannels / c.groups, points = 1;
  for (int64_t d = 0; d < c.rank; ++d)
    points *= c.kernel[d]; // check() keeps it from overflowing
  if (c.channelsLast == c.weightsLast || channels == 1 || points == 1)
    return 0;
  int64_t bytes = c.outChannels * channels * points * dtypeSize(desc.dtype);
  return (bytes + 255) / 256 * 256;
}

using Ints = std::vector<int>;

/// Narrows to int; clears `fits` if the number is too large.
int narrow(int64_t value, bool &fits) {
  fits = fits && value >= 0 && value <= INT_MAX;
  return static_cast<int>(value);
}

class DnnKernel final : public LibraryKernel {
public:
  DnnKernel(const DnnEntries &dnn, void *handle, const PrimitiveDesc &desc,
            int64_t workspace)
      : dnn(dnn), handle(handle), desc(desc), workspace(workspace) {}
  ~DnnKernel() override;
  /// Makes the descriptors; returns the library's status, or kBadParameter with
  /// a reason.
  int describe(ckopt::MessageText &error);
  int choose();
  int restore(int wanted, int wantedMath);
  int restore(const std::string &wanted);
  /// Returns "ALGORITHM", or "ALGORITHM,MATH" where the library has several
  /// math types.
  std::string chosen() const;
  bool enqueue(const Places &places, Stream stream,
               std::string &error) override;

private:
  int setTensor(void *tensor, int64_t channels, const int64_t *extents,
                bool &fits);
  int setFilter(bool &fits);
  /// Describes row-major weights, and weights in the library's order.
  int setOrders(bool &fits);
  int setConvolution(bool &fits);
  int workspaceOf(int candidate, size_t &bytes);
  /// Returns whether it may run on tensor cores: 16-bit tensors, or f32 as
  /// TF32.
  bool onTensorCores() const {
    return desc.precision == ProductPrecision::TF32 || isHalf(desc);
  }
  /// Returns the number of spatial dimensions as the library counts them: at
  /// least two.
  int64_t spatial() const { return std::max<int64_t>(desc.conv.rank, 2); }

  const DnnEntries &dnn;
  void *handle;
  PrimitiveDesc desc;
  int64_t workspace;
  void *input = nullptr, *output = nullptr; ///< x (or dx), y (or dy)
  void *filter = nullptr, *conv = nullptr;
  /// Descriptors of the weights' copy: row-major and channels last.
  void *plainWeights = nullptr, *turnedWeights = nullptr;
  /// Bytes of the reordered weights at the front of the workspace; 0 if they
  /// are not needed.
  int64_t weightBytes = 0;
  int algorithm = -1, math = kDnnFmaMath;
};

class Cudnn final : public Library {
public:
  ~Cudnn() override {
    if (handle)
      (void)dnn.destroy(handle);
  }
  bool open(std::string &error);
  std::string version() const override {
    return std::to_string(dnn.getVersion());
  }
  std::unique_ptr<LibraryKernel> make(const PrimitiveDesc &desc,
                                      const Room &room, std::string &algorithm,
                                      ckopt::MessageText &error) override;

private:
  DnnEntries dnn{};
  void *handle = nullptr;
};

} // namespace

DnnKernel::~DnnKernel() {
  for (void *tensor : {input, output, plainWeights, turnedWeights})
    if (tensor)
      (void)dnn.tensorDestroy(tensor);
  if (filter)
    (void)dnn.filterDestroy(filter);
  if (conv)
    (void)dnn.convDestroy(conv);
}

int DnnKernel::setTensor(void *tensor, int64_t channels, const int64_t *extents,
                         bool &fits) {
  const ConvDesc &c = desc.conv;
  int64_t points = 1;
  for (int64_t d = 0; d < c.rank; ++d)
    points *= extents[d];
  Ints sizes = {narrow(c.batch, fits), narrow(channels, fits)};
  Ints strides = {narrow(channels * points, fits),
                  narrow(c.channelsLast ? 1 : points, fits)};
  int64_t step = points * (c.channelsLast ? channels : 1);
  for (int64_t d = 0; d < spatial(); ++d) {
    int64_t extent = d < c.rank ? extents[d] : 1;
    step /= extent;
    sizes.push_back(narrow(extent, fits));
    strides.push_back(narrow(step, fits));
  }
  return fits ? dnn.tensorSet(tensor, typeOf(desc.dtype),
                              static_cast<int>(sizes.size()), sizes.data(),
                              strides.data())
              : kBadParameter;
}

int DnnKernel::setFilter(bool &fits) {
  const ConvDesc &c = desc.conv;
  Ints sizes = {narrow(c.outChannels, fits),
                narrow(c.inChannels / c.groups, fits)};
  for (int64_t d = 0; d < spatial(); ++d)
    sizes.push_back(narrow(d < c.rank ? c.kernel[d] : 1, fits));
  return fits ? dnn.filterSet(filter, typeOf(desc.dtype),
                              c.channelsLast ? kDnnNhwc : kDnnNchw,
                              static_cast<int>(sizes.size()), sizes.data())
              : kBadParameter;
}

int DnnKernel::setOrders(bool &fits) {
  const ConvDesc &c = desc.conv;
  weightBytes = bytesOfCopiedWeights(desc);
  if (weightBytes == 0)
    return 0;
  int64_t channels = c.inChannels / c.groups, points = 1;
  for (int64_t d = 0; d < c.rank; ++d)
    points *= c.kernel[d];
  Ints sizes = {narrow(c.outChannels, fits), narrow(channels, fits)};
  Ints plain = {narrow(channels * points, fits), narrow(points, fits)};
  Ints turned = {plain[0], 1};
  int64_t step = points;
  for (int64_t d = 0; d < spatial(); ++d) {
    int64_t extent = d < c.rank ? c.kernel[d] : 1;
    step /= extent;
    sizes.push_back(narrow(extent, fits));
    plain.push_back(narrow(step, fits));
    turned.push_back(narrow(step * channels, fits));
  }
  if (!fits)
    return kBadParameter;
  int status = dnn.tensorCreate(&plainWeights);
  if (status == 0)
    status = dnn.tensorCreate(&turnedWeights);
  auto rank = static_cast<int>(sizes.size());
  int type = typeOf(desc.dtype);
  if (status == 0)
    status =
        dnn.tensorSet(plainWeights, type, rank, sizes.data(), plain.data());
  if (status == 0)
    status =
        dnn.tensorSet(turnedWeights, type, rank, sizes.data(), turned.data());
  return status;
}

int DnnKernel::setConvolution(bool &fits) {
  const ConvDesc &c = desc.conv;
  Ints pads, strides, dilations;
  for (int64_t d = 0; d < spatial(); ++d) {
    bool real = d < c.rank;
    pads.push_back(real ? narrow(c.padsLo[d], fits) : 0);
    strides.push_back(real ? narrow(c.strides[d], fits) : 1);
    dilations.push_back(real ? narrow(c.dilations[d], fits) : 1);
  }
  if (!fits)
    return kBadParameter;
  int compute = desc.dtype == DType::F64 ? kDnnDouble : kDnnFloat;
  if (onTensorCores())
    math = isHalf(desc) ? kDnnTensorMath : kDnnDefaultMath;
  int status = dnn.convSet(conv, static_cast<int>(pads.size()), pads.data(),
                           strides.data(), dilations.data(),
                           kDnnCrossCorrelation, compute);
  if (status == 0)
    status = dnn.convSetMath(conv, math);
  if (status == 0)
    status = dnn.convSetGroups(conv, narrow(c.groups, fits));
  return status;
}

int DnnKernel::describe(ckopt::MessageText &error) {
  const ConvDesc &c = desc.conv;
  error = cudnnRefuses(desc);
  if (error.empty())
    error = cudnnRefuses(desc, workspace);
  if (!error.empty())
    return kBadParameter;
  int status = dnn.tensorCreate(&input);
  if (status == 0)
    status = dnn.tensorCreate(&output);
  if (status == 0)
    status = dnn.filterCreate(&filter);
  if (status == 0)
    status = dnn.convCreate(&conv);
  bool fits = true;
  if (status == 0)
    status = setTensor(input, c.inChannels, c.in, fits);
  if (status == 0)
    status = setTensor(output, c.outChannels, c.out, fits);
  if (status == 0)
    status = setFilter(fits);
  if (status == 0)
    status = setOrders(fits);
  if (status == 0)
    status = setConvolution(fits);
  if (!fits)
    error = "an extent or stride is too large for cuDNN";
  return status;
}

int DnnKernel::workspaceOf(int candidate, size_t &bytes) {
  switch (desc.kind) {
  case PrimitiveKind::ConvInputGrad:
    return dnn.dataWorkspace(handle, filter, output, conv, input, candidate,
                             &bytes);
  case PrimitiveKind::ConvWeightGrad:
    return dnn.filterWorkspace(handle, input, output, conv, filter, candidate,
                               &bytes);
  case PrimitiveKind::MatMul:
  case PrimitiveKind::ConvForward:
  case PrimitiveKind::Attention:
  case PrimitiveKind::AttentionGrad:
  case PrimitiveKind::AllReduce:
  case PrimitiveKind::Rank:
  case PrimitiveKind::AllGather:
  case PrimitiveKind::ReduceScatter:
  case PrimitiveKind::Broadcast:
  case PrimitiveKind::OwnRows:
  case PrimitiveKind::CollectiveWait:
    break;
  }
  return dnn.forwardWorkspace(handle, input, filter, conv, output, candidate,
                              &bytes);
}

int DnnKernel::restore(int wanted, int wantedMath) {
  size_t bytes = 0;
  int status = wantedMath == math ? 0 : dnn.convSetMath(conv, wantedMath);
  math = wantedMath; // if this fails, the kernel fails or sets it again
  if (status == 0)
    status = workspaceOf(wanted, bytes);
  if (status == 0 && static_cast<int64_t>(bytes) > workspace - weightBytes)
    status = kNotSupported;
  if (status == 0)
    algorithm = wanted;
  return status;
}

/// Returns whether this math rounds f32 operands at most to TF32.
static bool roundsToTF32AtMost(int math) {
  return math == kDnnDefaultMath || math == kDnnTensorMath ||
         math == kDnnFmaMath;
}

/// Parses a number as std::to_string writes it; -1 for other text.
static int numberIn(const std::string &text) {
  int number = std::atoi(text.c_str());
  return std::to_string(number) == text ? number : -1;
}

int DnnKernel::restore(const std::string &wanted) {
  size_t comma = wanted.find(',');
  int number = numberIn(wanted.substr(0, comma)), wantedMath = math;
  if (onTensorCores() != (comma != std::string::npos) || number < 0)
    return kBadParameter;
  if (onTensorCores())
    wantedMath = numberIn(wanted.substr(comma + 1));
  return onTensorCores() && !roundsToTF32AtMost(wantedMath)
             ? kBadParameter
             : restore(number, wantedMath);
}

std::string DnnKernel::chosen() const {
  return std::to_string(algorithm) +
         (onTensorCores() ? "," + std::to_string(math) : "");
}

int DnnKernel::choose() {
  DnnResult results[16] = {};
  int count = 0, status;
  if (desc.kind == PrimitiveKind::ConvForward)
    status = dnn.forwardAlgorithms(handle, input, filter, conv, output, 16,
                                   &count, results);
  else if (desc.kind == PrimitiveKind::ConvInputGrad)
    status = dnn.dataAlgorithms(handle, filter, output, conv, input, 16, &count,
                                results);
  else
    status = dnn.filterAlgorithms(handle, input, output, conv, filter, 16,
                                  &count, results);
  if (status != 0)
    return status;
  for (int i = 0; i < count; ++i) {
    const DnnResult &result = results[i];
    if (result.status != 0 || result.determinism != kDnnDeterministic)
      continue;
    // On tensor cores, only accept an algorithm whose math rounds at most to
    // TF32.
    if (onTensorCores() && !roundsToTF32AtMost(result.mathType))
      continue;
    if (restore(result.algorithm, onTensorCores() ? result.mathType : math) ==
        0)
      return 0;
  }
  return kNotSupported;
}

bool DnnKernel::enqueue(const Places &places, Stream stream,
                        std::string &error) {
  const float one = 1, zero = 0;
  const double one64 = 1, zero64 = 0;
  bool isF64 = desc.dtype == DType::F64;
  const void *alpha = isF64 ? static_cast<const void *>(&one64) : &one;
  const void *beta = isF64 ? static_cast<const void *>(&zero64) : &zero;
  auto *first = reinterpret_cast<const void *>(places.args[0]);
  auto *second = reinterpret_cast<const void *>(places.args[1]);
  auto *result = reinterpret_cast<void *>(places.args[2]);
  auto *copy = reinterpret_cast<void *>(places.workspace);
  auto *scratch = reinterpret_cast<void *>(
      places.workspace + static_cast<DevicePointer>(weightBytes));
  auto bytes = static_cast<size_t>(workspace - weightBytes);
  bool turns = weightBytes > 0;
  int status = dnn.setStream(handle, stream);
  if (status == 0 && turns && desc.kind != PrimitiveKind::ConvWeightGrad) {
    status = dnn.transform(handle, alpha, plainWeights, second, beta,
                           turnedWeights, copy);
    second = copy;
  }
  if (status == 0 && desc.kind == PrimitiveKind::ConvForward)
    status = dnn.forward(handle, alpha, input, first, filter, second, conv,
                         algorithm, scratch, bytes, beta, output, result);
  else if (status == 0 && desc.kind == PrimitiveKind::ConvInputGrad)
    // The plan's operands are in the order dy, w; the library's in w, dy.
    status =
        dnn.backwardData(handle, alpha, filter, second, output, first, conv,
                         algorithm, scratch, bytes, beta, input, result);
  else if (status == 0)
    status = dnn.backwardFilter(handle, alpha, input, first, output, second,
                                conv, algorithm, scratch, bytes, beta, filter,
                                turns ? copy : result);
  if (status == 0 && turns && desc.kind == PrimitiveKind::ConvWeightGrad)
    status = dnn.transform(handle, alpha, turnedWeights, copy, beta,
                           plainWeights, result);
  if (status != 0)
    error = "cuDNN gives status " + statusText(status, dnn.words);
  return status == 0;
}

bool Cudnn::open(std::string &error) {
  void *library = openFirst("CKOPT_CUDNN", {"libcudnn.so.9"}, error);
  if (!library)
    return false;
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  dnn.member =                                                                 \
      reinterpret_cast<decltype(dnn.member)>(dlsym(library, #symbol));         \
  if (!dnn.member) {                                                           \
    error = "not usable: libcudnn has no entry " #symbol;                      \
    return false;                                                              \
  }
#include "CudnnEntries.def"
#undef CKOPT_ENTRY
  int status = dnn.create(&handle);
  if (status != 0) {
    handle = nullptr;
    error = "not usable: it does not start: status " + std::to_string(status);
  }
  return status == 0;
}

std::string ckopt::runtime::cuda::cudnnRefuses(const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  for (int64_t d = 0; d < c.rank; ++d)
    if (c.padsLo[d] != c.padsHi[d])
      return "cuDNN has no padding that differs at both ends";
  int64_t input = c.batch * c.inChannels, output = c.batch * c.outChannels;
  for (int64_t d = 0; d < c.rank; ++d)
    input *= c.in[d], output *= c.out[d]; // check() keeps them from overflowing
  return std::max(input, output) > INT_MAX
             ? "an extent or stride is too large for cuDNN"
             : "";
}

ckopt::MessageText ckopt::runtime::cuda::cudnnRefuses(const PrimitiveDesc &desc,
                                                      int64_t workspace) {
  int64_t bytes = bytesOfCopiedWeights(desc);
  return bytes > workspace
             ? "cuDNN's copy of the weights takes " + std::to_string(bytes) +
                   " bytes, " + ckopt::Setting("cuda-workspace") + " has " +
                   std::to_string(workspace)
             : "";
}

std::unique_ptr<LibraryKernel> Cudnn::make(const PrimitiveDesc &desc,
                                           const Room &room,
                                           std::string &algorithm,
                                           ckopt::MessageText &error) {
  auto kernel = std::make_unique<DnnKernel>(dnn, handle, desc, room.workspace);
  int status = kernel->describe(error);
  if (status == 0 && algorithm.empty()) {
    status = kernel->choose();
    algorithm = kernel->chosen();
  } else if (status == 0) {
    status = kernel->restore(algorithm);
  }
  if (status == 0)
    return kernel;
  if (error.empty())
    error = "cuDNN has no deterministic algorithm for it in " +
            std::to_string(room.workspace - bytesOfCopiedWeights(desc)) +
            " bytes of workspace (status " + statusText(status, dnn.words) +
            "; a larger " + ckopt::Setting("cuda-workspace") + " may help)";
  return nullptr;
}

std::unique_ptr<Library> ckopt::runtime::cuda::openCudnn(std::string &error) {
  auto library = std::make_unique<Cudnn>();
  return library->open(error) ? std::move(library) : nullptr;
}
