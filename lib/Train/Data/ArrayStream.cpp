//===- ArrayStream.cpp - samples from a pipe ------------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Data are read in pieces, so that a damaged head, which may
// speak of any size, takes no more memory than the stream has bytes.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/ArrayStream.h"
#include "ckopt/Base/Npy.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include <algorithm>

using namespace llvm;

namespace ckopt {

Expected<std::unique_ptr<ArrayStreamSource>>
ArrayStreamSource::create(std::FILE *stream, std::string name,
                          std::vector<FieldSpec> fields) {
  std::unique_ptr<ArrayStreamSource> result(new ArrayStreamSource);
  result->stream = stream;
  result->streamName = std::move(name);
  for (const FieldSpec &spec : fields) {
    if (!spec.batched || !spec.shape)
      return inputError(result->streamName + ": '" + spec.name +
                        "' is one constant for all samples, and a stream "
                        "holds samples alone");
    result->list.push_back({spec.name, spec.dtype, *spec.shape, true});
  }
  if (fields.empty())
    return inputError(result->streamName + ": the step takes no data");
  result->specs = std::move(fields);
  return std::move(result);
}

Error ArrayStreamSource::seek(uint64_t, DataPosition place) {
  if (place.position != 0)
    return inputError(name() + " cannot go to sample " + Twine(place.position));
  return Error::success();
}

std::string ArrayStreamSource::place(size_t field) const {
  return streamName + ": record " + std::to_string(number + 1) + ", array '" +
         specs[field].array + "'";
}

/// False: the stream has ended before the first byte.
Expected<bool> ArrayStreamSource::readExactly(void *to, size_t bytes,
                                              const char *what) {
  const size_t got = std::fread(to, 1, bytes, stream);
  if (got == bytes)
    return true;
  if (std::ferror(stream))
    return inputError(streamName + ": cannot be read");
  if (got == 0)
    return false;
  return inputError(streamName + ": record " + Twine(number + 1) +
                    " ends in the middle of " + what);
}

/// False: the stream ends here.
Expected<bool> ArrayStreamSource::readArray(size_t field, HostArray &array) {
  constexpr size_t kPrefix = 12, kPiece = size_t(16) << 20;
  constexpr size_t kLongestHead = size_t(1) << 20;
  auto bytes = std::make_shared<std::vector<char>>(kPrefix);
  auto text = [&] { return std::string_view(bytes->data(), bytes->size()); };
  auto found = readExactly(bytes->data(), kPrefix, "a head");
  if (!found || !*found)
    return found;
  const size_t head = npyHeaderSize(text());
  if (head < kPrefix || head > kLongestHead)
    return inputError(place(field) + ": no .npy array begins here");
  // Bytes that are missing now are the middle of something.
  auto append = [&](size_t count, const char *what) -> Error {
    const size_t before = bytes->size();
    bytes->resize(before + count);
    auto more = readExactly(bytes->data() + before, count, what);
    if (more && !*more)
      return inputError(place(field) + ": the stream ends in the middle of it");
    return more.takeError();
  };
  if (Error error = append(head - kPrefix, "a head"))
    return std::move(error);
  NpyArray shape;
  uint64_t size = 0;
  const std::string problem = parseNpyHeader(text(), shape, size);
  if (!problem.empty())
    return inputError(place(field) + ": " + problem);
  if (Error error = checkShape(specs[field], shape.shape))
    return withContext(std::move(error),
                       streamName + ": record " + Twine(number + 1));
  while (size > 0) {
    const size_t piece = size_t(std::min<uint64_t>(size, kPiece));
    if (Error error = append(piece, "an array"))
      return std::move(error);
    size -= piece;
  }
  auto view =
      viewNpy(StringRef(bytes->data(), bytes->size()), place(field), bytes);
  if (!view)
    return view.takeError();
  array = std::move(*view);
  auto nameSample = [](int64_t i) { return "sample " + std::to_string(i); };
  if (Error error = checkValues(specs[field], array.tensor(), nameSample))
    return withContext(std::move(error),
                       streamName + ": record " + Twine(number + 1));
  return true;
}

/// False: the stream ends here.
Expected<bool> ArrayStreamSource::readRecord() {
  record.clear();
  int64_t bytes = 0;
  for (size_t field = 0; field < specs.size(); ++field) {
    HostArray array;
    auto found = readArray(field, array);
    if (!found)
      return found;
    if (!*found && field == 0)
      return false;
    if (!*found)
      return inputError(place(field) + " is missing: the stream ends before "
                                       "it");
    const int64_t count = array.shape.front();
    if (field == 0)
      samples = count;
    else if (count != samples)
      return inputError(place(field) + " holds " + Twine(count) +
                        " samples, array '" + specs[0].array + "' holds " +
                        Twine(samples));
    bytes += array.sizeInBytes();
    record.push_back(std::move(array));
  }
  ++number;
  at = 0;
  mostBytes = std::max(mostBytes, bytes);
  return true;
}

Expected<int64_t> ArrayStreamSource::next(int64_t count, ArrayRef<void *> to) {
  int64_t done = 0;
  while (done < count) {
    if (at == samples) {
      auto found = readRecord();
      if (!found)
        return found.takeError();
      if (!*found) {
        samples = at = 0;
        break;
      }
      continue; // it may be empty
    }
    const int64_t taken = std::min(count - done, samples - at);
    for (size_t field = 0; field < specs.size(); ++field) {
      const HostArray &array = record[field];
      const int64_t elements = array.numElements() / samples;
      const DType wanted = list[field].dtype;
      convertElements(
          array.dtype, array.bytes + at * elements * dtypeSize(array.dtype),
          wanted,
          static_cast<char *>(to[field]) + done * elements * dtypeSize(wanted),
          taken * elements);
    }
    at += taken;
    done += taken;
  }
  return done;
}

} // namespace ckopt
