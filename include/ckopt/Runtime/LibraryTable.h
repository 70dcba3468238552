//===- LibraryTable.h - which library runs which call -----------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Matmuls and pointwise convolutions of f32 and bf16 can be computed in several
// forms, and the form decides the bits of results. Which one is a pure function
// of the descriptor, by a table of rules: conditions on numbers of the
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

/// A number of a descriptor. Matmuls are normalized first, so that equal cases
/// have equal numbers: the result is row-major (else the transposed matmul is
/// used), and batches that lie one behind the other are one.
enum class LibraryField : uint32_t {
  Batch = 0,     ///< matmuls: number of matrices
  M,             ///< matmuls: rows of the result
  N,             ///< matmuls: columns of the result
  K,             ///< matmuls: length of the sums
  LeftRow,       ///< matmuls: elements between rows of the left operand
  LeftColumn,    ///< matmuls: ... between its columns
  RightRow,      ///< matmuls: elements between rows of the right operand
  RightColumn,   ///< matmuls: ... between its columns
  ResultRow,     ///< matmuls: elements between rows of the result
  RightElements, ///< matmuls: N x K
  Added,         ///< matmuls: 1 if the result is added to a tensor
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

/// Holds if a number is in a range and a multiple of another.
struct LibraryCondition {
  LibraryField field = LibraryField::M;
  int64_t low = std::numeric_limits<int64_t>::min();
  int64_t high = std::numeric_limits<int64_t>::max();
  int64_t multipleOf = 1; ///< positive
};

/// A rule's answer: a form, or that the convolution is a matmul, whose form the
/// table gives.
struct LibraryRule {
  PrimitiveKind kind = PrimitiveKind::MatMul;
  DType dtype = DType::F32;
  std::vector<LibraryCondition> conditions; ///< all of them hold
  /// Default: as a matmul, only for convolutions.
  LibraryForm form = LibraryForm::Default;
};

struct LibraryTable {
  std::vector<LibraryRule> rules;
  const LibraryTable *base = nullptr; ///< asked if no rule matches
  std::string hash; ///< 16 hexadecimal digits; "" for a built-in table

  /// Returns the form of a valid descriptor; Default if there is no choice.
  CKRT_EXPORT LibraryForm formOf(const PrimitiveDesc &desc) const;

private:
  const LibraryRule *find(const PrimitiveDesc &desc) const;
};

/// Classes of processors, each with its own table, by the instructions that a
/// step may use; rules for all classes have the name "any".
inline constexpr std::array<std::string_view, 5> kCpuClasses = {
    "baseline", "avx2", "avx512", "avx512-bf16", "amx"};

/// Returns the built-in table of a class; for another name, that of "baseline".
CKRT_EXPORT const LibraryTable &builtInLibraryTable(std::string_view cpuClass);

/// Returns the possible forms of a descriptor, in the order of the enumeration;
/// with one or none there is no choice.
CKRT_EXPORT std::vector<LibraryForm> formsOf(const PrimitiveDesc &desc);

} // namespace ckopt::runtime

#endif // CKOPT_RUNTIME_LIBRARYTABLE_H
