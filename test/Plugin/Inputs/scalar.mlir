// A tensor made of a scalar alone, read again far below.
func.func @scalar(%x: tensor<64xf32>, %s: f32) -> tensor<64xf32> {
  %0 = tensor.splat %s : tensor<64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %1 = linalg.mul ins(%0, %x : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %2 = linalg.exp ins(%1 : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %3 = linalg.tanh ins(%2 : tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %4 = linalg.mul ins(%3, %2 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %5 = linalg.mul ins(%4, %0 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  return %5 : tensor<64xf32>
}
