// A value that a kernel would compute at many indices for each element is stored. In a scan by
// steps of 1, 2, 4, ... every level reads the one before it twice, at two indices: computed inside of its
// reader it would double the work of each level (1,024 times the first sum). Three levels make a kernel.
// RUN: ckopt-opt %s --split-input-file --fuse | FileCheck %s

// CHECK-LABEL: func.func @scan
// CHECK-COUNT-4: ckopt.kernel_call
// CHECK-NOT: ckopt.kernel_call
// CHECK: return
func.func @scan(%x0: tensor<2048x16xf32>) -> tensor<2048x16xf32> {
  %s0 = ckopt.slice %x0 {starts = array<i64: 0, 0>, sizes = array<i64: 2047, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2047x16xf32>
  %p0 = ckopt.pad %s0 {low = array<i64: 1, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2047x16xf32>) -> tensor<2048x16xf32>
  %x1 = ckopt.add %x0, %p0 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s1 = ckopt.slice %x1 {starts = array<i64: 0, 0>, sizes = array<i64: 2046, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2046x16xf32>
  %p1 = ckopt.pad %s1 {low = array<i64: 2, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2046x16xf32>) -> tensor<2048x16xf32>
  %x2 = ckopt.add %x1, %p1 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s2 = ckopt.slice %x2 {starts = array<i64: 0, 0>, sizes = array<i64: 2044, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2044x16xf32>
  %p2 = ckopt.pad %s2 {low = array<i64: 4, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2044x16xf32>) -> tensor<2048x16xf32>
  %x3 = ckopt.add %x2, %p2 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s3 = ckopt.slice %x3 {starts = array<i64: 0, 0>, sizes = array<i64: 2040, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2040x16xf32>
  %p3 = ckopt.pad %s3 {low = array<i64: 8, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2040x16xf32>) -> tensor<2048x16xf32>
  %x4 = ckopt.add %x3, %p3 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s4 = ckopt.slice %x4 {starts = array<i64: 0, 0>, sizes = array<i64: 2032, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2032x16xf32>
  %p4 = ckopt.pad %s4 {low = array<i64: 16, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2032x16xf32>) -> tensor<2048x16xf32>
  %x5 = ckopt.add %x4, %p4 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s5 = ckopt.slice %x5 {starts = array<i64: 0, 0>, sizes = array<i64: 2016, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<2016x16xf32>
  %p5 = ckopt.pad %s5 {low = array<i64: 32, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<2016x16xf32>) -> tensor<2048x16xf32>
  %x6 = ckopt.add %x5, %p5 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s6 = ckopt.slice %x6 {starts = array<i64: 0, 0>, sizes = array<i64: 1984, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<1984x16xf32>
  %p6 = ckopt.pad %s6 {low = array<i64: 64, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<1984x16xf32>) -> tensor<2048x16xf32>
  %x7 = ckopt.add %x6, %p6 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s7 = ckopt.slice %x7 {starts = array<i64: 0, 0>, sizes = array<i64: 1920, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<1920x16xf32>
  %p7 = ckopt.pad %s7 {low = array<i64: 128, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<1920x16xf32>) -> tensor<2048x16xf32>
  %x8 = ckopt.add %x7, %p7 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s8 = ckopt.slice %x8 {starts = array<i64: 0, 0>, sizes = array<i64: 1792, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<1792x16xf32>
  %p8 = ckopt.pad %s8 {low = array<i64: 256, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<1792x16xf32>) -> tensor<2048x16xf32>
  %x9 = ckopt.add %x8, %p8 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  %s9 = ckopt.slice %x9 {starts = array<i64: 0, 0>, sizes = array<i64: 1536, 16>, steps = array<i64: 1, 1>} : (tensor<2048x16xf32>) -> tensor<1536x16xf32>
  %p9 = ckopt.pad %s9 {low = array<i64: 512, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<1536x16xf32>) -> tensor<2048x16xf32>
  %x10 = ckopt.add %x9, %p9 : (tensor<2048x16xf32>, tensor<2048x16xf32>) -> tensor<2048x16xf32>
  return %x10 : tensor<2048x16xf32>
}

// -----

// A rotary embedding reads its operand as it is and as two halves: three indices, one kernel.
// CHECK-LABEL: func.func @rotary
// CHECK-COUNT-1: ckopt.kernel_call
// CHECK-NOT: ckopt.kernel_call
// CHECK: return
func.func @rotary(%x: tensor<4x64xf32>, %cos: tensor<4x64xf32>, %sin: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %y = ckopt.exp %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %a = ckopt.slice %y {starts = array<i64: 0, 0>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b = ckopt.slice %y {starts = array<i64: 0, 32>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %n = ckopt.neg %b : (tensor<4x32xf32>) -> tensor<4x32xf32>
  %r = ckopt.concat %n, %a {axis = 1 : i64} : (tensor<4x32xf32>, tensor<4x32xf32>) -> tensor<4x64xf32>
  %0 = ckopt.mul %y, %cos : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = ckopt.mul %r, %sin : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %2 = ckopt.add %0, %1 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %2 : tensor<4x64xf32>
}

// -----

// Two kernels stay apart where one would compute a value of the other at too many indices.
// CHECK-LABEL: func.func @returned
// CHECK-COUNT-2: ckopt.kernel_call
// CHECK-NOT: ckopt.kernel_call
// CHECK: return
func.func @returned(%x: tensor<4x64xf32>) -> (tensor<4x64xf32>, tensor<4x64xf32>) {
  %y = ckopt.exp %x : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %a0 = ckopt.slice %y {starts = array<i64: 0, 0>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b0 = ckopt.pad %a0 {low = array<i64: 0, 0>, high = array<i64: 0, 32>, interior = array<i64: 0, 0>} : (tensor<4x32xf32>) -> tensor<4x64xf32>
  %a1 = ckopt.slice %y {starts = array<i64: 0, 1>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b1 = ckopt.pad %a1 {low = array<i64: 0, 0>, high = array<i64: 0, 32>, interior = array<i64: 0, 0>} : (tensor<4x32xf32>) -> tensor<4x64xf32>
  %a2 = ckopt.slice %y {starts = array<i64: 0, 2>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b2 = ckopt.pad %a2 {low = array<i64: 0, 0>, high = array<i64: 0, 32>, interior = array<i64: 0, 0>} : (tensor<4x32xf32>) -> tensor<4x64xf32>
  %a3 = ckopt.slice %y {starts = array<i64: 0, 3>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b3 = ckopt.pad %a3 {low = array<i64: 0, 0>, high = array<i64: 0, 32>, interior = array<i64: 0, 0>} : (tensor<4x32xf32>) -> tensor<4x64xf32>
  %a4 = ckopt.slice %y {starts = array<i64: 0, 4>, sizes = array<i64: 4, 32>, steps = array<i64: 1, 1>} : (tensor<4x64xf32>) -> tensor<4x32xf32>
  %b4 = ckopt.pad %a4 {low = array<i64: 0, 0>, high = array<i64: 0, 32>, interior = array<i64: 0, 0>} : (tensor<4x32xf32>) -> tensor<4x64xf32>
  %c1 = ckopt.add %b0, %b1 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %c2 = ckopt.add %c1, %b2 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %c3 = ckopt.add %c2, %b3 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  %c4 = ckopt.add %c3, %b4 : (tensor<4x64xf32>, tensor<4x64xf32>) -> tensor<4x64xf32>
  return %y, %c4 : tensor<4x64xf32>, tensor<4x64xf32>
}
