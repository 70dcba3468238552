// The product of stored_blocks.mlir, added to a tensor together with a bias over its 8192 columns.
func.func @forward(
    %x: tensor<4x1280xf32> {ckopt.name = "x", ckopt.role = "input"},
    %r: tensor<4x8192xf32> {ckopt.name = "r", ckopt.role = "input"},
    %a: tensor<1280xf32> {ckopt.name = "a", ckopt.role = "parameter", ckopt.init = "ones"},
    %b: tensor<8192xf32> {ckopt.name = "b", ckopt.role = "parameter", ckopt.init = "ones"},
    %w: tensor<8192x1280xi8> {ckopt.name = "w", ckopt.role = "frozen"})
    -> (tensor<4x8192xf32> {ckopt.name = "y"}) {
  %0 = ckopt.mul %x, %a : (tensor<4x1280xf32>, tensor<1280xf32>) -> tensor<4x1280xf32>
  %1 = ckopt.cast %w : (tensor<8192x1280xi8>) -> tensor<8192x1280xf32>
  %2 = ckopt.matmul %0, %1 {transpose_rhs} : (tensor<4x1280xf32>, tensor<8192x1280xf32>) -> tensor<4x8192xf32>
  %3 = ckopt.add %b, %2 : (tensor<8192xf32>, tensor<4x8192xf32>) -> tensor<4x8192xf32>
  %4 = ckopt.add %r, %3 : (tensor<4x8192xf32>, tensor<4x8192xf32>) -> tensor<4x8192xf32>
  return %4 : tensor<4x8192xf32>
}
