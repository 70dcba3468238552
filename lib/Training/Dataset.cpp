//===- Dataset.cpp - samples from a .npz file, checked --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Loading looks at every value once: O(bytes of the arrays).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Training/Dataset.h"
#include "ckopt/Support/Error.h"
#include "ckopt/Support/Npz.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;

namespace ckopt {

Expected<std::vector<ArrayMapping>> parseArrayMappings(StringRef text,
                                                       StringRef flag) {
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

Expected<Dataset> Dataset::load(StringRef path, ArrayRef<FieldSpec> specs) {
  Expected<NpzReader> reader = NpzReader::open(path);
  if (!reader)
    return reader.takeError();
  Dataset result;
  result.source = path.str();
  Error errors = Error::success();
  TensorMap cache; // two fields may name one array
  for (const FieldSpec &spec : specs) {
    if (!cache.contains(spec.array)) {
      Expected<HostTensor> tensor = reader->read(spec.array);
      if (!tensor) {
        errors = joinErrors(std::move(errors), tensor.takeError());
        continue;
      }
      cache.insert(spec.array, std::move(*tensor));
    }
    result.fields.push_back(spec);
    result.arrays.push_back(*cache.find(spec.array));
  }
  errors = joinErrors(std::move(errors), result.check());
  if (errors)
    return std::move(errors);
  return result;
}

Expected<Dataset> Dataset::fromTensors(const TensorMap &tensors,
                                       ArrayRef<FieldSpec> specs,
                                       StringRef what) {
  Dataset result;
  result.source = what.str();
  Error errors = Error::success();
  for (const FieldSpec &spec : specs) {
    const HostTensor *tensor = tensors.find(spec.array);
    if (!tensor) {
      std::string have;
      for (const auto &entry : tensors)
        have += (have.empty() ? "" : ", ") + entry.first;
      errors = joinErrors(std::move(errors),
                          inputError(what + ": no array '" + spec.array +
                                     "'; there are " +
                                     (have.empty() ? "none" : have)));
      continue;
    }
    result.fields.push_back(spec);
    result.arrays.push_back(*tensor);
  }
  errors = joinErrors(std::move(errors), result.check());
  if (errors)
    return std::move(errors);
  return result;
}

Error Dataset::check() {
  Error errors = Error::success();
  const FieldSpec *first = nullptr;
  for (size_t field = 0; field < fields.size(); ++field) {
    const FieldSpec &spec = fields[field];
    const HostTensor &tensor = arrays[field];
    auto report = [&](Error error) {
      errors =
          joinErrors(std::move(errors), withContext(std::move(error), source));
    };
    auto nameSample = [](int64_t i) { return "sample " + std::to_string(i); };
    Error error = checkShape(spec, tensor);
    if (!error)
      error = checkValues(spec, tensor, nameSample);
    if (error) {
      report(std::move(error));
      continue;
    }
    if (!spec.batched)
      continue;
    if (tensor.dim(0) == 0) {
      report(inputError(arrayOf(spec) + " is empty: it holds no samples"));
    } else if (!first) {
      first = &spec;
      samples = tensor.dim(0);
    } else if (tensor.dim(0) != samples) {
      report(inputError(arrayOf(spec) + " holds " + Twine(tensor.dim(0)) +
                        " samples, " + arrayOf(*first) + " holds " +
                        Twine(samples)));
    }
  }
  return errors;
}

int64_t Dataset::sampleElements(size_t field) const {
  const HostTensor &tensor = arrays[field];
  if (!fields[field].batched)
    return tensor.numElements();
  return tensor.numElements() / tensor.dim(0);
}

void Dataset::gather(size_t field, ArrayRef<int64_t> indices, void *to) const {
  const FieldSpec &spec = fields[field];
  const HostTensor &tensor = arrays[field];
  const int64_t elements = sampleElements(field);
  const char *source = static_cast<const char *>(tensor.rawData());
  if (!spec.batched) {
    convertElements(tensor.dtype(), source, spec.dtype, to, elements);
    return;
  }
  const int64_t from = elements * dtypeSize(tensor.dtype());
  char *target = static_cast<char *>(to);
  for (int64_t sample : indices) {
    assert(sample >= 0 && sample < samples && "no such sample");
    convertElements(tensor.dtype(), source + sample * from, spec.dtype, target,
                    elements);
    target += elements * dtypeSize(spec.dtype);
  }
}

std::string Dataset::fingerprint() const {
  std::string text;
  raw_string_ostream os(text);
  os << samples << " samples";
  for (size_t i = 0; i < fields.size(); ++i) {
    const HostTensor &array = arrays[i];
    ArrayRef<uint8_t> bytes(static_cast<const uint8_t *>(array.rawData()),
                            size_t(array.sizeInBytes()));
    os << ", " << fields[i].name << " " << array.typeString() << " "
       << format_hex_no_prefix(xxh3_64bits(bytes), 16);
  }
  return text;
}

} // namespace ckopt
