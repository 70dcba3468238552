//===- Real.h - a number in pass options ------------------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// MLIR prints an option of type double with six digits, so that a printed
// pipeline, parsed again, would compute something else. A Real is printed with
// the fewest digits that read back as the same double.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_SUPPORT_REAL_H
#define CKOPT_SUPPORT_REAL_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

#include <charconv>

namespace ckopt {

struct Real {
  Real(double value = 0) : value(value) {}
  operator double() const { return value; }

  double value;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const Real &real) {
  char text[32];
  auto end = std::to_chars(text, text + sizeof(text), real.value);
  return os << llvm::StringRef(text, size_t(end.ptr - text));
}

} // namespace ckopt

template <>
class llvm::cl::parser<ckopt::Real>
    : public llvm::cl::basic_parser<ckopt::Real> {
public:
  using basic_parser::basic_parser;
  /// Returns true, after a message, if the text is no number.
  bool parse(Option &option, StringRef, StringRef text, ckopt::Real &real) {
    if (llvm::to_float(text, real.value))
      return false;
    return option.error("'" + text +
                        "' value invalid for floating point argument!");
  }
  StringRef getValueName() const override { return "number"; }
  void printOptionDiff(const Option &option, const ckopt::Real &value,
                       const OptionValue<ckopt::Real> &, size_t width) const {
    printOptionName(option, width);
    outs() << "= " << value << "\n";
  }
};

#endif // CKOPT_SUPPORT_REAL_H
