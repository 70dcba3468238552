// A frozen weight of int8 whose products are done in blocks on a GPU: 8192 rows of 5 KiB, 3,264 a
// block, and 1280 columns of 32 KiB, 512 a block. With a batch of 4 the mean divides by 2^15.
func.func @forward(
    %x: tensor<4x1280xf32> {ckopt.name = "x", ckopt.role = "input"},
    %a: tensor<1280xf32> {ckopt.name = "a", ckopt.role = "parameter", ckopt.init = "ones"},
    %w: tensor<8192x1280xi8> {ckopt.name = "w", ckopt.role = "frozen"})
    -> (tensor<4x8192xf32> {ckopt.name = "y"}) {
  %0 = ckopt.mul %x, %a : (tensor<4x1280xf32>, tensor<1280xf32>) -> tensor<4x1280xf32>
  %1 = ckopt.cast %w : (tensor<8192x1280xi8>) -> tensor<8192x1280xf32>
  %2 = ckopt.matmul %0, %1 {transpose_rhs} : (tensor<4x1280xf32>, tensor<8192x1280xf32>) -> tensor<4x8192xf32>
  return %2 : tensor<4x8192xf32>
}
