//===- Api.h - how the stand-in driver's entries begin ----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_TEST_LIB_CUDASTANDIN_API_H
#define CKOPT_TEST_LIB_CUDASTANDIN_API_H

#include "Machine.h"

#include <string>

using namespace standin;

/// Defines an entry of the driver.
#define STANDIN extern "C" __attribute__((visibility("default"))) Result
/// Locks the machine, logs the call, and returns if it is to fail.
#define ENTER(...)                                                             \
  Machine &machine = Machine::get();                                           \
  std::lock_guard<std::recursive_mutex> lock(machine.mutex);                   \
  if (Result failure = machine.enter(__VA_ARGS__))                             \
  return failure

inline constexpr Result kInvalidHandle = 400;

inline std::string text(int64_t value) { return std::to_string(value); }
inline std::string nameOf(Stream stream) {
  return "S" + std::to_string(stream->number);
}
inline std::string nameOf(Event event) {
  return "E" + std::to_string(event ? event->number : 0);
}

namespace standin {
/// Notes what a stream that captures has done so far.
Result captureRecord(Event event, Stream stream);
/// Puts a wait into the graph; a stream that captures nothing joins.
Result captureWait(Machine &machine, Stream stream, Event event);
} // namespace standin

#endif // CKOPT_TEST_LIB_CUDASTANDIN_API_H
