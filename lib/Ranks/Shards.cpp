//===- Shards.cpp - a rank's part of a tensor -----------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Ranks/Shards.h"

using namespace ckopt;

HostTensor ckopt::shardOf(const runtime::TensorInfo &tensor,
                          const HostTensor &whole, int64_t rank) {
  HostTensor result(whole.dtype(), tensor.shape);
  Shards shards = tensor.sharing();
  int64_t own = shards.shardOf(rank);
  auto size = int64_t(runtime::dtypeSize(whole.dtype()));
  auto *bytes = static_cast<char *>(result.mutableRawData());
  std::memset(bytes, 0, size_t(shards.chunk * size));
  std::memcpy(bytes,
              static_cast<const char *>(whole.rawData()) +
                  shards.begin(own) * size,
              size_t(shards.count(own) * size));
  return result;
}
