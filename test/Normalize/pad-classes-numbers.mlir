// Padding changes no number: a head of seven classes in rows of eight, with a bias, has the losses
// and gradients of its definition, and so has one that is an embedding, too.
// DEFINE: %{short} = sed -E "s/([.][0-9]{4})[0-9]*/\1/g"
// RUN: ckopt-opt %s --split-input-file --test-reference -o /dev/null | %{short} | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --decompose=class-group=8 --test-reference -o /dev/null | %{short} | FileCheck %s
// RUN: ckopt-opt %s --split-input-file --decompose=class-group=8 | FileCheck %s --check-prefix=WIDE

// WIDE: ckopt.cross_entropy {{.*}}classes = 7
// WIDE: return
func.func @main() -> (tensor<3xf32>, tensor<3x2xf32>, tensor<2x7xf32>, tensor<7xf32>) {
  %x = ckopt.constant dense<[[1.0, 2.0], [-1.0, 0.5], [3.0, -2.0]]> : tensor<3x2xf32>
  %w = ckopt.constant dense<[[-1.0, -2.0, -3.0, -1.0, -0.5, -2.5, -1.5], [-2.0, -1.0, -1.5, -2.5, -3.0, -0.5, -1.0]]> : tensor<2x7xf32>
  %b = ckopt.constant dense<[-9.0, -8.0, -9.5, -7.0, -8.5, -9.0, -8.0]> : tensor<7xf32>
  %t = ckopt.constant dense<[6, 2, -100]> : tensor<3xi64>
  %g = ckopt.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %0:4 = ckopt.linear_cross_entropy_grad %g, %x, %w, %t bias %b {rows = 2 : i64} : (tensor<3xf32>, tensor<3x2xf32>, tensor<2x7xf32>, tensor<3xi64>, tensor<7xf32>) -> (tensor<3xf32>, tensor<3x2xf32>, tensor<2x7xf32>, tensor<7xf32>)
  return %0#0, %0#1, %0#2, %0#3 : tensor<3xf32>, tensor<3x2xf32>, tensor<2x7xf32>, tensor<7xf32>
}
// CHECK:      result 0: tensor<3xf32> [0.8450, 1.9918, 0]
// CHECK-NEXT: result 1: tensor<3x2xf32> [-0.2215, -0.1298, 2.0408, 0.5742, 0, 0]
// CHECK-NEXT: result 2: tensor<2x7xf32> [-0.0121, -0.3171, 1.7349, -0.1770, -0.0157, -0.2919, -0.9208, 0.0942, 0.8098, -0.8478, 0.3281, 0.0403, 0.5409, -0.9657]
// CHECK-NEXT: result 3: tensor<7xf32> [0.0826, 0.8382, -1.7192, 0.3687, 0.0417, 0.6079, -0.2200]

// -----

// WIDE: ckopt.cross_entropy {{.*}}classes = 7
// WIDE: return
func.func @main() -> (tensor<3xf32>, tensor<7x2xf32>) {
  %x = ckopt.constant dense<[[1.0, 2.0], [-1.0, 0.5], [3.0, -2.0]]> : tensor<3x2xf32>
  %w = ckopt.constant dense<[[-1.0, -2.0], [-3.0, -1.0], [-0.5, -2.5], [-1.5, -2.0], [-1.0, -1.5], [-2.5, -3.0], [-0.5, -1.0]]> : tensor<7x2xf32>
  %t = ckopt.constant dense<[6, 2, 0]> : tensor<3xi64>
  %g = ckopt.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  %i = ckopt.constant dense<[-1, 0, 6]> : tensor<3xi64>
  %u = ckopt.constant dense<[[100.0, 200.0], [300.0, 400.0], [500.0, 600.0]]> : tensor<3x2xf32>
  %0:3 = ckopt.linear_cross_entropy_grad %g, %x, %w, %t {rows = 2 : i64, transpose_weight} : (tensor<3xf32>, tensor<3x2xf32>, tensor<7x2xf32>, tensor<3xi64>) -> (tensor<3xf32>, tensor<3x2xf32>, tensor<7x2xf32>)
  %1 = ckopt.scatter_add %0#2, %i, %u {axis = 0 : i64} : (tensor<7x2xf32>, tensor<3xi64>, tensor<3x2xf32>) -> tensor<7x2xf32>
  return %0#0, %1 : tensor<3xf32>, tensor<7x2xf32>
}
// CHECK:      result 0: tensor<3xf32> [0.3983, 3.7609, 2.6715]
// CHECK-NEXT: result 1: tensor<7x2xf32> [291.5789, 405.7445, -1.1445, 0.7100, 9.5680, -5.9639, 0.0098, 0.0554, 0.2522, 0.2102, -0.2149, 0.1031, 599.9503, 799.1405]
