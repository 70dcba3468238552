//===- BlockOps.td - what threads of a block do together ----*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef CKOPT_DIALECT_BLOCK_OPS
#define CKOPT_DIALECT_BLOCK_OPS

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Block_Dialect : Dialect {
  let name = "block";
  let cppNamespace = "::ckopt::block";
  let summary = "What loops over threads cannot say of a GPU's block";
  let description = [{
    Kernels in block form are plain loops over threads, which a CPU runs as they
    are. Where a GPU has one instruction for the work of several threads, an
    operation of this dialect says what each of them gets, so that it is plain
    loops on a CPU still.
  }];
}

def Block_OperandBuffer : MemRefRankOf<[F16, BF16, F32], [1]>;
def Block_Floats : AnyTypeOf<[F32, VectorOfRankAndType<[1], [F32]>]>;

def Block_MmaOp : Op<Block_Dialect, "mma", [
    AllTypesMatch<["c0", "c1", "c2", "c3", "d0", "d1", "d2", "d3"]>]> {
  let summary = "16 x 8 sums of products of halves or of TF32, made by 32 threads";
  let description = [{
    Of A (16 x depth) and B (depth x 8), in shared buffers: C + A * B, in f32.
    Elements are f16 or bf16 with depth 16, or f32 with depth 8, which is TF32:
    elements that `block.round_tf32` made. (i, k) of A is
    `a[a_offset + i * a_pitch + k * a_step]`, (k, j) of B is
    `b[b_offset + j * b_pitch + k * b_step]`. With g = thread mod 32 / 4 and
    q = thread mod 4, a thread has the elements

        c0: (g, 2q)   c1: (g, 2q + 1)   c2: (g + 8, 2q)   c3: (g + 8, 2q + 1)

    On a CPU products are added in the order of k by fused multiply-adds. Tensor
    cores add them in an order, and with a rounding, of their own: results agree
    within the rounding of f32 sums.

    Threads 32 w to 32 w + 31 run it together, with the same offsets, or none
    does. Elements lie along k (step 1) or side by side across k (pitch 1).
    Distances and offsets are even; where halves lie across k, multiples of 8:
    then `ldmatrix` transposes them, which it does not need to along k, but
    loads more at once where they are multiples of 8, too. With `rounds`
    elements of f32 are rounded as `block.round_tf32` does when they are read.

    ```
    %d:4 = block.mma %t, %a[%i] pitch 40, %b[%j] pitch 40, %c0, %c1, %c2, %c3
        : memref<2560xbf16, #gpu.address_space<workgroup>>,
          memref<2560xbf16, #gpu.address_space<workgroup>>
    %e:4 = block.mma %t, %x[%i] pitch 40, %y[%j] pitch 1 step 68,
        %c0, %c1, %c2, %c3
        : memref<2560xf32, #gpu.address_space<workgroup>>,
          memref<2176xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Index:$thread,
      Arg<Block_OperandBuffer, "elements of A", [MemRead]>:$a, Index:$aOffset,
      I64Attr:$aPitch, DefaultValuedAttr<I64Attr, "1">:$aStep,
      Arg<Block_OperandBuffer, "elements of B", [MemRead]>:$b, Index:$bOffset,
      I64Attr:$bPitch, DefaultValuedAttr<I64Attr, "1">:$bStep,
      F32:$c0, F32:$c1, F32:$c2, F32:$c3, UnitAttr:$rounds);
  let results = (outs F32:$d0, F32:$d1, F32:$d2, F32:$d3);
  let assemblyFormat = [{
    $thread `,` $a `[` $aOffset `]` `pitch` $aPitch (`step` $aStep^)? `,`
    $b `[` $bOffset `]` `pitch` $bPitch (`step` $bStep^)? `,`
    $c0 `,` $c1 `,` $c2 `,` $c3 (`rounds` $rounds^)? attr-dict `:` type($a) `,`
    type($b)
  }];
  let extraClassDeclaration = [{
    /// How many products one run adds to each sum.
    int64_t getDepth() {
      return getA().getType().getElementType().isF32() ? 8 : 16;
    }
  }];
  let hasVerifier = 1;
}

def Block_RoundTf32Op : Op<Block_Dialect, "round_tf32", [
    Pure, AllTypesMatch<["x", "y"]>]> {
  let summary = "f32 rounded to 10 bits of fraction";
  let description = [{
    To the nearest, ties away from zero; beyond the largest finite number to
    infinity; any NaN becomes 0x7fffffff. The other 13 bits are zero. This is
    `cvt.rna.tf32.f32`.
  }];
  let arguments = (ins Block_Floats:$x);
  let results = (outs Block_Floats:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

//===----------------------------------------------------------------------===//
// Functions that a GPU approximates
//===----------------------------------------------------------------------===//

/// Each device has a result of its own within the error, which is relative.
/// A CPU computes the exact one and changes it by as much, up or down as the
/// operand's bits have it, so that what is tested there holds for any device.
class Block_ApproximateOp<string name, string instruction, string error>
    : Op<Block_Dialect, name, [Pure, AllTypesMatch<["x", "y"]>]> {
  let description = "This is `" # instruction # "`, off by at most " # error #
      [{. Subnormal operands and results are zero.}];
  let arguments = (ins Block_Floats:$x);
  let results = (outs Block_Floats:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Block_ApproxExp2Op
    : Block_ApproximateOp<"approx_exp2", "ex2.approx.ftz.f32", "2^-22"> {
  let summary = "2 to the power of x, about";
}
def Block_ApproxReciprocalOp
    : Block_ApproximateOp<"approx_reciprocal", "rcp.approx.ftz.f32", "2^-23"> {
  let summary = "1 / x, about";
}

//===----------------------------------------------------------------------===//
// Copies that are on their way while threads compute
//===----------------------------------------------------------------------===//

def Block_CopyAsyncOp : Op<Block_Dialect, "copy_async"> {
  let summary = "begins to copy adjacent elements to a shared buffer";
  let description = [{
    Copies `elements` of 4, 8 or 16 bytes in all, or zeros where `inside` does
    not hold, in which case `from` may point anywhere; both places are multiples
    of these bytes. The copy belongs to the thread's open group, which
    `block.commit_copies` closes. It is made at some time before the thread's
    `block.wait_copies` for that group returns; nobody may read the elements,
    nor write what is copied, before that. A CPU copies at the wait: as late as
    that allows. A thread runs an operation once a group at most. What is
    `cached` stays in the multiprocessor's cache, because others read it soon.

    ```
    block.copy_async %shared[%i], %pointer if %inside, 4
        : memref<2560xf32, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins
      Arg<Block_OperandBuffer, "the copy", [MemWrite]>:$to, Index:$at,
      Arg<AnyType, "what is copied", [MemRead]>:$from, I1:$inside,
      I64Attr:$elements, UnitAttr:$cached);
  let assemblyFormat = [{
    $to `[` $at `]` `,` $from `:` type($from) `if` $inside `,` $elements
    (`cached` $cached^)?
    attr-dict `:` type($to)
  }];
  let extraClassDeclaration = [{
    /// How many bytes one copy has.
    int64_t getBytes() {
      return getElements() * getTo().getType().getElementTypeBitWidth() / 8;
    }
  }];
  let hasVerifier = 1;
}

def Block_CommitCopiesOp : Op<Block_Dialect, "commit_copies", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "closes the thread's group of copies, and opens the next one";
  let arguments = (ins);
  let assemblyFormat = "attr-dict";
}

def Block_WaitCopiesOp : Op<Block_Dialect, "wait_copies", [
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits until at most `pending` of the thread's closed groups are under way";
  let description = [{
    What other threads copied is there after a barrier behind their waits.
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntNonNegative]>:$pending);
  let assemblyFormat = "$pending attr-dict";
}

def Block_LoadMatricesOp : Op<Block_Dialect, "load_matrices"> {
  let summary = "fragments of `block.mma` by ldmatrix; made by its expansion";
  let description = [{
    Lane l gives the first of 8 adjacent halves, row l mod 8 of matrix l / 8; a
    word of each matrix is a lane's result.
  }];
  let arguments = (ins Arg<Block_OperandBuffer, "rows", [MemRead]>:$from,
      Index:$at, BoolAttr:$transposed);
  let results = (outs Variadic<I32>:$words);
  let assemblyFormat = [{
    $from `[` $at `]` `,` $transposed attr-dict `:` type($from) `->`
    type($words)
  }];
}

#endif // CKOPT_DIALECT_BLOCK_OPS
