// Measured times between ranks cost collectives of as many ranks: between two sizes by
// interpolation, beyond the last by bytes; other numbers of ranks keep the model.
// REQUIRES: compiler
// RUN: ckopt-opt %s --remat=cost-model=profile=%S/Inputs/links.json | FileCheck %s
// RUN: echo '{"format": "ckopt-profile/1", "collectives": [{"op": "sum", "ranks": 2, "points": [[1, 1]]}]}' > %t.json
// RUN: not ckopt-opt %s --remat=cost-model=profile=%t.json 2>&1 | FileCheck %s --check-prefix=OP
// OP: collectives[0]: needs 'op', the name of a collective
// RUN: echo '{"format": "ckopt-profile/1", "collectives": [{"op": "all_reduce", "ranks": 2, "points": [[2, 1], [2, 1]]}]}' > %t.json
// RUN: not ckopt-opt %s --remat=cost-model=profile=%t.json 2>&1 | FileCheck %s --check-prefix=ORDER
// ORDER: collectives[0]: bytes of points ascend
// RUN: echo '{"format": "ckopt-profile/1", "collectives": [{"op": "all_reduce", "ranks": 1, "points": [[2, 1]]}]}' > %t.json
// RUN: not ckopt-opt %s --remat=cost-model=profile=%t.json 2>&1 | FileCheck %s --check-prefix=RANKS
// RANKS: collectives[0]: needs 'ranks', 2 or more

func.func private @middle(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}
func.func private @large(%x: tensor<15872xf32>) -> tensor<15872xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 2 : i64} : (tensor<15872xf32>) -> tensor<15872xf32>
  return %0 : tensor<15872xf32>
}
func.func private @three(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {ckopt.kernel = "library"} {
  %0 = ckopt.all_reduce %x {ranks = 3 : i64} : (tensor<4096xf32>) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4096xf32>, %y: tensor<15872xf32>) -> (tensor<4096xf32>, tensor<15872xf32>, tensor<4096xf32>) {
  // CHECK-DAG: @middle(%arg0) {cost = {{(1[.]9999|2[.]0)[0-9]*[eE]-0?5}}
  %a = ckopt.kernel_call @middle(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  // CHECK-DAG: @large(%arg1) {cost = {{(5[.]9999|6[.]0)[0-9]*[eE]-0?5}}
  %b = ckopt.kernel_call @large(%y) : (tensor<15872xf32>) -> tensor<15872xf32>
  // CHECK-DAG: @three(%arg0) {cost = {{[0-9.]+[eE]-0?5}}
  %c = ckopt.kernel_call @three(%x) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %a, %b, %c : tensor<4096xf32>, tensor<15872xf32>, tensor<4096xf32>
}
