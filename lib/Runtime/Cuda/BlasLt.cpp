//===- BlasLt.cpp - matmuls by cuBLASLt -----------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The library wants column-major matrices with a leading dimension. A matmul c
// = a b with a row-major c is the column-major one of the transposes, so
// operands are swapped; each is plain or transposed, depending on which of its
// strides is 1. Of two batch dimensions one is the library's; the other is
// merged with it if the strides allow it, else it is a loop of launches. An
// addend has c's strides, and is cuBLASLt's C with beta 1: in c's bytes, or
// elsewhere. A bias over the columns of c is one over the library's rows, which
// its epilogue adds; each launch writes the address into the descriptor, which
// the library reads before it returns. The compute type sets the precision to
// which the library may round operands.
//
//===----------------------------------------------------------------------===//
#include "BlasLt.h"

#include "Library.h"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <optional>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

namespace {

/// A matrix of rows x cols with strides in elements.
struct Operand {
  int64_t rows, cols, rowStride, colStride;
  int64_t batch[2]; ///< strides
  int argument;     ///< index in the descriptor: 0 a, 1 b, 2 c

  /// Returns whether the matrix is column-major with a leading dimension, as it
  /// is or transposed. A stride of 0 (an operand that is read repeatedly) is
  /// neither.
  bool plain() const {
    return (rowStride == 1 || rows == 1) && (cols == 1 || colStride >= rows);
  }
  bool turned() const {
    return (colStride == 1 || cols == 1) && (rows == 1 || rowStride >= cols);
  }
};

Operand transposed(Operand o) {
  std::swap(o.rows, o.cols);
  std::swap(o.rowStride, o.colStride);
  return o;
}

/// A matmul of `first` and `second` into a column-major result.
struct Product {
  Operand first, second, result;
  int64_t outer = 1, inner = 1; ///< batches: launches, and within the library
};

std::optional<Product> arrange(const MatMulDesc &d) {
  Product p{{d.m, d.k, d.aRow, d.aCol, {d.aBatch[0], d.aBatch[1]}, 0},
            {d.k, d.n, d.bRow, d.bCol, {d.bBatch[0], d.bBatch[1]}, 1},
            {d.m, d.n, d.cRow, d.cCol, {d.cBatch[0], d.cBatch[1]}, 2}};
  if (p.result.turned()) {
    Operand a = p.first;
    p.first = transposed(p.second);
    p.second = transposed(a);
    p.result = transposed(p.result);
  }
  for (const Operand *o : {&p.first, &p.second})
    if (!o->plain() && !o->turned())
      return std::nullopt;
  if (!p.result.plain())
    return std::nullopt;
  p.outer = d.batch[0], p.inner = d.batch[1];
  bool folds = true;
  for (const Operand *o : {&p.first, &p.second, &p.result})
    folds = folds && o->batch[0] == o->batch[1] * d.batch[1];
  if (p.outer > 1 && (folds || p.inner == 1)) {
    if (!folds) // the inner batch is a single matrix, whose stride has no
                // effect
      for (Operand *o : {&p.first, &p.second, &p.result})
        o->batch[1] = o->batch[0];
    p.inner *= p.outer;
    p.outer = 1;
  }
  return p;
}

int typeOf(DType dtype) {
  switch (dtype) {
  case DType::F64:
    return kLtTypeF64;
  case DType::F16:
    return kLtTypeF16;
  case DType::BF16:
    return kLtTypeBF16;
  default:
    return kLtTypeF32;
  }
}

int computeOf(const PrimitiveDesc &desc) {
  if (desc.dtype == DType::F64)
    return kLtComputeF64;
  return desc.precision == ProductPrecision::TF32 ? kLtComputeFastTF32
                                                  : kLtComputeF32;
}

class LtKernel final : public LibraryKernel {
public:
  LtKernel(const LtEntries &lt, void *handle, const PrimitiveDesc &desc,
           const Product &product, const Room &room)
      : lt(lt), handle(handle), product(product), workspace(room.workspace),
        arenaAlignment(room.alignment), isF64(desc.dtype == DType::F64),
        accumulates(desc.accumulate), hasBias(desc.hasBias),
        types{desc.dtype, desc.dtype,
              desc.wideResult ? DType::F32 : desc.dtype} {}
  ~LtKernel() override;
  /// Makes the descriptors; returns the library's status.
  int describe(const PrimitiveDesc &primitive);
  int choose(LtResult &chosen);
  int restore(const LtAlgorithm &wanted);
  void take(const LtAlgorithm &chosen) { algorithm = chosen; }
  bool enqueue(const Places &places, Stream stream,
               std::string &error) override;

private:
  int describe(const Operand &operand, void *&layout, int64_t &op);
  int setBias(DevicePointer bias) {
    return lt.descSet(desc, kLtDescBiasPointer, &bias, sizeof(bias));
  }
  int64_t alignment() const;
  /// Returns the bytes from one matrix of an outer batch to the next.
  int64_t stepOf(const Operand &o) const {
    return o.batch[0] * dtypeSize(types[o.argument]);
  }

