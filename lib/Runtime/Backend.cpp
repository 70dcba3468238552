//===- Backend.cpp - where a session's arena lies and its steps run -------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Backend.h"

using namespace ckopt::runtime;

Backend::~Backend() = default;
