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
#include "Accessor.h"
#include "Decode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

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

//===----------------------------------------------------------------------===//
// ldmatrix
//===----------------------------------------------------------------------===//

// Bits of the detail: 0, the address has 32 bits; 1, transposed.
static void loadMatrices(const Instruction &in, Lanes &lanes) {
  if (lanes.active != kAllLanes) {
    lanes.fault = "ldmatrix.sync.aligned needs all 32 lanes of the warp";
    return;
  }
  Accessor accessor(in, lanes, /*write=*/false, Space::Shared, 16);
  const uint32_t *base = lanes.slot(in.slots[in.dsts]);
  uint16_t rows[32][8];
  for (unsigned l = 0; l < 8u * in.dsts; ++l) {
    uint64_t address =
        in.detail & 1 ? base[l] : reinterpret_cast<const uint64_t *>(base)[l];
    const char *row = accessor.place(address + uint64_t(in.offset), l);
    if (!row) {
      lanes.faultLane = l;
      return;
    }
    std::memcpy(rows[l], row, 16);
  }
  for (unsigned i = 0; i < in.dsts; ++i)
    for (unsigned l = 0; l < kLanes; ++l) {
      unsigned g = l / 4, pair = l % 4 * 2;
      auto element = [&](unsigned at) -> uint32_t {
        return in.detail & 2 ? rows[8 * i + pair + at][g]
                             : rows[8 * i + g][pair + at];
      };
      lanes.slot(in.slots[i])[l] = element(0) | element(1) << 16;
    }
}

static bool decodeMatrices(Decoder &d) {
  std::string_view count = d.takeOf({"x1", "x2", "x4"});
  if (!d.take("sync") || !d.take("aligned") || !d.take("m8n8") ||
      (!d.take("shared") && !d.take("shared::cta")) || count.empty() ||
      !d.expect(2, 1) || d.types[0] != Type::B16)
    return d.fail("ldmatrix.sync.aligned.m8n8.{x1,x2,x4}.shared.b16 is needed");
  bool transposed = d.take("trans");
  const Operand &result = d.statement.operands[0];
  std::vector<Operand> single{result};
  const auto &parts = result.kind == Operand::Vector ? result.parts : single;
  if (parts.size() != size_t(count[1] - '0'))
    return d.fail("as many registers are needed as matrices");
  for (const Operand &part : parts)
    if (!d.def(part, Type::B32))
      return false;
  if (!d.address(d.statement.operands[1]))
    return false;
  d.in.detail |= transposed ? 2u : 0u;
  d.in.run = &loadMatrices;
  d.in.uniform = true;
  d.kernel.sharedGranule = std::min(d.kernel.sharedGranule, 16u);
  return true;
}

bool standin::ptx::decodeMma(Decoder &d) {
  if (d.op == "ldmatrix") {
    (void)decodeMatrices(d);
    return true;
  }
  if (d.op != "mma")
    return false;
  (void)decodeMmaOp(d);
  return true;
}
