// A description that contradicts the ops is an error; so is a table that is none.
// RUN: ckopt-opt %s --remat --split-input-file --allow-unregistered-dialect --verify-diagnostics
// RUN: echo '{"format": "ckopt-ops/1", "ops": [{"op": "x.a", "work": {"vector": "2 * foo(1)"}}]}' > %t.json
// RUN: not ckopt-opt %s --remat=remat-ops=%t.json --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=FORMULA
// RUN: echo '{"format": "ckopt-ops/1"}' > %t.empty.json
// RUN: not ckopt-opt %s --remat="remat-ops=%t.empty.json report=%t.empty.json" --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=SAME
// SAME: error: remat: {{.*}}report{{.*}}remat-ops
// FORMULA: error: remat: {{.*}}.json: ops[0] (x.a): work.vector: column 5: there is no function 'foo'
// RUN: not ckopt-opt %s --remat=apart=nothing --allow-unregistered-dialect 2>&1 | FileCheck %s --check-prefix=APART
// APART: error: remat: apart: 'nothing' is not one of barrier, attribute, or the name of an op (dialect.op)
// RUN: echo 'func.func @f(%%x: tensor<4xf32>) -> tensor<4xf32> { return %%x : tensor<4xf32> }' > %t.mlir
// RUN: not ckopt-opt %t.mlir --remat=apart=no.op 2>&1 | FileCheck %s --check-prefix=NO-OP
// NO-OP: error: remat: apart: there is no op 'no.op' here

func.func @view(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-remark @+2 {{does not count what the unregistered op}}
  // expected-error @+1 {{is said to be a view of operand 0, but the operand has 16 bytes and the result 32}}
  %0 = "x.view"(%x) {ckopt.view = 0 : i64} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @number(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+2 {{does not count what the unregistered op}}
  // expected-error @+1 {{is said to be a view of operand 3, but the op has 1 operands and 1 results}}
  %0 = "x.view"(%x) {ckopt.view = 3 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @reuse(%x: tensor<4xf32>) -> tensor<4xf64> {
  // expected-remark @+2 {{does not count what the unregistered op}}
  // expected-error @+1 {{result 0 is said to take the bytes of operand 0 over, but the operand has 16 bytes and the result 32}}
  %0 = "x.a"(%x) {ckopt.reuse = array<i64: 0, 0>} : (tensor<4xf32>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func @pure(%x: memref<4xf32>, %v: f32, %i: index) {
  // expected-error @+1 {{is said to be pure, but has effects}}
  memref.store %v, %x[%i] {ckopt.pure} : memref<4xf32>
  return
}

// -----

func.func @work(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+2 {{does not count what the unregistered op}}
  // expected-error @+1 {{ckopt.work must be a dictionary of numbers that are not negative: vector, matmul, conv, bytes, seconds}}
  %0 = "x.a"(%x) {ckopt.work = {vector = -1.0 : f64}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{ckopt.ops: ops[0] (x.a): unknown member 'fast'}}
module attributes {ckopt.ops = [{op = "x.a", fast = true}]} {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

module attributes {ckopt.ops = [{op = "x.a", workspace = "elements(operands[4])"}]} {
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{ckopt.ops: ops[0] (x.a): the op has no operands[4]}}
    %0 = "x.a"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
