// A chain of linalg ops, read again on the way back.
func.func @chain(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %e = tensor.empty() : tensor<1024xf32>
  %0 = linalg.add ins(%x, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %1 = linalg.exp ins(%0 : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %2 = linalg.mul ins(%1, %y : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %3 = linalg.exp ins(%2 : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %4 = linalg.exp ins(%3 : tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %5 = linalg.mul ins(%4, %3 : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %6 = linalg.mul ins(%5, %2 : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %7 = linalg.mul ins(%6, %1 : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  %8 = linalg.mul ins(%7, %0 : tensor<1024xf32>, tensor<1024xf32>) outs(%e : tensor<1024xf32>) -> tensor<1024xf32>
  return %8 : tensor<1024xf32>
}
