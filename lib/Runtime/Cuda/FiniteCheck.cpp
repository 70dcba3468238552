//===- FiniteCheck.cpp - whether a device's numbers are finite ------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FiniteCheck.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

/// Looks at `count` words of 32 bits, `step` bytes apart, for those that have
/// all bits of one of two masks: a number's exponent, or those of two halves.
static const char *const kFiniteCode = R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry ckopt_runtime_finite(
	.param .u64 from,
	.param .u64 found,
	.param .u64 count,
	.param .u64 step,
	.param .u64 low,
	.param .u64 high
)
.maxntid 256, 1, 1
{
	.reg .pred %p<4>;
	.reg .b32 %r<13>;
	.reg .b64 %rd<13>;

	ld.param.u64 %rd1, [from];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u64 %rd3, [found];
	cvta.to.global.u64 %rd4, %rd3;
	ld.param.u64 %rd5, [count];
	ld.param.u64 %rd6, [step];
	ld.param.u64 %rd7, [low];
	cvt.u32.u64 %r1, %rd7;
	ld.param.u64 %rd8, [high];
	cvt.u32.u64 %r2, %rd8;
	mov.u32 %r3, %ctaid.x;
	mov.u32 %r4, %ntid.x;
	mov.u32 %r5, %tid.x;
	mov.u32 %r6, %nctaid.x;
	cvt.u64.u32 %rd9, %r5;
	mul.wide.u32 %rd10, %r3, %r4;
	add.s64 %rd10, %rd10, %rd9;
	mul.wide.u32 %rd11, %r6, %r4;
	setp.ge.u64 %p1, %rd10, %rd5;
	@%p1 bra $END;
$NEXT:
	mul.lo.s64 %rd12, %rd10, %rd6;
	add.s64 %rd12, %rd2, %rd12;
	ld.global.b32 %r7, [%rd12];
	and.b32 %r8, %r7, %r1;
	setp.ne.s32 %p1, %r8, %r1;
	and.b32 %r9, %r7, %r2;
	setp.ne.s32 %p2, %r9, %r2;
	and.pred %p3, %p1, %p2;
	@%p3 bra $FINITE;
	mov.b32 %r10, 1;
	st.relaxed.gpu.global.b32 [%rd4], %r10;
$FINITE:
	add.s64 %rd10, %rd10, %rd11;
	setp.lt.u64 %p1, %rd10, %rd5;
	@%p1 bra $NEXT;
$END:
	ret;
}
)";

Result FiniteCheck::create() {
  Result result = kernel.load(kFiniteCode, "ckopt_runtime_finite");
  return result == kSuccess ? engine.driver().memAlloc(&found, sizeof(uint32_t))
                            : result;
}

FiniteCheck::~FiniteCheck() {
  if (found)
    (void)engine.driver().memFree(found);
}

Result FiniteCheck::begin(Stream stream) {
  return engine.driver().memsetD8Async(found, 0, sizeof(uint32_t), stream);
}

Result FiniteCheck::add(DevicePointer from, int64_t bytes, DType dtype,
                        Stream stream) {
  const bool isDouble = dtype == DType::F64;
  uint64_t low = dtype == DType::F16    ? 0x7C00
                 : dtype == DType::BF16 ? 0x7F80
                 : isDouble             ? 0x7FF00000
                                        : 0x7F800000;
  uint64_t high = dtypeSize(dtype) == 2 ? low << 16 : low;
  uint64_t step = isDouble ? 8 : 4;
  uint64_t count = static_cast<uint64_t>(bytesSeen(bytes)) / step;
  if (count == 0)
    return kSuccess;
  return kernel.launch(count, {from + step - 4, found, count, step, low, high},
                       stream);
}

Result FiniteCheck::end(uint32_t &word, Stream stream) {
  return engine.driver().memcpyDtoHAsync(&word, found, sizeof(word), stream);
}
