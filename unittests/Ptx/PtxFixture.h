//===- PtxFixture.h - small kernels for the interpreter ---------*- C++ -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_UNITTESTS_PTX_PTXFIXTURE_H
#define CKOPT_UNITTESTS_PTX_PTXFIXTURE_H

#include "../../test/lib/CudaStandin/Ptx/Memory.h"
#include "gtest/gtest.h"

#include <bit>
#include <cstring>

namespace standin::ptx::test {

/// A kernel over `out`, and what it does there.
struct Kernel1 {
  /// Statements. %rd1 is `out`, %r1 the thread's number, %rd2 its place there
  /// (16 bytes a thread); %p, %rs, %r, %rd have 40 registers each.
  std::string body;
  std::string declarations; ///< shared variables
  uint32_t grid = 1, block = 32;
  size_t words = 0;   ///< of `out`; 0: 4 for each thread of a block
  bool early = false; ///< begins before the launch before has ended

  std::string text() const {
    return ".version 7.0\n.target sm_80\n.address_size 64\n"
           ".visible .entry k(\n.param .u64 .ptr .align 16 k_param_0)\n{\n"
           ".reg .pred %p<40>;\n.reg .b16 %rs<40>;\n.reg .b32 %r<40>;\n"
           ".reg .b64 %rd<40>;\n" +
           declarations +
           "ld.param.b64 %rd1, [k_param_0];\nmov.u32 %r1, %tid.x;\n"
           "mad.wide.u32 %rd2, %r1, 16, %rd1;\n" +
           body + "ret;\n}\n";
  }
};

/// Runs it; the result is the contents of `out`, which begins as zeros, or the
/// error.
struct Outcome {
  std::string error;
  std::vector<uint32_t> out;
  Traffic loads, stores;
};
inline Outcome runOnce(const Kernel1 &kernel) {
  Outcome outcome;
  std::unique_ptr<Program> program = parse(kernel.text(), outcome.error);
  if (!program)
    return outcome;
  size_t words = kernel.words ? kernel.words : 4 * kernel.block;
  std::vector<uint32_t> room(words + 8);
  auto begin = (reinterpret_cast<uint64_t>(room.data()) + 31) / 32 * 32;
  GlobalMemory memory;
  memory.setRegions({{begin, 4 * words, "out"}});
  outcome.error = launch(*program, "k", kernel.grid, kernel.block, {begin},
                         memory, /*sharedBytes=*/0, kernel.early);
  outcome.loads = memory.loads, outcome.stores = memory.stores;
  outcome.out.resize(words);
  std::memcpy(outcome.out.data(), reinterpret_cast<void *>(begin), 4 * words);
  return outcome;
}

/// With the code for every machine and with that for this one: the same.
inline Outcome run(const Kernel1 &kernel) {
  onlyPlainLanes = true;
  Outcome plain = runOnce(kernel);
  onlyPlainLanes = false;
  Outcome fast = runOnce(kernel);
  EXPECT_EQ(plain.out, fast.out) << kernel.body;
  return fast;
}

/// An operand: its type without the dot, and its bits.
struct Value {
  std::string type;
  uint64_t bits;
};
inline Value b32(uint64_t bits) { return {"b32", bits}; }
inline Value b64(uint64_t bits) { return {"b64", bits}; }
inline Value b16(uint64_t bits) { return {"b16", bits}; }
inline Value f32(float x) { return {"b32", std::bit_cast<uint32_t>(x)}; }
inline Value f64(double x) { return {"b64", std::bit_cast<uint64_t>(x)}; }

/// Returns the result of `op` in a single lane and in all lanes, which must
/// agree.
inline uint64_t evaluate(const std::string &op, const std::string &result,
                         const std::vector<Value> &operands) {
  auto name = [](const std::string &type, size_t i) {
    return (type == "b64"   ? "%rd"
            : type == "b16" ? "%rs"
                            : "%r") +
           std::to_string(i);
  };
  std::string statement = op + " " + name(result, 10), body;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string operand = name(operands[i].type, 11 + i);
    body += "mov." + operands[i].type + " " + operand + ", " +
            std::to_string(operands[i].bits) + ";\n";
    statement += ", " + operand;
  }
  body += "setp.eq.s32 %p1, %r1, 5;\n" + statement + ";\n";
  std::string store = "st.global." + result + " [%rd2";
  body += store + "], " + name(result, 10) + ";\n@%p1 " + statement + ";\n" +
          "@%p1 " + store + "+8], " + name(result, 10) + ";\n";
  Kernel1 kernel;
  kernel.body = body;
  Outcome outcome = run(kernel);
  EXPECT_EQ(outcome.error, "") << op;
  if (!outcome.error.empty())
    return 0xBAD;
  auto at = [&](size_t word) {
    return result == "b64"
               ? outcome.out[word] | uint64_t(outcome.out[word + 1]) << 32
               : uint64_t(outcome.out[word]);
  };
  EXPECT_EQ(at(0), at(20)) << op;
  EXPECT_EQ(at(20), at(22)) << op << ", in one lane";
  return at(20);
}

} // namespace standin::ptx::test

#endif // CKOPT_UNITTESTS_PTX_PTXFIXTURE_H
