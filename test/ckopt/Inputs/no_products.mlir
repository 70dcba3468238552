// A network without products: all kernels are generated.
func.func @forward(
    %x: tensor<96x24x40xf32> {ckopt.name = "x", ckopt.role = "input"},
    %s: tensor<24xf32> {ckopt.name = "s", ckopt.role = "parameter", ckopt.init = "ones"},
    %b: tensor<24xf32> {ckopt.name = "b", ckopt.role = "parameter", ckopt.init = "zeros"},
    %t: tensor<40xf32> {ckopt.name = "t", ckopt.role = "parameter", ckopt.init = "ones"},
    %c: tensor<40xf32> {ckopt.name = "c", ckopt.role = "parameter", ckopt.init = "zeros"})
    -> (tensor<96x24x40xf32> {ckopt.name = "y"}) {
  %0, %mean, %var = ckopt.batch_norm %x, %s, %b {epsilon = 1.0e-5 : f64} : (tensor<96x24x40xf32>, tensor<24xf32>, tensor<24xf32>) -> (tensor<96x24x40xf32>, tensor<24xf32>, tensor<24xf32>)
  %1 = ckopt.gelu %0 : (tensor<96x24x40xf32>) -> tensor<96x24x40xf32>
  %2, %m, %v = ckopt.layer_norm %1 scale %t bias %c {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<96x24x40xf32>, tensor<40xf32>, tensor<40xf32>) -> (tensor<96x24x40xf32>, tensor<96x24xf32>, tensor<96x24xf32>)
  %3 = ckopt.softmax %2 {axis = 1 : i64} : (tensor<96x24x40xf32>) -> tensor<96x24x40xf32>
  return %3 : tensor<96x24x40xf32>
}