  const LtEntries &lt;
  void *handle;
  Product product;
  int64_t workspace, arenaAlignment;
  bool isF64;
  bool accumulates, hasBias; ///< args: a, b, [addend], [bias], c
  DType types[3];            ///< types of a, b and c
  void *desc = nullptr, *layouts[3] = {nullptr, nullptr, nullptr};
  LtAlgorithm algorithm = {};
};

class BlasLt final : public Library {
public:
  ~BlasLt() override {
    if (handle)
      (void)lt.destroy(handle);
  }
  bool open(std::string &error);
  std::string version() const override {
    return std::to_string(lt.getVersion());
  }
  std::unique_ptr<LibraryKernel> make(const PrimitiveDesc &desc,
                                      const Room &room, std::string &algorithm,
                                      ckopt::MessageText &error) override;

private:
  LtEntries lt{};
  void *handle = nullptr;
};

} // namespace

LtKernel::~LtKernel() {
  for (void *layout : layouts)
    if (layout)
      (void)lt.layoutDestroy(layout);
  if (desc)
    (void)lt.descDestroy(desc);
}

int LtKernel::describe(const Operand &o, void *&layout, int64_t &op) {
  bool plain = o.plain();
  op = plain ? 0 : 1;
  int64_t rows = plain ? o.rows : o.cols, cols = plain ? o.cols : o.rows;
  int64_t leading = std::max(plain ? o.colStride : o.rowStride, rows);
  int status = lt.layoutCreate(&layout, typeOf(types[o.argument]),
                               static_cast<uint64_t>(rows),
                               static_cast<uint64_t>(cols), leading);
  auto count = static_cast<int32_t>(product.inner);
  int64_t offset = o.batch[1];
  if (status == 0 && count > 1)
    status = lt.layoutSet(layout, kLtLayoutBatchCount, &count, sizeof(count));
  if (status == 0 && count > 1)
    status =
        lt.layoutSet(layout, kLtLayoutBatchOffset, &offset, sizeof(offset));
  return status;
}

int LtKernel::describe(const PrimitiveDesc &primitive) {
  int scale = isF64 ? kLtTypeF64 : kLtTypeF32;
  int status = lt.descCreate(&desc, computeOf(primitive), scale);
  const Operand *operands[3] = {&product.first, &product.second,
                                &product.result};
  for (int i = 0; i < 3 && status == 0; ++i) {
    int64_t op = 0;
    status = describe(*operands[i], layouts[i], op);
    auto value = static_cast<int32_t>(op);
    if (status == 0 && i < 2)
      status = lt.descSet(desc, i == 0 ? kLtDescTransA : kLtDescTransB, &value,
                          sizeof(value));
  }
  const int32_t epilogue = kLtEpilogueBias;
  if (status == 0 && hasBias)
    status = lt.descSet(desc, kLtDescEpilogue, &epilogue, sizeof(epilogue));
  // Algorithms are chosen by the alignment of an address.
  if (status == 0 && hasBias)
    status = setBias(static_cast<DevicePointer>(alignment()));
  return status;
}

int64_t LtKernel::alignment() const {
  int64_t bits = arenaAlignment; // all addresses, before steps over a batch
  if (product.outer > 1)
    for (const Operand *o : {&product.first, &product.second, &product.result})
      bits |= stepOf(*o);
  return bits & -bits;
}

int LtKernel::choose(LtResult &chosen) {
  void *preference = nullptr;
  int status = lt.prefCreate(&preference);
  auto most = static_cast<uint64_t>(workspace);
  uint32_t reductions = kLtReductionComputeType;
  auto aligned = static_cast<uint32_t>(alignment());
  if (status == 0)
    status = lt.prefSet(preference, kLtPrefMaxWorkspace, &most, sizeof(most));
  if (status == 0)
    status = lt.prefSet(preference, kLtPrefReductionMask, &reductions,
                        sizeof(reductions));
  for (int i = 0; i < 4 && status == 0; ++i)
    status = lt.prefSet(preference, kLtPrefMinAlignmentA + i, &aligned,
                        sizeof(aligned));
  LtResult results[16] = {};
  int count = 0;
  if (status == 0)
    status = lt.heuristic(handle, desc, layouts[0], layouts[1], layouts[2],
                          layouts[2], preference, 16, results, &count);
  if (preference)
    (void)lt.prefDestroy(preference);
  if (status != 0)
    return status;
  for (int i = 0; i < count; ++i)
    if (results[i].state == 0 && results[i].workspace <= most) {
      chosen = results[i];
      return 0;
    }
  return 15; // CUBLAS_STATUS_NOT_SUPPORTED
}

