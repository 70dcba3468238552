//===- BlockOps.td - what threads of a block do together ----*- tablegen -*-===//
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

def Block_HalfBuffer : MemRefRankOf<[F16, BF16], [1]>;

def Block_MmaOp : Op<Block_Dialect, "mma", [
    AllTypesMatch<["c0", "c1", "c2", "c3", "d0", "d1", "d2", "d3"]>]> {
  let summary = "16 x 8 sums of 16 products of halves, made by 32 threads";
  let description = [{
    Of A (16 x 16, row i at `a[a_offset + i * a_pitch]`) and B (16 x 8, column j
    at `b[b_offset + j * b_pitch]`), in shared buffers: C + A * B, in f32. With
    g = thread mod 32 / 4 and q = thread mod 4, a thread has the elements

        c0: (g, 2q)   c1: (g, 2q + 1)   c2: (g + 8, 2q)   c3: (g + 8, 2q + 1)

    On a CPU products are added in the order of k by fused multiply-adds. Tensor
    cores add them in an order, and with a rounding, of their own: results agree
    within the rounding of f32 sums.

    Threads 32 w to 32 w + 31 run it together, with the same offsets, or none
    does. Pitches are even; offsets are, too.

    ```
    %d:4 = block.mma %t, %a[%i] pitch 40, %b[%j] pitch 40, %c0, %c1, %c2, %c3
        : memref<2560xbf16, #gpu.address_space<workgroup>>,
          memref<2560xbf16, #gpu.address_space<workgroup>>
    ```
  }];
  let arguments = (ins Index:$thread,
      Arg<Block_HalfBuffer, "rows of A", [MemRead]>:$a, Index:$aOffset,
      I64Attr:$aPitch,
      Arg<Block_HalfBuffer, "columns of B", [MemRead]>:$b, Index:$bOffset,
      I64Attr:$bPitch, F32:$c0, F32:$c1, F32:$c2, F32:$c3);
  let results = (outs F32:$d0, F32:$d1, F32:$d2, F32:$d3);
  let assemblyFormat = [{
    $thread `,` $a `[` $aOffset `]` `pitch` $aPitch `,`
    $b `[` $bOffset `]` `pitch` $bPitch `,` $c0 `,` $c1 `,` $c2 `,` $c3
    attr-dict `:` type($a) `,` type($b)
  }];
  let hasVerifier = 1;
}

#endif // CKOPT_DIALECT_BLOCK_OPS
