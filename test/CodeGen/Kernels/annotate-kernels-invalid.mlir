// More blocks than a GPU starts are refused before anything is planned, every
// kernel of them; on a CPU the same kernels run.
// RUN: not ckopt-opt %s --annotate-kernels=target=cuda 2>&1 | FileCheck %s
// RUN: ckopt-opt %s --annotate-kernels -o /dev/null

// CHECK: error: needs 2200000000 blocks of threads for 'tensor<2200000000x640xf32>', and GPUs start at most 2147483647: make the batch smaller, or run this model on the CPU
// CHECK: error: needs 2147483648 blocks of threads for 'tensor<2147483648x1x1xf32>'
// CHECK-NOT: error:
func.func private @rows(%x: tensor<2200000000x640xf32>) -> tensor<2200000000x640xf32> attributes {ckopt.kernel = "row"} {
  %0 = ckopt.softmax %x {axis = 1 : i64} : (tensor<2200000000x640xf32>) -> tensor<2200000000x640xf32>
  return %0 : tensor<2200000000x640xf32>
}
func.func private @products(%x: tensor<2147483648x1x1xf32>, %y: tensor<2147483648x1x1xf32>) -> tensor<2147483648x1x1xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<2147483648x1x1xf32>, tensor<2147483648x1x1xf32>) -> tensor<2147483648x1x1xf32>
  return %0 : tensor<2147483648x1x1xf32>
}
func.func private @most(%x: tensor<2147483647x1x1xf32>, %y: tensor<2147483647x1x1xf32>) -> tensor<2147483647x1x1xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.matmul %x, %y : (tensor<2147483647x1x1xf32>, tensor<2147483647x1x1xf32>) -> tensor<2147483647x1x1xf32>
  return %0 : tensor<2147483647x1x1xf32>
}
