//===- WeightFiles.cpp - trained weights in files and folders -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A folder gets what Transformers' from_pretrained() loads: model.safetensors,
// or, above 5 GB, files of at most that and their index, by the names of the
// file that the weights came from, with its config.json beside them. An index
// comes last and an older one goes first, so that a folder whose writing was
// cut off has no index that names files of two models.
//
//===----------------------------------------------------------------------===//
#include "AdapterFile.h"
#include "WeightNames.h"
#include "WeightParts.h"
#include "ckopt/Compiler/Compile.h"
#include "ckopt/Frontend/Onnx/Onnx.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/Report.h"
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Train/Step.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace ckopt;
using llvm::StringRef;

namespace {
/// Some of the tensors of others, under other names.
class SomeParts : public TensorParts {
public:
  explicit SomeParts(TensorParts &all) : all(all) {}
  void add(size_t number, std::string name) {
    numbers.push_back(number);
    list.push_back(all.specs()[number]);
    list.back().name = std::move(name);
  }
  llvm::ArrayRef<TensorSpec> specs() const override { return list; }
  llvm::Expected<HostTensor> read(size_t number, int64_t begin,
                                  int64_t count) override {
    return all.read(numbers[number], begin, count);
  }

private:
  TensorParts &all;
  std::vector<size_t> numbers;
  std::vector<TensorSpec> list;
};
} // namespace

/// Returns a name as the file had it from which the session's weights came.
static std::string nameInFile(const GivenWeights &given, StringRef name) {
  const NamePrefix &prefix = given.prefix;
  if (auto other = given.tied.find(name.str()); other != given.tied.end())
    name = other->second;
  if (!prefix.added.empty() && name.starts_with(prefix.added))
    return name.drop_front(prefix.added.size()).str();
  return prefix.dropped + name.str();
}

/// Removes a set of weights that is written anew, but for the file that stays,
/// and says so.
static void removeOld(const Compilation &compilation, StringRef folder,
                      StringRef stays) {
  std::error_code error;
  std::vector<std::string> old;
  for (llvm::sys::fs::directory_iterator at(folder, error), end;
       at != end && !error; at.increment(error)) {
    StringRef name = llvm::sys::path::filename(at->path());
    const bool isShard =
        name.starts_with("model-") && name.ends_with(".safetensors");
    if ((isShard || name == "model.safetensors" ||
         name == "model.safetensors.index.json") &&
        name != stays)
      old.push_back(at->path());
  }
  llvm::sort(old);
  for (const std::string &path : old)
    llvm::sys::fs::remove(path);
  if (!old.empty())
    compilation.say(Message::Severity::Note,
                    "removed weights of an earlier save: " + listNames(old));
}

static llvm::Error writeIndex(StringRef folder,
                              llvm::ArrayRef<SomeParts> shards,
                              llvm::ArrayRef<std::string> names) {
  std::map<std::string, std::string> places;
  int64_t bytes = 0;
  for (const auto &[shard, file] : llvm::zip_equal(shards, names))
    for (const TensorSpec &tensor : shard.specs()) {
      places[tensor.name] = file;
      bytes += bytesOf(tensor);
    }
  return writeJsonFile((folder + "/model.safetensors.index.json").str(),
                       [&](llvm::json::OStream &json) {
                         json.object([&] {
                           json.attributeObject("metadata", [&] {
                             json.attribute("total_size", bytes);
                           });
                           json.attributeObject("weight_map", [&] {
                             for (const auto &[name, file] : places)
                               json.attribute(name, jsonString(file));
                           });
                         });
                       });
}

