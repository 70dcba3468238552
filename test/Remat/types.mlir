// What remat cannot plan is diagnosed at its place, or left alone on request; what it can has bytes.
// RUN: ckopt-opt %s --remat --split-input-file --verify-diagnostics
// RUN: ckopt-opt %s --remat="budget=min skip-unsupported allow-uncounted" --split-input-file 2>&1 | FileCheck %s --check-prefix=SKIP

// SKIP: remark: @dynamic is left as it is: planning needs static shapes
// expected-error @+1 {{planning needs static shapes; the size of 'tensor<?xf32>' is unknown}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = math.exp %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @inner(%x: tensor<4xf32>) -> tensor<*xf32> {
  // SKIP: remark: @inner is left as it is
  // expected-error @+1 {{planning needs ranked tensors; the size of 'tensor<*xf32>' is unknown}}
  %0 = tensor.cast %x : tensor<4xf32> to tensor<*xf32>
  return %0 : tensor<*xf32>
}

// -----

// expected-error @+1 {{planning needs elements of known size; that of '!shape.size'}}
func.func @elements(%x: tensor<4x!shape.size>) -> tensor<4x!shape.size> {
  return %x : tensor<4x!shape.size>
}

// -----

// expected-error @+1 {{is larger than any memory}}
func.func @absurd(%x: tensor<4611686018427387904x4xf32>) {
  return
}

// -----

// SKIP: remark: @blocks is left as it is: planning needs a function of one block
// SKIP-LABEL: func.func @blocks
// SKIP: cf.cond_br
// expected-error @+1 {{planning needs a function of one block; inline or outline its control flow first}}
func.func @blocks(%x: tensor<4xf32>, %c: i1) -> tensor<4xf32> {
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  return %x : tensor<4xf32>
^bb2:
  %0 = math.exp %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Every element type of known size counts: 64 bytes each here but the vectors' 256. Scalars have none.
// SKIP-LABEL: func.func @sizes
// SKIP-SAME: full_arena = 640 : i64
func.func @sizes(%a: tensor<32xf16>, %b: tensor<64xi4>, %c: tensor<8xindex>,
    %d: tensor<8xcomplex<f32>>, %e: tensor<16xvector<4xf32>>, %f: tensor<64xi1>, %g: tensor<1xf32>, %h: index) {
  return
}

// -----

// Vectors count as tensors do, and so do tuples.
// SKIP-LABEL: func.func @vectors
// SKIP-SAME: full_arena = 4480 : i64
func.func @vectors(%a: vector<1000xf32>, %b: tuple<vector<4xf32>, tensor<100xf32>>) {
  return
}

// -----

// expected-error @+1 {{planning needs sizes that are known when compiling; that of 'vector<[4]xf32>' is not}}
func.func @scalable(%a: vector<[4]xf32>) {
  return
}

// -----

// What the function allocates itself is outside of the plan, which is said.
func.func @allocates(%x: tensor<16xf32>) -> tensor<16xf32> {
  // expected-remark @+1 {{the plan of @allocates does not count the bytes of what is allocated here}}
  %m = memref.alloc() : memref<1000xf32>
  // expected-remark @+1 {{the plan of @allocates does not count what @fill needs, which is external}}
  func.call @fill(%m) : (memref<1000xf32>) -> ()
  memref.dealloc %m : memref<1000xf32>
  %0 = math.exp %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @fill(memref<1000xf32>)

// -----

// Of a buffer that ends in the middle of a unit, the rest is no part of a bound.
// SKIP-LABEL: func.func @bound
// SKIP-SAME: arena = 196 : i64
// SKIP-SAME: memory_bound = 196 : i64
func.func @bound(%x: tensor<f32>) -> tensor<f32> {
  %0 = math.exp %x : tensor<f32>
  %1 = call @opaque(%0, %x) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = call @opaque(%1, %0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}
func.func private @opaque(tensor<f32>, tensor<f32>) -> tensor<f32> attributes {ckopt.workspace = 0 : i64}
