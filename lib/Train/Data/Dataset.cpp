//===- Dataset.cpp - samples from a .npz file, checked --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Loading looks at every value once: O(bytes of the arrays).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Dataset.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <cstring>
#include <map>

using namespace llvm;

namespace ckopt {

Expected<std::vector<ArrayMapping>>
parseArrayMappings(StringRef text, const MessageText &flag) {
  std::vector<ArrayMapping> result;
  StringSet<> seen;
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    auto [name, array] = part.split('=');
    name = name.trim();
    array = part.contains('=') ? array.trim() : name;
    if (name.empty() || array.empty())
      return usageError(flag + ": '" + text +
                        "' is not a list of NAME=ARRAY, NAME the model's and "
                        "ARRAY the data file's (NAME alone: both are equal)");
    if (!seen.insert(name).second)
      return usageError(flag + ": '" + name + "' is given twice");
    result.push_back({name.str(), array.str()});
  }
  return result;
}

static std::string arrayOf(const FieldSpec &spec) {
  return "array '" + spec.array + "'";
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

/// The same error once, where several fields name one array.
static Error joinOnce(Error errors, Error error, StringSet<> &seen) {
  ErrorText text = takeErrorText(std::move(error));
  if (!seen.insert(text.text).second)
    return errors;
  return joinErrors(std::move(errors), makeError(text.code, text.message));
}

/// All values of an array. Elements of files need not be aligned, and are then
/// copied in blocks.
static Error checkArray(const FieldSpec &spec, const HostArray &array) {
  if (Error error = checkShape(spec, array.shape))
    return error;
  constexpr int64_t kBlockBytes = 1 << 20;
  const int64_t count = array.shape.empty() ? 1 : array.shape.front();
  int64_t block = count;
  if (!array.isAligned() && count > 0)
    block = std::clamp<int64_t>(
        kBlockBytes / std::max<int64_t>(array.sizeInBytes() / count, 1), 1,
        count);
  for (int64_t first = 0; first < count; first += block) {
    auto nameSample = [&](int64_t i) {
      return "sample " + std::to_string(first + i);
    };
    const HostTensor part =
        array.shape.empty() ? array.tensor()
                            : array.rows(first, std::min(block, count - first));
    if (Error error = checkValues(spec, part, nameSample))
      return first == 0 ? std::move(error)
                        : withContext(std::move(error),
                                      "from sample " + Twine(first) + " on");
  }
  return Error::success();
}

/// One file's arrays for all fields.
Error Dataset::addFile(const ArrayFile &file) {
  Error errors = Error::success();
  StringSet<> seen;
  std::vector<HostArray> parts;
  std::map<std::string, HostArray> cache; // two fields may name one array
  for (const FieldSpec &spec : fields) {
    auto known = cache.find(spec.array);
    if (known == cache.end()) {
      Expected<HostArray> array = file.read(spec.array);
      if (!array) {
        errors = joinOnce(std::move(errors), array.takeError(), seen);
        continue;
      }
      known = cache.emplace(spec.array, std::move(*array)).first;
    }
    FieldSpec named = spec;
    if (spec.warn)
      named.warn = [&](const std::string &text) {
        spec.warn(file.name + ": " + text);
      };
    if (Error error = checkArray(named, known->second)) {
      errors = joinErrors(std::move(errors),
                          withContext(std::move(error), file.name));
      continue;
    }
    parts.push_back(known->second);
  }
  if (errors)
    return errors;
  return addPart(std::move(parts), file.name);
}

/// Checks a file's arrays against each other and those of other files.
Error Dataset::addPart(std::vector<HostArray> parts, StringRef file) {
  Error errors = Error::success();
  auto report = [&](const Twine &text) {
    errors = joinErrors(std::move(errors), inputError(file + ": " + text));
  };
  const FieldSpec *first = nullptr;
  int64_t count = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldSpec &spec = fields[i];
    const HostArray &part = parts[i];
    if (spec.batched && part.shape.front() == 0) {
      report(arrayOf(spec) + " is empty: it holds no samples");
    } else if (spec.batched && !first) {
      first = &spec;
      count = part.shape.front();
    } else if (spec.batched && part.shape.front() != count) {
      report(arrayOf(spec) + " holds " + Twine(part.shape.front()) +
             " samples, " + arrayOf(*first) + " holds " + Twine(count));
    }
    if (arrays[i].empty())
      continue;
    const HostArray &before = arrays[i].front();
    const size_t drop = spec.batched ? 1 : 0;
    if (part.dtype != before.dtype ||
        ArrayRef(part.shape).drop_front(drop) !=
            ArrayRef(before.shape).drop_front(drop))
      report(arrayOf(spec) + " has another type or shape than in the files "
                             "before");
    else if (!spec.batched && std::memcmp(part.bytes, before.bytes,
                                          size_t(part.sizeInBytes())) != 0)
      report(arrayOf(spec) + " is one constant for all samples, and has other "
                             "values in the files before");
  }
  if (errors)
    return errors;
  for (size_t i = 0; i < fields.size(); ++i)
    if (fields[i].batched || arrays[i].empty())
      arrays[i].push_back(std::move(parts[i]));
  firsts.push_back(samples);
  files.push_back(file.str());
  samples += count;
  return Error::success();
}

