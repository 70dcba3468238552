// Every check of constants, views and data movement reports what is wrong.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @iota_axis() {
  // expected-error @+1 {{'ckopt.iota' op axis 1 is outside of rank 1}}
  %0 = ckopt.iota {axis = 1 : i64} : tensor<4xi64>
  return
}

// -----

func.func @reshape_count(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'ckopt.reshape' op operand and result must have as many elements, of one type: 'tensor<2x3xf32>' and 'tensor<5xf32>'}}
  %0 = ckopt.reshape %a : (tensor<2x3xf32>) -> tensor<5xf32>
  return
}

// -----

func.func @reshape_element_type(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{of one type}}
  %0 = ckopt.reshape %a : (tensor<2x3xf32>) -> tensor<6xi32>
  return
}

// -----

func.func @transpose_repeats(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{permutation must be one of 0..1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.transpose %a {permutation = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @transpose_too_short(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{permutation must have 2 entries}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.transpose %a {permutation = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice_entries(%a: tensor<4xf32>) {
  // expected-error @+1 {{'ckopt.slice' op starts, sizes and steps must have 1 entries}}
  %0 = ckopt.slice %a {starts = array<i64: 0>, sizes = array<i64: 1, 1>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<1x1xf32>
  return
}

// -----

func.func @slice_starts_entries(%a: tensor<4xf32>) {
  // expected-error @+1 {{'ckopt.slice' op starts, sizes and steps must have 1 entries}}
  %0 = ckopt.slice %a {starts = array<i64>, sizes = array<i64: 1>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_negative_size(%a: tensor<4xf32>) {
  // expected-error @+2 {{sizes must not be negative}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.slice %a {starts = array<i64: 0>, sizes = array<i64: -1>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @slice_step(%a: tensor<4xf32>) {
  // expected-error @+1 {{'ckopt.slice' op steps must not be 0}}
  %0 = ckopt.slice %a {starts = array<i64: 0>, sizes = array<i64: 2>, steps = array<i64: 0>} : (tensor<4xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @slice_outside(%a: tensor<4xf32>) {
  // expected-error @+1 {{'ckopt.slice' op reads outside of dimension 0: 3 elements from 2 by steps of 1, of 4}}
  %0 = ckopt.slice %a {starts = array<i64: 2>, sizes = array<i64: 3>, steps = array<i64: 1>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @concat_of_nothing() {
  // expected-error @+1 {{expected 1 or more operands}}
  %0 = "ckopt.concat"() {axis = 0 : i64} : () -> tensor<0xf32>
  return
}

// -----

func.func @concat_axis(%a: tensor<2xf32>) {
  // expected-error @+2 {{axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.concat %a, %a {axis = 1 : i64} : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_ranks(%a: tensor<2xf32>, %b: tensor<2x1xf32>) {
  // expected-error @+2 {{operands must have equal ranks}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.concat %a, %b {axis = 0 : i64} : (tensor<2xf32>, tensor<2x1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @concat_sizes(%a: tensor<2x3xf32>, %b: tensor<2x4xf32>) {
  // expected-error @+2 {{operands differ in dimension 1: 'tensor<2x3xf32>' and 'tensor<2x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.concat %a, %b {axis = 0 : i64} : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @pad_entries(%a: tensor<2xf32>) {
  // expected-error @+2 {{low, high and interior must have 1 entries}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.pad %a {low = array<i64: 0>, high = array<i64: 0, 1>, interior = array<i64: 0>} : (tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @pad_negative(%a: tensor<2xf32>) {
  // expected-error @+2 {{padding must not be negative (slice instead)}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.pad %a {low = array<i64: -1>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @pad_value(%a: tensor<2xi32>) {
  // expected-error @+1 {{'ckopt.pad' op value 5.000000e-01 is no 'i32'}}
  %0 = ckopt.pad %a {low = array<i64: 1>, high = array<i64: 0>, interior = array<i64: 0>, value = 0.5 : f64} : (tensor<2xi32>) -> tensor<3xi32>
  return
}

// -----

func.func @expand_shape(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{'ckopt.expand' op 'tensor<2x3xf32>' does not broadcast to 'tensor<4x3xf32>'}}
  %0 = ckopt.expand %a : (tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @expand_does_not_shrink(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{does not broadcast to 'tensor<3xf32>'}}
  %0 = ckopt.expand %a : (tensor<2x3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @expand_element_type(%a: tensor<3xf32>) {
  // expected-error @+1 {{'ckopt.expand' op operand and result must have one element type}}
  %0 = ckopt.expand %a : (tensor<3xf32>) -> tensor<2x3xf64>
  return
}

// -----

func.func @trilu_rank(%a: tensor<3xf32>) {
  // expected-error @+2 {{trilu needs a tensor of rank 2 or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.trilu %a {upper = true} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @gather_axis(%a: tensor<3xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather %a, %i {axis = 1 : i64} : (tensor<3xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_indices(%a: tensor<3xf32>, %i: tensor<2xf32>) {
  // expected-error @+1 {{operand #1 must be statically shaped tensor of 64-bit signless integer or 32-bit signless integer values}}
  %0 = ckopt.gather %a, %i {axis = 0 : i64} : (tensor<3xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @scatter_axis(%a: tensor<3xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error @+2 {{axis -1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.scatter_add %a, %i, %u {axis = -1 : i64} : (tensor<3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @scatter_updates(%a: tensor<3x4xf32>, %i: tensor<2xi64>, %u: tensor<2x3xf32>) {
  // expected-error @+2 {{updates must have the type of a gather from init, 'tensor<2x4xf32>', got 'tensor<2x3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.scatter_add %a, %i, %u {axis = 0 : i64} : (tensor<3x4xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<3x4xf32>
  return
}

// -----

func.func @relayout_keeps_shape(%a: tensor<2x3xf32>) {
  // expected-error @+1 {{requires the same shape for all operands and results}}
  %0 = ckopt.relayout %a : (tensor<2x3xf32>) -> tensor<3x2xf32, #ckopt.layout<[1, 0]>>
  return
}

// -----

// (3 - 1) * step wraps to 0 in 64 bits.
func.func @slice_overflow(%a: tensor<4xf32>) {
  // expected-error @+1 {{'ckopt.slice' op reads outside of dimension 0}}
  %0 = ckopt.slice %a {starts = array<i64: 0>, sizes = array<i64: 3>, steps = array<i64: -9223372036854775808>} : (tensor<4xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @pad_overflow(%a: tensor<2xf32>) {
  // expected-error @+2 {{padding of dimension 0 overflows}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.pad %a {low = array<i64: 9223372036854775807>, high = array<i64: 0>, interior = array<i64: 0>} : (tensor<2xf32>) -> tensor<1xf32>
  return
}

// -----

func.func @concat_overflow(%a: tensor<4611686018427387904xf32>) {
  // expected-error @+2 {{dimension 0 overflows}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.concat %a, %a {axis = 0 : i64} : (tensor<4611686018427387904xf32>, tensor<4611686018427387904xf32>) -> tensor<1xf32>
  return
}
