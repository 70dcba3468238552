//===- Status.cpp - the calling thread's last failure ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Status.h"

static thread_local std::string lastError;

ckrt_status ckopt::runtime::fail(ckrt_status status, std::string text) {
  lastError = std::move(text);
  return status;
}

const char *ckrt_last_error(void) { return lastError.c_str(); }

uint32_t ckrt_abi_version(void) { return CKRT_ABI_VERSION; }
