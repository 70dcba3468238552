// How elementwise ops become kernels.
// RUN: ckopt-opt %s --fuse --split-input-file | FileCheck %s

// A chain of elementwise ops with one reader each is one kernel.
// CHECK-LABEL: func.func @chain
// CHECK: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0(%arg0, %arg1)
// CHECK-NEXT: return %[[R]]
// CHECK: func.func private @k_elementwise_0
// CHECK-SAME: ckopt.kernel = "elementwise"
// CHECK: ckopt.add
// CHECK: ckopt.relu
// CHECK: ckopt.mul
func.func @chain(%x: tensor<4x16xf32>, %b: tensor<16xf32>) -> tensor<4x16xf32> {
  %c = ckopt.constant dense<2.0> : tensor<f32>
  %0 = ckopt.add %x, %b : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %1 = ckopt.relu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %2 = ckopt.mul %1, %c : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
  return %2 : tensor<4x16xf32>
}

// -----

// Equal kernels are one symbol, whatever values they are called on.
// CHECK-LABEL: func.func @twins
// CHECK: %[[A:.*]] = ckopt.kernel_call @k_library_0(%arg0, %arg1)
// CHECK: %[[B:.*]] = ckopt.kernel_call @k_elementwise_0(%[[A]])
// CHECK: %[[C:.*]] = ckopt.kernel_call @k_library_0(%[[B]], %arg1)
// CHECK: ckopt.kernel_call @k_elementwise_0(%[[C]])
// CHECK-NOT: @k_elementwise_1
func.func @twins(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = ckopt.matmul %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.relu %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.matmul %1, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ckopt.relu %2 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}

// -----

// What differs between equal layers, a dropout's site, is a scalar of the call; inside the
// kernel the site is its index.
// CHECK-LABEL: func.func @sites
// CHECK: ckopt.kernel_call @k_elementwise_0({{.*}}) {scalars = array<i64: 7>}
// CHECK: ckopt.kernel_call @k_elementwise_0({{.*}}) {scalars = array<i64: 9>}
// CHECK: func.func private @k_elementwise_0
// CHECK: ckopt.dropout {{.*}}site = 0
func.func @sites(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8x8xf32> {
  %0 = ckopt.dropout %x, %seed, %step {ratio = 0.5, site = 7} : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  %1 = ckopt.matmul %0, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.dropout %1, %seed, %step {ratio = 0.5, site = 9} : (tensor<8x8xf32>, tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// -----

// So is that of random numbers: one kernel serves every place that draws them.
// CHECK-LABEL: func.func @draws
// CHECK: ckopt.kernel_call @k_elementwise_0({{.*}}) {scalars = array<i64: 3>}
// CHECK: ckopt.kernel_call @k_elementwise_0({{.*}}) {scalars = array<i64: 4>}
// CHECK: func.func private @k_elementwise_0
// CHECK: ckopt.random normal {{.*}}site = 0
func.func @draws(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8x8xf32> {
  %0 = ckopt.random normal %seed, %step {site = 3} : (tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  %1 = ckopt.add %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = ckopt.matmul %1, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = ckopt.random normal %seed, %step {site = 4} : (tensor<i64>, tensor<i64>) -> tensor<8x8xf32>
  %4 = ckopt.add %2, %3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}

// -----

// A value that a later kernel needs again, and that is cheap to compute from what is kept
// anyway, is not stored: the mask's kernel reads the product, not the biased value.
// CHECK-LABEL: func.func @again
// CHECK: %[[P:.*]] = ckopt.kernel_call @k_library_0
// CHECK: %[[Y:.*]] = ckopt.kernel_call @k_elementwise_0(%[[P]], %arg2) : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
// CHECK: %[[D:.*]] = ckopt.kernel_call @k_library_0
// CHECK: ckopt.kernel_call @k_elementwise_1(%[[P]], %arg2, %[[D]])
func.func @again(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<64x64xf32> {
  %p = ckopt.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %h = ckopt.add %p, %b : (tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
  %y = ckopt.abs %h : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = ckopt.matmul %y, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = ckopt.mul %h, %d : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %z : tensor<64x64xf32>
}

// -----

// A sum of two large values with readers far apart is stored: keeping both terms would keep
// more alive than the sum.
// CHECK-LABEL: func.func @residual
// CHECK: %[[S:.*]] = ckopt.kernel_call @k_elementwise_0(%[[A:.*]], %[[B:.*]])
// CHECK: %[[Q:.*]] = ckopt.kernel_call @k_library_0(%[[S]], %arg1)
// CHECK: ckopt.kernel_call @k_elementwise_0(%[[S]], %[[Q]])
func.func @residual(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %p = ckopt.matmul %x, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %o = ckopt.matmul %p, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = ckopt.add %p, %o : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %q = ckopt.matmul %s, %w : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %t = ckopt.add %s, %q : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %t : tensor<64x64xf32>
}

// -----

// What is small beside the kernel that reads it is stored once, not computed for each element.
// CHECK-LABEL: func.func @small
// CHECK: %[[R:.*]] = ckopt.kernel_call @k_elementwise_0(%arg1) : (tensor<16xf32>) -> tensor<16xf32>
// CHECK: ckopt.kernel_call @k_elementwise_1(%arg0, %[[R]])
func.func @small(%x: tensor<64x16xf32>, %v: tensor<16xf32>) -> tensor<64x16xf32> {
  %r = ckopt.rsqrt %v : (tensor<16xf32>) -> tensor<16xf32>
  %y = ckopt.mul %x, %r : (tensor<64x16xf32>, tensor<16xf32>) -> tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

// -----

// Siblings that read one large value are one kernel with two results.
// CHECK-LABEL: func.func @siblings
// CHECK: %[[R:.*]]:2 = ckopt.kernel_call @k_elementwise_0(%arg0)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @siblings(%x: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %a = ckopt.exp %x : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %b = ckopt.sin %x : (tensor<128x128xf32>) -> tensor<128x128xf32>
  return %a, %b : tensor<128x128xf32>, tensor<128x128xf32>
}

// -----

// A constant result needs a kernel of its own; an argument that is returned needs none.
// CHECK-LABEL: func.func @constant
// CHECK: %[[C:.*]] = ckopt.kernel_call @k_elementwise_0() : () -> tensor<4xf32>
// CHECK-NEXT: return %[[C]], %arg0
func.func @constant(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = ckopt.constant dense<1.0> : tensor<4xf32>
  return %c, %x : tensor<4xf32>, tensor<4xf32>
}
