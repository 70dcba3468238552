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
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstring>

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

static std::string quoted(const FieldSpec &spec) {
  return "array '" + spec.array + "'";
}

Expected<Dataset> Dataset::load(StringRef path, ArrayRef<FieldSpec> specs) {
  Expected<NpzReader> reader = NpzReader::open(path);
  if (!reader)
    return reader.takeError();
  Dataset result;
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
  errors = joinErrors(std::move(errors), result.check(path));
  if (errors)
    return std::move(errors);
  return result;
}

Expected<Dataset> Dataset::fromTensors(const TensorMap &tensors,
                                       ArrayRef<FieldSpec> specs,
                                       StringRef what) {
  Dataset result;
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
  errors = joinErrors(std::move(errors), result.check(what));
  if (errors)
    return std::move(errors);
  return result;
}

/// The first value of `tensor` that is not finite, or -1.
static int64_t firstNonFinite(const HostTensor &tensor) {
  return dispatchDType(tensor.dtype(), [&](auto zero) -> int64_t {
    using T = decltype(zero);
    if constexpr (!std::is_integral_v<T>) {
      ArrayRef<T> values = tensor.data<T>();
      for (size_t i = 0; i < values.size(); ++i)
        if (!std::isfinite(double(values[i])))
          return int64_t(i);
    }
    return -1;
  });
}

/// "sample 12" or "sample 12, element [0, 3]".
static std::string placeOf(int64_t element, const HostTensor &tensor,
                           bool batched) {
  if (!batched || tensor.rank() == 0)
    return "element " + indexString(element, tensor.shape());
  const int64_t perSample = tensor.numElements() / tensor.dim(0);
  std::string text = "sample " + std::to_string(element / perSample);
  if (tensor.rank() > 1)
    text += ", element " +
            indexString(element % perSample, tensor.shape().drop_front());
  return text;
}

static Error checkLabels(const FieldSpec &spec, const HostTensor &tensor) {
  if (!isInteger(tensor.dtype()))
    return inputError(quoted(spec) + " holds " + tensor.typeString() +
                      ", but labels of classes must be integers");
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const int64_t label = tensor.getInt(i);
    if (label >= 0 && label < *spec.classes)
      continue;
    if (spec.ignoreIndex && label == *spec.ignoreIndex)
      continue;
    return inputError(quoted(spec) + ": " + placeOf(i, tensor, spec.batched) +
                      " has the label " + Twine(label) +
                      ", but the model has " + Twine(*spec.classes) +
                      " classes (0 to " + Twine(*spec.classes - 1) + ")" +
                      (spec.ignoreIndex
                           ? "; ignored is " + Twine(*spec.ignoreIndex)
                           : Twine("; use an ignore index to leave samples "
                                   "out")));
  }
  return Error::success();
}

static Error checkSigns(const FieldSpec &spec, const HostTensor &tensor) {
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (std::abs(tensor.getDouble(i)) != 1) {
      std::string number;
      raw_string_ostream(number) << format("%g", tensor.getDouble(i));
      return inputError(quoted(spec) + ": " + placeOf(i, tensor, spec.batched) +
                        " is " + number +
                        ", but this loss takes targets of -1 and 1");
    }
  return Error::success();
}

/// What to do where shapes differ in dimensions of size 1 alone. They are never
/// added silently: numpy's rules would make [N, N] of [N, 1] and [N].
static std::string dimensionHint(ArrayRef<int64_t> is, ArrayRef<int64_t> want) {
  auto squeezed = [](ArrayRef<int64_t> shape) {
    SmallVector<int64_t> rest(shape);
    erase(rest, 1);
    return rest;
  };
  if (squeezed(is) != squeezed(want))
    return "";
  if (is.size() > want.size())
    return "; remove the dimension of size 1 (numpy.squeeze)";
  if (want.size() == is.size() + 1 && want.back() == 1 &&
      is == want.drop_back())
    return "; add a dimension (y[..., None] in numpy)";
  return "; add a dimension of size 1 (numpy.expand_dims), or reshape";
}

Error Dataset::checkField(size_t field) const {
  const FieldSpec &spec = fields[field];
  const HostTensor &tensor = arrays[field];
  if (spec.batched && tensor.rank() == 0)
    return inputError(quoted(spec) + " is a single number; its first "
                                     "dimension must count the samples");
  const ArrayRef<int64_t> shape =
      spec.batched ? tensor.shape().drop_front() : tensor.shape();
  if (spec.shape && shape != ArrayRef<int64_t>(*spec.shape))
    return inputError(quoted(spec) + " holds " +
                      (spec.batched ? "samples of shape " : "the shape ") +
                      shapeString(shape) + ", but '" + spec.name + "' takes " +
                      shapeString(*spec.shape) +
                      dimensionHint(shape, *spec.shape));
  const int64_t bad = firstNonFinite(tensor);
  if (bad >= 0)
    return inputError(quoted(spec) + ": " + placeOf(bad, tensor, spec.batched) +
                      " is " +
                      (std::isnan(tensor.getDouble(bad)) ? "not a number (NaN)"
                                                         : "infinite"));
  if (spec.classes)
    if (Error error = checkLabels(spec, tensor))
      return error;
  if (spec.signs)
    if (Error error = checkSigns(spec, tensor))
      return error;
  if (Error error = tensor.checkConvertible(spec.dtype))
    return withContext(std::move(error),
                       quoted(spec) + " for '" + spec.name + "'");
  return Error::success();
}

Error Dataset::check(StringRef what) {
  Error errors = Error::success();
  const FieldSpec *first = nullptr;
  for (size_t field = 0; field < fields.size(); ++field) {
    const FieldSpec &spec = fields[field];
    const HostTensor &tensor = arrays[field];
    auto report = [&](Error error) {
      errors =
          joinErrors(std::move(errors), withContext(std::move(error), what));
    };
    if (Error error = checkField(field)) {
      report(std::move(error));
      continue;
    }
    if (!spec.batched)
      continue;
    if (tensor.dim(0) == 0) {
      report(inputError(quoted(spec) + " is empty: it holds no samples"));
    } else if (!first) {
      first = &spec;
      samples = tensor.dim(0);
    } else if (tensor.dim(0) != samples) {
      report(inputError(quoted(spec) + " holds " + Twine(tensor.dim(0)) +
                        " samples, " + quoted(*first) + " holds " +
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

HostTensor Dataset::batch(size_t field, ArrayRef<int64_t> indices) const {
  std::vector<int64_t> shape = arrays[field].shape().vec();
  if (fields[field].batched)
    shape[0] = int64_t(indices.size());
  HostTensor result(fields[field].dtype, std::move(shape));
  gather(field, indices, result.mutableRawData());
  return result;
}

} // namespace ckopt
