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
  error =
      "not here (" + tried + ": " + (reason ? reason : "unknown reason") + ")";
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
  if (desc.wideResult && desc.kind != PrimitiveKind::MatMul &&
      desc.kind != PrimitiveKind::ConvWeightGrad)
    return describe(desc) + ": results of another type are ckopt's own";
  if (isOfRanks(desc.kind))
    return describe(desc) + ": sums over ranks are for CPUs";
  return desc.kind == PrimitiveKind::MatMul ? blasLtRefuses(desc.matmul)
                                            : cudnnRefuses(desc);
}

int64_t ckopt::runtime::cudaLibraryWorkspace(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::MatMul ? 0 : cudnnWorkspace(desc);
}

int64_t ckopt::runtime::cudaLibraryTensorBytes(const PrimitiveDesc &desc) {
  int64_t elements = 0;
  if (desc.kind == PrimitiveKind::MatMul) {
    const MatMulDesc &m = desc.matmul;
    elements = m.batch[0] * m.batch[1] * (m.m * m.k + m.k * m.n + m.m * m.n);
  } else {
    const ConvDesc &c = desc.conv;
    int64_t x = c.batch * c.inChannels, y = c.batch * c.outChannels;
    int64_t w = c.outChannels * c.inChannels / std::max<int64_t>(c.groups, 1);
    for (int64_t d = 0; d < c.rank; ++d)
      x *= c.in[d], y *= c.out[d], w *= c.kernel[d];
    elements = x + w + y;
  }
  return elements * dtypeSize(desc.dtype);
}

//===----------------------------------------------------------------------===//
// The choice between libraries and our kernels
//===----------------------------------------------------------------------===//

static bool isMatMul(const PrimitiveDesc &desc) {
  return desc.kind == PrimitiveKind::MatMul;
}

Libraries::Libraries(const Manifest &manifest, LockFile &lock,
                     OnRefused onRefused)
    : manifest(manifest), lock(lock), onRefused(std::move(onRefused)),
      uses(manifest.primitives.size()) {
  for (const CallInfo &call : manifest.calls)
    if (int32_t primitive = manifest.libraryPrimitive(call); primitive >= 0) {
      Use &use = uses[static_cast<size_t>(primitive)];
      for (const LaunchPointer &pointer : call.launches.front().pointers)
        use.align(pointer.offset);
      use.align(call.launches.front().scratchOffset);
      use.hasOwn =
          (use.hasOwn || use.workspace < 0) && !call.ownLaunches.empty();
      use.workspace = use.workspace < 0
                          ? call.workspaceBytes
                          : std::min(use.workspace, call.workspaceBytes);
    }
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].workspace >= 0)
      uses[i].key = lockKey(manifest.primitives[i], uses[i].workspace);
}

/// Replaces the library by our own kernel.
void Libraries::takeOwn(Use &use, const ckopt::MessageText &why) {
  use.kernel.reset();
  use.what = why.inShell();
  lock.setAlgorithm(use.key, ownKernel(use.what));
}

void Libraries::tellRefused(size_t primitive, const std::string &why) const {
  if (onRefused)
    onRefused(static_cast<int32_t>(primitive), why);
}

ckrt_status Libraries::open(const PrimitiveDesc &desc, Library *&library,
                            ckopt::MessageText &why) {
  library = nullptr;
  Opened &opened = isMatMul(desc) ? blas : dnn;
  if (!opened.library && opened.why.empty())
    opened.library =
        isMatMul(desc) ? openBlasLt(opened.why) : openCudnn(opened.why);
  why = opened.why;
  if (!opened.library)
    return CKRT_OK;
  std::string error;
  if (!lock.fact(isMatMul(desc) ? "cublaslt" : "cudnn",
                 opened.library->version(), error))
    return fail(CKRT_LOCK, error);
  library = opened.library.get();
  return CKRT_OK;
}

