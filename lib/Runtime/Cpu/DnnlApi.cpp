//===- DnnlApi.cpp - what oneDNN 2 and 3 call differently -----------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DnnlApi.h"

#include "DnnlProgram.h"

#include <utility>

using namespace ckopt::runtime;

#if DNNL_VERSION_MAJOR >= 3

static bool hold(std::shared_ptr<dnnl_memory_desc> &desc, dnnl_status_t status,
                 dnnl_memory_desc_t made) {
  if (status == dnnl_success)
    desc.reset(made, dnnl_memory_desc_destroy);
  return status == dnnl_success;
}

bool DnnlLayout::setStrided(int rank, const int64_t *dims,
                            dnnl_data_type_t type, const int64_t *strides) {
  dnnl_memory_desc_t made = nullptr;
  dnnl_status_t status =
      dnnl_memory_desc_create_with_strides(&made, rank, dims, type, strides);
  return hold(desc, status, made);
}

bool DnnlLayout::setAny(int rank, const int64_t *dims, dnnl_data_type_t type) {
  dnnl_memory_desc_t made = nullptr;
  dnnl_status_t status = dnnl_memory_desc_create_with_tag(
      &made, rank, dims, type, dnnl_format_tag_any);
  return hold(desc, status, made);
}

DnnlLayoutRef DnnlLayout::get() const { return desc.get(); }

DnnlKernels::DnnlKernels(PrimitiveKind kind, const DnnlConvolution &c,
                         const_dnnl_primitive_attr_t attributes,
                         const_dnnl_primitive_desc_t hint) {
  dnnl_engine_t engine = dnnlEngine();
  constexpr dnnl_alg_kind_t kDirect = dnnl_convolution_direct;
  if (kind == PrimitiveKind::ConvForward)
    state = dnnl_convolution_forward_primitive_desc_create(
        &kernel, engine, dnnl_forward_training, kDirect, c.x, c.weights,
        nullptr, c.y, c.strides, c.dilates, c.padsLo, c.padsHi, attributes);
  else if (kind == PrimitiveKind::ConvInputGrad)
    state = dnnl_convolution_backward_data_primitive_desc_create(
        &kernel, engine, kDirect, c.x, c.weights, c.y, c.strides, c.dilates,
        c.padsLo, c.padsHi, hint, attributes);
  else
    state = dnnl_convolution_backward_weights_primitive_desc_create(
        &kernel, engine, kDirect, c.x, c.weights, nullptr, c.y, c.strides,
        c.dilates, c.padsLo, c.padsHi, hint, attributes);
}

DnnlKernels::DnnlKernels(DnnlLayoutRef a, DnnlLayoutRef b, DnnlLayoutRef c,
                         const_dnnl_primitive_attr_t attributes) {
  state = dnnl_matmul_primitive_desc_create(&kernel, dnnlEngine(), a, b,
                                            nullptr, c, attributes);
}

void DnnlKernels::next() {
  state = dnnl_primitive_desc_next_impl(kernel);
  if (state != dnnl_success)
    dnnl_primitive_desc_destroy(take());
}

DnnlKernels::~DnnlKernels() { dnnl_primitive_desc_destroy(kernel); }

dnnl_status_t ckopt::runtime::appendSum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f, 0, dnnl_data_type_undef);
}

#else

bool DnnlLayout::setStrided(int rank, const int64_t *dims,
                            dnnl_data_type_t type, const int64_t *strides) {
  return dnnl_memory_desc_init_by_strides(&desc, rank, dims, type, strides) ==
         dnnl_success;
}

bool DnnlLayout::setAny(int rank, const int64_t *dims, dnnl_data_type_t type) {
  return dnnl_memory_desc_init_by_tag(&desc, rank, dims, type,
                                      dnnl_format_tag_any) == dnnl_success;
}

DnnlLayoutRef DnnlLayout::get() const { return &desc; }

DnnlKernels::DnnlKernels(PrimitiveKind kind, const DnnlConvolution &c,
                         const_dnnl_primitive_attr_t attributes,
                         const_dnnl_primitive_desc_t hint) {
  dnnl_convolution_desc_t op;
  constexpr dnnl_alg_kind_t kDirect = dnnl_convolution_direct;
  if (kind == PrimitiveKind::ConvForward)
    state = dnnl_dilated_convolution_forward_desc_init(
        &op, dnnl_forward_training, kDirect, c.x, c.weights, nullptr, c.y,
        c.strides, c.dilates, c.padsLo, c.padsHi);
  else if (kind == PrimitiveKind::ConvInputGrad)
    state = dnnl_dilated_convolution_backward_data_desc_init(
        &op, kDirect, c.x, c.weights, c.y, c.strides, c.dilates, c.padsLo,
        c.padsHi);
  else
    state = dnnl_dilated_convolution_backward_weights_desc_init(
        &op, kDirect, c.x, c.weights, nullptr, c.y, c.strides, c.dilates,
        c.padsLo, c.padsHi);
  if (state == dnnl_success)
    state = dnnl_primitive_desc_iterator_create(&all, &op, attributes,
                                                dnnlEngine(), hint);
  setKernel();
}

DnnlKernels::DnnlKernels(DnnlLayoutRef a, DnnlLayoutRef b, DnnlLayoutRef c,
                         const_dnnl_primitive_attr_t attributes) {
  dnnl_matmul_desc_t op;
  state = dnnl_matmul_desc_init(&op, a, b, nullptr, c);
  if (state == dnnl_success)
    state = dnnl_primitive_desc_iterator_create(&all, &op, attributes,
                                                dnnlEngine(), nullptr);
  setKernel();
}

void DnnlKernels::setKernel() {
  if (state == dnnl_success)
    kernel = dnnl_primitive_desc_iterator_fetch(all);
}

void DnnlKernels::next() {
  dnnl_primitive_desc_destroy(take());
  state = dnnl_primitive_desc_iterator_next(all);
  setKernel();
}

DnnlKernels::~DnnlKernels() {
  dnnl_primitive_desc_destroy(kernel);
  dnnl_primitive_desc_iterator_destroy(all);
}

dnnl_status_t ckopt::runtime::appendSum(dnnl_post_ops_t ops) {
  return dnnl_post_ops_append_sum(ops, 1.0f);
}

#endif

std::string_view DnnlKernels::name() const {
  const char *text = nullptr;
  dnnl_primitive_desc_query(kernel, dnnl_query_impl_info_str, 0, &text);
  return text ? text : "?";
}

dnnl_primitive_desc_t DnnlKernels::take() {
  return std::exchange(kernel, nullptr);
}
