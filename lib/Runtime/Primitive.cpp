//===- Primitive.cpp - who runs a descriptor ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the primitive of a descriptor. Its library and form are a pure function
// of the descriptor (LibraryTable.h), never of a timing of this run, because
// they decide the bits of results.
//
//===----------------------------------------------------------------------===//
#include "PrimitiveImpl.h"

#include "Env.h"
#include "OpenMP.h"
#include "ckopt/Runtime/LibraryTable.h"

#include <map>
#include <mutex>
#include <vector>

using namespace ckopt::runtime;

Primitive::~Primitive() = default;

int32_t Primitive::failure() const { return CKRT_EXECUTION; }

namespace {

std::unique_ptr<Primitive> createProduct(const PrimitiveDesc &desc,
                                         std::string &error) {
  if (desc.form == LibraryForm::OpenBlas)
    return createBlasMatMul(desc);
  auto product = createDnnlMatMul(desc, error);
  // OpenBLAS accepts some strides that oneDNN refuses.
  if (!product && desc.dtype == DType::F32 &&
      desc.precision == ProductPrecision::F32) {
    error.clear();
    return createBlasMatMul(desc);
  }
  return product;
}

std::unique_ptr<Primitive> createChecked(const PrimitiveDesc &given,
                                         int32_t threads, std::string &error) {
  PrimitiveDesc desc = given;
  if (desc.form == LibraryForm::Default)
    desc.form = builtInLibraryTable("").formOf(desc);
  bool isMatMul = desc.kind == PrimitiveKind::MatMul;
  if (isAttention(desc.kind))
    return createAttention(desc, threads);
  if (isOfRanks(desc.kind))
    return createOfRanks(desc);
  if (desc.dtype == DType::F64)
    return isMatMul ? createBlasMatMul(desc) : createF64Conv(desc);
  if (desc.dtype != DType::F32 && desc.dtype != DType::BF16 &&
      desc.dtype != DType::F16) {
    error = "no library kernel for element type " +
            std::string(dtypeName(desc.dtype));
    return nullptr;
  }
  if (isMatMul)
    return createProduct(desc, error);
  if (desc.form == LibraryForm::Default ||
      desc.form == LibraryForm::Convolution)
    return createDnnlConv(desc, error);
  PrimitiveDesc product = productOf(desc);
  product.form = desc.form;
  return createProduct(product, error);
}

} // namespace

std::unique_ptr<Primitive> Primitive::create(const PrimitiveDesc &desc,
                                             int32_t threads,
                                             std::string &error) {
  error = check(desc);
  if (!error.empty())
    return nullptr;
  if (threads < 1 || omp_in_parallel()) {
    error = describe(desc) + ": must be made by a positive number of threads, "
                             "outside of parallel regions";
    return nullptr;
  }
  // Libraries build a primitive for a fixed number of threads.
  TeamScope team(threads, desc.dtype == DType::F64);
  if (team.delivered != threads) {
    error = describe(desc) + ": OpenMP gives " +
            std::to_string(team.delivered) + " threads, not " +
            std::to_string(threads);
    return nullptr;
  }
  auto primitive = createChecked(desc, threads, error);
  if (!primitive)
    error = describe(desc) + ": " + error;
  return primitive;
}

int64_t ckopt::runtime::primitiveWorkspace(const PrimitiveDesc &desc,
                                           int32_t threads,
                                           std::string &error) {
  static std::mutex mutex;
  static std::vector<
      std::pair<PrimitiveDesc, std::pair<int32_t, int64_t>>> *cache =
      new std::vector<std::pair<PrimitiveDesc, std::pair<int32_t, int64_t>>>;
  std::lock_guard<std::mutex> lock(mutex);
  for (const auto &[known, value] : *cache)
    if (known == desc && value.first == threads)
      return value.second;
  auto primitive = Primitive::create(desc, threads, error);
  if (!primitive)
    return -1;
  int64_t bytes = primitive->workspaceBytes();
  cache->push_back({desc, {threads, bytes}});
  return bytes;
}
