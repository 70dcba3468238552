//===- QuantizeCommand.cpp - ckopt quantize -------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Commands.h"
#include "ckopt/Frontend/Onnx/Quantize.h"
#include "ckopt/Settings/CommandLine.h"
#include "ckopt/Support/ByteSize.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;
using onnx_frontend::QuantizedType;

llvm::Error ckopt::runQuantize(DriverOptions &options) {
  const std::string &path = options.compile.model;
  if (!llvm::StringRef(options.output).ends_with(".onnx"))
    return usageError("quantize writes an ONNX file: -o FILE.onnx");
  onnx_frontend::QuantizeOptions wanted;
  auto type =
      llvm::StringSwitch<std::optional<QuantizedType>>(options.quantizedType)
          .Case("int8", QuantizedType::Int8)
          .Case("int4", QuantizedType::Int4)
          .Case("nf4", QuantizedType::Nf4)
          .Default(std::nullopt);
  if (!type)
    return usageError(Setting("type", inQuotes(options.quantizedType)) +
                      ": it is int8, int4 or nf4");
  int64_t group = options.quantizedGroup;
  if (group != 32 && group != 64 && group != 128)
    return usageError(Setting("group-size", std::to_string(group)) +
                      ": it is 32, 64 or 128");
  wanted.type = *type;
  wanted.group = group;
  wanted.freezeRegex = options.compile.import.freezeRegex;
  wanted.trainRegex = options.compile.import.trainRegex;
  if (wanted.trainRegex.empty() && wanted.freezeRegex.empty())
    wanted.trainRegex = ".*lora_.*";
  auto result = onnx_frontend::quantizeModel(path, options.output, wanted);
  if (!result)
    return result.takeError();
  llvm::raw_ostream &os = options.out();
  os << "quantized: " << result->weights << " weights, "
     << groupDigits(result->numbers) << " numbers, to " << options.quantizedType
     << " in groups of " << group << ": "
     << formatBytes(int64_t(result->bytesBefore)) << " become "
     << formatBytes(int64_t(result->bytesAfter)) << " with their scales\n";
  constexpr size_t kShown = 12;
  for (const std::string &kept :
       llvm::ArrayRef(result->kept).take_front(kShown))
    os << "kept: " << kept << "\n";
  if (result->kept.size() > kShown)
    os << "kept: " << result->kept.size() - kShown << " more\n";
  os << "wrote " << options.output << "\n";
  return llvm::Error::success();
}