int LtKernel::restore(const LtAlgorithm &wanted) {
  LtResult result = {};
  int status = lt.check(handle, desc, layouts[0], layouts[1], layouts[2],
                        layouts[2], &wanted, &result);
  if (status == 0 && result.workspace > static_cast<size_t>(workspace))
    status = 15;
  if (status == 0)
    algorithm = wanted;
  return status;
}

bool LtKernel::enqueue(const Places &places, Stream stream,
                       std::string &error) {
  const float one = 1, kept = accumulates;
  const double one64 = 1, kept64 = accumulates;
  const void *alpha = isF64 ? static_cast<const void *>(&one64) : &one;
  const void *beta = isF64 ? static_cast<const void *>(&kept64) : &kept;
  for (int64_t i = 0; i < product.outer; ++i) {
    auto at = [&](const Operand &o, int later = 0) {
      return reinterpret_cast<void *>(
          places.args[o.argument + later] +
          static_cast<DevicePointer>(i * stepOf(o)));
    };
    void *addend = at(product.result);
    void *result = at(product.result, accumulates + hasBias);
    int status = hasBias ? setBias(places.args[3]) : 0;
    if (status == 0)
      status = lt.matmul(handle, desc, alpha, at(product.first), layouts[0],
                         at(product.second), layouts[1], beta, addend,
                         layouts[2], result, layouts[2], &algorithm,
                         reinterpret_cast<void *>(places.workspace),
                         static_cast<size_t>(workspace), stream);
    if (status != 0) {
      error = "cublasLtMatmul gives status " + statusText(status, lt.words);
      return false;
    }
  }
  return true;
}

bool BlasLt::open(std::string &error) {
  void *library = openFirst("CKOPT_CUBLASLT",
                            {"libcublasLt.so.13", "libcublasLt.so.12"}, error);
  if (!library)
    return false;
#define CKOPT_ENTRY(member, symbol, result, parameters)                        \
  lt.member = reinterpret_cast<decltype(lt.member)>(dlsym(library, #symbol));  \
  if (!lt.member) {                                                            \
    error = "not usable: libcublasLt has no entry " #symbol;                   \
    return false;                                                              \
  }
#include "BlasLtEntries.def"
#undef CKOPT_ENTRY
  int status = lt.create(&handle);
  if (status != 0) {
    handle = nullptr;
    error = "not usable: it does not start: status " + std::to_string(status);
  }
  return status == 0;
}

std::string ckopt::runtime::cuda::blasLtRefuses(const MatMulDesc &desc) {
  return arrange(desc) ? "" : "cuBLASLt has no products over such strides";
}

std::unique_ptr<LibraryKernel> BlasLt::make(const PrimitiveDesc &desc,
                                            const Room &room,
                                            std::string &algorithm,
                                            ckopt::MessageText &error) {
  std::optional<Product> product = arrange(desc.matmul);
  if (!product) {
    error = blasLtRefuses(desc.matmul);
    return nullptr;
  }
  auto kernel = std::make_unique<LtKernel>(lt, handle, desc, *product, room);
  const bool isGiven = !algorithm.empty();
  int status = kernel->describe(desc);
  if (status == 0 && !isGiven) {
    LtResult chosen = {};
    status = kernel->choose(chosen);
    if (status == 0)
      kernel->take(chosen.algorithm);
    algorithm = hexText(&chosen.algorithm, sizeof(chosen.algorithm));
  } else if (status == 0) {
    LtAlgorithm wanted = {};
    status = parseHex(algorithm, &wanted, sizeof(wanted))
                 ? kernel->restore(wanted)
                 : 7; // CUBLAS_STATUS_INVALID_VALUE
  }
  if (status == 0)
    return kernel;
  error = std::string("cuBLASLt has no ") + (isGiven ? "such " : "") +
          "algorithm for it in " + std::to_string(room.workspace) +
          " bytes of workspace (status " + statusText(status, lt.words);
  if (!isGiven)
    error += "; a larger " + ckopt::Setting("cuda-workspace") + " may help";
  error += ")";
  return nullptr;
}

std::unique_ptr<Library> ckopt::runtime::cuda::openBlasLt(std::string &error) {
  auto library = std::make_unique<BlasLt>();
  return library->open(error) ? std::move(library) : nullptr;
}
