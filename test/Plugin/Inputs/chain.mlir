// A chain forward, and products that read it on the way back.
func.func @chain(%x: tensor<1024xf32>, %y: tensor<1024xf32>) -> tensor<1024xf32> {
  %0 = arith.addf %x, %y : tensor<1024xf32>
  %1 = math.exp %0 : tensor<1024xf32>
  %2 = arith.mulf %1, %y : tensor<1024xf32>
  %3 = math.exp %2 : tensor<1024xf32>
  %4 = math.exp %3 : tensor<1024xf32>
  %5 = arith.mulf %4, %3 : tensor<1024xf32>
  %6 = arith.mulf %5, %2 : tensor<1024xf32>
  %7 = arith.mulf %6, %1 : tensor<1024xf32>
  %8 = arith.mulf %7, %0 : tensor<1024xf32>
  return %8 : tensor<1024xf32>
}
