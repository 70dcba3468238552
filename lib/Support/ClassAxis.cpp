//===- ClassAxis.cpp - where logits have their classes --------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/ClassAxis.h"
#include "ckopt/Base/Shape.h"
#include "ckopt/Support/Error.h"

using namespace llvm;

namespace ckopt {

SmallVector<int64_t> withoutAxis(ArrayRef<int64_t> shape, size_t axis) {
  SmallVector<int64_t> rest(shape);
  rest.erase(rest.begin() + ptrdiff_t(axis));
  return rest;
}

Expected<int64_t> resolveClassAxis(ArrayRef<int64_t> logits,
                                   ArrayRef<int64_t> targets) {
  if (logits.size() < 2)
    return inputError("cross-entropy needs logits of rank 2 or more ([N, C], "
                      "[N, C, H, W], [B, T, V]), not " +
                      shapeString(logits));
  const SmallVector<int64_t> last = withoutAxis(logits, logits.size() - 1);
  if (targets == ArrayRef<int64_t>(last) && isClassAxisAmbiguous(logits))
    return ambiguousClassAxis(logits);
  if (targets == ArrayRef<int64_t>(last))
    return int64_t(logits.size()) - 1;
  const SmallVector<int64_t> second = withoutAxis(logits, 1);
  if (targets == ArrayRef<int64_t>(second))
    return 1;
  std::string wanted = shapeString(last);
  if (second != last)
    wanted +=
        " (classes last) or " + shapeString(second) + " (classes in axis 1)";
  return inputError("targets of shape " + shapeString(targets) +
                    " do not fit logits of shape " + shapeString(logits) +
                    ": expected " + wanted);
}

bool isClassAxisAmbiguous(ArrayRef<int64_t> logits) {
  return logits.size() > 2 &&
         withoutAxis(logits, 1) == withoutAxis(logits, logits.size() - 1);
}

Error ambiguousClassAxis(ArrayRef<int64_t> logits) {
  return inputError("logits of shape " + shapeString(logits) +
                    " could have their classes along axis 1 or along axis " +
                    Twine(logits.size() - 1) + ", with targets of shape " +
                    shapeString(withoutAxis(logits, 1)) +
                    " either way; say which: " + Setting("class-axis", "1") +
                    " as PyTorch takes them, " +
                    Setting("class-axis", Twine(logits.size() - 1)) +
                    " for [batch, time, classes]");
}

} // namespace ckopt
