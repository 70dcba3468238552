//===- Primitive.cpp - who runs a descriptor ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Chooses the library that runs a descriptor. The choice is a pure function of
// the descriptor (the table and its measurements are in README.md beside this
// file), never of a timing of this run, because it decides the bits of results.
//
//===----------------------------------------------------------------------===//
#include "PrimitiveImpl.h"

#include "Env.h"
#include "OpenMP.h"

#include <map>
#include <mutex>
#include <vector>

using namespace ckopt::runtime;

Primitive::~Primitive() = default;

namespace {

std::unique_ptr<Primitive> createChecked(const PrimitiveDesc &desc,
                                         int32_t threads, std::string &error) {
  bool isMatMul = desc.kind == PrimitiveKind::MatMul;
  if (isAttention(desc.kind))
    return createAttention(desc, threads);
  if (desc.dtype == DType::F64)
    return isMatMul ? createBlasMatMul(desc) : createF64Conv(desc);
  if (desc.dtype != DType::F32 && desc.dtype != DType::BF16 &&
      desc.dtype != DType::F16) {
    error = "no library kernel for element type " +
            std::string(dtypeName(desc.dtype));
    return nullptr;
  }
  if (!isMatMul)
    return createDnnlConv(desc, error);
  auto product = createDnnlMatMul(desc, error);
  // OpenBLAS accepts some strides that oneDNN refuses.
  if (!product && desc.dtype == DType::F32 &&
      desc.precision == ProductPrecision::F32) {
    error.clear();
    return createBlasMatMul(desc);
  }
  return product;
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
