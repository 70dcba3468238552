//===- Primitive.cpp - who runs a descriptor ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Makes the primitive of a descriptor. Its library and form are a pure function
// of the descriptor (LibraryTable.h), never of a timing of this run, because
// they decide the bits of results.
//
//===----------------------------------------------------------------------===//
#include "OpenBlas.h"
#include "PrimitiveImpl.h"

#include "Core/Env.h"
#include "KernelEvidence.h"
#include "OpenMP.h"
#include "ckopt/Runtime/LibraryTable.h"

#include <algorithm>
#include <mutex>
#include <vector>

using namespace ckopt::runtime;

Primitive::~Primitive() = default;

int32_t Primitive::failure() const { return CKRT_EXECUTION; }

namespace {

/// oneDNN counts in 32 bits in some places, rounds up, and divides by the
/// result: an extent of 2^38 would crash the process.
bool fitsDnnl(const PrimitiveDesc &desc) {
  constexpr int64_t kMost = int64_t(1) << 30;
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    return std::max({m.batch[0], m.batch[1], m.m, m.n, m.k}) <= kMost &&
           m.batch[0] * m.batch[1] <= kMost;
  }
  const ConvDesc &c = desc.conv;
  int64_t most = std::max({c.batch, c.inChannels, c.outChannels});
  for (int64_t d = 0; d < c.rank; ++d)
    most = std::max({most, c.in[d], c.out[d], c.kernel[d], c.strides[d],
                     c.dilations[d], c.padsLo[d], c.padsHi[d]});
  return most <= kMost;
}

/// Makes a primitive of OpenBLAS, where that is.
std::unique_ptr<Primitive> createBlas(const PrimitiveDesc &desc,
                                      std::string &error) {
  if (!cblas_sgemm || !cblas_dgemm) {
    error = describe(desc) + ": needs OpenBLAS, which the package "
                             "ckopt-runtime is without (pip install ckopt)";
    return nullptr;
  }
  return desc.kind == PrimitiveKind::MatMul ? createBlasMatMul(desc)
                                            : createGemmConv(desc);
}

/// Makes a primitive of oneDNN, or one of ours where it is refused or nobody
/// vouches for it, and there is one: not of 16-bit floats.
std::unique_ptr<Primitive> createDnnl(const PrimitiveDesc &desc,
                                      const KernelEvidence &evidence,
                                      std::string &error) {
  bool isMatMul = desc.kind == PrimitiveKind::MatMul;
  std::unique_ptr<Primitive> made;
  bool fits = fitsDnnl(desc);
  if (!fits)
    error = "oneDNN takes no extents above 2^30; a smaller batch may help";
  else if (isMatMul)
    made = createDnnlMatMul(desc, evidence, error);
  else
    made = createDnnlConv(desc, evidence, error);
  if (made || desc.dtype != DType::F32 || (!fits && !isMatMul))
    return made;
  error.clear();
  return createBlas(desc, error);
}

std::unique_ptr<Primitive> createChecked(const PrimitiveDesc &given,
                                         int32_t threads,
                                         const KernelEvidence &evidence,
                                         std::string &error) {
  PrimitiveDesc desc = given;
  if (desc.form == LibraryForm::Default)
    desc.form = builtInLibraryTable("").formOf(desc);
  if (isAttention(desc.kind)) {
    if (!desc.attention.planes)
      return createAttention(desc, threads);
    error = "numbers of rows in planes are for GPUs";
    return nullptr;
  }
  if (isOfRanks(desc.kind))
    return createOfRanks(desc);
  if (desc.hasBias) {
    error = describe(desc) + ": a bias is added on GPUs alone";
    return nullptr;
  }
  if (desc.dtype == DType::F64)
    return createBlas(desc, error);
  if (desc.dtype != DType::F32 && desc.dtype != DType::BF16 &&
      desc.dtype != DType::F16) {
    error = "no library kernel for element type " +
            std::string(dtypeName(desc.dtype));
    return nullptr;
  }
  if (desc.kind != PrimitiveKind::MatMul && desc.form != LibraryForm::Default &&
      desc.form != LibraryForm::Convolution) {
    LibraryForm form = desc.form;
    desc = productOf(desc);
    desc.form = form;
  }
  if (desc.form == LibraryForm::OpenBlas)
    return createBlas(desc, error);
  return createDnnl(desc, evidence, error);
}

} // namespace

std::unique_ptr<Primitive> Primitive::create(const PrimitiveDesc &desc,
                                             int32_t threads,
                                             std::string &error) {
  return createPrimitive(desc, threads, builtInEvidence(), error);
}

std::unique_ptr<Primitive>
ckopt::runtime::createPrimitive(const PrimitiveDesc &desc, int32_t threads,
                                const KernelEvidence &evidence,
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
  auto primitive = createChecked(desc, threads, evidence, error);
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
