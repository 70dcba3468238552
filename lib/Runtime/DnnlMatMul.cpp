//===- DnnlMatMul.cpp - matrix products by oneDNN -------------------------===//
//
// oneDNN wants the result row-major in its last two dimensions; a result whose
// rows are contiguous the other way is the product of the transposes. Batch
// dimensions of extent 1 are dropped; two real ones run as rounds over the
// outer, since 2.6 takes a slow path for batches whose strides do not nest.
//
//===----------------------------------------------------------------------===//
#include "DnnlProgram.h"

#include <algorithm>

using namespace ckopt::runtime;

namespace {

struct Operand {
  int arg;
  int64_t batch[2], row, col;
};

/// A [batch,] rows x cols view of an operand; broadcast batches have extent 1.
bool view(dnnl_memory_desc_t &md, const Operand &o, int64_t batch, int64_t rows,
          int64_t cols, dnnl_data_type_t type) {
  // Strides of single rows or columns are free: give them what a dense matrix
  // would have, since the library looks at them.
  int64_t row = o.row, col = o.col;
  if (cols == 1 && rows == 1)
    row = col = 1;
  else if (cols == 1)
    col = row == 1 ? rows : 1;
  else if (rows == 1)
    row = col == 1 ? cols : 1;
  dnnl_dims_t dims = {rows, cols}, strides = {row, col};
  int rank = 2;
  if (batch > 1) {
    rank = 3;
    bool broadcast = o.batch[1] == 0;
    int64_t dense = std::max(rows * row, cols * col);
    dnnl_dims_t batched = {broadcast ? 1 : batch, rows, cols};
    dnnl_dims_t batchedStrides = {broadcast ? dense : o.batch[1], row, col};
    std::copy(batched, batched + 3, dims);
    std::copy(batchedStrides, batchedStrides + 3, strides);
  }
  return dnnl_memory_desc_init_by_strides(&md, rank, dims, type, strides) ==
         dnnl_success;
}

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createDnnlMatMul(const PrimitiveDesc &desc,
                                 std::string &error) {
  MatMulDesc m = desc.matmul;
  Operand a{0, {m.aBatch[0], m.aBatch[1]}, m.aRow, m.aCol};
  Operand b{1, {m.bBatch[0], m.bBatch[1]}, m.bRow, m.bCol};
  Operand c{2, {m.cBatch[0], m.cBatch[1]}, m.cRow, m.cCol};
  if (m.n > 1 && m.cCol != 1 && m.m > 1) {
    std::swap(a, b);
    std::swap(m.m, m.n);
    for (Operand *o : {&a, &b, &c})
      std::swap(o->row, o->col);
  }
  // The larger batch dimension inside, as one library call; rounds outside.
  int64_t outer = m.batch[0], inner = m.batch[1];
  if (inner == 1 && outer > 1) {
    std::swap(outer, inner);
    for (Operand *o : {&a, &b, &c})
      std::swap(o->batch[0], o->batch[1]);
  }
  // Batches that nest are one batch.
  auto nests = [&](const Operand &o) {
    return o.batch[0] == inner * o.batch[1];
  };
  if (outer > 1 && inner > 1 && nests(a) && nests(b) && nests(c)) {
    inner *= outer;
    outer = 1;
  }
  dnnl_data_type_t type = dnnlType(desc.dtype);
  dnnl_memory_desc_t aDesc, bDesc, cDesc;
  dnnl_matmul_desc_t op;
  dnnl_primitive_desc_t pd = nullptr;
  DnnlAttributes attributes;
  bool sound = view(aDesc, a, inner, m.m, m.k, type) &&
               view(bDesc, b, inner, m.k, m.n, type) &&
               view(cDesc, c, inner, m.m, m.n, type);
  dnnl_status_t status =
      sound ? dnnl_matmul_desc_init(&op, &aDesc, &bDesc, nullptr, &cDesc)
            : dnnl_invalid_arguments;
  if (status == dnnl_success)
    status = dnnl_primitive_desc_create(&pd, &op, attributes.get(),
                                        dnnlEngine(), nullptr);
  if (status != dnnl_success) {
    error = dnnlStatusText(status);
    return nullptr;
  }
  auto program = std::make_unique<DnnlProgram>();
  int64_t size = dtypeBytes(desc.dtype);
  dnnl_memory_t aMem = program->argument(aDesc, a.arg, a.batch[0] * size);
  dnnl_memory_t bMem = program->argument(bDesc, b.arg, b.batch[0] * size);
  dnnl_memory_t cMem = program->argument(cDesc, c.arg, c.batch[0] * size);
  program->repeat(outer);
  if (!program->append(pd,
                       {{DNNL_ARG_SRC, aMem},
                        {DNNL_ARG_WEIGHTS, bMem},
                        {DNNL_ARG_DST, cMem}},
                       error))
    return nullptr;
  return program;
}
