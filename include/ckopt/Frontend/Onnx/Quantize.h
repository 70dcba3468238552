//===- Quantize.h - a copy of a model with few bits a weight ----*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_FRONTEND_ONNX_QUANTIZE_H
#define CKOPT_FRONTEND_ONNX_QUANTIZE_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <climits>
#include <string>
#include <vector>

namespace ckopt::onnx_frontend {

/// int8 and int4: symmetric, to nearest (ties to even). nf4: the nearest of the
/// 16 levels of QLoRA's NormalFloat.
enum class QuantizedType { Int8, Int4, Nf4 };

struct QuantizeOptions {
  QuantizedType type = QuantizedType::Int4;
  int64_t group = 64;      ///< numbers that share a scale
  std::string freezeRegex; ///< names of weights that may change; empty: all
  std::string trainRegex;  ///< names of weights that stay as they are
  /// A file with more bytes keeps its numbers in `outPath`.data.
  uint64_t mostBytes = INT_MAX;
};

struct QuantizeResult {
  int64_t weights = 0, numbers = 0;
  uint64_t bytesBefore = 0, bytesAfter = 0; ///< of these weights, with scales
  std::vector<std::string> kept; ///< matrices that stay, with the reasons
};

/// Writes a copy of the ONNX file to `outPath`, atomically, in which matrices
/// of f32, f16 and bf16 that only products and lookups read are stored in few
/// bits, and dequantized by nodes in front of the others: by DequantizeLinear
/// from opset 21 on, by elementwise nodes before, and with nf4. Groups lie
/// along the dimension that products sum over. Deterministic. One weight is
/// read at a time.
llvm::Expected<QuantizeResult> quantizeModel(llvm::StringRef path,
                                             llvm::StringRef outPath,
                                             const QuantizeOptions &options);

} // namespace ckopt::onnx_frontend

#endif // CKOPT_FRONTEND_ONNX_QUANTIZE_H
