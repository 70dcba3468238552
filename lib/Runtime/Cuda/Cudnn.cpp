//===- Cudnn.cpp - convolutions and attention by cuDNN --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A call is a graph of cuDNN's operations (DnnGraph.h): one convolution, or
// those of attention (DnnAttention.cpp). Activations and weights have the order
// that the plan gave them; engines turn what they want otherwise, in their
// workspace. Of the engines that the heuristics list, in the library's own
// order, the first is taken that fits into the workspace and whose notes do not
// say that it is not deterministic, that it rounds operands to a narrower type,
// or that it sums in one. f32 may be rounded to TF32 if the plan allows it;
// without that, engines on tensor cores are passed over. Which engines there
// are depends on order, type and device, so cuDNN is used for 16-bit tensors
// only if our own kernels can replace it.
//
//===----------------------------------------------------------------------===//
#include "Cudnn.h"

#include "AttentionParts.h"
#include "DnnAttention.h"

#include <algorithm>
#include <climits>
#include <dlfcn.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

/// The oldest version that is asked for attention: earlier ones have faults
/// that the library does not refuse by itself. Devices of 10.x have a
/// deterministic gradient from a later one on.
constexpr size_t kAttentionVersion = 91400, kGradientOn10Version = 91800;

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

class DnnKernel final : public LibraryKernel {
public:
  DnnKernel(const DnnEntries &dnn, void *handle, const PrimitiveDesc &desc,
            const Room &room);
  /// Takes the engine of this name, or chooses one if it is empty and names it.
  int take(std::string &engine);
  bool enqueue(const Places &places, Stream stream,
               std::string &error) override;
  DeviceRange zeros(const Places &places) const override;

private:
  void addConvolution();
  /// A tensor of a convolution, with two spatial dimensions at least.
  DnnGraph::Tensor tensor(size_t place, DType dtype, int64_t outer,
                          int64_t channels, const int64_t *extents, bool last);

  const DnnEntries &dnn;
  PrimitiveDesc desc;
  int64_t workspace;
  DnnGraph graph;
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
  /// Returns "", or why this version is not asked.
  std::string tooOld(const PrimitiveDesc &desc, const Room &room) const;

  DnnEntries dnn{};
  void *handle = nullptr;
};

} // namespace

DnnKernel::DnnKernel(const DnnEntries &dnn, void *handle,
                     const PrimitiveDesc &desc, const Room &room)
    : dnn(dnn), desc(desc), workspace(room.workspace),
      graph(dnn, handle, room.alignment) {
  if (isAttention(desc.kind))
    addAttention(graph, desc, typeOf(desc.dtype));
  else
    addConvolution();
}

DnnGraph::Tensor DnnKernel::tensor(size_t place, DType dtype, int64_t outer,
                                   int64_t channels, const int64_t *extents,
                                   bool last) {
  Extents sizes = {outer, channels};
  sizes.insert(sizes.end(), extents, extents + desc.conv.rank);
  sizes.resize(std::max<size_t>(sizes.size(), 4), 1);
  Extents strides(sizes.size());
  int64_t step = last ? channels : 1;
  for (size_t d = sizes.size(); d-- > 2;) {
    strides[d] = step;
    step *= sizes[d];
  }
  strides[1] = last ? 1 : step;
  strides[0] = last ? step : step * channels;
  return graph.argument(place, typeOf(dtype), sizes, strides);
}

void DnnKernel::addConvolution() {
  const ConvDesc &c = desc.conv;
  struct {
    size_t x, w, y; ///< places
  } at = desc.kind == PrimitiveKind::ConvForward     ? decltype(at){0, 1, 2}
         : desc.kind == PrimitiveKind::ConvInputGrad ? decltype(at){2, 1, 0}
                                                     : decltype(at){0, 2, 1};
  DType result = desc.wideResult ? DType::F32 : desc.dtype;
  auto x =
      tensor(at.x, desc.dtype, c.batch, c.inChannels, c.in, c.channelsLast);
  auto w = tensor(at.w, at.w == 2 ? result : desc.dtype, c.outChannels,
                  c.inChannels / c.groups, c.kernel, c.weightsLast);
  auto y =
      tensor(at.y, desc.dtype, c.batch, c.outChannels, c.out, c.channelsLast);
  graph.convolution(c, desc.kind, x, w, y,
                    desc.dtype == DType::F64 ? kDnnDouble : kDnnFloat);
}

int DnnKernel::take(std::string &engine) {
  std::vector<int> notes = {kDnnNotDeterministic, kDnnNarrowsInputs,
                            kDnnNarrowsSums};
  // TF32 is all that tensor cores have for f32.
  if (desc.dtype == DType::F32 && desc.precision == ProductPrecision::F32)
    notes.push_back(kDnnTensorCores);
  return engine.empty() ? graph.choose(workspace, notes, engine)
                        : graph.restore(workspace, notes, engine);
}

