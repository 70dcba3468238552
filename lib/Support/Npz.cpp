//===- Npz.cpp - reading .npz archives ------------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// An .npz is a zip archive of .npy files. Entries are found through the
// directory at the end of the file (local headers of streamed archives hold no
// sizes); each entry must lie inside the file and agree with its local header,
// and the inflated bytes with size and checksum. The memory of an entry is
// bounded before it is allocated: deflate cannot expand more than 1,032 times.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/Npz.h"
#include "ckopt/Base/PrintableText.h"
#include "ckopt/Support/AtomicFile.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/InputBuffer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <limits>
#include <zlib.h>

using namespace llvm;
using support::endian::read16le;
using support::endian::read32le;
using support::endian::read64le;

namespace ckopt {

static constexpr uint64_t endRecordSize = 22, locatorSize = 20,
                          endRecord64Size = 56, entrySize = 46, localSize = 30;

static bool fits(uint64_t at, uint64_t size, uint64_t total) {
  return at <= total && size <= total - at;
}

Expected<NpzReader> NpzReader::open(StringRef path, StringRef cache) {
  auto buffer = readInput(path);
  if (!buffer)
    return buffer.takeError();
  Expected<NpzReader> reader = fromBuffer(std::move(*buffer), path);
  if (reader)
    reader->cache = cache.str();
  return reader;
}

Expected<NpzReader> NpzReader::fromBuffer(std::unique_ptr<MemoryBuffer> buffer,
                                          StringRef what) {
  NpzReader reader;
  reader.path = what.str();
  reader.buffer = std::move(buffer);
  if (Error error = reader.readDirectory())
    return std::move(error);
  return reader;
}

/// Finds the end record, which is the last part of the file except for a
/// comment.
static uint64_t findEndRecord(StringRef bytes) {
  if (bytes.size() < endRecordSize)
    return StringRef::npos;
  const uint64_t last = bytes.size() - endRecordSize;
  const uint64_t first = last > 65535 ? last - 65535 : 0;
  for (uint64_t at = last + 1; at-- > first;)
    if (read32le(bytes.data() + at) == 0x06054b50 &&
        read16le(bytes.data() + at + 20) == bytes.size() - at - endRecordSize)
      return at;
  return StringRef::npos;
}

Error NpzReader::readDirectory() {
  const StringRef bytes = buffer->getBuffer();
  const uint64_t end = findEndRecord(bytes);
  if (end == StringRef::npos) {
    if (bytes.starts_with("\x93NUMPY"))
      return inputError(path + ": a single .npy array, not an .npz archive "
                               "(numpy.savez writes those)");
    if (bytes.starts_with("PK"))
      return inputError(path + ": truncated .npz archive: its directory, at "
                               "the end of the file, is missing");
    return inputError(path + ": not an .npz archive");
  }
  uint64_t count = read16le(bytes.data() + end + 10);
  uint64_t size = read32le(bytes.data() + end + 12);
  uint64_t at = read32le(bytes.data() + end + 16);
  uint64_t limit = end; // the directory ends before this
  if (end >= locatorSize &&
      read32le(bytes.data() + end - locatorSize) == 0x07064b50) {
    const uint64_t record = read64le(bytes.data() + end - locatorSize + 8);
    if (!fits(record, endRecord64Size, end - locatorSize) ||
        read32le(bytes.data() + record) != 0x06064b50)
      return inputError(path + ": damaged .npz archive: its zip64 end record "
                               "is missing");
    count = read64le(bytes.data() + record + 32);
    size = read64le(bytes.data() + record + 40);
    at = read64le(bytes.data() + record + 48);
    limit = record;
  }
  if (!fits(at, size, limit) || count > size / entrySize)
    return inputError(path + ": damaged .npz archive: its directory lies "
                             "outside of the file");
  const uint64_t directoryEnd = at + size;
  for (uint64_t i = 0; i < count; ++i)
    if (Error error = readDirectoryEntry(at, directoryEnd))
      return error;
  StringSet<> seen;
  for (const Member &member : members)
    if (!seen.insert(member.name).second)
      return inputError(path + ": damaged .npz archive: two arrays named '" +
                        member.name + "'");
  return Error::success();
}

Error NpzReader::readDirectoryEntry(uint64_t &at, uint64_t end) {
  const char *entry = buffer->getBufferStart() + at;
  auto damaged = [&] {
    return inputError(path + ": damaged .npz archive: entry " +
                      Twine(members.size() + 1) +
                      " of its directory is not valid");
  };
  if (!fits(at, entrySize, end) || read32le(entry) != 0x02014b50)
    return damaged();
  const uint64_t nameSize = read16le(entry + 28);
  const uint64_t extraSize = read16le(entry + 30);
  const uint64_t whole =
      entrySize + nameSize + extraSize + read16le(entry + 32);
  if (!fits(at, whole, end))
    return damaged();
  Member member;
  member.encrypted = read16le(entry + 8) & 1;
  member.method = read16le(entry + 10);
  member.crc = read32le(entry + 16);
  member.compressedSize = read32le(entry + 20);
  member.size = read32le(entry + 24);
  member.headerOffset = read32le(entry + 42);
  member.name = std::string(entry + entrySize, nameSize);

  // The zip64 field holds, in this order, those of the three numbers that are
  // all ones in the entry itself.
  StringRef extra(entry + entrySize + nameSize, extraSize);
  while (extra.size() >= 4) {
    const unsigned id = read16le(extra.data());
    const size_t fieldSize = read16le(extra.data() + 2);
    extra = extra.drop_front(4);
    if (fieldSize > extra.size())
      return damaged();
    StringRef field = extra.take_front(fieldSize);
    extra = extra.drop_front(fieldSize);
    if (id != 1)
      continue;
    for (uint64_t *value :
         {&member.size, &member.compressedSize, &member.headerOffset}) {
      if (*value != 0xffffffff)
        continue;
      if (field.size() < 8)
        return damaged();
      *value = read64le(field.data());
      field = field.drop_front(8);
    }
  }
  at += whole;
  StringRef name = member.name;
  if (!name.consume_back(".npy"))
    return Error::success(); // a folder, or a file that is not an array
  member.name = name.str();
  if (std::string fault = faultOfName(member.name); !fault.empty())
    return inputError(path + ": " + fault);
  members.push_back(std::move(member));
  return Error::success();
}

std::vector<std::string> NpzReader::names() const {
  std::vector<std::string> result;
  for (const Member &member : members)
    result.push_back(member.name);
  return result;
}

bool NpzReader::contains(StringRef name) const {
  return any_of(members, [&](const Member &m) { return m.name == name; });
}

Expected<HostTensor> NpzReader::read(StringRef name) const {
  Expected<HostArray> array = map(name);
  if (!array)
    return array.takeError();
  HostTensor tensor(array->dtype, array->shape);
  if (tensor.numElements())
    std::memcpy(tensor.mutableRawData(), array->bytes,
                size_t(tensor.sizeInBytes()));
  return tensor;
}

Expected<HostArray> NpzReader::map(StringRef name) const {
  for (const Member &member : members)
    if (member.name == name)
      return mapMember(member);
  std::string have;
  for (const Member &member : members)
    have += (have.empty() ? "" : ", ") + member.name;
  return inputError(path + ": no array '" + name + "'; the file has " +
                    (have.empty() ? std::string("no arrays") : have));
}

Expected<StringRef> NpzReader::compressedBytes(const Member &member) const {
  const StringRef bytes = buffer->getBuffer();
  const std::string what = path + ": array '" + member.name + "'";
  if (member.encrypted)
    return inputError(what + " is encrypted");
  if (!fits(member.headerOffset, localSize, bytes.size()) ||
      read32le(bytes.data() + member.headerOffset) != 0x04034b50)
    return inputError(what + ": damaged .npz archive: its header is missing");
  const char *local = bytes.data() + member.headerOffset;
  const uint64_t start = member.headerOffset + localSize +
                         read16le(local + 26) + read16le(local + 28);
  if (!fits(start, member.compressedSize, bytes.size()))
    return inputError(what + ": truncated .npz archive: its data is cut off");
  if (read16le(local + 8) != member.method)
    return inputError(what + ": damaged .npz archive: its two headers name "
                             "different compressions");
  return bytes.substr(start, member.compressedSize);
}

/// Inflates `input` (raw deflate) into exactly `size` bytes, which `next` gives
/// room for: a piece of at most as many bytes as are left.
static bool
inflateExactly(StringRef input, uint64_t size,
               function_ref<MutableArrayRef<char>(uint64_t left)> next) {
  z_stream stream = {};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return false;
  const uint64_t chunk = std::numeric_limits<uInt>::max();
  uint64_t inputLeft = input.size(), outputLeft = size;
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(input.data()));
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0) {
      stream.avail_in = uInt(std::min(inputLeft, chunk));
      inputLeft -= stream.avail_in;
    }
    if (stream.avail_out == 0) {
      MutableArrayRef<char> room = next(std::min(outputLeft, chunk));
      stream.next_out = reinterpret_cast<Bytef *>(room.data());
      stream.avail_out = uInt(room.size());
      outputLeft -= stream.avail_out;
    }
    status = inflate(&stream, Z_NO_FLUSH);
  }
  const bool whole = status == Z_STREAM_END && inputLeft == 0 &&
                     stream.avail_in == 0 && outputLeft == 0 &&
                     stream.avail_out == 0;
  inflateEnd(&stream);
  return whole;
}

