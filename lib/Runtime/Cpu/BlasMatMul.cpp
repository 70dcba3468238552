//===- BlasMatMul.cpp - matrix products by OpenBLAS -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products of f64 (oneDNN 2.6 has no f64), and f32 products that oneDNN
// refuses; for shapes that both support, OpenBLAS was never faster (README.md).
// Batches are a loop over gemm. BLAS has no matrices without a unit stride: a
// slow plain loop computes those. No workspace is needed: OpenBLAS packs into
// buffers of its own that it keeps from its first use on.
//
//===----------------------------------------------------------------------===//
#include "OpenBlas.h"
#include "PrimitiveImpl.h"

#include <algorithm>

using namespace ckopt::runtime;

namespace {

/// A rows x cols matrix as a row-major BLAS argument.
struct BlasMatrix {
  CBLAS_TRANSPOSE order = CblasNoTrans;
  blasint lead = 1;
};

constexpr int64_t kMaxBlas = (int64_t(1) << 31) - 1;

bool asBlas(int64_t rows, int64_t cols, int64_t row, int64_t col,
            BlasMatrix &matrix) {
  bool plain = (col == 1 || cols == 1) && (row >= cols || rows == 1);
  bool transposed = (row == 1 || rows == 1) && (col >= rows || cols == 1);
  if (!plain && !transposed)
    return false;
  int64_t lead = plain ? (rows == 1 ? cols : row) : (cols == 1 ? rows : col);
  matrix.order = plain ? CblasNoTrans : CblasTrans;
  lead = std::max<int64_t>(lead, plain ? cols : rows);
  matrix.lead = static_cast<blasint>(lead);
  return lead <= kMaxBlas && rows <= kMaxBlas && cols <= kMaxBlas;
}

MatMulDesc transposed(const MatMulDesc &m) {
  MatMulDesc t = m;
  std::swap(t.m, t.n);
  std::copy(m.bBatch, m.bBatch + 2, t.aBatch);
  std::copy(m.aBatch, m.aBatch + 2, t.bBatch);
  t.aRow = m.bCol, t.aCol = m.bRow;
  t.bRow = m.aCol, t.bCol = m.aRow;
  t.cRow = m.cCol, t.cCol = m.cRow;
  return t;
}

bool rowMajorResult(const MatMulDesc &m) {
  BlasMatrix c;
  return asBlas(m.m, m.n, m.cRow, m.cCol, c) && c.order == CblasNoTrans;
}

void gemm(const BlasMatrix &a, const BlasMatrix &b, const MatMulDesc &m,
          const float *x, const float *y, float beta, float *z, blasint ldc) {
  cblas_sgemm(CblasRowMajor, a.order, b.order, static_cast<blasint>(m.m),
              static_cast<blasint>(m.n), static_cast<blasint>(m.k), 1.0f, x,
              a.lead, y, b.lead, beta, z, ldc);
}

void gemm(const BlasMatrix &a, const BlasMatrix &b, const MatMulDesc &m,
          const double *x, const double *y, double beta, double *z,
          blasint ldc) {
  cblas_dgemm(CblasRowMajor, a.order, b.order, static_cast<blasint>(m.m),
              static_cast<blasint>(m.n), static_cast<blasint>(m.k), 1.0, x,
              a.lead, y, b.lead, beta, z, ldc);
}

template <typename T>
void plainProduct(const MatMulDesc &m, const T *a, const T *b, T beta, T *c) {
  for (int64_t i = 0; i < m.m; ++i)
    for (int64_t j = 0; j < m.n; ++j) {
      T sum = beta == 0 ? 0 : c[i * m.cRow + j * m.cCol];
      for (int64_t k = 0; k < m.k; ++k)
        sum += a[i * m.aRow + k * m.aCol] * b[k * m.bRow + j * m.bCol];
      c[i * m.cRow + j * m.cCol] = sum;
    }
}

template <typename T> class BlasMatMul final : public Primitive {
public:
  BlasMatMul(const MatMulDesc &desc, bool accumulate)
      : m(desc), swapped(false), accumulate(accumulate) {
    if (!rowMajorResult(m) && rowMajorResult(transposed(m))) {
      m = transposed(m);
      swapped = true;
    }
    BlasMatrix c;
    fits = asBlas(m.m, m.k, m.aRow, m.aCol, a) &&
           asBlas(m.k, m.n, m.bRow, m.bCol, b) &&
           asBlas(m.m, m.n, m.cRow, m.cCol, c) && c.order == CblasNoTrans;
    ldc = c.lead;
  }
  int64_t workspaceBytes() const override { return 0; }
  std::string implementation() const override {
    return fits ? "OpenBLAS gemm" : "plain loop";
  }
  bool execute(void *const *args, void *, std::string &) override {
    auto *x = static_cast<const T *>(args[swapped ? 1 : 0]);
    auto *y = static_cast<const T *>(args[swapped ? 0 : 1]);
    auto *z = static_cast<T *>(args[accumulate ? 3 : 2]);
    T beta = accumulate ? 1 : 0;
    if (accumulate && args[2] != args[3])
      copyAddend(static_cast<const T *>(args[2]), z);
    for (int64_t i = 0; i < m.batch[0]; ++i)
      for (int64_t j = 0; j < m.batch[1]; ++j) {
        const T *xi = x + i * m.aBatch[0] + j * m.aBatch[1];
        const T *yi = y + i * m.bBatch[0] + j * m.bBatch[1];
        T *zi = z + i * m.cBatch[0] + j * m.cBatch[1];
        if (fits)
          gemm(a, b, m, xi, yi, beta, zi, ldc);
        else
          plainProduct(m, xi, yi, beta, zi);
      }
    return true;
  }

private:
  void copyAddend(const T *from, T *to) const {
    for (int64_t i = 0; i < m.batch[0]; ++i)
      for (int64_t j = 0; j < m.batch[1]; ++j)
        for (int64_t r = 0; r < m.m; ++r)
          for (int64_t c = 0; c < m.n; ++c) {
            int64_t at =
                i * m.cBatch[0] + j * m.cBatch[1] + r * m.cRow + c * m.cCol;
            to[at] = from[at];
          }
  }

  MatMulDesc m;
  bool swapped, accumulate, fits;
  BlasMatrix a, b;
  blasint ldc;
};

} // namespace

std::unique_ptr<Primitive>
ckopt::runtime::createBlasMatMul(const PrimitiveDesc &desc) {
  if (desc.dtype == DType::F64)
    return std::make_unique<BlasMatMul<double>>(desc.matmul, desc.accumulate);
  return std::make_unique<BlasMatMul<float>>(desc.matmul, desc.accumulate);
}
