//===- LibraryTable.cpp - the built-in tables, and how they are read ------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Problem: oneDNN's and OpenBLAS's forms of one contraction differ in speed by
// up to two times and in bits, and no run may decide between them. Method:
// rules that were measured once (docs/benchmarks/libraries.md). Guarantee: the
// form depends on the descriptor and the table alone. Complexity: linear in the
// rules.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Runtime/LibraryTable.h"
#include "Cpu/PlacedProduct.h"

#include <algorithm>
#include <initializer_list>

using namespace ckopt::runtime;

//===----------------------------------------------------------------------===//
// The tables
//===----------------------------------------------------------------------===//

namespace {

using Field = LibraryField;
using Kind = PrimitiveKind;
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

LibraryCondition atLeast(Field field, int64_t low) {
  return {field, low, kMost, 1};
}
LibraryCondition atMost(Field field, int64_t high) {
  return {field, kLeast, high, 1};
}
LibraryCondition equals(Field field, int64_t value) {
  return {field, value, value, 1};
}
LibraryCondition multiple(Field field, int64_t of) {
  return {field, kLeast, kMost, of};
}

/// Rows that lie a multiple of a page (4 KiB, 1,024 floats) apart fall into the
/// same sets of the L1 cache, where oneDNN's f32 kernels read them in place: on
/// Intel's cores that takes up to twice the time (512x3072x768 on two threads:
/// 26.3 ms in place, 14.0 packed and 1.9 for packing); on AMD's Zen it makes no
/// difference. Packing reads and writes the right operand once, which enough
/// rows have to make up for, and needs its bytes of workspace (32 MiB at most).
void addPacking(std::vector<LibraryRule> &rules) {
  rules.push_back({Kind::MatMul,
                   DType::F32,
                   {equals(Field::Batch, 1), equals(Field::RightColumn, 1),
                    multiple(Field::RightRow, 1024), atLeast(Field::M, 256),
                    atLeast(Field::N, 64), atLeast(Field::K, 64),
                    atMost(Field::RightElements, int64_t(8) << 20)},
                   LibraryForm::Packed});
}

/// Products are faster where there are many weights (reordering them costs
/// time), and in gradients with more output than input channels, unless the
/// weights' gradient has so few rows (the input channels) that a tile of the
/// product is mostly empty.
void addPointwise(std::vector<LibraryRule> &rules, DType dtype) {
  for (Kind kind :
       {Kind::ConvForward, Kind::ConvInputGrad, Kind::ConvWeightGrad})
    rules.push_back({kind, dtype, {atLeast(Field::Weights, int64_t(1) << 18)}});
  rules.push_back({Kind::ConvInputGrad, dtype, {atLeast(Field::Widening, 1)}});
  rules.push_back(
      {Kind::ConvWeightGrad,
       dtype,
       {atLeast(Field::Widening, 1), atLeast(Field::InChannels, 20)}});
}

/// What has been measured so far (Zen 4, Sapphire Rapids) is for all.
LibraryTable common() {
  LibraryTable table;
  addPacking(table.rules);
  for (DType dtype : {DType::F32, DType::BF16})
    addPointwise(table.rules, dtype);
  return table;
}

struct ClassTable {
  std::string_view cpuClass;
  LibraryTable table;
};

} // namespace

