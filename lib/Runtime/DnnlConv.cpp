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
#include <string_view>

using namespace ckopt::runtime;

namespace {

/// A ConvDesc in oneDNN's terms: logical [N, C, spatial...] and [(G,) O, I,
/// k...].
struct Geometry {
  dnnl_memory_desc_t x, y, plainWeights, anyWeights;
  dnnl_dims_t strides = {}, dilates = {}, padsLo = {}, padsHi = {};
};

bool activation(dnnl_memory_desc_t &md, const ConvDesc &c, int64_t channels,
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
  return dnnl_memory_desc_init_by_strides(&md, rank, dims, type, strides) ==
         dnnl_success;
}

bool describeGeometry(const PrimitiveDesc &desc, Geometry &g) {
  const ConvDesc &c = desc.conv;
  dnnl_data_type_t type = dnnlType(desc.dtype);
  dnnl_data_type_t made = dnnlType(resultType(desc));
  auto typeOf = [&](PrimitiveKind maker) {
    return desc.kind == maker ? made : type;
  };
  dnnl_data_type_t weightType = typeOf(PrimitiveKind::ConvWeightGrad);
  dnnl_dims_t weights = {};
  int rank = 0;
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
  dnnl_dims_t plain = {};
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
         dnnl_memory_desc_init_by_strides(&g.plainWeights, rank, weights,
                                          weightType, plain) == dnnl_success &&
         dnnl_memory_desc_init_by_tag(&g.anyWeights, rank, weights, weightType,
                                      dnnl_format_tag_any) == dnnl_success;
}

/// Returns whether this kernel of oneDNN 2.6 is known to give wrong numbers, or
/// to read or write beyond its memory, for such shapes (found by
/// Conv.HalvesOfManyShapes and like sweeps; the conditions are wider than what
/// fails).
bool isDefective(std::string_view kernel, const PrimitiveDesc &desc) {
  const ConvDesc &c = desc.conv;
  auto isKernel = [&](std::string_view part) {
    return kernel.find(part) != std::string_view::npos;
  };
  auto beyondOne = [&](const int64_t *sizes) {
    return std::any_of(sizes, sizes + c.rank,
                       [](int64_t size) { return size != 1; });
  };
  bool narrow = desc.dtype == DType::BF16;
  switch (desc.kind) {
  case PrimitiveKind::ConvForward: // of 3 dimensions: reads beyond the input
    return narrow && c.rank == 3 && isKernel("brgconv");
  case PrimitiveKind::ConvInputGrad: // single taps: odd channels as pairs
    return narrow && c.outChannels / c.groups % 2 != 0 && isKernel("1x1");
  case PrimitiveKind::ConvWeightGrad:
    // Single taps, strides, channels that fill no vector: writes beyond.
    if (c.inChannels / c.groups % 16 != 0 && beyondOne(c.strides) &&
        isKernel("1x1"))
      return true;
    return narrow && isKernel("jit_bf16") &&
           (c.rank == 3 || (c.groups > 1 && beyondOne(c.dilations)));
  default:
    return false;
  }
}

/// Takes the first of oneDNN's kernels that is not defective.
dnnl_status_t chooseKernel(const PrimitiveDesc &desc,
                           const dnnl_convolution_desc_t &op,
                           dnnl_primitive_desc_t hint,
                           dnnl_primitive_desc_t &pd) {
  DnnlAttributes attributes;
  dnnl_primitive_desc_iterator_t kernels = nullptr;
  dnnl_status_t status = dnnl_primitive_desc_iterator_create(
      &kernels, &op, attributes.get(), dnnlEngine(), hint);
  while (status == dnnl_success) {
    pd = dnnl_primitive_desc_iterator_fetch(kernels);
    const char *name = nullptr;
    status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    if (status == dnnl_success && !isDefective(name, desc))
      break;
    dnnl_primitive_desc_destroy(pd);
    pd = nullptr;
    if (status == dnnl_success)
      status = dnnl_primitive_desc_iterator_next(kernels);
  }
  dnnl_primitive_desc_iterator_destroy(kernels);
  return status;
}

dnnl_status_t forwardDesc(const PrimitiveDesc &desc, const Geometry &g,
                          dnnl_primitive_desc_t &pd) {
  dnnl_convolution_desc_t op;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &op, dnnl_forward_training, dnnl_convolution_direct, &g.x, &g.anyWeights,
      nullptr, &g.y, g.strides, g.dilates, g.padsLo, g.padsHi);
  return status == dnnl_success ? chooseKernel(desc, op, nullptr, pd) : status;
}

