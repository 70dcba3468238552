//===- DnnlConv.cpp - convolutions and their gradients by oneDNN ----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Activations keep the order that the plan gave them (their descriptors carry
// plain strides); only the weights' order is the library's choice, from either
// order at rest, and is made
// in the workspace: a few percent of a convolution's time, where a forced plain
// order of weights would cost half of it. The backward primitives take the
// forward descriptor as oneDNN's hint. Where windows lie side by side (kernel =
// stride), the weights' gradient is computed of the same bytes seen as more and
// smaller images, without strides (stacked).
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"

#include <algorithm>

using namespace ckopt::runtime;

namespace {

/// A ConvDesc in oneDNN's terms: logical [N, C, spatial...] and [(G,) O, I,
/// k...].
struct Geometry {
  DnnlLayout x, y, plainWeights, anyWeights;
  int weightRank = 0;
  dnnl_dims_t weights = {}, plain = {}; ///< extents, and strides at rest
  dnnl_data_type_t weightType = dnnl_data_type_undef;
  dnnl_dims_t strides = {}, dilates = {}, padsLo = {}, padsHi = {};

  DnnlConvolution all() const {
    return {x.get(), anyWeights.get(), y.get(), strides,
            dilates, padsLo,           padsHi};
  }
};

bool activation(DnnlLayout &md, const ConvDesc &c, int64_t channels,
                const int64_t *spatial, dnnl_data_type_t type) {
  dnnl_dims_t dims = {c.batch, channels}, strides = {};
  int rank = static_cast<int>(c.rank) + 2;
  for (int d = 2; d < rank; ++d)
    dims[d] = spatial[d - 2];
  int64_t step = 1;
  if (c.channelsLast) {
    strides[1] = 1;
    step = channels;
  }
  for (int d = rank - 1; d >= 2; --d) {
    strides[d] = step;
    step *= dims[d];
  }
  if (!c.channelsLast) {
    strides[1] = step;
    step *= channels;
  }
  strides[0] = step;
  return md.setStrided(rank, dims, type, strides);
}

bool describeGeometry(const PrimitiveDesc &desc, Geometry &g) {
  const ConvDesc &c = desc.conv;
  dnnl_data_type_t type = dnnlType(desc.dtype);
  dnnl_data_type_t made = dnnlType(resultType(desc));
  auto typeOf = [&](PrimitiveKind maker) {
    return desc.kind == maker ? made : type;
  };
  g.weightType = typeOf(PrimitiveKind::ConvWeightGrad);
  dnnl_dims_t &weights = g.weights, &plain = g.plain;
  int &rank = g.weightRank;
  if (c.groups > 1)
    weights[rank++] = c.groups;
  weights[rank++] = c.outChannels / c.groups;
  weights[rank++] = c.inChannels / c.groups;
  for (int d = 0; d < c.rank; ++d) {
    weights[rank++] = c.kernel[d];
    g.strides[d] = c.strides[d];
    // A single tap has no dilation; naming one would disable the fast kernels.
    g.dilates[d] = c.kernel[d] == 1 ? 0 : c.dilations[d] - 1;
    g.padsLo[d] = c.padsLo[d];
    // oneDNN does not count the points as padding that strides leave over at
    // the end.
    g.padsHi[d] = (c.out[d] - 1) * c.strides[d] +
                  (c.kernel[d] - 1) * c.dilations[d] + 1 - c.in[d] -
                  c.padsLo[d];
  }
  int inputs = c.groups > 1 ? 2 : 1; // the input channels' dimension
  int64_t step = 1;
  if (c.weightsLast) {
    plain[inputs] = 1;
    step = weights[inputs];
  }
  for (int d = rank - 1; d >= 0; --d)
    if (d != inputs || !c.weightsLast) {
      plain[d] = step;
      step *= weights[d];
    }
  return activation(g.x, c, c.inChannels, c.in,
                    typeOf(PrimitiveKind::ConvInputGrad)) &&
         activation(g.y, c, c.outChannels, c.out,
                    typeOf(PrimitiveKind::ConvForward)) &&
         g.plainWeights.setStrided(rank, weights, g.weightType, plain) &&
         g.anyWeights.setAny(rank, weights, g.weightType);
}

/// Positions of a kind's operands among the arguments, and oneDNN's names.
struct Roles {
  int x, weights, y; ///< argument positions
  int dnnlX, dnnlWeights, dnnlY;
};

Roles rolesOf(PrimitiveKind kind) {
  if (kind == PrimitiveKind::ConvInputGrad)
    return {2, 1, 0, DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST};
  if (kind == PrimitiveKind::ConvWeightGrad)
    return {0, 2, 1, DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST};
  return {0, 1, 2, DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST};
}

/// Returns whether the gradient of the weights is of windows that lie side by
/// side and cover the input, in an order where stacked() says the same. (With
/// few channels, strided rows are faster: README.md.)
bool isStackable(const PrimitiveDesc &desc) {
  constexpr int64_t kLeastChannels = 16;
  const ConvDesc &c = desc.conv;
  bool side = desc.kind == PrimitiveKind::ConvWeightGrad && c.rank == 2 &&
              c.channelsLast && c.groups == 1 &&
              c.inChannels >= kLeastChannels && c.kernel[0] * c.kernel[1] > 1;
  for (int d = 0; side && d < 2; ++d)
    side = c.kernel[d] == c.strides[d] && c.dilations[d] == 1 &&
           c.padsLo[d] == 0 && c.in[d] == c.out[d] * c.strides[d];
  return side;
}

/// Rows of windows become images, and the points of a window's row become
/// channels: x[n, oh KH + kh, ow KW + kw, i], as it lies in memory, is x'[n OH
/// + oh, kh, ow, kw I + i], and one row of windows of KH x 1 points covers it.
/// Weights that lie channels-last, [o, kh, kw, i], are [o, kh, 1, kw I + i].
PrimitiveDesc stacked(const PrimitiveDesc &desc) {
  PrimitiveDesc result = desc;
  ConvDesc &c = result.conv;
  c.batch *= c.out[0];
  c.inChannels *= c.kernel[1];
  c.in[0] = c.kernel[0];
  c.in[1] = c.out[1];
  c.out[0] = 1;
  c.kernel[1] = 1;
  for (int d = 0; d < 2; ++d)
    c.strides[d] = 1, c.padsHi[d] = 0;
  return result;
}

/// Appends a copy of the row-major weights of stacked(desc), [O, KW I, KH, 1],
/// to the argument, which lies as `own` says.
bool unstack(const ConvDesc &c, dnnl_memory_t from, const Geometry &own,
             DnnlProgram &program, std::string &error) {
  int64_t kh = c.kernel[0], kw = c.kernel[1], in = c.inChannels;
  const int64_t *at = own.plain;
  dnnl_dims_t dims = {c.outChannels, kw, in, kh},
              made = {kw * in * kh, in * kh, kh, 1},
              wanted = {at[0], at[3], at[1], at[2]};
  DnnlLayout source, target;
  if (!source.setStrided(4, dims, own.weightType, made) ||
      !target.setStrided(4, dims, own.weightType, wanted)) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return false;
  }
  int weights = rolesOf(PrimitiveKind::ConvWeightGrad).weights;
  return program.appendReorder(source.get(), program.view(source.get(), from),
                               target.get(),
                               program.argument(target.get(), weights), error);
}

