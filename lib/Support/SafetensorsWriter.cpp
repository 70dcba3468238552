//===- SafetensorsWriter.cpp - writing safetensors ------------------------===//
//
// Widest elements first, each tensor right after the one before: with a header
// padded to 8 bytes everything is aligned and the data has no holes. O(bytes),
// no copy of the data.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Safetensors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace ckopt {

static const char *typeName(DType type) {
  static const char *const names[] = {"F64", "F32", "F16", "BF16", "I64",
                                      "I32", "I16", "I8",  "U64",  "U32",
                                      "U16", "U8",  "BOOL"};
  return names[unsigned(type)];
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
        out.attribute("dtype", typeName(tensor.dtype()));
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
  // Entries lie in one array: their addresses are their order.
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
