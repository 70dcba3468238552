// A destination stays outside of a body that passes one buffer on twice: inside,
// bufferization gives two results of the loop the same buffer, and an iteration
// writes to one while it reads the other.
// RUN: ckopt-opt %s --remat="budget=min effort=0" | FileCheck %s

// CHECK-LABEL: @twice
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: scf.for
// CHECK-NOT: tensor.empty
// CHECK: linalg.negf {{.*}} outs(%[[E]]
func.func @twice(%x: tensor<256xf32>) -> tensor<256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %to = tensor.empty() : tensor<256xf32>
  %a = math.exp %x : tensor<256xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %x)
      -> (tensor<256xf32>, tensor<256xf32>) {
    %n = linalg.negf ins(%q : tensor<256xf32>) outs(%to : tensor<256xf32>) -> tensor<256xf32>
    scf.yield %n, %n : tensor<256xf32>, tensor<256xf32>
  }
  %s = arith.mulf %r#0, %r#1 : tensor<256xf32>
  %t = arith.mulf %s, %a : tensor<256xf32>
  return %t : tensor<256xf32>
}

// A value, and what is written into its bytes.
// CHECK-LABEL: @inserted
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: scf.for
// CHECK-NOT: tensor.empty
// CHECK: linalg.negf {{.*}} outs(%[[E]]
func.func @inserted(%x: tensor<256xf32>) -> tensor<256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %to = tensor.empty() : tensor<256xf32>
  %a = math.exp %x : tensor<256xf32>
  %r:2 = scf.for %i = %c0 to %c3 step %c1 iter_args(%p = %a, %q = %x)
      -> (tensor<256xf32>, tensor<256xf32>) {
    %n = linalg.negf ins(%q : tensor<256xf32>) outs(%to : tensor<256xf32>) -> tensor<256xf32>
    %part = tensor.extract_slice %n[0] [128] [1] : tensor<256xf32> to tensor<128xf32>
    %y = tensor.insert_slice %part into %n[0] [128] [1] : tensor<128xf32> into tensor<256xf32>
    scf.yield %n, %y : tensor<256xf32>, tensor<256xf32>
  }
  %s = arith.mulf %r#0, %r#1 : tensor<256xf32>
  %t = arith.mulf %s, %a : tensor<256xf32>
  return %t : tensor<256xf32>
}

// One buffer, passed on once: the destination is made where it is used.
// CHECK-LABEL: @once
// CHECK: scf.for
// CHECK: %[[E:.*]] = tensor.empty
// CHECK: linalg.negf {{.*}} outs(%[[E]]
func.func @once(%x: tensor<256xf32>) -> tensor<256xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %to = tensor.empty() : tensor<256xf32>
  %a = math.exp %x : tensor<256xf32>
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%q = %x) -> (tensor<256xf32>) {
    %n = linalg.negf ins(%q : tensor<256xf32>) outs(%to : tensor<256xf32>) -> tensor<256xf32>
    scf.yield %n : tensor<256xf32>
  }
  %t = arith.mulf %r, %a : tensor<256xf32>
  return %t : tensor<256xf32>
}