/// Takes ownership of `pd`. With `stack`, weights are made in the workspace and
/// returned in it.
bool assemble(const PrimitiveDesc &desc, const Geometry &g,
              dnnl_primitive_desc_t pd, const KernelEvidence::Finding &finding,
              DnnlProgram &program, std::string &error,
              dnnl_memory_t *stack = nullptr) {
  bool makesWeights = desc.kind == PrimitiveKind::ConvWeightGrad;
  Roles r = rolesOf(desc.kind);
  DnnlLayoutRef chosen = dnnl_primitive_desc_query_md(
      pd, makesWeights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  DnnlLayoutRef atRest = g.plainWeights.get();
  bool reorders = !dnnl_memory_desc_equal(chosen, atRest);
  dnnl_memory_t x = program.argument(g.x.get(), r.x);
  dnnl_memory_t y = program.argument(g.y.get(), r.y);
  dnnl_memory_t plain =
      stack ? program.scratch(atRest) : program.argument(atRest, r.weights);
  if (stack)
    *stack = plain;
  dnnl_memory_t weights = reorders ? program.scratch(chosen) : plain;
  if (reorders && !makesWeights &&
      !program.appendReorder(atRest, plain, chosen, weights, error)) {
    dnnl_primitive_desc_destroy(pd);
    return false;
  }
  if (!program.append(pd,
                      {{r.dnnlX, x}, {r.dnnlWeights, weights}, {r.dnnlY, y}},
                      error, finding))
    return false;
  return !reorders || !makesWeights ||
         program.appendReorder(chosen, weights, atRest, plain, error);
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createDnnlConv(const PrimitiveDesc &asked,
                               const KernelEvidence &evidence,
                               std::string &error) {
  bool stacks = isStackable(asked);
  PrimitiveDesc desc = stacks ? stacked(asked) : asked;
  // The hint is a forward convolution of one type.
  bool isForward = desc.kind == PrimitiveKind::ConvForward;
  PrimitiveDesc hinted = desc;
  hinted.wideResult = false;
  Geometry g, hint, own;
  if (!describeGeometry(desc, g) || !describeGeometry(hinted, hint) ||
      !describeGeometry(asked, own)) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return nullptr;
  }
  DnnlAttributes attributes;
  std::optional<DnnlKernels> forward;
  if (!isForward && !forward
                         .emplace(PrimitiveKind::ConvForward, hint.all(),
                                  attributes.get(), nullptr)
                         .get()) {
    error = dnnlStatusText(forward->status());
    return nullptr;
  }
  DnnlKernels kernels(desc.kind, g.all(), attributes.get(),
                      forward ? forward->get() : nullptr);
  KernelEvidence::Finding finding;
  dnnl_primitive_desc_t pd =
      chooseKernel(kernels, desc, evidence, finding, error);
  if (!pd)
    return nullptr;
  auto program = std::make_unique<DnnlProgram>();
  dnnl_memory_t stack = nullptr;
  bool unstacks = stacks && !asked.conv.weightsLast;
  bool made = assemble(desc, g, pd, finding, *program, error,
                       unstacks ? &stack : nullptr) &&
              (!unstacks || unstack(asked.conv, stack, own, *program, error));
  return made ? std::move(program) : nullptr;
}
