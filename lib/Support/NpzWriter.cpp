//===- NpzWriter.cpp - writing .npz archives ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Writes a zip archive with one .npy file for each tensor; zip64 fields are
// written only where a size or an offset needs them. Times are zip's first
// (1980-01-01), so that equal tensors give equal bytes. A deflated member is
// made in memory before it is written, so that its header can hold its size:
// O(largest tensor) memory.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Base/Npy.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <limits>
#include <zlib.h>

using namespace llvm;

namespace ckopt {

namespace {

/// A marker that refers to the zip64 field.
constexpr uint64_t wide = 0xffffffff;

void put(std::string &out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i)
    out += char((value >> (8 * i)) & 0xff);
}

struct Entry {
  std::string name;
  uint32_t crc = 0;
  uint64_t compressedSize = 0, size = 0, offset = 0;
  bool deflated = false;

  bool isWide() const { return size >= wide || compressedSize >= wide; }
  /// Appends the fields that both headers share, from the required version on.
  void putCommon(std::string &out, bool zip64, size_t extraSize) const {
    put(out, zip64 ? 45 : 20, 2);
    put(out, 0x0800, 2); // names are UTF-8
    put(out, deflated ? 8 : 0, 2);
    put(out, 0, 2);
    put(out, 0x0021, 2); // 1980-01-01
    put(out, crc, 4);
    put(out, isWide() ? wide : compressedSize, 4);
    put(out, isWide() ? wide : size, 4);
    put(out, name.size(), 2);
    put(out, extraSize, 2);
  }
  std::string localHeader() const {
    std::string extra, out;
    if (isWide()) {
      put(extra, 1, 2);
      put(extra, 16, 2);
      put(extra, size, 8);
      put(extra, compressedSize, 8);
    }
    put(out, 0x04034b50, 4);
    putCommon(out, isWide(), extra.size());
    return out + name + extra;
  }
  std::string directoryEntry() const {
    std::string fields, extra, out;
    if (isWide()) {
      put(fields, size, 8);
      put(fields, compressedSize, 8);
    }
    if (offset >= wide)
      put(fields, offset, 8);
    if (!fields.empty()) {
      put(extra, 1, 2);
      put(extra, fields.size(), 2);
      extra += fields;
    }
    put(out, 0x02014b50, 4);
    put(out, (3 << 8) | 45, 2); // made by: Unix, zip 4.5
    putCommon(out, !fields.empty(), extra.size());
    put(out, 0, 2); // comment
    put(out, 0, 2); // disk
    put(out, 0, 2);
    put(out, uint64_t(0100644) << 16, 4); // a plain file, rw-r--r--
    put(out, offset >= wide ? wide : offset, 4);
    return out + name + extra;
  }
};

/// Compresses the pieces into one raw deflate stream.
Expected<std::string> deflatePieces(ArrayRef<StringRef> pieces) {
  z_stream stream = {};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    return makeError(ExitInternal, "zlib cannot start");
  std::string out;
  std::vector<char> chunk(1 << 18);
  for (size_t i = 0; i <= pieces.size(); ++i) {
    const bool last = i == pieces.size();
    StringRef rest = last ? StringRef() : pieces[i];
    do {
      const StringRef part =
          rest.take_front(std::numeric_limits<uInt>::max() / 2);
      rest = rest.drop_front(part.size());
      stream.next_in =
          reinterpret_cast<Bytef *>(const_cast<char *>(part.data()));
      stream.avail_in = uInt(part.size());
      do {
        stream.next_out = reinterpret_cast<Bytef *>(chunk.data());
        stream.avail_out = uInt(chunk.size());
        deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
        out.append(chunk.data(), chunk.size() - stream.avail_out);
      } while (stream.avail_out == 0);
    } while (!rest.empty());
  }
  deflateEnd(&stream);
  return out;
}

Error writeMember(AtomicFile &file, Entry &entry, const HostTensor &tensor) {
  const std::string header = npyHeader(tensor.dtype(), tensor.shape());
  const StringRef data(static_cast<const char *>(tensor.rawData()),
                       size_t(tensor.sizeInBytes()));
  uLong crc = crc32_z(0, nullptr, 0);
  for (StringRef piece : {StringRef(header), data})
    if (!piece.empty())
      crc = crc32_z(crc, reinterpret_cast<const Bytef *>(piece.data()),
                    piece.size());
  entry.crc = uint32_t(crc);
  entry.size = entry.compressedSize = header.size() + data.size();
  entry.offset = file.position();
  if (entry.deflated) {
    Expected<std::string> packed = deflatePieces({StringRef(header), data});
    if (!packed)
      return packed.takeError();
    entry.compressedSize = packed->size();
    if (Error error = file.write(entry.localHeader()))
      return error;
    return file.write(*packed);
  }
  if (Error error = file.write(entry.localHeader()))
    return error;
  if (Error error = file.write(header))
    return error;
  return file.write(data);
}

std::string endRecords(uint64_t count, uint64_t start, uint64_t size) {
  std::string out;
  const bool zip64 = count >= 0xffff || start >= wide || size >= wide;
  if (zip64) {
    put(out, 0x06064b50, 4);
    put(out, 44, 8); // size of the rest of this record
    put(out, (3 << 8) | 45, 2);
    put(out, 45, 2);
    put(out, 0, 4);
    put(out, 0, 4);
    put(out, count, 8);
    put(out, count, 8);
    put(out, size, 8);
    put(out, start, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, start + size, 8);
    put(out, 1, 4);
  }
  put(out, 0x06054b50, 4);
  put(out, 0, 4);
  put(out, std::min<uint64_t>(count, 0xffff), 2);
  put(out, std::min<uint64_t>(count, 0xffff), 2);
  put(out, std::min(size, wide), 4);
  put(out, std::min(start, wide), 4);
  put(out, 0, 2);
  return out;
}

} // namespace

/// The member that holds an array: a name that begins at the root, climbs out
/// of a folder or ends early would lead programs that unpack archives to files
/// elsewhere, and one with control characters is not read again, so that these
/// characters are written as in addresses (%2F).
static std::string memberOf(StringRef name) {
  std::string result;
  SmallVector<StringRef> parts;
  name.split(parts, '/');
  const bool climbs = is_contained(parts, "..");
  for (char c : name) {
    const bool atRoot = c == '/' && result.empty();
    if (isControl(c) || c == '\\' || atRoot || (climbs && c == '/'))
      result += "%" + utohexstr(uint8_t(c), /*LowerCase=*/false, /*Width=*/2);
    else
      result += c;
  }
  return result + ".npy";
}

Error writeNpz(StringRef path, const TensorMap &tensors, bool deflate) {
  return writeFileAtomically(path, [&](AtomicFile &file) -> Error {
    std::string directory;
    StringSet<> names;
    for (const auto &[name, tensor] : tensors) {
      Entry entry;
      entry.name = memberOf(name);
      if (!names.insert(entry.name).second)
        return inputError("cannot write '" + path +
                          "': two of its arrays are '" + entry.name + "'");
      entry.deflated = deflate;
      if (entry.name.size() > 0xffff)
        return inputError("cannot write '" + path +
                          "': an array's name is longer than 65,531 bytes");
      if (Error error = writeMember(file, entry, tensor))
        return error;
      directory += entry.directoryEntry();
    }
    const uint64_t start = file.position();
    if (Error error = file.write(directory))
      return error;
    return file.write(endRecords(tensors.size(), start, directory.size()));
  });
}

} // namespace ckopt
