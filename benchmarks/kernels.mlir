// The kernels that ckopt-benchmarks times, each by its name: on one thread, as code
// of the CPU.

func.func private @add_262144(%x: tensor<262144xf32>, %y: tensor<262144xf32>)
    -> tensor<262144xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<262144xf32>, tensor<262144xf32>) -> tensor<262144xf32>
  return %0 : tensor<262144xf32>
}

func.func private @add_16777216(%x: tensor<16777216xf32>, %y: tensor<16777216xf32>)
    -> tensor<16777216xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %y : (tensor<16777216xf32>, tensor<16777216xf32>) -> tensor<16777216xf32>
  return %0 : tensor<16777216xf32>
}

func.func private @bias_relu_2048x3072(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %b : (tensor<2048x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %1 = ckopt.relu %0 : (tensor<2048x3072xf32>) -> tensor<2048x3072xf32>
  return %1 : tensor<2048x3072xf32>
}

func.func private @bias_exp_2048x3072(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %b : (tensor<2048x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %1 = ckopt.exp %0 : (tensor<2048x3072xf32>) -> tensor<2048x3072xf32>
  return %1 : tensor<2048x3072xf32>
}

func.func private @bias_tanh_2048x3072(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %b : (tensor<2048x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %1 = ckopt.tanh %0 : (tensor<2048x3072xf32>) -> tensor<2048x3072xf32>
  return %1 : tensor<2048x3072xf32>
}

func.func private @bias_gelu_2048x3072(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %b : (tensor<2048x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %1 = ckopt.gelu %0 : (tensor<2048x3072xf32>) -> tensor<2048x3072xf32>
  return %1 : tensor<2048x3072xf32>
}

func.func private @bias_gelu_tanh_2048x3072(%x: tensor<2048x3072xf32>, %b: tensor<3072xf32>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.add %x, %b : (tensor<2048x3072xf32>, tensor<3072xf32>) -> tensor<2048x3072xf32>
  %1 = ckopt.gelu %0 {tanh} : (tensor<2048x3072xf32>) -> tensor<2048x3072xf32>
  return %1 : tensor<2048x3072xf32>
}

func.func private @dropout_2048x3072(%x: tensor<2048x3072xf32>, %s: tensor<i64>, %t: tensor<i64>)
    -> tensor<2048x3072xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.dropout %x, %s, %t {ratio = 0.1 : f64, site = 0 : i64} : (tensor<2048x3072xf32>, tensor<i64>, tensor<i64>) -> tensor<2048x3072xf32>
  return %0 : tensor<2048x3072xf32>
}

func.func private @adamw_16777216(%p: tensor<16777216xf32>, %g: tensor<16777216xf32>, %m: tensor<16777216xf32>, %v: tensor<16777216xf32>, %l: tensor<f32>, %s: tensor<i64>)
    -> (tensor<16777216xf32>, tensor<16777216xf32>, tensor<16777216xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0:3 = ckopt.adam %p, %g, %m, %v, %l, %s {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled} : (tensor<16777216xf32>, tensor<16777216xf32>, tensor<16777216xf32>, tensor<16777216xf32>, tensor<f32>, tensor<i64>) -> (tensor<16777216xf32>, tensor<16777216xf32>, tensor<16777216xf32>)
  return %0#0, %0#1, %0#2 : tensor<16777216xf32>, tensor<16777216xf32>, tensor<16777216xf32>
}

func.func private @moments_64x56x56(%x: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<64xf32>, tensor<64xf32>) attributes {ckopt.kernel = "reduction"} {
  %0:2 = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<64xf32>, tensor<64xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_sums_64x56x56(%g: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %x: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<64x1x1xf32>)
    -> (tensor<64xf32>, tensor<64xf32>) attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.sub %x, %m : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<64x1x1xf32>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %g, %0 : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<64xf32>
  %3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<64xf32>
  return %2, %3 : tensor<64xf32>, tensor<64xf32>
}

func.func private @batch_norm_relu_64x56x56(%x: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<64x1x1xf32>, %v: tensor<64x1x1xf32>)
    -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %e = ckopt.constant dense<1.0e-5> : tensor<f32>
  %0 = ckopt.add %v, %e : (tensor<64x1x1xf32>, tensor<f32>) -> tensor<64x1x1xf32>
  %1 = ckopt.rsqrt %0 : (tensor<64x1x1xf32>) -> tensor<64x1x1xf32>
  %2 = ckopt.sub %x, %m : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<64x1x1xf32>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.mul %2, %1 : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<64x1x1xf32>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.relu %3 : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %4 : tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @moments_256x56x56(%x: tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<256xf32>, tensor<256xf32>) attributes {ckopt.kernel = "reduction"} {
  %0:2 = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<256xf32>, tensor<256xf32>)
  return %0#0, %0#1 : tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_sums_256x56x56(%g: tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %x: tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<256x1x1xf32>)
    -> (tensor<256xf32>, tensor<256xf32>) attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.sub %x, %m : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<256x1x1xf32>) -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %g, %0 : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<256xf32>
  %3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<256xf32>
  return %2, %3 : tensor<256xf32>, tensor<256xf32>
}

func.func private @batch_norm_relu_256x56x56(%x: tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<256x1x1xf32>, %v: tensor<256x1x1xf32>)
    -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %e = ckopt.constant dense<1.0e-5> : tensor<f32>
  %0 = ckopt.add %v, %e : (tensor<256x1x1xf32>, tensor<f32>) -> tensor<256x1x1xf32>
  %1 = ckopt.rsqrt %0 : (tensor<256x1x1xf32>) -> tensor<256x1x1xf32>
  %2 = ckopt.sub %x, %m : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<256x1x1xf32>) -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.mul %2, %1 : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<256x1x1xf32>) -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.relu %3 : (tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %4 : tensor<8x256x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @moments_512x28x28(%x: tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<512xf32>, tensor<512xf32>) attributes {ckopt.kernel = "reduction"} {
  %0:2 = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<512xf32>, tensor<512xf32>)
  return %0#0, %0#1 : tensor<512xf32>, tensor<512xf32>
}