static uint32_t checksumOf(StringRef bytes) {
  return uint32_t(crc32_z(crc32_z(0, nullptr, 0),
                          reinterpret_cast<const Bytef *>(bytes.data()),
                          bytes.size()));
}

/// Maps the file of the cache that holds a member, which is written first where
/// there is none, or a damaged one. Its name says which packed bytes it is of.
Expected<std::shared_ptr<MemoryBuffer>>
NpzReader::unpackToCache(const Member &member, StringRef packed) const {
  const std::string what = path + ": array '" + member.name + "'";
  std::string name = member.name.substr(0, 100);
  for (char &c : name)
    if (!isAlnum(c))
      c = '_';
  SmallString<128> file(cache);
  sys::path::append(
      file, name + "-" + Twine(member.size) + "-" +
                utohexstr(xxh3_64bits(packed), /*LowerCase=*/true) + ".npy");
  auto map = [&]() -> std::shared_ptr<MemoryBuffer> {
    auto mapped = openInputBuffer(file);
    if (!mapped) {
      consumeError(mapped.takeError());
      return nullptr;
    }
    if ((*mapped)->getBufferSize() == member.size &&
        checksumOf((*mapped)->getBuffer()) == member.crc)
      return std::move(*mapped);
    return nullptr;
  };
  if (std::shared_ptr<MemoryBuffer> known = map())
    return known;
  if (std::error_code code = sys::fs::create_directories(cache))
    return ioError("cannot make the folder '" + cache + "': " + code.message());
  constexpr uint64_t kPiece = 1 << 20;
  std::vector<char> piece(size_t(std::min(kPiece, member.size)));
  bool whole = false;
  Error error = writeFileAtomically(file, [&](AtomicFile &out) -> Error {
    Error failed = Error::success();
    size_t filled = 0;
    auto flush = [&] {
      if (!failed && filled)
        failed = joinErrors(std::move(failed), out.write(piece.data(), filled));
      filled = 0;
    };
    whole = inflateExactly(packed, member.size, [&](uint64_t left) {
      flush();
      filled = size_t(std::min<uint64_t>(left, piece.size()));
      return MutableArrayRef(piece.data(), filled);
    });
    flush();
    if (!whole && !failed)
      return inputError(what + ": damaged .npz archive: its compressed data "
                               "is not valid");
    return failed;
  });
  if (error)
    return std::move(error);
  if (std::shared_ptr<MemoryBuffer> made = map())
    return made;
  (void)sys::fs::remove(file);
  return inputError(what + ": damaged .npz archive: the checksum of its data "
                           "is wrong");
}

