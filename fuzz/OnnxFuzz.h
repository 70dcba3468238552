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

/// The last phase that a model passed.
enum class FuzzReach { Refused, Imported, Differentiated, Planned };

/// Reads the bytes as an ONNX file, imports it, and, where that succeeds and
/// the model is small, differentiates, fuses and plans it with little work.
/// Sets `wrong` if a failure has no message or a plan exceeds its bytes;
/// crashes are left to the fuzzer.
FuzzReach fuzzOnnx(const uint8_t *data, size_t size, std::string &wrong);

/// Makes one to four structural edits of a model: operators, names, attributes,
/// shapes, types, values; nodes are moved, duplicated or removed; sometimes a
/// byte changes. If the bytes are not a model, bytes are changed. Equal seeds
/// give equal results.
std::string mutateOnnx(const std::string &bytes, uint64_t seed);

} // namespace ckopt

#endif // CKOPT_FUZZ_ONNXFUZZ_H
