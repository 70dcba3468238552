//===- FormulaTerms.h - what formulas are made of -------------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_LIB_ANALYSIS_FORMULATERMS_H
#define CKOPT_LIB_ANALYSIS_FORMULATERMS_H

#include "ckopt/Analysis/OpFormula.h"

#include <string>

namespace ckopt::formula {

using Term = OpFormula::Term;
using Shape = llvm::SmallVector<int64_t>;

/// `operands`, `results`, or one of them.
struct Values {
  bool results = false;
  std::optional<int64_t> index;

  llvm::Expected<llvm::SmallVector<mlir::Type>> of(mlir::Operation *op) const;
};

Term constant(double number);
/// `sign`: + - * /, < for the smaller and > for the larger one.
Term combine(Term a, Term b, char sign);
/// Adds up the elements of all values, or their bytes.
Term overAll(Values values, bool bytes);
Term rank(Values value);
/// The size of a dimension; less than 0: from the end.
Term size(Values value, int64_t dim);
/// The product of the sizes of the dimensions that a list names: that of an
/// attribute, or behind `key = ` in it ("attr.key").
Term listedSizes(Values value, std::string path);
/// The size of the dimension with a label in a bracket of an attribute.
Term labelledSize(Values value, std::string attr, int64_t bracket,
                  std::string label);
Term attribute(std::string name, std::optional<int64_t> otherwise);

} // namespace ckopt::formula

#endif // CKOPT_LIB_ANALYSIS_FORMULATERMS_H
