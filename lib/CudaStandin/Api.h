//===- Api.h - how the stand-in driver's entries begin ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_CUDASTANDIN_API_H
#define CKOPT_LIB_CUDASTANDIN_API_H

#include "Machine.h"

#include <string>

/// Defines an entry of the driver.
#define STANDIN extern "C" __attribute__((visibility("default"))) Result
/// Locks the machine, logs the call, and returns if it is to fail.
#define ENTER(...)                                                             \
  Machine &machine = Machine::get();                                           \
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);                   \
  if (Result failure = machine.enter(__VA_ARGS__))                             \
  return failure

inline std::string text(int64_t value) { return std::to_string(value); }

#endif // CKOPT_LIB_CUDASTANDIN_API_H