/// Writes the files of a folder, in the order of the model's weights.
static llvm::Error writeFolder(const Compilation &compilation, StringRef folder,
                               const Session &session, TensorParts &weights,
                               int64_t mostBytes, StringMetadata metadata) {
  std::vector<SomeParts> shards;
  int64_t bytes = mostBytes;
  for (const auto &[number, tensor] : llvm::enumerate(weights.specs())) {
    if (bytes + bytesOf(tensor) > mostBytes) {
      shards.emplace_back(weights);
      bytes = 0;
    }
    bytes += bytesOf(tensor);
    shards.back().add(number, nameInFile(session.given, tensor.name));
  }
  metadata["format"] = "pt"; // from_pretrained() asks for it
  if (shards.size() == 1) {
    llvm::Error error = writeSafetensors((folder + "/model.safetensors").str(),
                                         shards.front(), metadata);
    if (!error)
      removeOld(compilation, folder, /*stays=*/"model.safetensors");
    return error;
  }
  removeOld(compilation, folder, /*stays=*/"");
  std::vector<std::string> names;
  for (auto [i, shard] : llvm::enumerate(shards)) {
    names.push_back(llvm::formatv("model-{0:d5}-of-{1:d5}.safetensors", i + 1,
                                  shards.size()));
    if (llvm::Error error = writeSafetensors(
            (folder + "/" + names.back()).str(), shard, metadata))
      return error;
  }
  return writeIndex(folder, shards, names);
}

/// Copies the model's description, without which nothing can load the folder.
static llvm::Error copyConfig(StringRef from, StringRef folder) {
  const std::string path = (from + "/config.json").str();
  if (from.empty() || !llvm::sys::fs::exists(path) ||
      llvm::sys::fs::equivalent(from, folder))
    return llvm::Error::success();
  auto text = llvm::MemoryBuffer::getFile(path);
  if (!text)
    return inputError("cannot read '" + path +
                      "': " + text.getError().message());
  return writeFileAtomically((folder + "/config.json").str(),
                             (*text)->getBuffer());
}

/// Writes weights on rank 0.
static llvm::Error writeParts(const Compilation &compilation,
                              const Session &session, const std::string &path,
                              WrittenWeights which, TensorParts &weights,
                              const StringMetadata &metadata) {
  std::string file = path;
  const bool adapters = compilation.options().lora.rank > 0;
  if (isWeightFolder(path)) {
    StringRef folder = StringRef(path).rtrim('/');
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return inputError("cannot make the folder '" + folder +
                        "': " + error.message());
    if (!session.given.folder.empty() &&
        llvm::sys::fs::equivalent(session.given.folder, folder))
      return usageError("'" + folder +
                        "' has the weights that the step began with: give the "
                        "result another folder");
    if (!adapters && !which.trainedOnly) {
      if (llvm::Error error = writeFolder(compilation, folder, session, weights,
                                          which.shardBytes, metadata))
        return error;
      return copyConfig(session.given.folder, folder);
    }
    const bool isAdapter =
        adapters || llvm::any_of(weights.specs(), [](const TensorSpec &tensor) {
          return StringRef(tensor.name).contains(".lora_");
        });
    file =
        (folder + (isAdapter ? "/adapter_model" : "/trained") + ".safetensors")
            .str();
  }
  if (adapters)
    return writeAdapters(compilation, file, weights, metadata);
  if (which.trainedOnly) {
    SomeParts trained(weights);
    for (const auto &[number, tensor] : llvm::enumerate(weights.specs()))
      trained.add(number, nameInAdapterFile(tensor.name));
    return writeSafetensors(file, trained, metadata);
  }
  if (StringRef(path).ends_with(".safetensors"))
    return writeSafetensors(path, weights, metadata);
  return onnx_frontend::exportModel(compilation.options().model, path, weights,
                                    {metadata, compilation.model().writeBack});
}

llvm::Error ckopt::writeWeights(const Compilation &compilation,
                                const Session &session, const std::string &path,
                                WrittenWeights which,
                                const StringMetadata &metadata) {
  if (llvm::Error error = checkWeightsPath(path, "a file of weights"))
    return error;
  if (llvm::Error error = compilation.checkGoesBack(path))
    return error;
  which.trainedOnly |= compilation.options().lora.rank > 0;
  if (which.trainedOnly && StringRef(path).ends_with(".onnx"))
    return usageError("'" + path +
                      "': what was trained alone goes to .safetensors");
  return useWeightsOnMain(
      session, which.averaged, which.trainedOnly, [&](TensorParts &weights) {
        return writeParts(compilation, session, path, which, weights, metadata);
      });
}
