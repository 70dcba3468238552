//===- StridedCopy.cpp - copies into another order on a device ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StridedCopy.h"

#include <bit>

using namespace ckopt::runtime::cuda;

/// Writes the kernel: parameters are `to`, `from`, the number of elements, then
/// of each dimension its extent and both strides in bytes.
static std::string codeFor(int64_t size) {
  const std::string bits = std::to_string(8 * size);
  const std::string value = size == 8 ? "%rd1" : "%r1";
  std::string code = ".version 7.0\n.target sm_80\n.address_size 64\n"
                     ".visible .entry ckopt_runtime_copy(\n"
                     "\t.param .u64 to,\n\t.param .u64 from,\n"
                     "\t.param .u64 count";
  for (size_t d = 0; d < StridedCopy::kMostDimensions; ++d)
    for (const char *what : {"extent", "in", "out"})
      code += ",\n\t.param .u64 " + (what + std::to_string(d));
  code += ")\n.maxntid 256, 1, 1\n{\n"
          "\t.reg .pred %p<2>;\n\t.reg .b32 %r<6>;\n\t.reg .b64 %rd<16>;\n"
          "\tld.param.u64 %rd2, [to];\n\tcvta.to.global.u64 %rd2, %rd2;\n"
          "\tld.param.u64 %rd3, [from];\n\tcvta.to.global.u64 %rd3, %rd3;\n"
          "\tld.param.u64 %rd4, [count];\n"
          "\tmov.u32 %r2, %ctaid.x;\n\tmov.u32 %r3, %ntid.x;\n"
          "\tmov.u32 %r4, %tid.x;\n\tmov.u32 %r5, %nctaid.x;\n"
          "\tcvt.u64.u32 %rd5, %r4;\n\tmul.wide.u32 %rd6, %r2, %r3;\n"
          "\tadd.s64 %rd6, %rd6, %rd5;\n\tmul.wide.u32 %rd7, %r5, %r3;\n"
          "\tsetp.ge.u64 %p1, %rd6, %rd4;\n\t@%p1 bra $END;\n$NEXT:\n"
          "\tmov.u64 %rd8, %rd6;\n\tmov.u64 %rd9, %rd2;\n"
          "\tmov.u64 %rd10, %rd3;\n";
  for (size_t d = StridedCopy::kMostDimensions; d-- > 0;) {
    const std::string n = std::to_string(d);
    code += "\tld.param.u64 %rd11, [extent" + n +
            "];\n\trem.u64 %rd12, %rd8, %rd11;\n"
            "\tdiv.u64 %rd8, %rd8, %rd11;\n"
            "\tld.param.u64 %rd13, [in" +
            n +
            "];\n\tmul.lo.s64 %rd14, %rd12, %rd13;\n"
            "\tadd.s64 %rd10, %rd10, %rd14;\n\tld.param.u64 %rd13, [out" +
            n +
            "];\n\tmul.lo.s64 %rd14, %rd12, %rd13;\n"
            "\tadd.s64 %rd9, %rd9, %rd14;\n";
  }
  return code + "\tld.global.u" + bits + " " + value +
         ", [%rd10];\n\tst.global.u" + bits + " [%rd9], " + value +
         ";\n\tadd.s64 %rd6, %rd6, %rd7;\n\tsetp.lt.u64 %p1, %rd6, %rd4;\n"
         "\t@%p1 bra $NEXT;\n$END:\n\tret;\n}\n";
}

std::vector<StridedCopy::Dimension>
StridedCopy::merge(std::vector<Dimension> dimensions) {
  std::erase_if(dimensions, [](const Dimension &d) { return d.extent == 1; });
  std::sort(dimensions.begin(), dimensions.end(),
            [](const Dimension &a, const Dimension &b) {
              return std::pair(a.to, a.from) > std::pair(b.to, b.from);
            });
  std::vector<Dimension> merged;
  for (const Dimension &d : dimensions) {
    Dimension *outer = merged.empty() ? nullptr : &merged.back();
    if (outer && outer->to == d.extent * d.to &&
        outer->from == d.extent * d.from)
      *outer = {outer->extent * d.extent, d.from, d.to};
    else
      merged.push_back(d);
  }
  return merged;
}

Result StridedCopy::copy(DevicePointer to, DevicePointer from,
                         const std::vector<Dimension> &dimensions, int64_t size,
                         Stream stream) {
  OwnKernel &kernel = kernels[static_cast<size_t>(
      std::countr_zero(static_cast<uint64_t>(size)))];
  if (!kernel.isLoaded())
    if (Result result =
            kernel.load(codeFor(size).c_str(), "ckopt_runtime_copy"))
      return result;
  uint64_t count = 1;
  std::vector<uint64_t> values = {to, from, 0};
  for (size_t d = 0; d < kMostDimensions; ++d) {
    size_t missing = kMostDimensions - dimensions.size();
    Dimension is = d < missing ? Dimension{1, 0, 0} : dimensions[d - missing];
    count *= static_cast<uint64_t>(is.extent);
    for (int64_t number : {is.extent, is.from * size, is.to * size})
      values.push_back(static_cast<uint64_t>(number));
  }
  values[2] = count;
  return kernel.launch(count, std::move(values), stream);
}