Expected<HostArray> NpzReader::mapMember(const Member &member) const {
  const std::string what = path + ": array '" + member.name + "'";
  Expected<StringRef> packed = compressedBytes(member);
  if (!packed)
    return packed.takeError();
  std::shared_ptr<MemoryBuffer> keeper = buffer;
  StringRef bytes = *packed;
  bool inFile = member.method == 0;
  if (member.method == 8) {
    if (member.size / 1100 > member.compressedSize)
      return inputError(
          what + ": damaged .npz archive: " + Twine(member.compressedSize) +
          " bytes cannot inflate to " + Twine(member.size));
    if (!cache.empty()) {
      auto unpacked = unpackToCache(member, *packed);
      if (!unpacked)
        return unpacked.takeError();
      keeper = std::move(*unpacked);
      inFile = true;
    } else {
      std::unique_ptr<WritableMemoryBuffer> inflated =
          WritableMemoryBuffer::getNewUninitMemBuffer(member.size);
      if (!inflated)
        return inputError(what + ": not enough memory for its " +
                          Twine(member.size) + " bytes");
      char *to = inflated->getBufferStart();
      if (!inflateExactly(*packed, member.size, [&](uint64_t left) {
            to += left;
            return MutableArrayRef(to - left, left);
          }))
        return inputError(what + ": damaged .npz archive: its compressed data "
                                 "is not valid");
      keeper = std::move(inflated);
    }
    bytes = keeper->getBuffer();
  } else if (member.method != 0) {
    return inputError(what + ": compression method " + Twine(member.method) +
                      " is not supported (stored and deflate are)");
  } else if (member.size != member.compressedSize) {
    return inputError(what + ": damaged .npz archive: a stored member has two "
                             "sizes");
  }
  bool checked = inFile && member.method == 8; // in the cache
  if (!checked && checksumOf(bytes) != member.crc)
    return inputError(what + ": damaged .npz archive: the checksum of its "
                             "data is wrong");
  Expected<HostArray> array = viewNpy(bytes, what, keeper);
  if (array)
    array->mapped &= inFile;
  return array;
}

Expected<TensorMap> readNpz(StringRef path) {
  Expected<NpzReader> reader = NpzReader::open(path);
  if (!reader)
    return reader.takeError();
  TensorMap tensors;
  for (const std::string &name : reader->names()) {
    Expected<HostTensor> tensor = reader->read(name);
    if (!tensor)
      return tensor.takeError();
    tensors.insert(name, std::move(*tensor));
  }
  return tensors;
}

} // namespace ckopt
