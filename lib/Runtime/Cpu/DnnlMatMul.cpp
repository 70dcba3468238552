//===- DnnlMatMul.cpp - matrix products by oneDNN -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// oneDNN wants the result row-major in its last two dimensions; a column-major
// result is computed as the product of the transposes. Batches that are
// contiguous become one batch dimension. Others (attention heads inside a
// [B,T,H,D] tensor) are passed as two: oneDNN 2.6 recognizes these orders in
// four dimensions and keeps its fast kernels, but not in three.
//
// In the form Packed the right operand is packed into the workspace first, in
// the library's order (LibraryTable.cpp says where that pays).
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"
#include "PlacedProduct.h"

#include <algorithm>

using namespace ckopt::runtime;

namespace {

/// Describes the last `rank` dimensions of [batch 0, batch 1, rows, cols]; a
/// broadcast batch has extent 1.
bool view(DnnlLayout &md, const PlacedOperand &o, int rank,
          const int64_t *batch, int64_t rows, int64_t cols,
          dnnl_data_type_t type, int64_t *extents = nullptr) {
  int64_t dense = std::max(rows * o.row, cols * o.col);
  int64_t dims[4] = {batch[0], batch[1], rows, cols};
  int64_t strides[4] = {o.batch[0], o.batch[1], o.row, o.col};
  for (int d = 1; d >= 0; --d) {
    if (strides[d] == 0)
      dims[d] = 1;
    // The stride of a single batch has no effect.
    if (dims[d] == 1)
      strides[d] = std::max(dense, d == 0 ? dims[1] * strides[1] : dense);
  }
  if (extents)
    std::copy(dims + 4 - rank, dims + 4, extents);
  return md.setStrided(rank, dims + 4 - rank, type, strides + 4 - rank);
}

/// A matrix, and the number of the argument that it is.
struct Factor {
  DnnlLayout desc;
  int arg;
};

/// Appends c = a b, or c += a b; with `packed`, the library chooses the order
/// of the right operand.
bool appendProduct(const PrimitiveDesc &desc, const KernelEvidence &evidence,
                   DnnlProgram &program, const Factor &a, const Factor &b,
                   const Factor &c, const DnnlLayout *packed,
                   std::string &error) {
  DnnlAttributes attributes;
  dnnl_status_t status = desc.accumulate ? attributes.addSum() : dnnl_success;
  if (status != dnnl_success) {
    error = dnnlStatusText(status);
    return false;
  }
  DnnlKernels kernels(a.desc.get(), (packed ? *packed : b.desc).get(),
                      c.desc.get(), attributes.get());
  KernelEvidence::Finding finding;
  dnnl_primitive_desc_t pd =
      chooseKernel(kernels, desc, evidence, finding, error);
  if (!pd)
    return false;
  dnnl_memory_t aMem = program.argument(a.desc.get(), a.arg);
  dnnl_memory_t bMem = program.argument(b.desc.get(), b.arg);
  dnnl_memory_t cMem = program.argument(c.desc.get(), c.arg);
  DnnlLayoutRef chosen =
      dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  if (!dnnl_memory_desc_equal(chosen, b.desc.get())) {
    dnnl_memory_t packedMem = program.scratch(chosen);
    if (!program.appendReorder(b.desc.get(), bMem, chosen, packedMem, error)) {
      dnnl_primitive_desc_destroy(pd);
      return false;
    }
    bMem = packedMem;
  }
  return program.append(
      pd,
      {{DNNL_ARG_SRC, aMem}, {DNNL_ARG_WEIGHTS, bMem}, {DNNL_ARG_DST, cMem}},
      error, finding);
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createDnnlMatMul(const PrimitiveDesc &desc,
                                 const KernelEvidence &evidence,
                                 std::string &error) {
  PlacedProduct m(desc);
  auto dense = [](const PlacedOperand &o, int64_t rows, int64_t cols) {
    return o.batch[1] == 0 || o.batch[1] == rows * cols;
  };
  bool allDense =
      dense(m.a, m.m, m.k) && dense(m.b, m.k, m.n) && dense(m.c, m.m, m.n);
  int rank = m.batch[0] > 1 ? 4 : m.batch[1] == 1 ? 2 : allDense ? 3 : 4;
  dnnl_data_type_t type = dnnlType(desc.dtype);
  Factor a{{}, m.a.arg}, b{{}, m.b.arg}, c{{}, m.c.arg};
  DnnlLayout packed;
  bool packs = desc.form == LibraryForm::Packed;
  dnnl_dims_t extents = {};
  if (!view(a.desc, m.a, rank, m.batch, m.m, m.k, type) ||
      !view(b.desc, m.b, rank, m.batch, m.k, m.n, type, extents) ||
      !view(c.desc, m.c, rank, m.batch, m.m, m.n, dnnlType(resultType(desc))) ||
      (packs && !packed.setAny(rank, extents, type))) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return nullptr;
  }
  auto program = std::make_unique<DnnlProgram>();
  if (desc.accumulate &&
      !program->appendCopy(c.desc.get(), c.arg - 1, c.arg, error))
    return nullptr;
  if (!appendProduct(desc, evidence, *program, a, b, c,
                     packs ? &packed : nullptr, error))
    return nullptr;
  return program;
}