func.func private @batch_norm_sums_512x28x28(%g: tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, %x: tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<512x1x1xf32>)
    -> (tensor<512xf32>, tensor<512xf32>) attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.sub %x, %m : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<512x1x1xf32>) -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %g, %0 : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<512xf32>
  %3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<512xf32>
  return %2, %3 : tensor<512xf32>, tensor<512xf32>
}

func.func private @batch_norm_relu_512x28x28(%x: tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<512x1x1xf32>, %v: tensor<512x1x1xf32>)
    -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %e = ckopt.constant dense<1.0e-5> : tensor<f32>
  %0 = ckopt.add %v, %e : (tensor<512x1x1xf32>, tensor<f32>) -> tensor<512x1x1xf32>
  %1 = ckopt.rsqrt %0 : (tensor<512x1x1xf32>) -> tensor<512x1x1xf32>
  %2 = ckopt.sub %x, %m : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<512x1x1xf32>) -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.mul %2, %1 : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<512x1x1xf32>) -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.relu %3 : (tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %4 : tensor<8x512x28x28xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @moments_2048x7x7(%x: tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<2048xf32>, tensor<2048xf32>) attributes {ckopt.kernel = "reduction"} {
  %0:2 = ckopt.moments %x {axes = array<i64: 0, 2, 3>} : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<2048xf32>, tensor<2048xf32>)
  return %0#0, %0#1 : tensor<2048xf32>, tensor<2048xf32>
}

func.func private @batch_norm_sums_2048x7x7(%g: tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %x: tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<2048x1x1xf32>)
    -> (tensor<2048xf32>, tensor<2048xf32>) attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.sub %x, %m : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2048x1x1xf32>) -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %1 = ckopt.mul %g, %0 : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %2 = ckopt.reduce sum %1 {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2048xf32>
  %3 = ckopt.reduce sum %g {axes = array<i64: 0, 2, 3>, keepdims = false} : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<2048xf32>
  return %2, %3 : tensor<2048xf32>, tensor<2048xf32>
}

func.func private @batch_norm_relu_2048x7x7(%x: tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, %m: tensor<2048x1x1xf32>, %v: tensor<2048x1x1xf32>)
    -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %e = ckopt.constant dense<1.0e-5> : tensor<f32>
  %0 = ckopt.add %v, %e : (tensor<2048x1x1xf32>, tensor<f32>) -> tensor<2048x1x1xf32>
  %1 = ckopt.rsqrt %0 : (tensor<2048x1x1xf32>) -> tensor<2048x1x1xf32>
  %2 = ckopt.sub %x, %m : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2048x1x1xf32>) -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.mul %2, %1 : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<2048x1x1xf32>) -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %4 = ckopt.relu %3 : (tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %4 : tensor<8x2048x7x7xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @bias_gradient_2048x768(%x: tensor<2048x768xf32>)
    -> tensor<768xf32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0>, keepdims = false} : (tensor<2048x768xf32>) -> tensor<768xf32>
  return %0 : tensor<768xf32>
}

