//===- Mma.cpp - PTX ISA, "mma.sync": products of a warp ------------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// D = A * B + C of 16 x 8 elements, A 16 x k by rows, B k x 8 by columns. Which
// lane holds which elements is from the manual's "Matrix Fragments for
// mma.m16n8k16", "... m16n8k8" and "... m16n8k4": with g = lane / 4, t = lane
// mod 4
//   A, f16 and bf16: register r holds row g + 8 (r mod 2), columns
//     2t + 8 (r / 2) and the next; B: register r rows 2t + 8r and the next of
//     column g;
//   A, tf32: register r holds row g + 8 (r mod 2), column t + 4 (r / 2); B:
//     register r row t + 4r of column g;
//   C and D: element i is in row g + 8 (i / 2), column 2t + i mod 2.
// The manual leaves the order of the sums open. Here the sums are computed in
// f32 in the order of k, one fma for each product, which is one of the allowed
// results.
//
//===----------------------------------------------------------------------===//
#include "Decode.h"

#include <bit>
#include <cmath>

using namespace standin::ptx;

/// f16 to f32, exactly (IEEE 754 binary16).
static float fromF16(uint32_t bits) {
  uint32_t sign = (bits & 0x8000) << 16, field = bits >> 10 & 0x1F,
           low = bits & 0x3FF;
  if (field == 31)
    return std::bit_cast<float>(sign | 0x7F800000 | low << 13);
  if (field)
    return std::bit_cast<float>(sign | (field + 112) << 23 | low << 13);
  float value = std::ldexp(float(low), -24);
  return sign ? -value : value;
}

static float element(uint32_t word, unsigned half, Type type) {
  if (type == Type::TF32) // the lowest 13 bits are not part of the number
    return std::bit_cast<float>(word & 0xFFFFE000);
  uint32_t bits = word >> (16 * half) & 0xFFFF;
  return type == Type::F16 ? fromF16(bits) : std::bit_cast<float>(bits << 16);
}

// The detail holds the type of A and B, and k << 8.
static void multiply(const Instruction &in, Lanes &lanes) {
  if (lanes.active != kAllLanes) {
    lanes.fault = "mma.sync.aligned needs all 32 lanes of the warp";
    return;
  }
  Type type = Type(in.detail & 0xFF);
  unsigned k = in.detail >> 8;
  bool pairs = type != Type::TF32;
  unsigned aWords = pairs ? k / 4 : k / 2, bWords = aWords / 2;
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    unsigned g = lane / 4, t = lane % 4;
    for (unsigned r = 0; r < aWords; ++r)
      for (unsigned h = 0; h < (pairs ? 2 : 1); ++h) {
        unsigned column = pairs ? 2 * t + h + 8 * (r / 2) : t + 4 * (r / 2);
        a[g + 8 * (r % 2)][column] =
            element(lanes.slot(in.slots[4 + r])[lane], h, type);
      }
    for (unsigned r = 0; r < bWords; ++r)
      for (unsigned h = 0; h < (pairs ? 2 : 1); ++h)
        b[pairs ? 2 * t + h + 8 * r : t + 4 * r][g] =
            element(lanes.slot(in.slots[4 + aWords + r])[lane], h, type);
  }
  float d[4][kLanes];
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned i = 0; i < 4; ++i) {
      unsigned row = lane / 4 + 8 * (i / 2), column = lane % 4 * 2 + i % 2;
      float sum = std::bit_cast<float>(
          lanes.slot(in.slots[4 + aWords + bWords + i])[lane]);
      for (unsigned at = 0; at < k; ++at)
        sum = std::fma(a[row][at], b[at][column], sum);
      d[i][lane] = sum != sum ? std::bit_cast<float>(0x7FFFFFFF) : sum;
    }
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      lanes.slot(in.slots[i])[lane] = std::bit_cast<uint32_t>(d[i][lane]);
}

static bool decodeMmaOp(Decoder &d) {
  std::string_view shape = d.takeOf({"m16n8k16", "m16n8k8", "m16n8k4"});
  if (!d.take("sync") || !d.take("aligned") || !d.take("row") ||
      !d.take("col") || shape.empty() || d.types.size() != 4)
    return d.fail("mma.sync.aligned.m16n8k{16,8,4}.row.col with four types is "
                  "needed");
  unsigned k = unsigned(std::atoi(std::string(shape.substr(6)).c_str()));
  Type type = d.types[1];
  bool pairs = type == Type::F16 || type == Type::BF16;
  if (d.types[0] != Type::F32 || d.types[3] != Type::F32 ||
      d.types[2] != type || (!pairs && type != Type::TF32) ||
      (pairs ? k == 4 : k == 16))
    return d.fail("types or a shape that the interpreter does not know");
  d.in.detail = uint32_t(type) | k << 8;
  d.in.run = &multiply;
  d.in.uniform = true;
  size_t words[] = {4, pairs ? k / 4 : k / 2, pairs ? k / 8 : k / 4, 4};
  if (d.operands() != 4)
    return d.fail("4 operands are needed");
  for (size_t i = 0; i < 4; ++i) {
    const Operand &operand = d.statement.operands[i];
    std::vector<Operand> single{operand};
    const auto &parts =
        operand.kind == Operand::Vector ? operand.parts : single;
    if (parts.size() != words[i])
      return d.fail("operand " + std::to_string(i) + " needs " +
                    std::to_string(words[i]) + " registers");
    for (const Operand &part : parts)
      if (!(i == 0 ? d.def(part, Type::F32) : d.use(part, Type::B32)))
        return false;
  }
  return true;
}

bool standin::ptx::decodeMma(Decoder &d) {
  if (d.op != "mma")
    return false;
  (void)decodeMmaOp(d);
  return true;
}
