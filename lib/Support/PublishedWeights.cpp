//===- PublishedWeights.cpp - weights as models are published with --------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Large models are published in several safetensors files, which an index in
// JSON lists: {"weight_map": {NAME: FILE}}, with FILE in the index's folder.
// Guarantee: each tensor that the index lists is read from the file it names;
// an index that names files elsewhere, or tensors that its files do not have,
// is refused. O(headers).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/NameList.h"
#include "ckopt/Support/StoredTensors.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <map>

using namespace llvm;
using namespace ckopt;

static constexpr StringRef kSuffix = ".safetensors";
static constexpr StringRef kIndexSuffix = ".safetensors.index.json";

/// Returns the one file in a folder that has its weights, or their index.
static Expected<std::string> findWeights(StringRef folder) {
  std::vector<std::string> files, indices;
  std::error_code error;
  for (sys::fs::directory_iterator at(folder, error), end; at != end && !error;
       at.increment(error)) {
    const StringRef name = sys::path::filename(at->path());
    if (name.starts_with("."))
      continue; // a file that is being written
    if (name.ends_with(kIndexSuffix))
      indices.push_back(name.str());
    else if (name.ends_with(kSuffix))
      files.push_back(name.str());
  }
  if (error)
    return inputError("cannot read '" + folder + "': " + error.message());
  llvm::sort(files);
  llvm::sort(indices);
  auto take = [&](StringRef name) { return (folder + "/" + name).str(); };
  // As Transformers looks for them.
  if (is_contained(files, "model.safetensors"))
    return take("model.safetensors");
  if (indices.size() == 1)
    return take(indices.front());
  if (indices.empty() && files.size() == 1)
    return take(files.front());
  if (files.empty())
    return inputError("'" + folder +
                      "' has no .safetensors; other formats are not read "
                      "(save_pretrained() of Transformers writes this one)");
  return inputError("'" + folder +
                    "' has several sets of weights, give one of them: " +
                    listNames(indices.empty() ? files : indices));
}

namespace {
/// Names of tensors by the file that has them.
using FileNames = std::map<std::string, std::vector<std::string>>;
} // namespace

static Expected<FileNames> parseIndex(StringRef path) {
  auto buffer = openInputBuffer(path);
  if (!buffer)
    return buffer.takeError();
  auto wrong = [&](const Twine &why) {
    return inputError(path + ": not an index of safetensors files: " + why);
  };
  auto json = json::parse((*buffer)->getBuffer());
  if (!json)
    return wrong(toString(json.takeError()));
  const json::Object *top = json->getAsObject();
  const json::Object *map = top ? top->getObject("weight_map") : nullptr;
  if (!map || map->empty())
    return wrong("it has no \"weight_map\" of names to files");
  FileNames result;
  for (const auto &[name, value] : *map) {
    auto file = value.getAsString();
    if (!file || !file->ends_with(kSuffix) ||
        sys::path::filename(*file) != *file)
      return wrong("'" + name.str() + "' is in no .safetensors of its folder");
    result[file->str()].push_back(name.str());
  }
  for (auto &[file, names] : result) // JSON's objects have no order here
    llvm::sort(names);
  return std::move(result);
}

Error StoredTensors::add(StoredTensors &&from, ArrayRef<std::string> names) {
  const size_t offset = files.size();
  for (std::string &file : from.files)
    files.push_back(std::move(file));
  llvm::append_range(buffers, from.buffers);
  checksums = (offset == 0 || checksums) && from.checksums;
  std::vector<std::string> missing;
  for (const std::string &name : names) {
    auto found = from.numbers.find(name);
    if (found == from.numbers.end()) {
      missing.push_back(name);
      continue;
    }
    numbers[name] = tensors.size();
    tensors.push_back(std::move(from.tensors[found->second]));
    for (Piece &piece : from.pieces[found->second])
      piece.file += offset;
    pieces.push_back(std::move(from.pieces[found->second]));
  }
  if (!missing.empty())
    return inputError("'" + files.back() +
                      "' lacks what its index says: " + listNames(missing));
  return Error::success();
}

std::string StoredTensors::folderOf(StringRef path) {
  if (sys::fs::is_directory(path))
    return path.str();
  StringRef folder = sys::path::parent_path(path);
  return folder.empty() ? "." : folder.str();
}

Expected<StoredTensors> StoredTensors::openPublished(StringRef path) {
  std::string file = path.str();
  if (sys::fs::is_directory(path))
    if (Error error = findWeights(path.rtrim('/')).moveInto(file))
      return std::move(error);
  if (!StringRef(file).ends_with(".json"))
    return open(file);
  auto index = parseIndex(file);
  if (!index)
    return index.takeError();
  StoredTensors result;
  for (const auto &[shard, names] : *index) {
    SmallString<128> place(folderOf(file));
    sys::path::append(place, shard);
    auto opened = open(place);
    if (!opened)
      return withContext(opened.takeError(), file);
    if (Error error = result.add(std::move(*opened), names))
      return withContext(std::move(error), file);
  }
  return std::move(result);
}
