// Options that name nothing are refused, with what there is.
// RUN: not ckopt-opt %s --attach-loss="loss=hinge" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not ckopt-opt %s --attach-loss="output=logit" 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not ckopt-opt %s --attach-loss="class-axis=3" 2>&1 | FileCheck %s --check-prefix=AXIS

// KIND: unknown loss 'hinge'; expected cross_entropy or mse
// OUTPUT: no output is named 'logit'; outputs are logits, result1
// AXIS: class axis 3 is outside of logits 'tensor<4x2xf32>'
func.func @forward(%x: tensor<4x2xf32>) -> (tensor<4x2xf32> {ckopt.name = "logits"}, tensor<f32>) {
  %c = ckopt.constant dense<1.0> : tensor<f32>
  return %x, %c : tensor<4x2xf32>, tensor<f32>
}