const LibraryTable &
ckopt::runtime::builtInLibraryTable(std::string_view cpuClass) {
  static const std::array<ClassTable, kCpuClasses.size()> tables = {
      {{"baseline", common()},
       {"avx2", common()},
       {"avx512", common()},
       {"avx512-bf16", common()},
       {"amx", common()}}};
  for (const ClassTable &entry : tables)
    if (entry.cpuClass == cpuClass)
      return entry.table;
  return tables.front().table;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

std::string_view ckopt::runtime::libraryFieldName(LibraryField field) {
  static constexpr std::array<std::string_view, kNumLibraryFields> kNames = {
      "batch",       "m",
      "n",           "k",
      "left_row",    "left_column",
      "right_row",   "right_column",
      "result_row",  "right_elements",
      "added",       "points",
      "in_channels", "out_channels",
      "weights",     "widening"};
  auto index = static_cast<uint32_t>(field);
  return index < kNumLibraryFields ? kNames[index] : "unknown";
}

bool ckopt::runtime::hasField(PrimitiveKind kind, LibraryField field) {
  bool ofProducts = field < LibraryField::Points;
  return kind == PrimitiveKind::MatMul ? ofProducts
                                       : isConvolution(kind) && !ofProducts;
}

static int64_t productField(const PrimitiveDesc &desc, LibraryField field) {
  PlacedProduct p(desc);
  switch (field) {
  case LibraryField::Batch:
    return p.batch[0] * p.batch[1];
  case LibraryField::M:
    return p.m;
  case LibraryField::N:
    return p.n;
  case LibraryField::K:
    return p.k;
  case LibraryField::LeftRow:
    return p.a.row;
  case LibraryField::LeftColumn:
    return p.a.col;
  case LibraryField::RightRow:
    return p.b.row;
  case LibraryField::RightColumn:
    return p.b.col;
  case LibraryField::ResultRow:
    return p.c.row;
  case LibraryField::RightElements:
    return p.n * p.k;
  default:
    return desc.accumulate;
  }
}

int64_t ckopt::runtime::fieldOf(const PrimitiveDesc &desc, LibraryField field) {
  if (desc.kind == PrimitiveKind::MatMul)
    return productField(desc, field);
  const ConvDesc &c = desc.conv;
  switch (field) {
  case LibraryField::Points: {
    int64_t points = c.batch;
    for (int64_t d = 0; d < c.rank; ++d)
      points *= c.out[d];
    return points;
  }
  case LibraryField::InChannels:
    return c.inChannels;
  case LibraryField::OutChannels:
    return c.outChannels;
  case LibraryField::Weights:
    return c.inChannels * c.outChannels;
  default:
    return c.outChannels - c.inChannels;
  }
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

static bool holds(const PrimitiveDesc &desc,
                  const LibraryCondition &condition) {
  int64_t value = fieldOf(desc, condition.field);
  return value >= condition.low && value <= condition.high &&
         value % condition.multipleOf == 0;
}

const LibraryRule *LibraryTable::find(const PrimitiveDesc &desc) const {
  for (const LibraryRule &rule : rules)
    if (rule.kind == desc.kind && rule.dtype == desc.dtype &&
        std::all_of(rule.conditions.begin(), rule.conditions.end(),
                    [&](const auto &c) { return holds(desc, c); }))
      return &rule;
  return base ? base->find(desc) : nullptr;
}

LibraryForm LibraryTable::formOf(const PrimitiveDesc &desc) const {
  if (formsOf(desc).size() < 2)
    return LibraryForm::Default;
  const LibraryRule *rule = find(desc);
  if (desc.kind == PrimitiveKind::MatMul)
    return rule ? rule->form : LibraryForm::InPlace;
  if ((!rule || rule->form == LibraryForm::Convolution) && !isMiscomputed(desc))
    return LibraryForm::Convolution;
  return formOf(productOf(desc));
}

std::vector<LibraryForm> ckopt::runtime::formsOf(const PrimitiveDesc &desc) {
  std::vector<LibraryForm> forms;
  if ((desc.dtype != DType::F32 && desc.dtype != DType::BF16) ||
      desc.precision != ProductPrecision::F32)
    return forms;
  if (isConvolution(desc.kind) && !isMiscomputed(desc))
    forms.push_back(LibraryForm::Convolution);
  if (desc.kind != PrimitiveKind::MatMul && !isPointwise(desc))
    return forms;
  forms.push_back(LibraryForm::InPlace);
  forms.push_back(LibraryForm::Packed);
  if (desc.dtype == DType::F32)
    forms.push_back(LibraryForm::OpenBlas);
  return forms;
}

//===----------------------------------------------------------------------===//
// Products with equal cases made one
//===----------------------------------------------------------------------===//

/// Single rows and columns have no stride of their own: they get the stride of
/// a dense matrix, since the library looks at it.
static void normalizeUnit(PlacedOperand &o, int64_t rows, int64_t cols) {
  if (cols == 1 && rows == 1)
    o.row = o.col = 1;
  else if (cols == 1)
    o.col = 1;
  else if (rows == 1)
    o.row = o.col == 1 ? cols : 1;
}

/// Merges two batch dimensions into one if all operands allow it.
static void mergeBatches(int64_t *batch,
                         std::initializer_list<PlacedOperand *> operands) {
  if (batch[1] == 1) {
    std::swap(batch[0], batch[1]);
    for (PlacedOperand *o : operands)
      std::swap(o->batch[0], o->batch[1]);
  }
  bool nests = batch[0] > 1;
  for (PlacedOperand *o : operands)
    nests = nests && o->batch[0] == batch[1] * o->batch[1];
  if (nests) {
    batch[1] *= batch[0];
    batch[0] = 1;
  }
}

PlacedProduct::PlacedProduct(const PrimitiveDesc &desc)
    : batch{desc.matmul.batch[0], desc.matmul.batch[1]}, m(desc.matmul.m),
      n(desc.matmul.n), k(desc.matmul.k) {
  const MatMulDesc &d = desc.matmul;
  a = {0, {d.aBatch[0], d.aBatch[1]}, d.aRow, d.aCol};
  b = {1, {d.bBatch[0], d.bBatch[1]}, d.bRow, d.bCol};
  c = {2 + desc.accumulate, {d.cBatch[0], d.cBatch[1]}, d.cRow, d.cCol};
  if (n > 1 && c.col != 1 && m > 1) {
    std::swap(a, b);
    std::swap(m, n);
    for (PlacedOperand *o : {&a, &b, &c})
      std::swap(o->row, o->col);
  }
  mergeBatches(batch, {&a, &b, &c});
  normalizeUnit(a, m, k);
  normalizeUnit(b, k, n);
  normalizeUnit(c, m, n);
}
