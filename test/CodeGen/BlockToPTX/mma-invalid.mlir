// Shows what a product of warps may not be: conditional, with threads that are
// missing, of two types, with rows too close or halves side by side across k.
// RUN: ckopt-opt %s --block-to-gpu -split-input-file -verify-diagnostics

func.func @conditional(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xbf16, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 64 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (64) {
      %c0 = arith.constant 0 : index
      %c3 = arith.constant 3 : index
      %zero = arith.constant 0.0 : f32
      %some = arith.cmpi ult, %t, %c3 : index
      scf.if %some {
        // expected-error @+1 {{block form: 'block.mma' must not be conditional: all threads of a warp run it}}
        %d:4 = block.mma %t, %a[%c0] pitch 24, %a[%c0] pitch 24, %zero, %zero, %zero, %zero
            : memref<384xbf16, #gpu.address_space<workgroup>>, memref<384xbf16, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @half_a_warp(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xbf16, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 64 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (48) {
      %c0 = arith.constant 0 : index
      %zero = arith.constant 0.0 : f32
      // expected-error @+1 {{block form: 'block.mma' needs whole warps: a multiple of 32 threads}}
      %d:4 = block.mma %t, %a[%c0] pitch 24, %a[%c0] pitch 24, %zero, %zero, %zero, %zero
          : memref<384xbf16, #gpu.address_space<workgroup>>, memref<384xbf16, #gpu.address_space<workgroup>>
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @as_often(%x: !llvm.ptr, %scratch: !llvm.ptr, %a: memref<384xbf16, #gpu.address_space<workgroup>>)
    attributes {ckopt.gpu.grid = 1 : i64, ckopt.gpu.block = 32 : i64} {
  scf.forall (%block) in (1) {
    scf.forall (%t) in (32) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %zero = arith.constant 0.0 : f32
      scf.for %i = %c0 to %t step %c1 {
        // expected-error @+1 {{block form: 'block.mma' must be in loops that all threads run as often}}
        %d:4 = block.mma %t, %a[%c0] pitch 24, %a[%c0] pitch 24, %zero, %zero, %zero, %zero
            : memref<384xbf16, #gpu.address_space<workgroup>>, memref<384xbf16, #gpu.address_space<workgroup>>
      }
    } {mapping = [#gpu.thread<x>]}
  } {mapping = [#gpu.block<x>]}
  return
}

// -----

func.func @pitch(%a: memref<384xbf16>, %b: memref<384xf16>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op pitch 15 must be even and hold the 16 elements of a row}}
  %d:4 = block.mma %t, %a[%t] pitch 15, %a[%t] pitch 24, %zero, %zero, %zero, %zero : memref<384xbf16>, memref<384xbf16>
  return
}

// -----

func.func @two_types(%a: memref<384xbf16>, %b: memref<384xf16>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op multiplies 'bf16' by 'f16'; both must be the same}}
  %d:4 = block.mma %t, %a[%t] pitch 24, %b[%t] pitch 24, %zero, %zero, %zero, %zero : memref<384xbf16>, memref<384xf16>
  return
}

// -----

func.func @pitch_of_tf32(%a: memref<384xf32>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op pitch 6 must be even and hold the 8 elements of a row}}
  %d:4 = block.mma %t, %a[%t] pitch 24, %a[%t] pitch 6, %zero, %zero, %zero, %zero : memref<384xf32>, memref<384xf32>
  return
}

// -----

func.func @halves_across(%a: memref<384xbf16>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op step 20 must be a multiple of 8: f16 and bf16 are read in rows of 16 bytes}}
  %d:4 = block.mma %t, %a[%t] pitch 1 step 20, %a[%t] pitch 24, %zero, %zero, %zero, %zero : memref<384xbf16>, memref<384xbf16>
  return
}

// -----

func.func @step(%a: memref<384xf32>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op step 12 must hold the 16 elements beside each other, at pitch 1}}
  %d:4 = block.mma %t, %a[%t] pitch 1 step 12, %a[%t] pitch 1 step 12, %zero, %zero, %zero, %zero : memref<384xf32>, memref<384xf32>
  return
}

// -----

func.func @pitch_and_step(%a: memref<384xf32>, %t: index, %zero: f32) {
  // expected-error @+1 {{'block.mma' op step 12 must hold the 8 elements beside each other, at pitch 1}}
  %d:4 = block.mma %t, %a[%t] pitch 24, %a[%t] pitch 2 step 12, %zero, %zero, %zero, %zero : memref<384xf32>, memref<384xf32>
  return
}
