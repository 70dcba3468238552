//===- Safetensors.cpp - safetensors files as tensors ---------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Reading maps the file and gives views; the header's grammar and checks are in
// ckopt/Base/Safetensors.h. Writing puts the widest elements first and leaves
// no gaps: with a header padded to 8 bytes all tensors are aligned. Checksums
// are known when the data is written: a header with zeros keeps their place,
// and the same header with their digits replaces it before the file has its
// name. Devices and pipes take no second header, so they get no checksums.
// O(header + number of tensors * log), and O(bytes) without a copy for writing.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Safetensors.h"
#include "ckopt/Base/ContentHash.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "ckopt/Support/TensorParts.h"
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
  file.hasChecksum = header.hasChecksum;
  for (const SafetensorsEntry &tensor : header.tensors) {
    file.tensors.insert(tensor.name,
                        makeView(tensor, header.data.data(), buffer));
    if (tensor.hash)
      file.hashes[tensor.name] = *tensor.hash;
  }
  return file;
}

Expected<SafetensorsFile> readSafetensors(StringRef path) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  return parseSafetensors(std::move(*buffer), path);
}

std::vector<TensorSpec> specsOf(const TensorMap &tensors) {
  std::vector<TensorSpec> specs;
  for (const auto &[name, value] : tensors)
    specs.push_back({name, value.dtype(), value.shape().vec()});
  return specs;
}

int64_t bytesOf(const TensorSpec &tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.shape)
    count *= extent;
  return count * dtypeSize(tensor.dtype);
}

static std::string makeHeader(ArrayRef<const TensorSpec *> order,
                              const StringMetadata &metadata) {
  std::string text(8, '\0');
  raw_string_ostream stream(text);
  json::OStream out(stream);
  int64_t at = 0;
  out.object([&] {
    if (!metadata.empty())
      out.attributeObject("__metadata__", [&] {
        for (const auto &[key, value] : metadata)
          out.attribute(key, value);
      });
    for (const TensorSpec *tensor : order)
      out.attributeObject(tensor->name, [&] {
        out.attribute("dtype", dtypeTable[uint32_t(tensor->dtype)].safetensors);
        out.attributeArray("shape", [&] {
          for (int64_t extent : tensor->shape)
            out.value(extent);
        });
        out.attributeArray("data_offsets", [&] {
          out.value(at);
          out.value(at + bytesOf(*tensor));
        });
        at += bytesOf(*tensor);
      });
  });
  stream.flush();
  text.append((8 - text.size() % 8) % 8, ' ');
  support::endian::write64le(text.data(), text.size() - 8);
  return text;
}

/// Refuses names that a header cannot hold.
static Error checkNames(StringRef path, ArrayRef<TensorSpec> tensors,
                        const StringMetadata &metadata) {
  auto notText = [&](StringRef text, const char *what) {
    return inputError("cannot write '" + path + "': " + what + " '" +
                      json::fixUTF8(text) + "' is not valid UTF-8");
  };
  for (const TensorSpec &tensor : tensors) {
    if (tensor.name == "__metadata__")
      return inputError("cannot write '" + path +
                        "': the format keeps the name '__metadata__' for "
                        "itself; rename that tensor");
    if (std::string fault = faultOfName(tensor.name); !fault.empty())
      return inputError("cannot write '" + path + "': " + fault);
    if (!json::isUTF8(tensor.name))
      return notText(tensor.name, "the tensor name");
  }
  for (const auto &[key, value] : metadata)
    if (!json::isUTF8(key) || !json::isUTF8(value))
      return notText(key, "the metadata entry");
  return Error::success();
}

namespace {
/// Takes a tensor's bytes, in pieces that are multiples of 8 bytes but for the
/// last.
class TensorWriter {
public:
  explicit TensorWriter(AtomicFile &file) : file(file) {}
  Error operator()(const HostTensor &piece) {
    size_t size = size_t(piece.sizeInBytes());
    if (file.isRegular())
      hash.add(piece.rawData(), size);
    return file.write(piece.rawData(), size);
  }
  uint64_t checksum() const { return hash.value(); }

private:
  AtomicFile &file;
  ContentHash hash;
};
} // namespace

/// Writes header and data. `fill` gives the bytes of the tensor with this
/// number. Returns the header.
static Expected<std::string>
fillFile(AtomicFile &file, ArrayRef<TensorSpec> tensors,
         ArrayRef<const TensorSpec *> order, StringMetadata metadata,
         function_ref<Error(TensorWriter &to, size_t number)> fill) {
  auto keyOf = [](const TensorSpec *tensor) {
    return std::string(kChecksumKey) + "." + tensor->name;
  };
  if (file.isRegular()) {
    metadata[kChecksumKey] = hexText(0);
    for (const TensorSpec *tensor : order)
      metadata[keyOf(tensor)] = hexText(0);
  }
  std::string header = makeHeader(order, metadata);
  if (Error error = file.write(header))
    return std::move(error);
  for (const TensorSpec *tensor : order) {
    TensorWriter to(file);
    if (Error error = fill(to, size_t(tensor - tensors.data())))
      return std::move(error);
    if (file.isRegular())
      metadata[keyOf(tensor)] = hexText(to.checksum());
  }
  if (!file.isRegular())
    return header;
  addHeaderChecksum(makeHeader(order, metadata), metadata);
  header = makeHeader(order, metadata);
  if (Error error = file.overwrite(0, header))
    return std::move(error);
  return header;
}

/// Writes a file as a whole; see fillFile().
static Expected<std::string>
writeTensors(StringRef path, ArrayRef<TensorSpec> tensors,
             const StringMetadata &metadata,
             function_ref<Error(TensorWriter &to, size_t number)> fill) {
  if (Error error = checkNames(path, tensors, metadata))
    return std::move(error);
  std::vector<const TensorSpec *> order;
  for (const TensorSpec &tensor : tensors)
    order.push_back(&tensor);
  // Specs lie in one array, so comparing addresses gives their order.
  llvm::sort(order, [](const auto *a, const auto *b) {
    const int64_t sizeA = dtypeSize(a->dtype), sizeB = dtypeSize(b->dtype);
    return sizeA != sizeB ? sizeA > sizeB : a < b;
  });
  std::string header;
  auto fillAll = [&](AtomicFile &file) {
    return fillFile(file, tensors, order, metadata, fill).moveInto(header);
  };
  if (Error error = writeFileAtomically(path, fillAll))
    return std::move(error);
  return header;
}

Expected<std::string>
writeSafetensors(StringRef path, ArrayRef<TensorSpec> tensors,
                 const StringMetadata &metadata,
                 function_ref<Expected<HostTensor>(size_t)> read) {
  return writeTensors(
      path, tensors, metadata, [&](TensorWriter &to, size_t number) -> Error {
        auto value = read(number);
        if (!value)
          return value.takeError();
        assert(value->sizeInBytes() == bytesOf(tensors[number]) &&
               "another tensor");
        return to(*value);
      });
}

Error writeSafetensors(StringRef path, TensorParts &tensors,
                       const StringMetadata &metadata) {
  auto fill = [&](TensorWriter &to, size_t number) {
    return forEachPiece(tensors, number, [&](const HostTensor &piece, int64_t) {
      return to(piece);
    });
  };
  return writeTensors(path, tensors.specs(), metadata, fill).takeError();
}

Error writeSafetensors(StringRef path, const TensorMap &tensors,
                       const StringMetadata &metadata) {
  MapParts parts(tensors);
  return writeSafetensors(path, parts, metadata);
}

} // namespace ckopt
