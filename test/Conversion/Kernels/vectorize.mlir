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
