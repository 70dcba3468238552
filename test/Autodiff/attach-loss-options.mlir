// Options that name nothing are refused, with what there is.
// RUN: not ckopt-opt %s --attach-loss="loss=focal" 2>&1 | FileCheck %s --check-prefix=KIND
// RUN: not ckopt-opt %s --attach-loss="loss=mse:logit" 2>&1 | FileCheck %s --check-prefix=OUTPUT
// RUN: not ckopt-opt %s --attach-loss="loss=output:logits" 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: not ckopt-opt %s --attach-loss="class-axis=3" 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not ckopt-opt %s --attach-loss="class-weights=1,2,3" 2>&1 | FileCheck %s --check-prefix=WEIGHTS
// RUN: not ckopt-opt %s --attach-loss="reduction=batchmean" 2>&1 | FileCheck %s --check-prefix=REDUCTION
// RUN: not ckopt-opt %s --attach-loss="loss=mse:" 2>&1 | FileCheck %s --check-prefix=COLON

// KIND: unknown loss 'focal'; expected cross_entropy, nll, mse, l1,
// OUTPUT: no output is named 'logit'; outputs are 'logits', 'result1'
// SCALAR: output 'logits' is f32 [4, 2]: a loss is one number; attach one that takes targets (--loss=mse:logits)
// AXIS: --class-axis=3 is outside of scores 'tensor<4x2xf32>'
// WEIGHTS: --class-weights: 3 numbers for the 2 along axis 1 of 'logits'
// REDUCTION: unknown reduction 'batchmean' of cross_entropy
// COLON: 'mse:' names no output behind the colon
func.func @forward(%x: tensor<4x2xf32>) -> (tensor<4x2xf32> {ckopt.name = "logits"}, tensor<f32>) {
  %c = ckopt.constant dense<1.0> : tensor<f32>
  return %x, %c : tensor<4x2xf32>, tensor<f32>
}
