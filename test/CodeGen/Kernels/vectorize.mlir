// Loops merge and vectorize: contiguous data is read in unit loads, whatever
// the layout; gathers and calls of libm show where that is not possible.
// RUN: ckopt-opt %s --lower-kernels=report --verify-diagnostics

// Contiguous operands are one loop of 2,560 elements.
// expected-remark @+1 {{lanes 16, unit loads 2, broadcasts 0, gathers 0, libm 0; stages 1/6; workspace 0; reuse 0->0 1->0}}
func.func private @flat(%x: tensor<8x320xf32>, %y: tensor<8x320xf32>) -> tensor<8x320xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<8x320xf32>, tensor<8x320xf32>) -> tensor<8x320xf32>
  return %0 : tensor<8x320xf32>
}

// Channels-last: one vector of channels, all points in one outer loop.
// expected-remark @+1 {{gathers 0, libm 0; stages 98/256; workspace 0}}
func.func private @channels(%x: tensor<2x64x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %c: tensor<64x1x1xf32>)
    -> tensor<2x64x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %c : (tensor<2x64x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<64x1x1xf32>) -> tensor<2x64x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %0 : tensor<2x64x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

// Row-major: the 49 points of a channel are one loop.
// expected-remark @+1 {{gathers 0, libm 0; stages 128/334; workspace 0}}
func.func private @points(%x: tensor<2x64x7x7xf32>, %c: tensor<64x1x1xf32>) -> tensor<2x64x7x7xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %x, %c : (tensor<2x64x7x7xf32>, tensor<64x1x1xf32>) -> tensor<2x64x7x7xf32>
  return %0 : tensor<2x64x7x7xf32>
}

// Splitting heads moves whole rows of 64.
// expected-remark @+1 {{gathers 0, libm 0}}
func.func private @heads(%x: tensor<2x10x4x64xf32>) -> tensor<2x4x10x64xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x10x4x64xf32>) -> tensor<2x4x10x64xf32>
  return %0 : tensor<2x4x10x64xf32>
}

// f64 has 8 lanes; its functions are libm's.
// expected-remark @+1 {{lanes 8, unit loads 1, broadcasts 0, gathers 0, libm 1}}
func.func private @sine(%x: tensor<64xf64>) -> tensor<64xf64> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.sin %x : (tensor<64xf64>) -> tensor<64xf64>
  return %0 : tensor<64xf64>
}

// A product by a convolution's library, with its descriptor.
// expected-remark @+1 {{library: matmul f32}}
func.func private @product(%x: tensor<4x8xf32>, %y: tensor<8x16xf32>) -> tensor<4x16xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// A transposed operand is read at other points than are written: no reuse.
// expected-remark-re @+1 {{workspace 0; reuse{{$}}}}
func.func private @moved(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %x {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = ckopt.add %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// Indices may not take the bytes of the elements that are still compared, by
// passes or by a heap.
// expected-remark-re @+1 {{workspace 0; reuse{{$}}}}
func.func private @best(%x: tensor<4xi64>) -> tensor<4xi64> attributes {ckopt.kernel = "structured"} {
  %0 = ckopt.top_k %x {axis = 0 : i64, k = 4 : i64} : (tensor<4xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
// expected-remark-re @+1 {{workspace 0; reuse{{$}}}}
func.func private @best_by_heap(%x: tensor<12xi64>) -> tensor<12xi64> attributes {ckopt.kernel = "structured"} {
  %0 = ckopt.top_k %x {axis = 0 : i64, k = 12 : i64} : (tensor<12xi64>) -> tensor<12xi64>
  return %0 : tensor<12xi64>
}

// An update's results lie where the old states were.
// expected-remark @+1 {{reuse 0->0 0->1 0->2 1->0 1->1 1->2 2->0 2->1 2->2 3->0 3->1 3->2}}
func.func private @adam(%p: tensor<7x45xf32>, %g: tensor<7x45xf32>, %m: tensor<7x45xf32>, %v: tensor<7x45xf32>, %l: tensor<f32>, %s: tensor<i64>)
    -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0:3 = ckopt.adam %p, %g, %m, %v, %l, %s {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<f32>, tensor<i64>) -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>)
  return %0#0, %0#1, %0#2 : tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>
}
// expected-remark @+1 {{reuse 0->0 0->1 1->0 1->1 2->0 2->1}}
func.func private @assigned(%p: tensor<5x45xf32>, %g: tensor<5x45xf32>, %v: tensor<5x45xf32>)
    -> (tensor<5x45xf32>, tensor<5x45xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %g, %g : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %1 = ckopt.add %v, %0 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %2 = ckopt.sub %p, %1 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %3 = ckopt.assign %v, %1 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %4 = ckopt.assign %p, %2 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  return %3, %4 : tensor<5x45xf32>, tensor<5x45xf32>
}

// Long sums run in chunks with partial results.
// expected-remark @+1 {{stages 4/1 3/16; workspace 640; reuse}}
func.func private @chunks(%x: tensor<5000x40xf32>) -> tensor<40xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<5000x40xf32>) -> tensor<40xf32>
  return %0 : tensor<40xf32>
}
