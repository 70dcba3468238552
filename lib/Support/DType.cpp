//===- DType.cpp - names of element types ---------------------------------===//
//
// See the header.
//
//===----------------------------------------------------------------------===//
#include "ckopt/Support/DType.h"

namespace ckopt {

namespace {
struct Names {
  DType type;
  const char *own, *numpy, *onnx;
};
constexpr Names table[] = {
    {DType::F64, "f64", "float64", "double"},
    {DType::F32, "f32", "float32", "float"},
    {DType::F16, "f16", "float16", "half"},
    {DType::BF16, "bf16", "bfloat16", "bfloat16"},
    {DType::I64, "i64", "int64", "long"},
    {DType::I32, "i32", "int32", "int"},
    {DType::I16, "i16", "int16", "short"},
    {DType::I8, "i8", "int8", "int8"},
    {DType::U64, "u64", "uint64", "uint64"},
    {DType::U32, "u32", "uint32", "uint32"},
    {DType::U16, "u16", "uint16", "uint16"},
    {DType::U8, "u8", "uint8", "uint8"},
    {DType::Bool, "bool", "bool", "i1"},
};
static_assert(sizeof(table) / sizeof(table[0]) == numDTypes);
} // namespace

const char *dtypeName(DType t) { return table[unsigned(t)].own; }

std::optional<DType> parseDType(std::string_view text) {
  for (const Names &names : table)
    if (text == names.own || text == names.numpy || text == names.onnx)
      return names.type;
  return std::nullopt;
}

} // namespace ckopt
