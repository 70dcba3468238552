//===- ArrayFile.cpp - arrays in files, mapped rather than read -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/ArrayFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace ckopt {

HostArray HostArray::of(HostTensor tensor) {
  auto owner = std::make_shared<HostTensor>(std::move(tensor));
  HostArray result;
  result.dtype = owner->dtype();
  result.shape = owner->shape().vec();
  result.bytes = static_cast<const char *>(owner->rawData());
  result.keeper = std::move(owner);
  return result;
}

int64_t HostArray::numElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

HostTensor HostArray::rows(int64_t begin, int64_t count) const {
  std::vector<int64_t> part = shape;
  const int64_t size = shape.front() ? sizeInBytes() / shape.front() : 0;
  part.front() = count;
  return HostTensor::view(dtype, std::move(part), bytes + begin * size, keeper);
}

bool ArrayFile::contains(StringRef array) const {
  return is_contained(arrays, array);
}

static Error noArray(const ArrayFile &file, StringRef array) {
  return inputError(file.name + ": no array '" + array + "'; there are " +
                    (file.arrays.empty() ? "none" : join(file.arrays, ", ")));
}

/// One .npy file, or a folder of them: arrays by the names of files.
static ArrayFile openNpyFiles(StringRef name, std::vector<std::string> files) {
  ArrayFile result;
  result.name = name.str();
  for (const std::string &file : files)
    result.arrays.push_back(sys::path::stem(file).str());
  result.read = [result, files](StringRef array) -> Expected<HostArray> {
    auto found = find(result.arrays, array);
    if (found == result.arrays.end())
      return noArray(result, array);
    return mapNpy(files[size_t(found - result.arrays.begin())]);
  };
  return result;
}

Expected<ArrayFile> openArrayFile(StringRef path, StringRef cache) {
  if (sys::fs::is_directory(path)) {
    Expected<std::vector<std::string>> files =
        listFiles((path.rtrim('/') + "/*.npy").str());
    if (!files)
      return files.takeError();
    return openNpyFiles(path, std::move(*files));
  }
  if (path.ends_with(".npy"))
    return openNpyFiles(path, {path.str()});
  Expected<NpzReader> reader = NpzReader::open(path, cache);
  if (!reader)
    return reader.takeError();
  ArrayFile result;
  result.name = path.str();
  result.arrays = reader->names();
  auto shared = std::make_shared<NpzReader>(std::move(*reader));
  result.read = [shared](StringRef array) { return shared->map(array); };
  return result;
}

Expected<HostArray> mapNumbers(StringRef path, DType dtype) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  const int64_t bytes = int64_t((*buffer)->getBufferSize());
  if (bytes % dtypeSize(dtype))
    return inputError(path + ": " + Twine(bytes) +
                      " bytes are no whole number "
                      "of " +
                      dtypeName(dtype) + ", of " + Twine(dtypeSize(dtype)) +
                      " bytes each");
  std::shared_ptr<MemoryBuffer> shared = std::move(*buffer);
  HostArray result;
  result.dtype = dtype;
  result.shape = {bytes / dtypeSize(dtype)};
  result.bytes = shared->getBufferStart();
  result.keeper = std::move(shared);
  result.mapped = true;
  return result;
}

} // namespace ckopt