ckrt_status Libraries::makeKernel(size_t primitive) {
  const PrimitiveDesc &desc = manifest.primitives[primitive];
  Use &use = uses[primitive];
  std::string known = lock.algorithm(use.key), algorithm = known;
  ckopt::MessageText error;
  if (isOwnKernel(known)) {
    use.what = known.substr(std::min(known.size(), known.find(' ') + 1));
    return use.hasOwn
               ? CKRT_OK
               : fail(CKRT_LOCK, "the lock file has our own kernel for " +
                                     describe(desc) +
                                     ", which is not in an artifact of " +
                                     ckopt::Setting("cuda-libs", "all"));
  }
  use.isPinned = !known.empty();
  const std::string name = isMatMul(desc) ? "cuBLASLt" : "cuDNN";
  Library *library = nullptr;
  if (ckrt_status status = open(desc, library, error))
    return status;
  if (library)
    use.kernel = library->make(desc, {use.workspace, use.alignment, capability},
                               algorithm, error);
  if (use.kernel) {
    use.what = algorithm;
    lock.setAlgorithm(use.key, algorithm);
    return CKRT_OK;
  }
  if (use.isPinned && library)
    return fail(CKRT_LOCK,
                lock.isFile()
                    ? "the algorithm that the lock file has for " +
                          describe(desc) + " cannot run here: " + error +
                          "; remove the file to choose algorithms again"
                    : "the algorithm that an equal call has, " +
                          describe(desc) + ", cannot run here: " + error);
  if (use.isPinned)
    return fail(CKRT_NO_LIBRARY, "the lock file has an algorithm for " +
                                     describe(desc) + " of " + name +
                                     ", which is " + error);
  if (use.hasOwn) {
    takeOwn(use, library ? error : name + " is " + error);
    return CKRT_OK;
  }
  tellRefused(primitive, error.inShell());
  return fail(CKRT_NO_LIBRARY,
              library ? describe(desc) + ": " + error + "; compile with " +
                            ckopt::Setting("cuda-libs", "auto") + " or none"
                      : "the artifact needs a library of CUDA's that is " +
                            error + ": install it, or compile with " +
                            ckopt::Setting("cuda-libs", "auto") + " or " +
                            ckopt::Setting("cuda-libs", "none"));
}

ckrt_status Libraries::create(const ckrt_device_report &device) {
  capability = device.compute_capability;
  std::string error;
  for (const auto &[name, value] :
       {std::pair<std::string, std::string>("device", device.name),
        {"compute_capability", std::to_string(device.compute_capability)},
        {"multiprocessors", std::to_string(device.multiprocessors)},
        {"driver", std::to_string(device.driver_version)}})
    if (hasCalls() && !lock.fact(name, value, error))
      return fail(CKRT_LOCK, error);
  // Whoever compiles for this device wants to know of all that is refused.
  ckrt_status worst = CKRT_OK;
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].workspace >= 0)
      if (ckrt_status status = makeKernel(i)) {
        worst = status;
        if (status != CKRT_NO_LIBRARY || !onRefused)
          return status;
      }
  return worst;
}

bool Libraries::hasCalls() const {
  return std::any_of(uses.begin(), uses.end(),
                     [](const Use &use) { return use.workspace >= 0; });
}

bool Libraries::giveUp(int32_t primitive, const std::string &why) {
  Use &use = uses[static_cast<size_t>(primitive)];
  if (!use.hasOwn && !use.isPinned)
    tellRefused(static_cast<size_t>(primitive), why);
  if (!use.hasOwn || use.isPinned)
    return false;
  takeOwn(use, why);
  return true;
}

void Libraries::tell(ckrt_library_hook hook, void *user) const {
  for (size_t i = 0; i < uses.size(); ++i)
    if (uses[i].workspace >= 0)
      hook(user, static_cast<int64_t>(i), uses[i].kernel != nullptr,
           uses[i].what.c_str());
}
