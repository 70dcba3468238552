// Updates of parameters and states, and random numbers.
// RUN: ckopt-opt %s --test-kernels-against-reference -o /dev/null | FileCheck %s

// CHECK: @adam: 6 kernels, 6 as code of the CPU, 6 as PTX
func.func @adam(%a: tensor<7x45xf32> {test.range = array<f64: 0.01, 1.0>},
    %b: tensor<7x45xf32> {test.range = array<f64: 0.02, 1.0>},
    %c: tensor<7x45xf32> {test.range = array<f64: 0.03, 1.0>},
    %d: tensor<7x45xf32> {test.range = array<f64: 0.04, 1.0>}, %e: tensor<f32> {test.range = array<f64: 0.01, 1.0>},
    %f: tensor<i64> {test.value = dense<1> : tensor<i64>}, %g: tensor<i64> {test.value = dense<3> : tensor<i64>},
    %h: tensor<7x45xf64> {test.range = array<f64: 0.01, 1.0>},
    %i: tensor<7x45xf64> {test.range = array<f64: 0.02, 1.0>},
    %j: tensor<7x45xf64> {test.range = array<f64: 0.03, 1.0>},
    %k: tensor<7x45xf64> {test.range = array<f64: 0.04, 1.0>}, %l: tensor<f64> {test.range = array<f64: 0.01, 1.0>},
    %m: tensor<i64> {test.value = dense<2> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-5>} {
  %0:3 = ckopt.adam %a, %b, %c, %d, %e, %f {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<f32>, tensor<i64>) -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>)
  %1:3 = ckopt.adam %a, %b, %c, %d, %e, %g {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<f32>, tensor<i64>) -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>)
  %2:3 = ckopt.adam %a, %b, %c, %d, %e, %f {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled} : (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<f32>, tensor<i64>) -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>)
  %3:3 = ckopt.adam %a, %b, %c, %d, %e, %g {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled} : (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>, tensor<f32>, tensor<i64>) -> (tensor<7x45xf32>, tensor<7x45xf32>, tensor<7x45xf32>)
  %4:3 = ckopt.adam %h, %i, %j, %k, %l, %m {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>, tensor<f64>, tensor<i64>) -> (tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>)
  %5:3 = ckopt.adam %h, %i, %j, %k, %l, %m {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64, decoupled} : (tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>, tensor<f64>, tensor<i64>) -> (tensor<7x45xf64>, tensor<7x45xf64>, tensor<7x45xf64>)
  return
}

