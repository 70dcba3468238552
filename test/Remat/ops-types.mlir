// Types of the dialect torch are sized by their text; a module may carry descriptions.
// RUN: ckopt-opt %s --remat="budget=1MiB remat-ops=%S/../../share/ckopt/ops/torch.json" --split-input-file --allow-unregistered-dialect | FileCheck %s
// RUN: not ckopt-opt %s --remat=budget=1MiB --split-input-file --allow-unregistered-dialect -o /dev/null 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: error: @torch cannot be held to a budget: its plan would not count the bytes of values of type '!torch.vtensor<[2,3],f32>'
// UNKNOWN-NOT: @carried cannot

// 64 B of the argument, 64 B of relu's 24 B, which the view shows, too, and the 36 B of a product.
// CHECK-LABEL: func.func @torch
// CHECK-SAME: arena = 164 : i64
// CHECK-SAME: argument_bytes = 64 : i64
func.func @torch(%x: !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[3,3],f32> {
  %i3 = "torch.constant.int"() <{value = 3 : i64}> : () -> !torch.int
  %i2 = "torch.constant.int"() <{value = 2 : i64}> : () -> !torch.int
  %shape = "torch.prim.ListConstruct"(%i3, %i2) : (!torch.int, !torch.int) -> !torch.list<int>
  %0 = "torch.aten.relu"(%x) : (!torch.vtensor<[2,3],f32>) -> !torch.vtensor<[2,3],f32>
  %1 = "torch.aten.view"(%0, %shape) : (!torch.vtensor<[2,3],f32>, !torch.list<int>) -> !torch.vtensor<[3,2],f32>
  %2 = "torch.aten.mm"(%1, %0) : (!torch.vtensor<[3,2],f32>, !torch.vtensor<[2,3],f32>) -> !torch.vtensor<[3,3],f32>
  return %2 : !torch.vtensor<[3,3],f32>
}

// -----

// 128 B each of the argument, of what takes its place in turn, and of the workspace.
// CHECK: func.func @carried
// CHECK-SAME: arena = 384 : i64
module attributes {ckopt.ops = [{op = "x.*", pure = true, reuse = "elementwise", workspace = "bytes(operands)"}]} {
  func.func @carried(%x: tensor<32xf32>) -> tensor<32xf32> {
    %0 = "x.a"(%x) : (tensor<32xf32>) -> tensor<32xf32>
    %1 = "x.b"(%0) : (tensor<32xf32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
}

// -----

// A module inside of another one describes its own ops alone.
// CHECK: func.func @inside
// CHECK-SAME: arena = 256 : i64
module {
  module @inner attributes {ckopt.ops = [{op = "y.a", pure = true, view = 0}]} {
    func.func @inside(%x: tensor<32xf32>) -> tensor<32xf32> {
      %0 = "y.a"(%x) : (tensor<32xf32>) -> tensor<32xf32>
      %1 = math.exp %0 : tensor<32xf32>
      return %1 : tensor<32xf32>
    }
  }
}
