//===- LibraryTable.h - which library runs what, as data --------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Products and pointwise convolutions of f32 and bf16 can be computed in
// several forms, and the form decides the bits of results. Which one is a pure
// function of the descriptor, by a table of rules: conditions on numbers of the
// descriptor, and a form; the first rule that matches wins. The built-in tables
// are in LibraryTable.cpp; a compiler may read others, and writes the form that
// it chose into the descriptor.
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_RUNTIME_LIBRARYTABLE_H
#define CKOPT_RUNTIME_LIBRARYTABLE_H

#include "ckopt/Runtime/Primitive.h"

#include <array>
#include <limits>
#include <vector>

namespace ckopt::runtime {

/// A number of a descriptor. Those of a product are what remains after equal
/// cases were made one: the result is row-major (else the product of the
/// transposes is meant), batches that lie one behind the other are one.
enum class LibraryField : uint32_t {
  Batch = 0,     ///< products: matrices, in all
  M,             ///< products: rows of the result
  N,             ///< products: columns of the result
  K,             ///< products: what sums are over
  LeftRow,       ///< products: elements between rows of the left operand
  LeftColumn,    ///< products: ... between its columns
  RightRow,      ///< products: the same of the right operand
  RightColumn,   ///< products
  ResultRow,     ///< products: elements between rows of the result
  RightElements, ///< products: N x K
  Added,         ///< products: 1 where the result is added to a tensor
  Points,        ///< convolutions: batch x points of the result
  InChannels,    ///< convolutions
  OutChannels,   ///< convolutions
  Weights,       ///< convolutions: input x output channels
  Widening,      ///< convolutions: output less input channels
};
inline constexpr uint32_t kNumLibraryFields = 16;

/// "m", "right_row", ...; "unknown" for other numbers.
CKRT_EXPORT std::string_view libraryFieldName(LibraryField field);
/// Whether descriptors of a kind have a field.
CKRT_EXPORT bool hasField(PrimitiveKind kind, LibraryField field);
/// Returns a number of a descriptor whose kind has the field.
CKRT_EXPORT int64_t fieldOf(const PrimitiveDesc &desc, LibraryField field);

/// Holds where a number is in a range and a multiple of another.
struct LibraryCondition {
  LibraryField field = LibraryField::M;
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  int64_t multipleOf = 1; ///< positive
};

/// What a rule says: a form, or that a convolution is the product that the
/// table gives a form to.
struct LibraryRule {
  PrimitiveKind kind = PrimitiveKind::MatMul;
  DType dtype = DType::F32;
  std::vector<LibraryCondition> conditions; ///< all of them hold
  /// Default: as a product, for convolutions alone.
  LibraryForm form = LibraryForm::Default;
};

struct LibraryTable {
  std::vector<LibraryRule> rules;
  const LibraryTable *base = nullptr; ///< asked where no rule matches
  std::string hash; ///< 16 hexadecimal digits; "" of a built-in table

  /// Returns the form of a sound descriptor; Default where there is no choice.
  CKRT_EXPORT LibraryForm formOf(const PrimitiveDesc &desc) const;

private:
  const LibraryRule *find(const PrimitiveDesc &desc) const;
};

/// Classes of processors, each with a table of its own, by the instructions
/// that a step may use; "any" is what rules for all are called.
inline constexpr std::array<std::string_view, 5> kCpuClasses = {
    "baseline", "avx2", "avx512", "avx512-bf16", "amx"};

/// Returns the checked-in table of a class; of another name, that of
/// "baseline".
CKRT_EXPORT const LibraryTable &builtInLibraryTable(std::string_view cpuClass);

/// Returns the forms that a descriptor can have, in the order of the
/// enumeration; one or none: there is no choice.
CKRT_EXPORT std::vector<LibraryForm> formsOf(const PrimitiveDesc &desc);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_LIBRARYTABLE_H
