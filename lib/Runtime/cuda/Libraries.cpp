//===- Libraries.cpp - all library kernels of a program -------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Libraries.h"

#include "ckopt/Runtime/CudaLibraries.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

void *ckopt::runtime::cuda::openFirst(const char *variable,
                                      std::initializer_list<const char *> names,
                                      std::string &error) {
  const char *chosen = std::getenv(variable);
  std::string tried;
  if (chosen && *chosen) {
    if (void *library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL))
      return library;
    tried = chosen;
  } else {
    for (const char *name : names) {
      if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL))
        return library;
      tried += (tried.empty() ? "" : ", ") + std::string(name);
    }
  }
  const char *reason = dlerror();
  error = "the artifact needs a library of CUDA's that is not here (" + tried +
          ": " + (reason ? reason : "unknown reason") +
          "): install it, or compile with --cuda-libs=none";
  return nullptr;
}

std::string ckopt::runtime::cuda::statusText(int status,
                                             const char *(*words)(int)) {
  const char *text = words(status);
  return std::to_string(status) + (text ? std::string(": ") + text : "");
}

std::string ckopt::runtime::cuda::hexText(const void *data, size_t size) {
  static const char kDigits[] = "0123456789abcdef";
  auto *bytes = static_cast<const unsigned char *>(data);
  std::string text;
  for (size_t i = 0; i < size; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

bool ckopt::runtime::cuda::parseHex(const std::string &text, void *data,
                                    size_t size) {
  if (text.size() != 2 * size)
    return false;
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                  : -1;
  };
  auto *bytes = static_cast<unsigned char *>(data);
  for (size_t i = 0; i < size; ++i) {
    int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0)
      return false;
    bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  return true;
}

std::string ckopt::runtime::cudaLibraryRefuses(const PrimitiveDesc &desc) {
  if (std::string wrong = check(desc); !wrong.empty())
    return wrong;
  if (static_cast<uint32_t>(desc.dtype) > static_cast<uint32_t>(DType::BF16))
    return "CUDA's libraries have no kernels for " +
           std::string(dtypeName(desc.dtype));
  if (pieceCount(desc.precision) > 1)
    return describe(desc) + ": products of pieces are for CPUs";
  if (desc.wideResult)
    return describe(desc) + ": results of another type are ckopt's own";
  if (desc.accumulate)
    return describe(desc) + ": sums of products are for CPUs";
  if (isAttention(desc.kind))
    return describe(desc) + ": CUDA's libraries are not asked for attention";
  if (isOfRanks(desc.kind))
    return describe(desc) + ": sums over ranks are for CPUs";
  return desc.kind == PrimitiveKind::MatMul ? blasLtRefuses(desc.matmul)
                                            : cudnnRefuses(desc);
}

std::string ckopt::runtime::cudaLibraryRefuses(const PrimitiveDesc &desc,
                                               int64_t workspace) {
  std::string reason = cudaLibraryRefuses(desc);
  return reason.empty() && desc.kind != PrimitiveKind::MatMul
             ? cudnnRefuses(desc, workspace)
             : reason;
}

/// Returns all parameters that decide an algorithm, without spaces.
static std::string keyOf(const PrimitiveDesc &desc, int64_t workspace) {
  std::string key = describe(desc);
  auto add = [&](std::initializer_list<int64_t> values) {
    for (int64_t value : values)
      key += "_" + std::to_string(value);
  };
  const MatMulDesc &m = desc.matmul;
  if (desc.kind == PrimitiveKind::MatMul)
    add({m.aBatch[0], m.aBatch[1], m.aRow, m.aCol, m.bBatch[0], m.bBatch[1],
         m.bRow, m.bCol, m.cBatch[0], m.cBatch[1], m.cRow, m.cCol});
  else
    for (int64_t d = 0; d < desc.conv.rank; ++d)
      add({desc.conv.padsLo[d], desc.conv.padsHi[d], desc.conv.dilations[d]});
  add({workspace});
  std::replace(key.begin(), key.end(), ' ', '_');
  return key;
}

ckrt_status Libraries::makeKernel(const Manifest &manifest, size_t primitive,
                                  int64_t workspace) {
  const PrimitiveDesc &desc = manifest.primitives[primitive];
  bool isMatMul = desc.kind == PrimitiveKind::MatMul;
  std::unique_ptr<Library> &library = isMatMul ? blas : dnn;
  std::string error;
  if (!library) {
    library = isMatMul ? openBlasLt(error) : openCudnn(error);
    if (!library)
      return fail(CKRT_NO_LIBRARY, error);
    if (!lock.fact(isMatMul ? "cublaslt" : "cudnn", library->version(), error))
      return fail(CKRT_LOCK, error);
  }
  std::string key = keyOf(desc, workspace);
  std::string known = lock.algorithm(key), algorithm = known;
  kernels[primitive] = library->make(desc, workspace, algorithm, error);
  if (!kernels[primitive] && !known.empty())
    return fail(CKRT_LOCK, "the algorithm that the lock file has for " +
                               describe(desc) + " cannot run here: " + error);
  if (!kernels[primitive])
    return fail(CKRT_NO_LIBRARY, describe(desc) + ": " + error +
                                     "; compile with --cuda-libs=none");
  lock.setAlgorithm(key, algorithm);
  return CKRT_OK;
}

ckrt_status Libraries::create(const Manifest &manifest,
                              const std::string &lockPath,
                              const ckrt_device_report &device) {
  // The least workspace of all launches of a primitive, or -1 if it has none.
  std::vector<int64_t> workspaces(manifest.primitives.size(), -1);
  for (const CallInfo &call : manifest.calls)
    for (const LaunchInfo &launch : call.launches)
      if (launch.primitive >= 0 &&
          !isOfRanks(manifest.primitives[static_cast<size_t>(launch.primitive)]
                         .kind)) {
        int64_t &least = workspaces[static_cast<size_t>(launch.primitive)];
        least = least < 0 ? call.workspaceBytes
                          : std::min(least, call.workspaceBytes);
      }
  if (std::all_of(workspaces.begin(), workspaces.end(),
                  [](int64_t bytes) { return bytes < 0; }))
    return CKRT_OK;
  std::string error;
  if (!lock.read(lockPath, error))
    return fail(CKRT_LOCK, error);
  for (const auto &[name, value] :
       {std::pair<std::string, std::string>("device", device.name),
        {"compute_capability", std::to_string(device.compute_capability)},
        {"multiprocessors", std::to_string(device.multiprocessors)},
        {"driver", std::to_string(device.driver_version)}})
    if (!lock.fact(name, value, error))
      return fail(CKRT_LOCK, error);
  kernels.resize(workspaces.size());
  for (size_t i = 0; i < workspaces.size(); ++i)
    if (workspaces[i] >= 0)
      if (ckrt_status status = makeKernel(manifest, i, workspaces[i]))
        return status;
  switch (lock.write(error)) {
  case LockFile::Written::Yes:
    return CKRT_OK;
  case LockFile::Written::Differs:
    return fail(CKRT_LOCK, error);
  case LockFile::Written::No:
    break;
  }
  return fail(CKRT_IO, error);
}