bool DnnKernel::enqueue(const Places &places, Stream stream,
                        std::string &error) {
  int status = 0;
  auto run = [&](const DevicePointer *args) {
    status = graph.enqueue(args, places.workspace, stream);
    return status == 0;
  };
  if (isAttention(desc.kind))
    forEachPart(desc, places.args, run);
  else
    run(places.args);
  if (status != 0)
    error = "cuDNN gives status " + statusText(status, dnn.words);
  return status == 0;
}

DeviceRange DnnKernel::zeros(const Places &places) const {
  if (desc.kind != PrimitiveKind::Attention)
    return {};
  // The library rounds the logarithms of rows, and does not say what that took.
  const AttentionDesc &a = desc.attention;
  size_t bytes = static_cast<size_t>(a.batch * a.heads * a.queries) * 4;
  return {places.args[4] + bytes, bytes};
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

std::string Cudnn::tooOld(const PrimitiveDesc &desc, const Room &room) const {
  if (!isAttention(desc.kind))
    return "";
  bool isLater =
      desc.kind == PrimitiveKind::AttentionGrad && room.capability / 10 == 10;
  size_t needed = isLater ? kGradientOn10Version : kAttentionVersion;
  return dnn.getVersion() < needed
             ? "cuDNN " + std::to_string(dnn.getVersion()) +
                   " is not asked for it, version " + std::to_string(needed) +
                   " would be"
             : "";
}

/// Returns why cuDNN's attention is not asked, on any device.
static std::string attentionRefuses(const PrimitiveDesc &desc) {
  const AttentionDesc &a = desc.attention;
  if (desc.dtype != DType::F16 && desc.dtype != DType::BF16)
    return "cuDNN's attention is of 16 bits";
  if (a.hasBias || a.hasMask || a.hasSegments || a.hasDropout || a.cap)
    return "of a bias, mask, segments, dropout or cap, attention is ckopt's "
           "own";
  if ((a.causal && a.offset != 0) || (a.hasWindow && !a.causal))
    return "cuDNN's attention is asked for causality from the first key on";
  if (a.hasWindow && a.queries > a.keys)
    return "with a window some rows have no key";
  if (!a.planes)
    return "more than its gradient reads what attention keeps of its rows";
  if (a.depth % 8 || a.width % 8 || std::max(a.depth, a.width) > 256)
    return "cuDNN's attention has columns in eights, up to 256";
  if (a.queries == 1 || a.keys == 1)
    return "attention of one row is ckopt's own";
  for (const auto &strides :
       {a.q, a.k, a.v, a.o, a.grad, a.qGrad, a.kGrad, a.vGrad})
    for (int d = 0; d < 3; ++d)
      if (strides[d] % 8)
        return "cuDNN's attention reads 16 bytes at once";
  return "";
}

std::string ckopt::runtime::cuda::cudnnRefuses(const PrimitiveDesc &desc) {
  if (isAttention(desc.kind))
    return attentionRefuses(desc);
  const ConvDesc &c = desc.conv;
  int64_t input = c.batch * c.inChannels, output = c.batch * c.outChannels;
  for (int64_t d = 0; d < c.rank; ++d)
    input *= c.in[d], output *= c.out[d]; // check() keeps them from overflowing
  return std::max(input, output) > INT_MAX
             ? "cuDNN is not asked for tensors of more than 2^31 elements"
             : "";
}

int64_t ckopt::runtime::cuda::cudnnWorkspace(const PrimitiveDesc &desc) {
  return isAttention(desc.kind) ? attentionWorkspace(desc) : 0;
}

std::unique_ptr<LibraryKernel> Cudnn::make(const PrimitiveDesc &desc,
                                           const Room &room,
                                           std::string &algorithm,
                                           ckopt::MessageText &error) {
  std::string why = cudnnRefuses(desc);
  if (why.empty())
    why = tooOld(desc, room);
  if (!why.empty()) {
    error = why;
    return nullptr;
  }
  auto kernel = std::make_unique<DnnKernel>(dnn, handle, desc, room);
  const bool isGiven = !algorithm.empty();
  int status = kernel->take(algorithm);
  if (status == 0)
    return kernel;
  error = std::string("cuDNN has no ") + (isGiven ? "such" : "deterministic") +
          " engine for it in " + std::to_string(room.workspace) +
          " bytes of workspace (status " + statusText(status, dnn.words);
  if (!isGiven && !isAttention(desc.kind)) // its bytes are known beforehand
    error += "; a larger " + ckopt::Setting("cuda-workspace") + " may help";
  error += ")";
  return nullptr;
}

std::unique_ptr<Library> ckopt::runtime::cuda::openCudnn(std::string &error) {
  auto library = std::make_unique<Cudnn>();
  return library->open(error) ? std::move(library) : nullptr;
}