dnnl_status_t backwardDesc(const PrimitiveDesc &desc, const Geometry &g,
                           dnnl_primitive_desc_t hint,
                           dnnl_primitive_desc_t &pd) {
  dnnl_convolution_desc_t op;
  dnnl_status_t status =
      desc.kind == PrimitiveKind::ConvInputGrad
          ? dnnl_dilated_convolution_backward_data_desc_init(
                &op, dnnl_convolution_direct, &g.x, &g.anyWeights, &g.y,
                g.strides, g.dilates, g.padsLo, g.padsHi)
          : dnnl_dilated_convolution_backward_weights_desc_init(
                &op, dnnl_convolution_direct, &g.x, &g.anyWeights, nullptr,
                &g.y, g.strides, g.dilates, g.padsLo, g.padsHi);
  return status == dnnl_success ? chooseKernel(desc, op, hint, pd) : status;
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
bool unstack(const ConvDesc &c, dnnl_memory_t from,
             const dnnl_memory_desc_t &own, DnnlProgram &program,
             std::string &error) {
  int64_t kh = c.kernel[0], kw = c.kernel[1], in = c.inChannels;
  const int64_t *at = own.format_desc.blocking.strides;
  dnnl_dims_t dims = {c.outChannels, kw, in, kh},
              made = {kw * in * kh, in * kh, kh, 1},
              wanted = {at[0], at[3], at[1], at[2]};
  dnnl_memory_desc_t source, target;
  if (dnnl_memory_desc_init_by_strides(&source, 4, dims, own.data_type, made) !=
          dnnl_success ||
      dnnl_memory_desc_init_by_strides(&target, 4, dims, own.data_type,
                                       wanted) != dnnl_success) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return false;
  }
  int weights = rolesOf(PrimitiveKind::ConvWeightGrad).weights;
  return program.appendReorder(source, program.view(source, from), target,
                               program.argument(target, weights), error);
}

/// Returns whether oneDNN's kernels may read parts of their scratchpad that
/// they did not write: those of weight gradients of bf16 do where strides leave
/// a tap without data (2.6 and 3.2 alike), and add what they find to the
/// gradient.
bool readsUnwritten(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::ConvWeightGrad &&
         desc.dtype == DType::BF16;
}

/// Takes ownership of `pd`. With `stack`, weights are made in the workspace and
/// returned in it.
bool assemble(const PrimitiveDesc &desc, const Geometry &g,
              dnnl_primitive_desc_t pd, DnnlProgram &program,
              std::string &error, dnnl_memory_t *stack = nullptr) {
  bool makesWeights = desc.kind == PrimitiveKind::ConvWeightGrad;
  Roles r = rolesOf(desc.kind);
  const dnnl_memory_desc_t chosen = *dnnl_primitive_desc_query_md(
      pd, makesWeights ? dnnl_query_diff_weights_md : dnnl_query_weights_md, 0);
  bool reorders = !dnnl_memory_desc_equal(&chosen, &g.plainWeights);
  dnnl_memory_t x = program.argument(g.x, r.x);
  dnnl_memory_t y = program.argument(g.y, r.y);
  dnnl_memory_t plain = stack ? program.scratch(g.plainWeights)
                              : program.argument(g.plainWeights, r.weights);
  if (stack)
    *stack = plain;
  dnnl_memory_t weights = reorders ? program.scratch(chosen) : plain;
  if (reorders && !makesWeights &&
      !program.appendReorder(g.plainWeights, plain, chosen, weights, error)) {
    dnnl_primitive_desc_destroy(pd);
    return false;
  }
  if (!program.append(pd,
                      {{r.dnnlX, x}, {r.dnnlWeights, weights}, {r.dnnlY, y}},
                      error, readsUnwritten(desc)))
    return false;
  return !reorders || !makesWeights ||
         program.appendReorder(chosen, weights, g.plainWeights, plain, error);
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createDnnlConv(const PrimitiveDesc &asked, std::string &error) {
  bool stacks = isStackable(asked);
  PrimitiveDesc desc = stacks ? stacked(asked) : asked;
  const ConvDesc &c = desc.conv;
  int64_t most = std::max({c.batch, c.inChannels, c.outChannels});
  for (int64_t d = 0; d < c.rank; ++d)
    most = std::max({most, c.in[d], c.out[d], c.kernel[d], c.strides[d],
                     c.dilations[d], c.padsLo[d], c.padsHi[d]});
  if (most > kMaxDnnlExtent) {
    error = kDnnlExtentText;
    return nullptr;
  }
  // The hint is a forward convolution of one type.
  bool isForward = desc.kind == PrimitiveKind::ConvForward;
  PrimitiveDesc hinted = desc;
  hinted.wideResult = desc.wideResult && isForward;
  Geometry g, hint, own;
  if (!describeGeometry(desc, g) || !describeGeometry(hinted, hint) ||
      !describeGeometry(asked, own)) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return nullptr;
  }
  dnnl_primitive_desc_t forward = nullptr, pd = nullptr;
  dnnl_status_t status = forwardDesc(hinted, hint, forward);
  if (status == dnnl_success && !isForward) {
    status = backwardDesc(desc, g, forward, pd);
    dnnl_primitive_desc_destroy(forward);
  } else {
    pd = forward;
  }
  if (status != dnnl_success) {
    error = dnnlStatusText(status);
    return nullptr;
  }
  auto program = std::make_unique<DnnlProgram>();
  dnnl_memory_t stack = nullptr;
  bool unstacks = stacks && !asked.conv.weightsLast;
  bool made =
      assemble(desc, g, pd, *program, error, unstacks ? &stack : nullptr) &&
      (!unstacks ||
       unstack(asked.conv, stack, own.plainWeights, *program, error));
  return made ? std::move(program) : nullptr;
}
