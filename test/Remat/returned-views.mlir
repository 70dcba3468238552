// A call of a function that returns a view of a buffer needs all of the buffer while it runs;
// what of it outlives the call is said, and beside a budget refused.
// RUN: ckopt-opt %s --remat --verify-diagnostics | FileCheck %s
// RUN: not ckopt-opt %s --remat=budget=8MiB -o /dev/null 2>&1 | FileCheck %s --check-prefix=BUDGET
// RUN: ckopt-opt %s --remat="budget=8MiB allow-uncounted" -o /dev/null

// BUDGET: error: @row returns views of buffers with 4190208 bytes more, which its callers do not count after the call; return copies, or give allow-uncounted

// expected-remark @+1 {{@row returns views of buffers with 4190208 bytes more, which its callers do not count after the call}}
func.func private @row(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = math.exp %x : tensor<1024xf32>
  %b = tensor.empty() : tensor<1024x1024xf32>
  %c = linalg.broadcast ins(%a : tensor<1024xf32>) outs(%b : tensor<1024x1024xf32>) dimensions = [0]
  %d = tensor.extract_slice %c[3, 0] [1, 1024] [1, 1] : tensor<1024x1024xf32> to tensor<1024xf32>
  return %d : tensor<1024xf32>
}

// CHECK-LABEL: func.func @caller
// CHECK-SAME: arena = 42{{[0-9]+}} : i64
func.func @caller(%x: tensor<1024xf32>) -> tensor<1024xf32> {
  %a = call @row(%x) : (tensor<1024xf32>) -> tensor<1024xf32>
  %b = math.sin %a : tensor<1024xf32>
  %c = call @row(%b) : (tensor<1024xf32>) -> tensor<1024xf32>
  return %c : tensor<1024xf32>
}
