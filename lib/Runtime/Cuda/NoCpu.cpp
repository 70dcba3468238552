//===- NoCpu.cpp - the device library has no CPU kernels ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Core/Session.h"

using namespace ckopt::runtime;

static ckrt_status refuse() {
  return fail(CKRT_UNSUPPORTED,
              "this is an artifact for the CPU, and this library runs those "
              "for CUDA devices alone: load it with libckopt_runtime");
}

std::unique_ptr<Backend>
ckopt::runtime::makeCpuBackend(ckrt_program &, const ckrt_session_options &,
                               ckrt_status &status) {
  status = refuse();
  return nullptr;
}

ckrt_status ckopt::runtime::loadSharedLibrary(const std::string &,
                                              ckrt_program **) {
  return refuse();
}
