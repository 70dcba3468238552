// Where no output, or more than one, could be the loss, all are named.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics --attach-loss=loss=output

// expected-error @+1 {{the model holds no loss: that would be an output of one floating-point number, and its outputs are 'y' f32 [4, 2], 'n' i64 []; attach a loss to an output}}
func.func @forward(%y: tensor<4x2xf32>, %n: tensor<i64>)
    -> (tensor<4x2xf32> {ckopt.name = "y"}, tensor<i64> {ckopt.name = "n"}) {
  return %y, %n : tensor<4x2xf32>, tensor<i64>
}

// -----

// expected-error @+1 {{several outputs could be the loss: 'a', 'b'; say which (--loss=output:a), or how they add up (--loss='output:a*1+output:b*0.5')}}
func.func @forward(%a: tensor<f32>, %b: tensor<1xf32>)
    -> (tensor<f32> {ckopt.name = "a"}, tensor<1xf32> {ckopt.name = "b"}) {
  return %a, %b : tensor<f32>, tensor<1xf32>
}

// -----

// With a batch of one a prediction is one number, too, and no loss.
// expected-error @+1 {{the model holds no loss: that would be an output of one floating-point number, and its outputs are 'y' f32 [1, 1]}}
func.func @forward(%x: tensor<1x3xf32> {ckopt.name = "x", ckopt.role = "input"}, %y: tensor<1x1xf32>)
    -> (tensor<1x1xf32> {ckopt.name = "y"}) {
  return %y : tensor<1x1xf32>
}