// CHECK: @sgd: 6 kernels, 6 as code of the CPU, 6 as PTX
func.func @sgd(%a: tensor<345xf32> {test.range = array<f64: 0.01, 1.0>},
    %b: tensor<345xf32> {test.range = array<f64: 0.02, 1.0>}, %c: tensor<f32> {test.range = array<f64: 0.01, 1.0>},
    %d: tensor<i64> {test.value = dense<1> : tensor<i64>}, %e: tensor<345xf32> {test.range = array<f64: 0.03, 1.0>},
    %f: tensor<i64> {test.value = dense<3> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-5>} {
  %0:2 = ckopt.sgd %a, %b, %c, %d velocity %e {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  %1:2 = ckopt.sgd %a, %b, %c, %f velocity %e {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.0 : f64} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  %2:2 = ckopt.sgd %a, %b, %c, %d velocity %e {momentum = 0.9 : f64, dampening = 0.1 : f64, weight_decay = 0.1 : f64} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  %3:2 = ckopt.sgd %a, %b, %c, %f velocity %e {momentum = 0.9 : f64, dampening = 0.1 : f64, weight_decay = 0.1 : f64} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  %4:2 = ckopt.sgd %a, %b, %c, %d velocity %e {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64, nesterov} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  %5:2 = ckopt.sgd %a, %b, %c, %f velocity %e {momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64, nesterov} : (tensor<345xf32>, tensor<345xf32>, tensor<f32>, tensor<i64>, tensor<345xf32>) -> (tensor<345xf32>, tensor<345xf32>)
  return
}

// With `skips` nothing changes in step 0, whatever the gradient is; in others it is an update.
// CHECK: @skipped: 4 kernels, 4 as code of the CPU, 4 as PTX
func.func @skipped(%p: tensor<45xf32>, %nan: tensor<45xf32> {test.value = dense<0x7FC00000> : tensor<45xf32>},
    %g: tensor<45xf32>, %m: tensor<45xf32>, %v: tensor<45xf32> {test.range = array<f64: 0.01, 1.0>},
    %lr: tensor<f32> {test.range = array<f64: 0.01, 1.0>}, %zero: tensor<i64> {test.value = dense<0> : tensor<i64>},
    %two: tensor<i64> {test.value = dense<2> : tensor<i64>}) attributes {test.tolerance = array<f64: 1.0e-6, 2.0e-5>} {
  %0:2 = ckopt.sgd %p, %nan, %lr, %zero velocity %m {skips, nesterov, momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64} : (tensor<45xf32>, tensor<45xf32>, tensor<f32>, tensor<i64>, tensor<45xf32>) -> (tensor<45xf32>, tensor<45xf32>)
  %1:2 = ckopt.sgd %p, %g, %lr, %two velocity %m {skips, nesterov, momentum = 0.9 : f64, dampening = 0.0 : f64, weight_decay = 0.1 : f64} : (tensor<45xf32>, tensor<45xf32>, tensor<f32>, tensor<i64>, tensor<45xf32>) -> (tensor<45xf32>, tensor<45xf32>)
  %2:3 = ckopt.adam %p, %nan, %m, %v, %lr, %zero {skips, beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<45xf32>, tensor<45xf32>, tensor<45xf32>, tensor<45xf32>, tensor<f32>, tensor<i64>) -> (tensor<45xf32>, tensor<45xf32>, tensor<45xf32>)
  %3:3 = ckopt.adam %p, %g, %m, %v, %lr, %two {skips, decoupled, beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.01 : f64} : (tensor<45xf32>, tensor<45xf32>, tensor<45xf32>, tensor<45xf32>, tensor<f32>, tensor<i64>) -> (tensor<45xf32>, tensor<45xf32>, tensor<45xf32>)
  return
}

// CHECK: @states: 3 kernels, 3 as code of the CPU, 3 as PTX
func.func @states(%a: tensor<45xf32>, %b: tensor<45xf32> {test.range = array<f64: -2.0, 2.0>}) {
  %0 = ckopt.moving_average %a, %b {momentum = 0.9 : f64} : (tensor<45xf32>, tensor<45xf32>) -> tensor<45xf32>
  %1 = ckopt.accumulate %a, %b : (tensor<45xf32>, tensor<45xf32>) -> tensor<45xf32>
  %2 = ckopt.assign %a, %b : (tensor<45xf32>, tensor<45xf32>) -> tensor<45xf32>
  return
}

// CHECK: @batch_norm_inference: 2 kernels, 2 as code of the CPU, 2 as PTX
func.func @batch_norm_inference(%a: tensor<2x20x3x3xf32> {test.range = array<f64: 0.1, 1.0>},
    %b: tensor<20xf32> {test.range = array<f64: 0.1, 1.0>}, %c: tensor<20xf32> {test.range = array<f64: 0.2, 1.0>},
    %d: tensor<20xf32> {test.range = array<f64: 0.30000000000000004, 1.0>},
    %e: tensor<20xf32> {test.range = array<f64: 0.4, 1.0>},
    %f: tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 0.1, 1.0>}) attributes {test.tolerance = array<f64: 1.0e-6, 1.0e-5>} {
  %0 = ckopt.batch_norm_inference %a, %b, %c, %d, %e {epsilon = 1.0e-5 : f64} : (tensor<2x20x3x3xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>) -> tensor<2x20x3x3xf32>
  %1 = ckopt.batch_norm_inference %f, %b, %c, %d, %e {epsilon = 1.0e-5 : f64} : (tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>, tensor<20xf32>) -> tensor<2x20x3x3xf32, #ckopt.layout<[0, 2, 3, 1]>>
  return
}

// Two states from one formula: what they share is computed once, and both lie where the
// old ones were.
// CHECK: @assigned_formula: 1 kernels, 1 as code of the CPU, 1 as PTX
func.func private @assigned_formula(%p: tensor<5x45xf32> {test.range = array<f64: 0.1, 1.0>}, %g: tensor<5x45xf32> {test.range = array<f64: 0.1, 1.0>}, %v: tensor<5x45xf32> {test.range = array<f64: 0.1, 1.0>})
    -> (tensor<5x45xf32>, tensor<5x45xf32>) attributes {ckopt.kernel = "elementwise"} {
  %0 = ckopt.mul %g, %g : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %1 = ckopt.add %v, %0 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %2 = ckopt.sqrt %1 : (tensor<5x45xf32>) -> tensor<5x45xf32>
  %3 = ckopt.div %g, %2 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %4 = ckopt.sub %p, %3 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %5 = ckopt.assign %v, %1 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  %6 = ckopt.assign %p, %4 : (tensor<5x45xf32>, tensor<5x45xf32>) -> tensor<5x45xf32>
  return %5, %6 : tensor<5x45xf32>, tensor<5x45xf32>
}

// The mask is a function of the logical element alone: bit-equal to the interpreter's in
// every layout and however loops merge.
// CHECK: @dropout: 8 kernels, 8 as code of the CPU, 8 as PTX
func.func @dropout(%a: tensor<100xf32> {test.range = array<f64: 0.5, 1.0>},
    %b: tensor<i64> {test.range = array<f64: 0.0, 1000.0>}, %c: tensor<i64> {test.range = array<f64: 0.0, 999.0>},
    %d: tensor<3x5xf32> {test.range = array<f64: 0.5, 1.0>},
    %e: tensor<4x64xf32> {test.range = array<f64: 0.5, 1.0>},
    %f: tensor<7x33xf64> {test.range = array<f64: 0.5, 1.0>},
    %g: tensor<2x20x3x5xf32> {test.range = array<f64: 0.5, 1.0>},
    %h: tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>> {test.range = array<f64: 0.5, 1.0>},
    %i: tensor<1xf32> {test.range = array<f64: 0.5, 1.0>}, %j: tensor<10000xf32> {test.range = array<f64: 0.5, 1.0>}) {
  %0 = ckopt.dropout %a, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<100xf32>, tensor<i64>, tensor<i64>) -> tensor<100xf32>
  %1 = ckopt.dropout %d, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<3x5xf32>, tensor<i64>, tensor<i64>) -> tensor<3x5xf32>
  %2 = ckopt.dropout %e, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<4x64xf32>, tensor<i64>, tensor<i64>) -> tensor<4x64xf32>
  %3 = ckopt.dropout %f, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<7x33xf64>, tensor<i64>, tensor<i64>) -> tensor<7x33xf64>
  %4 = ckopt.dropout %g, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<2x20x3x5xf32>, tensor<i64>, tensor<i64>) -> tensor<2x20x3x5xf32>
  %5 = ckopt.dropout %h, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>, tensor<i64>, tensor<i64>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %6 = ckopt.dropout %i, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<1xf32>, tensor<i64>, tensor<i64>) -> tensor<1xf32>
  %7 = ckopt.dropout %j, %b, %c {ratio = 0.3 : f64, site = 77 : i64} : (tensor<10000xf32>, tensor<i64>, tensor<i64>) -> tensor<10000xf32>
  return
}

// The numbers, too, are functions of the logical element alone.
// CHECK: @random: 12 kernels, 12 as code of the CPU, 11 as PTX
func.func @random(%a: tensor<i64> {test.range = array<f64: 0.0, 1000.0>},
    %b: tensor<i64> {test.range = array<f64: 0.0, 999.0>}) {
  %0 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<100xf32>
  %1 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<7x33xf64>
  %2 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %3 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<f32>
  %4 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<10000xf32>
  %5 = ckopt.random uniform %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<3x33xf16>
  %6 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<100xf32>
  %7 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<7x33xf64>
  %8 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<2x20x3x5xf32, #ckopt.layout<[0, 2, 3, 1]>>
  %9 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<f32>
  %10 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<10000xf32>
  %11 = ckopt.random normal %a, %b {site = 77 : i64} : (tensor<i64>, tensor<i64>) -> tensor<3x33xf16>
  return
}