Expected<Dataset> Dataset::fromFiles(StringRef name, ArrayRef<ArrayFile> files,
                                     ArrayRef<FieldSpec> specs) {
  Dataset result;
  result.source = name.str();
  result.fields = specs.vec();
  result.arrays.resize(specs.size());
  Error errors = Error::success();
  for (const ArrayFile &file : files)
    errors = joinErrors(std::move(errors), result.addFile(file));
  if (errors)
    return std::move(errors);
  return result;
}

Expected<Dataset> Dataset::fromTensors(const TensorMap &tensors,
                                       ArrayRef<FieldSpec> specs,
                                       StringRef what) {
  ArrayFile file;
  file.name = what.str();
  for (const auto &entry : tensors)
    file.arrays.push_back(entry.first);
  file.read = [&](StringRef array) -> Expected<HostArray> {
    if (const HostTensor *tensor = tensors.find(array))
      return HostArray::of(*tensor);
    return inputError(what + ": no array '" + array + "'; there are " +
                      (file.arrays.empty() ? "none" : join(file.arrays, ", ")));
  };
  return fromFiles(what, file, specs);
}

//===----------------------------------------------------------------------===//
// Samples
//===----------------------------------------------------------------------===//

ArrayRef<int64_t> Dataset::sampleShape(size_t field) const {
  const ArrayRef<int64_t> shape = arrays[field].front().shape;
  return fields[field].batched ? shape.drop_front() : shape;
}

int64_t Dataset::sampleElements(size_t field) const {
  int64_t count = 1;
  for (int64_t extent : sampleShape(field))
    count *= extent;
  return count;
}

int64_t Dataset::sizeInBytes(bool withMapped) const {
  int64_t bytes = 0;
  for (const std::vector<HostArray> &parts : arrays)
    for (const HostArray &part : parts)
      if (withMapped || !part.mapped)
        bytes += part.sizeInBytes();
  return bytes;
}

size_t Dataset::fileOf(int64_t sample) const {
  return size_t(llvm::upper_bound(firsts, sample) - firsts.begin() - 1);
}

std::string Dataset::nameSample(int64_t sample) const {
  const size_t file = fileOf(sample);
  return "sample " + std::to_string(sample - firsts[file]) +
         (files.size() > 1 ? " of " + files[file] : "");
}

void Dataset::gather(size_t field, ArrayRef<int64_t> indices, void *to) const {
  const FieldSpec &spec = fields[field];
  const std::vector<HostArray> &parts = arrays[field];
  const DType stored = storedType(field);
  const int64_t elements = sampleElements(field);
  if (!spec.batched) {
    convertElements(stored, parts.front().bytes, spec.dtype, to, elements);
    return;
  }
  const int64_t from = elements * dtypeSize(stored);
  char *target = static_cast<char *>(to);
  for (int64_t sample : indices) {
    assert(sample >= 0 && sample < samples && "no such sample");
    const size_t file = fileOf(sample);
    convertElements(stored, parts[file].bytes + (sample - firsts[file]) * from,
                    spec.dtype, target, elements);
    target += elements * dtypeSize(spec.dtype);
  }
}

std::string Dataset::fingerprint() const {
  std::string text;
  raw_string_ostream os(text);
  os << samples << " samples";
  for (size_t i = 0; i < fields.size(); ++i) {
    std::vector<int64_t> shape = sampleShape(i).vec();
    if (fields[i].batched)
      shape.insert(shape.begin(), samples);
    os << ", " << fields[i].name << " " << dtypeName(storedType(i)) << " "
       << shapeString(shape);
    for (const HostArray &part : arrays[i]) {
      ArrayRef<uint8_t> bytes(reinterpret_cast<const uint8_t *>(part.bytes),
                              size_t(part.sizeInBytes()));
      os << " " << format_hex_no_prefix(xxh3_64bits(bytes), 16);
    }
  }
  return text;
}

} // namespace ckopt
