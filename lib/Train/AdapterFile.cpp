//===- AdapterFile.cpp - adapters in files --------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "AdapterFile.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Support/Report.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace ckopt;

/// Writes what PEFT reads beside its tensors.
static llvm::Error writeConfig(const Compilation &compilation,
                               llvm::StringRef path) {
  const AdapterOptions &lora = compilation.options().lora;
  return writeJsonFile(path, [&](llvm::json::OStream &json) {
    json.object([&] {
      json.attribute("peft_type", "LORA");
      json.attribute("task_type", nullptr);
      json.attribute("base_model_name_or_path", nullptr);
      json.attribute("inference_mode", true);
      json.attribute("r", lora.rank);
      json.attribute("lora_alpha", lora.alpha);
      json.attribute("lora_dropout", lora.dropout);
      json.attribute("use_dora", lora.dora);
      json.attribute("use_rslora", false);
      json.attribute("bias", "none");
      json.attribute("fan_in_fan_out", false);
      json.attributeArray("target_modules", [&] {
        for (const AdapterNote &adapter : compilation.adapters())
          json.value(jsonString(adapter.name));
      });
    });
  });
}

llvm::Error ckopt::writeAdapters(const Compilation &compilation,
                                 llvm::StringRef path, TensorParts &weights,
                                 StringMetadata metadata) {
  const AdapterOptions &lora = compilation.options().lora;
  metadata["format"] = "pt";
  metadata["ckopt.lora_rank"] = std::to_string(lora.rank);
  llvm::raw_string_ostream(metadata["ckopt.lora_alpha"])
      << llvm::format("%.17g", lora.alpha);
  metadata["ckopt.dora"] = lora.dora ? "true" : "false";
  if (llvm::sys::path::filename(path) == "adapter_model.safetensors") {
    llvm::SmallString<128> config(path);
    llvm::sys::path::remove_filename(config);
    llvm::sys::path::append(config, "adapter_config.json");
    if (llvm::Error error = writeConfig(compilation, config))
      return error;
  }
  return writeSafetensors(path, weights, metadata);
}
