//===- Safetensors.cpp - safetensors files as tensors ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading maps the file and gives views; the header's grammar and checks are in
// ckopt/Base/Safetensors.h. Writing puts the widest elements first and leaves
// no gaps: with a header padded to 8 bytes all tensors are aligned. O(header +
// number of tensors * log), and O(bytes) without a copy for writing.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

static HostTensor makeView(const SafetensorsEntry &tensor, const char *data,
                           std::shared_ptr<MemoryBuffer> keeper) {
  if (tensor.dtype != DType::Bool)
    return HostTensor::view(tensor.dtype, tensor.shape, data + tensor.begin,
                            std::move(keeper));
  // A byte other than 0 and 1 would be an invalid bool in C++.
  HostTensor flags(DType::Bool, tensor.shape);
  uint8_t *target = static_cast<uint8_t *>(flags.mutableRawData());
  for (uint64_t i = 0; i < tensor.end - tensor.begin; ++i)
    target[i] = data[tensor.begin + i] != 0;
  return flags;
}

Expected<SafetensorsFile> parseSafetensors(std::shared_ptr<MemoryBuffer> buffer,
                                           StringRef what) {
  SafetensorsHeader header;
  const std::string error = parseSafetensorsHeader(buffer->getBuffer(), header);
  if (!error.empty())
    return inputError(what + ": " + error);
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  for (const SafetensorsEntry &tensor : header.tensors)
    file.tensors.insert(tensor.name,
                        makeView(tensor, header.data.data(), buffer));
  return file;
}

Expected<SafetensorsFile> readSafetensors(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!buffer)
    return inputError("cannot read '" + path +
                      "': " + buffer.getError().message());
  return parseSafetensors(std::move(*buffer), path);
}

static std::string makeHeader(ArrayRef<const TensorMap::Entry *> order,
                              const StringMetadata &metadata) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream out(stream);
  int64_t at = 0;
  out.object([&] {
    if (!metadata.empty())
      out.attributeObject("__metadata__", [&] {
        for (const auto &[key, value] : metadata)
          out.attribute(key, value);
      });
    for (const TensorMap::Entry *entry : order)
      out.attributeObject(entry->first, [&] {
        const HostTensor &tensor = entry->second;
        out.attribute("dtype",
                      dtypeTable[uint32_t(tensor.dtype())].safetensors);
        out.attributeArray("shape", [&] {
          for (int64_t extent : tensor.shape())
            out.value(extent);
        });
        out.attributeArray("data_offsets", [&] {
          out.value(at);
          out.value(at + tensor.sizeInBytes());
        });
        at += tensor.sizeInBytes();
      });
  });
  stream.flush();
  text.append((8 - text.size() % 8) % 8, ' ');
  return text;
}

Error writeSafetensors(StringRef path, const TensorMap &tensors,
                       const StringMetadata &metadata) {
  auto notText = [&](StringRef text, const char *what) {
    return inputError("cannot write '" + path + "': " + what + " '" +
                      json::fixUTF8(text) + "' is not valid UTF-8");
  };
  std::vector<const TensorMap::Entry *> order;
  for (const TensorMap::Entry &entry : tensors) {
    if (entry.first == "__metadata__")
      return inputError("cannot write '" + path +
                        "': the format keeps the name '__metadata__' for "
                        "itself; rename that tensor");
    if (!json::isUTF8(entry.first))
      return notText(entry.first, "the tensor name");
    order.push_back(&entry);
  }
  for (const auto &[key, value] : metadata)
    if (!json::isUTF8(key) || !json::isUTF8(value))
      return notText(key, "the metadata entry");
  // Entries lie in one array, so comparing addresses gives their order.
  llvm::sort(order, [](const auto *a, const auto *b) {
    const int64_t sizeA = dtypeSize(a->second.dtype());
    const int64_t sizeB = dtypeSize(b->second.dtype());
    return sizeA != sizeB ? sizeA > sizeB : a < b;
  });
  const std::string header = makeHeader(order, metadata);
  char size[8];
  support::endian::write64le(size, header.size());
  return writeFileAtomically(path, [&](AtomicFile &file) -> Error {
    if (Error error = file.write(size, sizeof(size)))
      return error;
    if (Error error = file.write(header))
      return error;
    for (const TensorMap::Entry *entry : order)
      if (Error error = file.write(entry->second.rawData(),
                                   size_t(entry->second.sizeInBytes())))
        return error;
    return Error::success();
  });
}

} // namespace ckopt