func.func private @sum_50257x768(%x: tensor<50257x768xf32>)
    -> tensor<f32> attributes {ckopt.kernel = "reduction"} {
  %0 = ckopt.reduce sum %x {axes = array<i64: 0, 1>, keepdims = false} : (tensor<50257x768xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

func.func private @layer_norm_2048x768(%x: tensor<2048x768xf32>, %s: tensor<768xf32>, %b: tensor<768xf32>)
    -> (tensor<2048x768xf32>, tensor<2048xf32>, tensor<2048xf32>) attributes {ckopt.kernel = "row"} {
  %0:3 = ckopt.layer_norm %x scale %s bias %b {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2048x768xf32>, tensor<768xf32>, tensor<768xf32>) -> (tensor<2048x768xf32>, tensor<2048xf32>, tensor<2048xf32>)
  return %0#0, %0#1, %0#2 : tensor<2048x768xf32>, tensor<2048xf32>, tensor<2048xf32>
}

func.func private @layer_norm_gradient_2048x768(%g: tensor<2048x768xf32>, %x: tensor<2048x768xf32>, %m: tensor<2048xf32>, %r: tensor<2048xf32>, %s: tensor<768xf32>)
    -> tensor<2048x768xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.layer_norm_grad %g, %x, %m, %r scale %s {axis = 1 : i64} : (tensor<2048x768xf32>, tensor<2048x768xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<768xf32>) -> tensor<2048x768xf32>
  return %0 : tensor<2048x768xf32>
}

func.func private @softmax_24x1024x1024(%x: tensor<2x12x1024x1024xf32>)
    -> tensor<2x12x1024x1024xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.softmax %x {axis = 3 : i64} : (tensor<2x12x1024x1024xf32>) -> tensor<2x12x1024x1024xf32>
  return %0 : tensor<2x12x1024x1024xf32>
}

func.func private @softmax_gradient_24x1024x1024(%g: tensor<2x12x1024x1024xf32>, %y: tensor<2x12x1024x1024xf32>)
    -> tensor<2x12x1024x1024xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.softmax_grad %g, %y {axis = 3 : i64} : (tensor<2x12x1024x1024xf32>, tensor<2x12x1024x1024xf32>) -> tensor<2x12x1024x1024xf32>
  return %0 : tensor<2x12x1024x1024xf32>
}

func.func private @cross_entropy_1024x50257(%x: tensor<1024x50257xf32>, %t: tensor<1024xi64>)
    -> (tensor<1024xf32>, tensor<1024xf32>) attributes {ckopt.kernel = "row"} {
  %0:3 = ckopt.cross_entropy %x, %t {axis = 1 : i64} : (tensor<1024x50257xf32>, tensor<1024xi64>) -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>)
  return %0#0, %0#1 : tensor<1024xf32>, tensor<1024xf32>
}

func.func private @cross_entropy_gradient_1024x50257(%g: tensor<1024xf32>, %x: tensor<1024x50257xf32>, %t: tensor<1024xi64>, %l: tensor<1024xf32>)
    -> tensor<1024x50257xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.cross_entropy_grad %g, %x, %t, %l, %l {axis = 1 : i64} : (tensor<1024xf32>, tensor<1024x50257xf32>, tensor<1024xi64>, tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024x50257xf32>
  return %0 : tensor<1024x50257xf32>
}

func.func private @split_heads_2x1024x12x64(%x: tensor<2x1024x12x64xf32>)
    -> tensor<2x12x1024x64xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x1024x12x64xf32>) -> tensor<2x12x1024x64xf32>
  return %0 : tensor<2x12x1024x64xf32>
}

func.func private @transpose_1024x1024(%x: tensor<1024x1024xf32>)
    -> tensor<1024x1024xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.transpose %x {permutation = array<i64: 1, 0>} : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}

func.func private @nchw_to_nhwc_8x64x56x56(%x: tensor<8x64x56x56xf32>)
    -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.relayout %x : (tensor<8x64x56x56xf32>) -> tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %0 : tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @nhwc_to_nchw_8x64x56x56(%x: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> tensor<8x64x56x56xf32> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.relayout %x : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x64x56x56xf32>
  return %0 : tensor<8x64x56x56xf32>
}

func.func private @max_pool_8x64x112x112(%x: tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>>)
    -> (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>) attributes {ckopt.kernel = "elementwise"} {
  %0:2 = ckopt.max_pool %x {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>>) -> (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>)
  return %0#0, %0#1 : tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @max_pool_gradient_8x64x112x112(%g: tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, %i: tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>)
    -> tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>> attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.max_pool_grad %g, %i {kernel = array<i64: 3, 3>, strides = array<i64: 2, 2>, pads_low = array<i64: 1, 1>, pads_high = array<i64: 1, 1>, dilations = array<i64: 1, 1>} : (tensor<8x64x56x56xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<8x64x56x56xi8, #ckopt.layout<[0, 2, 3, 1]>>) -> tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return %0 : tensor<8x64x112x112xf32, #ckopt.layout<[0, 2, 3, 1]>>
}

func.func private @embedding_gradient_50257x768(%i: tensor<2048xi64>, %u: tensor<2048x768xf32>)
    -> tensor<50257x768xf32> attributes {ckopt.kernel = "structured"} {
  %z = ckopt.constant dense<0.0> : tensor<50257x768xf32>
  %0 = ckopt.scatter_add %z, %i, %u {axis = 0 : i64} : (tensor<50257x768xf32>, tensor<2048xi64>, tensor<2048x768xf32>) -> tensor<50257x768xf32>
  return %0 : tensor<50257x768xf32>
}
