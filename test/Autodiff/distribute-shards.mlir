// Ranks that share parameters keep shards: of rows where these divide well, flat
// where they do not; what is small stays whole. What is used is gathered, once,
// and of each gradient's sum a rank gets its part.
// RUN: ckopt-opt %s "--distribute=ranks=2 shards=2" | FileCheck %s
// RUN: ckopt-opt %s "--distribute=ranks=4 shards=2" | FileCheck %s --check-prefix=BOTH
// RUN: not ckopt-opt %s "--distribute=ranks=3 shards=2" 2>&1 | FileCheck %s --check-prefix=DIVIDES
// DIVIDES: distribute: 2 ranks share parameters, which does not divide 3 ranks

// Evaluation has the same shards.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: tensor<33x64xf32> {{{.*}}ckopt.shards = 2 : i64, ckopt.whole = tensor<66x64xf32>}
// CHECK: ckopt.all_gather %{{.*}} {ranks = 2 : i64, rows = array<i64: 66>}

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:[^:]*]]: tensor<33x64xf32> {ckopt.name = "w", {{[^}]*}}ckopt.whole = tensor<66x64xf32>}
// CHECK-SAME: %[[F:[^:]*]]: tensor<96xf32> {{{.*}}ckopt.whole = tensor<3x64xf32>}
// CHECK-SAME: %[[B:[^:]*]]: tensor<66xf32> {ckopt.name = "b", ckopt.role = "parameter"}
// CHECK-SAME: %{{[^:]*}}: tensor<50x4xf32> {ckopt.name = "unused"
// CHECK-SAME: -> (tensor<4x66xf32> {{.*}}, tensor<33x64xf32> {{{.*}}ckopt.shards = 2 : i64, ckopt.whole = tensor<66x64xf32>}, tensor<66xf32> {{.*}})
// CHECK: %[[WHOLE:.*]] = ckopt.all_gather %[[W]] {ranks = 2 : i64, rows = array<i64: 66>} : (tensor<33x64xf32>) -> tensor<66x64xf32>
// CHECK: ckopt.matmul %{{.*}}, %[[WHOLE]]
// CHECK: %[[FLAT:.*]] = ckopt.all_gather %[[F]] {ranks = 2 : i64, rows = array<i64: 192>} : (tensor<96xf32>) -> tensor<192xf32>
// CHECK: ckopt.reshape %[[FLAT]] : (tensor<192xf32>) -> tensor<3x64xf32>
// CHECK-NOT: all_gather
// CHECK: ckopt.reduce_scatter %{{.*}} {ranks = 2 : i64} : (tensor<66x64xf32>) -> tensor<33x64xf32>
// CHECK: ckopt.all_reduce %{{.*}} {ranks = 2 : i64} : (tensor<66xf32>) -> tensor<66xf32>

// Groups of ranks add what each group has.
// BOTH-LABEL: func.func @step(
// BOTH: ckopt.all_gather %{{.*}} {groups = 2 : i64, ranks = 2 : i64, rows = array<i64: 66>}
// BOTH: %[[PART:.*]] = ckopt.reduce_scatter %{{.*}} {groups = 2 : i64, ranks = 2 : i64}
// BOTH: ckopt.all_reduce %[[PART]] {groups = 2 : i64, ranks = 2 : i64, stride = 2 : i64} : (tensor<33x64xf32>)
// BOTH: ckopt.all_reduce %{{.*}} {ranks = 4 : i64} : (tensor<66xf32>) -> tensor<66xf32>
func.func @eval(
    %x: tensor<4x64xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<66x64xf32> {ckopt.name = "w", ckopt.role = "parameter"})
    -> (tensor<4x66xf32> {ckopt.name = "y"}) {
  %y = ckopt.matmul %x, %w {transpose_rhs} : (tensor<4x64xf32>, tensor<66x64xf32>) -> tensor<4x66xf32>
  return %y : tensor<4x66xf32>
}
func.func @step(
    %x: tensor<4x64xf32> {ckopt.name = "x", ckopt.role = "input"},
    %w: tensor<66x64xf32> {ckopt.name = "w", ckopt.role = "parameter"},
    %f: tensor<3x64xf32> {ckopt.name = "f", ckopt.role = "frozen"},
    %b: tensor<66xf32> {ckopt.name = "b", ckopt.role = "parameter"},
    %u: tensor<100x4xf32> {ckopt.name = "unused", ckopt.role = "parameter"})
    -> (tensor<4x66xf32> {ckopt.name = "loss"},
        tensor<66x64xf32> {ckopt.name = "grad/w", ckopt.gradient = 1 : i64},
        tensor<66xf32> {ckopt.name = "grad/b", ckopt.gradient = 3 : i64}) {
  %y = ckopt.matmul %x, %w {transpose_rhs} : (tensor<4x64xf32>, tensor<66x64xf32>) -> tensor<4x66xf32>
  %yb = ckopt.add %y, %b : (tensor<4x66xf32>, tensor<66xf32>) -> tensor<4x66xf32>
  %z = ckopt.matmul %x, %f {transpose_rhs} : (tensor<4x64xf32>, tensor<3x64xf32>) -> tensor<4x3xf32>
  %zs = ckopt.reduce sum %z {axes = array<i64: 1>, keepdims = true} : (tensor<4x3xf32>) -> tensor<4x1xf32>
  %l = ckopt.add %yb, %zs : (tensor<4x66xf32>, tensor<4x1xf32>) -> tensor<4x66xf32>
  %gw = ckopt.matmul %l, %x {transpose_lhs} : (tensor<4x66xf32>, tensor<4x64xf32>) -> tensor<66x64xf32>
  %gb = ckopt.reduce sum %l {axes = array<i64: 0>, keepdims = false} : (tensor<4x66xf32>) -> tensor<66xf32>
  return %l, %gw, %gb : tensor<4x66xf32>, tensor<66x64xf32>, tensor<66xf32>
}
