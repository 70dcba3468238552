//===- Fields.cpp - what a step expects of its data -----------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// See the header. Each check looks at a value once: O(bytes).
//
//===----------------------------------------------------------------------===//
#include "ckopt/Train/Data/Fields.h"
#include "ckopt/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace llvm;

namespace ckopt {

static std::string quoted(const FieldSpec &spec) {
  return "array '" + spec.array + "'";
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

namespace {
using SampleNamer = function_ref<std::string(int64_t)>;
} // namespace

/// "sample 12" or "sample 12, element [0, 3]".
static std::string placeOf(int64_t element, const HostTensor &tensor,
                           bool batched, SampleNamer nameSample) {
  if (!batched || tensor.rank() == 0)
    return "element " + indexString(element, tensor.shape());
  const int64_t perSample = tensor.numElements() / tensor.dim(0);
  std::string text = nameSample(element / perSample);
  if (tensor.rank() > 1)
    text += ", element " +
            indexString(element % perSample, tensor.shape().drop_front());
  return text;
}

/// Labels and indices in their ranges; negative indices count from the end.
static Error checkLimits(const FieldSpec &spec, const TensorLimits &allowed,
                         bool checkFirst, const HostTensor &tensor,
                         SampleNamer nameSample) {
  auto beyond = findBeyond(allowed, tensor.dtype(), tensor.rawData(),
                           tensor.shape(), checkFirst);
  if (!beyond)
    return Error::success();
  const IntegerLimits &limits = beyond->limits;
  std::string place =
      quoted(spec) + ": " +
      placeOf(beyond->element, tensor, spec.batched, nameSample);
  if (!beyond->isLabel)
    return inputError(place + " holds the index " + Twine(beyond->value) +
                      ", but the table that '" + spec.name + "' indexes has " +
                      Twine(limits.rows) + " rows");
  return inputError(
      place + " has the label " + Twine(beyond->value) +
      ", but the model has " + Twine(limits.classes) + " classes (0 to " +
      Twine(limits.classes - 1) + ")" +
      (limits.hasIgnored
           ? "; ignored is " + Twine(limits.ignored)
           : Twine("; losses with an ignore index leave its samples out")));
}

static Error checkSigns(const FieldSpec &spec, const HostTensor &tensor,
                        SampleNamer nameSample) {
  for (int64_t i = 0; i < tensor.numElements(); ++i)
    if (std::abs(tensor.getDouble(i)) != 1) {
      std::string number;
      raw_string_ostream(number) << format("%g", tensor.getDouble(i));
      return inputError(quoted(spec) + ": " +
                        placeOf(i, tensor, spec.batched, nameSample) + " is " +
                        number + ", but this loss takes targets of -1 and 1");
    }
  return Error::success();
}

static Error checkProbabilities(const FieldSpec &spec, const HostTensor &tensor,
                                SampleNamer nameSample) {
  for (int64_t i = 0; i < tensor.numElements(); ++i) {
    const double value = tensor.getDouble(i);
    if (value >= 0 && value <= 1)
      continue;
    std::string text;
    raw_string_ostream(text)
        << quoted(spec) << ": " << placeOf(i, tensor, spec.batched, nameSample)
        << " is " << format("%g", value)
        << ", but targets of this loss are probabilities, from 0 to 1"
        << (spec.warn ? ": beyond them it has no minimum" : "");
    if (!spec.warn)
      return inputError(text);
    spec.warn(text);
    break;
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

Error checkShape(const FieldSpec &spec, ArrayRef<int64_t> whole) {
  if (spec.batched && whole.empty())
    return inputError(quoted(spec) + " is a single number; its first "
                                     "dimension must count the samples");
  const ArrayRef<int64_t> shape = spec.batched ? whole.drop_front() : whole;
  if (!spec.shape || shape == ArrayRef<int64_t>(*spec.shape))
    return Error::success();
  return inputError(quoted(spec) + " holds " +
                    (spec.batched ? "samples of shape " : "the shape ") +
                    shapeString(shape) + ", but '" + spec.name + "' takes " +
                    shapeString(*spec.shape) +
                    dimensionHint(shape, *spec.shape));
}

Error checkValues(const FieldSpec &spec, const HostTensor &tensor,
                  function_ref<std::string(int64_t)> nameSample) {
  const int64_t bad = firstNonFinite(tensor);
  if (bad >= 0)
    return inputError(quoted(spec) + ": " +
                      placeOf(bad, tensor, spec.batched, nameSample) + " is " +
                      (std::isnan(tensor.getDouble(bad)) ? "not a number (NaN)"
                                                         : "infinite"));
  if (spec.limits.all.classes && !isInteger(tensor.dtype()))
    return inputError(quoted(spec) + " holds " + tensor.typeString() +
                      ", but labels of classes must be integers");
  if (spec.signs)
    if (Error error = checkSigns(spec, tensor, nameSample))
      return error;
  if (spec.probabilities)
    if (Error error = checkProbabilities(spec, tensor, nameSample))
      return error;
  if (Error error = tensor.checkConvertible(spec.dtype))
    return withContext(std::move(error),
                       quoted(spec) + " for '" + spec.name + "'");
  return checkLimits(spec, spec.limits, /*checkFirst=*/!spec.batched, tensor,
                     nameSample);
}

Error checkBatch(const FieldSpec &spec, const HostTensor &tensor,
                 function_ref<std::string(int64_t)> nameSample) {
  TensorLimits places;
  for (const PartLimits &part : spec.limits.parts)
    if (spec.batched && part.axis == 0)
      places.parts.push_back(part);
  return checkLimits(spec, places, /*checkFirst=*/true, tensor, nameSample);
}

} // namespace ckopt
