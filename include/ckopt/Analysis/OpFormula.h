//===- OpFormula.h - formulas over an op's shapes ---------------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A description of ops by data says how much they compute by a formula:
//
//   2 * elements(results[0]) * dims(operands[0], 'dims.contracting')
//
// Numbers, + - * / and parentheses, and these functions of values (`operands`,
// `results`: all of them; `operands[1]`, `results[0]`: one):
//
//   elements(V), bytes(V)         the sum over the values
//   rank(v), dim(v, N)            of one value; N < 0 counts from the end
//   dims(v, 'attr.key')           product of the sizes of the dimensions that
//                                 the list behind `key =` in an attribute
//                                 names; without key, that the attribute is;
//                                 1 where there is no such list
//   dim(v, 'attr', G, 'label')    size of the dimension with this label in the
//                                 attribute's bracket G, which has a label for
//                                 each dimension
//   attr('name'), attr('name', N) a number; N where the op does not have it
//   min(x, ...), max(x, ...)
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_ANALYSIS_OPFORMULA_H
#define CKOPT_ANALYSIS_OPFORMULA_H

#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <optional>

namespace ckopt {

/// What a formula may ask of an op.
struct FormulaScope {
  mlir::Operation *op;
  /// The shape and the bytes of a type; nothing if they are not known.
  std::function<std::optional<llvm::SmallVector<int64_t>>(mlir::Type)> shape;
  std::function<std::optional<int64_t>(mlir::Type)> bytes;
};

class OpFormula {
public:
  /// Parses a formula; errors say the column.
  static llvm::Expected<OpFormula> parse(llvm::StringRef text);

  /// Returns a number that is finite and not negative, or why there is none.
  llvm::Expected<double> evaluate(const FormulaScope &scope) const;

  using Term = std::function<llvm::Expected<double>(const FormulaScope &)>;

private:
  explicit OpFormula(Term root) : root(std::move(root)) {}
  Term root;
};

/// Returns an attribute of an op, also one of the properties of an op that is
/// not registered; null if there is none.
mlir::Attribute findAttribute(mlir::Operation *op, llvm::StringRef name);

} // namespace ckopt

#endif // CKOPT_ANALYSIS_OPFORMULA_H
