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
// A right operand whose rows lie a multiple of 4 KiB apart is packed into the
// workspace first: oneDNN's f32 kernels read it in place, and there every row
// of a tile falls into the same sets of the L1 cache. On Intel's cores that
// takes up to twice the time (512x3072x768 on two threads: 26.3 ms in place,
// 14.0 packed and 1.9 for packing); on AMD's Zen it makes no difference. The
// rule depends on the descriptor alone, so results never depend on a budget.
//
// A product of operands that are given in pieces is a chain of products, each
// added to the result, those of small pieces first.
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"

#include <algorithm>
#include <initializer_list>

using namespace ckopt::runtime;

namespace {

struct Operand {
  int arg;
  int64_t batch[2], row, col;
};

/// Single rows and columns have no stride of their own: they get the stride of
/// a dense matrix, since the library looks at it.
void normalizeUnit(Operand &o, int64_t rows, int64_t cols) {
  if (cols == 1 && rows == 1)
    o.row = o.col = 1;
  else if (cols == 1)
    o.col = 1;
  else if (rows == 1)
    o.row = o.col == 1 ? cols : 1;
}

/// Describes the last `rank` dimensions of [batch 0, batch 1, rows, cols]; a
/// broadcast batch has extent 1.
bool view(dnnl_memory_desc_t &md, const Operand &o, int rank,
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

/// Merges two batch dimensions into one if all operands allow it.
void mergeBatches(int64_t *batch, std::initializer_list<Operand *> operands) {
  if (batch[1] == 1) {
    std::swap(batch[0], batch[1]);
    for (Operand *o : operands)
      std::swap(o->batch[0], o->batch[1]);
  }
  bool nests = batch[0] > 1;
  for (Operand *o : operands)
    nests = nests && o->batch[0] == batch[1] * o->batch[1];
  if (nests) {
    batch[1] *= batch[0];
    batch[0] = 1;
  }
}

/// Packing reads and writes the right operand once, which the product has to
/// make up for: each of its elements is used `rows` times.
constexpr int64_t kLeastPackedRows = 256;
constexpr int64_t kLeastPackedExtent = 64;
/// The most bytes of workspace that packing may add.
constexpr int64_t kMostPackedBytes = int64_t(32) << 20;
constexpr int64_t kPageBytes = 4096;

/// Returns whether to pack the right operand of a product of two f32 matrices.
bool wantsPacking(const MatMulDesc &m, const Operand &b, int rank,
                  DType dtype) {
  int64_t size = int64_t(sizeof(float));
  return rank == 2 && dtype == DType::F32 && b.col == 1 &&
         b.row * size % kPageBytes == 0 && m.m >= kLeastPackedRows &&
         std::min(m.n, m.k) >= kLeastPackedExtent &&
         m.n * m.k <= kMostPackedBytes / size;
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
  MatMulDesc m = desc.matmul;
  int64_t most = std::max({m.batch[0], m.batch[1], m.m, m.n, m.k});
  if (most > kMaxDnnlExtent || m.batch[0] * m.batch[1] > kMaxDnnlExtent) {
    error = kDnnlExtentText;
    return nullptr;
  }
  int pieces = int(pieceCount(desc.precision));
  Operand a{0, {m.aBatch[0], m.aBatch[1]}, m.aRow, m.aCol};
  Operand b{pieces, {m.bBatch[0], m.bBatch[1]}, m.bRow, m.bCol};
  int addend = 2 * pieces, result = addend + desc.accumulate;
  Operand c{result, {m.cBatch[0], m.cBatch[1]}, m.cRow, m.cCol};
  if (m.n > 1 && m.cCol != 1 && m.m > 1) {
    std::swap(a, b);
    std::swap(m.m, m.n);
    for (Operand *o : {&a, &b, &c})
      std::swap(o->row, o->col);
  }
  mergeBatches(m.batch, {&a, &b, &c});
  normalizeUnit(a, m.m, m.k);
  normalizeUnit(b, m.k, m.n);
  normalizeUnit(c, m.m, m.n);
  auto dense = [](const Operand &o, int64_t rows, int64_t cols) {
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
  bool packs = pieces == 1 && wantsPacking(m, b, rank, desc.dtype);
  auto program = std::make_unique<DnnlProgram>();
  if (desc.accumulate && !program->appendCopy(cDesc, addend, result, error))
    return nullptr;
  bool first = !desc.accumulate;
  // Of pieces i and j with i + j = order.
  for (int order = pieces - 1; order >= 0; --order)
    for (int i = order; i >= 0; --i) {
      if (!appendProduct(*program, {aDesc, a.arg + i},
                         {bDesc, b.arg + order - i}, {cDesc, result}, packs,
                         !first, error))
        return nullptr;
      first = false;
    }
  return program;
}
