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
// A product of operands that are given in pieces is a chain of products, each
// added to the result, those of small pieces first.
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"
#include "PlacedProduct.h"

#include <algorithm>

using namespace ckopt::runtime;

namespace {

/// Describes the last `rank` dimensions of [batch 0, batch 1, rows, cols]; a
/// broadcast batch has extent 1.
bool view(dnnl_memory_desc_t &md, const PlacedOperand &o, int rank,
          const int64_t *batch, int64_t rows, int64_t cols,
          dnnl_data_type_t type) {
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
  return dnnl_memory_desc_init_by_strides(&md, rank, dims + 4 - rank, type,
                                          strides + 4 - rank) == dnnl_success;
}

/// Describes the product; with `packed`, the library chooses the order of the
/// right operand, with `accumulate`, c is added to. Returns null where it
/// refuses.
dnnl_primitive_desc_t describeProduct(const dnnl_memory_desc_t &a,
                                      const dnnl_memory_desc_t &b,
                                      const dnnl_memory_desc_t &c, bool packed,
                                      bool accumulate, dnnl_status_t &status) {
  dnnl_memory_desc_t right = b;
  dnnl_matmul_desc_t op;
  dnnl_primitive_desc_t pd = nullptr;
  DnnlAttributes attributes;
  status = packed
               ? dnnl_memory_desc_init_by_tag(&right, b.ndims, b.dims,
                                              b.data_type, dnnl_format_tag_any)
               : dnnl_success;
  if (status == dnnl_success && accumulate)
    status = attributes.addSum();
  if (status == dnnl_success)
    status = dnnl_matmul_desc_init(&op, &a, &right, nullptr, &c);
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&pd, &op, attributes.get(),
                                        dnnlEngine(), nullptr);
  return status == dnnl_success ? pd : nullptr;
}

/// A matrix and the number of the argument that it is.
struct Factor {
  const dnnl_memory_desc_t &desc;
  int arg;
};

/// Appends c = a b, or c += a b.
bool appendProduct(DnnlProgram &program, Factor a, Factor b, Factor c,
                   bool packs, bool accumulate, std::string &error) {
  dnnl_status_t status;
  dnnl_primitive_desc_t pd =
      describeProduct(a.desc, b.desc, c.desc, packs, accumulate, status);
  if (!pd) {
    error = dnnlStatusText(status);
    return false;
  }
  dnnl_memory_t aMem = program.argument(a.desc, a.arg);
  dnnl_memory_t bMem = program.argument(b.desc, b.arg);
  dnnl_memory_t cMem = program.argument(c.desc, c.arg);
  const dnnl_memory_desc_t &packed =
      *dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
  if (!dnnl_memory_desc_equal(&packed, &b.desc)) {
    dnnl_memory_t packedMem = program.scratch(packed);
    if (!program.appendReorder(b.desc, bMem, packed, packedMem, error)) {
      dnnl_primitive_desc_destroy(pd);
      return false;
    }
    bMem = packedMem;
  }
  return program.append(
      pd,
      {{DNNL_ARG_SRC, aMem}, {DNNL_ARG_WEIGHTS, bMem}, {DNNL_ARG_DST, cMem}},
      error);
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createDnnlMatMul(const PrimitiveDesc &desc,
                                 std::string &error) {
  const MatMulDesc &given = desc.matmul;
  int64_t most =
      std::max({given.batch[0], given.batch[1], given.m, given.n, given.k});
  if (most > kMaxDnnlExtent ||
      given.batch[0] * given.batch[1] > kMaxDnnlExtent) {
    error = kDnnlExtentText;
    return nullptr;
  }
  int pieces = int(pieceCount(desc.precision));
  PlacedProduct m(desc);
  const PlacedOperand &a = m.a, &b = m.b, &c = m.c;
  auto dense = [](const PlacedOperand &o, int64_t rows, int64_t cols) {
    return o.batch[1] == 0 || o.batch[1] == rows * cols;
  };
  bool allDense =
      dense(a, m.m, m.k) && dense(b, m.k, m.n) && dense(c, m.m, m.n);
  int rank = m.batch[0] > 1 ? 4 : m.batch[1] == 1 ? 2 : allDense ? 3 : 4;
  dnnl_data_type_t type = dnnlType(desc.dtype);
  dnnl_data_type_t sums = dnnlType(resultType(desc));
  dnnl_memory_desc_t aDesc, bDesc, cDesc;
  if (!view(aDesc, a, rank, m.batch, m.m, m.k, type) ||
      !view(bDesc, b, rank, m.batch, m.k, m.n, type) ||
      !view(cDesc, c, rank, m.batch, m.m, m.n, sums)) {
    error = dnnlStatusText(dnnl_invalid_arguments);
    return nullptr;
  }
  bool packs = desc.form == LibraryForm::Packed;
  auto program = std::make_unique<DnnlProgram>();
  if (desc.accumulate && !program->appendCopy(cDesc, c.arg - 1, c.arg, error))
    return nullptr;
  bool first = !desc.accumulate;
  // Of pieces i and j with i + j = order.
  for (int order = pieces - 1; order >= 0; --order)
    for (int i = order; i >= 0; --i) {
      if (!appendProduct(*program, {aDesc, a.arg + i},
                         {bDesc, b.arg + order - i}, {cDesc, c.arg}, packs,
                         !first, error))
        return nullptr;
      first = false;
    }
  return program;
}
