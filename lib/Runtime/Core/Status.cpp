//===- Status.cpp - the calling thread's last failure ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Status.h"
#include "ckopt/Runtime/LastFailure.h"

static thread_local ckopt::MessageText failure;
static thread_local std::string lastError;

ckrt_status ckopt::runtime::fail(ckrt_status status, const MessageText &text) {
  lastError = text.inShell();
  failure = text;
  return status;
}

const ckopt::MessageText &ckopt::runtime::lastFailure() { return failure; }

const char *ckrt_last_error(void) { return lastError.c_str(); }

uint32_t ckrt_abi_version(void) { return CKRT_ABI_VERSION; }
