//===- DevicePattern.cpp - the arena's pattern, on the device -------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "DevicePattern.h"

using namespace ckopt::runtime;
using namespace ckopt::runtime::cuda;

// A block does one piece: it goes over its words, one a thread at a time, and
// computes what Pattern.cpp's patternWord() computes.
static_assert(DevicePattern::kPieceBytes == 131072 * 8, "as the code has it");
#define CKOPT_FOR_EACH_WORD(NAME, USE)                                         \
  R"(
.version 7.0
.target sm_80
.address_size 64

.visible .entry )" NAME R"((
	.param .u64 to,
	.param .u64 words,
	.param .u64 first,
	.param .u64 seed,
	.param .u64 marks
)
.maxntid 256, 1, 1
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<20>;

	ld.param.u64 %rd1, [to];
	cvta.to.global.u64 %rd1, %rd1;
	ld.param.u64 %rd2, [words];
	ld.param.u64 %rd3, [first];
	ld.param.u64 %rd4, [seed];
	mov.u32 %r1, %ctaid.x;
	ld.param.u64 %rd5, [marks];
	cvta.to.global.u64 %rd5, %rd5;
	mul.wide.u32 %rd6, %r1, 4;
	add.s64 %rd5, %rd5, %rd6;
	mul.wide.u32 %rd6, %r1, 131072;
	add.s64 %rd7, %rd6, 131072;
	min.u64 %rd7, %rd7, %rd2;
	mov.u32 %r2, %tid.x;
	cvt.u64.u32 %rd8, %r2;
	add.s64 %rd8, %rd6, %rd8;
	mov.u64 %rd14, 0x9E3779B97F4A7C15;
	mov.u64 %rd15, 0xBF58476D1CE4E5B9;
	mov.u64 %rd16, 0x94D049BB133111EB;
	mov.u64 %rd17, 0x1F1F1F1F1F1F1F1F;
	mov.u64 %rd18, 0x6060606060606060;
	mov.u64 %rd19, 0x0101010101010101;
	setp.ge.u64 %p1, %rd8, %rd7;
	@%p1 bra $END;
$NEXT:
	add.s64 %rd9, %rd8, %rd3;
	add.s64 %rd9, %rd9, 1;
	mul.lo.s64 %rd9, %rd9, %rd14;
	add.s64 %rd9, %rd9, %rd4;
	shr.u64 %rd10, %rd9, 30;
	xor.b64 %rd9, %rd9, %rd10;
	mul.lo.s64 %rd9, %rd9, %rd15;
	shr.u64 %rd10, %rd9, 27;
	xor.b64 %rd9, %rd9, %rd10;
	mul.lo.s64 %rd9, %rd9, %rd16;
	shr.u64 %rd10, %rd9, 31;
	xor.b64 %rd9, %rd9, %rd10;
	and.b64 %rd9, %rd9, %rd17;
	or.b64 %rd9, %rd9, %rd18;
	shr.u64 %rd10, %rd9, 1;
	and.b64 %rd11, %rd9, %rd10;
	shr.u64 %rd10, %rd9, 2;
	and.b64 %rd11, %rd11, %rd10;
	shr.u64 %rd10, %rd9, 3;
	and.b64 %rd11, %rd11, %rd10;
	shr.u64 %rd10, %rd9, 4;
	and.b64 %rd11, %rd11, %rd10;
	and.b64 %rd11, %rd11, %rd19;
	shl.b64 %rd11, %rd11, 3;
	not.b64 %rd11, %rd11;
	and.b64 %rd9, %rd9, %rd11;
	shl.b64 %rd12, %rd8, 3;
	add.s64 %rd12, %rd1, %rd12;
)" USE R"(
	add.s64 %rd8, %rd8, 256;
	setp.lt.u64 %p1, %rd8, %rd7;
	@%p1 bra $NEXT;
$END:
	ret;
}
)"

static const char *const kFill = CKOPT_FOR_EACH_WORD(
    "ckopt_runtime_fill", R"(	st.global.b64 [%rd12], %rd9;)");
static const char *const kCompare = CKOPT_FOR_EACH_WORD(
    "ckopt_runtime_compare", R"(	ld.global.b64 %rd13, [%rd12];
	setp.eq.s64 %p1, %rd13, %rd9;
	@%p1 bra $SAME;
	mov.b32 %r3, 1;
	st.relaxed.gpu.global.b32 [%rd5], %r3;
$SAME:)");

Result DevicePattern::create() {
  Result result = filling.load(kFill, "ckopt_runtime_fill");
  return result == kSuccess ? comparing.load(kCompare, "ckopt_runtime_compare")
                            : result;
}

Result DevicePattern::launch(OwnKernel &kernel, const PatternSegment &range,
                             DevicePointer marks, Stream stream) {
  const int64_t bytes = range.end - range.begin;
  if (bytes <= 0)
    return kSuccess;
  return kernel.launchBlocks(static_cast<uint64_t>(piecesOf(bytes)),
                             {arena + static_cast<DevicePointer>(range.begin),
                              static_cast<uint64_t>(bytes / 8),
                              static_cast<uint64_t>(range.begin / 8),
                              range.seed, marks},
                             stream);
}

Result DevicePattern::fill(const PatternSegment &range, Stream stream) {
  return launch(filling, range, arena, stream);
}

Result DevicePattern::compare(const PatternSegment &range, DevicePointer marks,
                              Stream stream) {
  Result result = cuda.memsetD8Async(
      marks, 0, static_cast<size_t>(piecesOf(range.end - range.begin)) * 4,
      stream);
  return result == kSuccess ? launch(comparing, range, marks, stream) : result;
}
