//===- OnnxFuzz.h - what random models must not break -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FUZZ_ONNXFUZZ_H
#define CKOPT_FUZZ_ONNXFUZZ_H

#include <cstddef>
#include <cstdint>
#include <string>

namespace ckopt {

/// How far a model came.
enum class FuzzReach { Refused, Imported, Differentiated, Planned };

/// Reads the bytes as an ONNX file, imports it, and, where that succeeds and
/// the model is small, differentiates, fuses and plans it with little work.
/// Sets `wrong` where a failure comes without a message or a plan without its
/// bytes; whatever crashes, crashes.
FuzzReach fuzzOnnx(const uint8_t *data, size_t size, std::string &wrong);

/// One to four edits of a model by its structure: operators, names, attributes,
/// shapes, types, values, nodes that move, double or go; now and then a byte.
/// Bytes that are no model come back with bytes changed. Equal seeds give equal
/// results.
std::string mutateOnnx(const std::string &bytes, uint64_t seed);

} // namespace ckopt

#endif // CKOPT_FUZZ_ONNXFUZZ_H
