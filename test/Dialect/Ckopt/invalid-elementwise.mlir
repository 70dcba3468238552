// Every check of the elementwise ops and of layouts reports what is wrong.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @shapes_do_not_broadcast(%a: tensor<2x3xf32>, %b: tensor<2xf32>) {
  // expected-error @+1 {{operands don't have broadcast-compatible shapes}}
  %0 = ckopt.add %a, %b : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @wrong_result_shape(%a: tensor<2x1xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{result type '2x1' not broadcast compatible with broadcasted operands's shapes '2x3'}}
  %0 = ckopt.mul %a, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x1xf32>
  return
}

// -----

func.func @mixed_element_types(%a: tensor<2xf32>, %b: tensor<2xf64>) {
  // expected-error @+1 {{requires the same element type for all operands}}
  %0 = ckopt.sub %a, %b : (tensor<2xf32>, tensor<2xf64>) -> tensor<2xf32>
  return
}

// -----

func.func @result_of_another_type(%a: tensor<2xf32>) {
  // expected-error @+2 {{failed to infer returned types}}
  // expected-error @+1 {{inferred type(s) 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<2xf64>'}}
  %0 = ckopt.exp %a : (tensor<2xf32>) -> tensor<2xf64>
  return
}

// -----

func.func @exp_of_integers(%a: tensor<2xi64>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor}}
  %0 = ckopt.exp %a : (tensor<2xi64>) -> tensor<2xi64>
  return
}

// -----

func.func @dynamic_shape(%a: tensor<?xf32>) {
  // expected-error @+1 {{operand #0 must be statically shaped tensor}}
  %0 = ckopt.relu %a : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @cast_changes_shape(%a: tensor<2xf32>) {
  // expected-error @+1 {{all non-scalar operands/results must have the same shape and base type}}
  %0 = ckopt.cast %a : (tensor<2xf32>) -> tensor<3xf64>
  return
}

// -----

func.func @compare_gives_bool(%a: tensor<2xf32>) {
  // expected-error @+1 {{result #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = ckopt.compare lt %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @unknown_predicate(%a: tensor<2xf32>) {
  // expected-error @+2 {{expected ::ckopt::ComparePredicate to be one of: eq, ne, lt, le, gt, ge}}
  // expected-error @+1 {{failed to parse Ckopt_CompareAttr parameter 'value'}}
  %0 = ckopt.compare above %a, %a : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}

// -----

func.func @branches_differ(%c: tensor<2xi1>, %a: tensor<2xf32>, %b: tensor<2xi64>) {
  // expected-error @+1 {{failed to verify that branches have equal element types}}
  %0 = ckopt.select %c, %a, %b : (tensor<2xi1>, tensor<2xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @dropout_ratio(%a: tensor<2xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ckopt.dropout' op ratio must lie in [0, 1), got}}
  %0 = ckopt.dropout %a, %s, %s {ratio = 1.0 : f64, site = 0 : i64} : (tensor<2xf32>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

func.func @dropout_ratio_is_nan(%a: tensor<2xf32>, %s: tensor<i64>) {
  // expected-error @+1 {{'ckopt.dropout' op ratio must lie in [0, 1), got}}
  %0 = ckopt.dropout %a, %s, %s {ratio = 0x7FF8000000000000 : f64, site = 0 : i64} : (tensor<2xf32>, tensor<i64>, tensor<i64>) -> tensor<2xf32>
  return
}

// -----

// expected-error @+1 {{layout must be a permutation of 0..1}}
func.func @layout_repeats(%a: tensor<2x3xf32, #ckopt.layout<[0, 0]>>) {
  return
}

// -----

// expected-error @+1 {{layout of rank 2 on a tensor of rank 1}}
func.func @layout_of_another_rank(%a: tensor<2xf32, #ckopt.layout<[1, 0]>>) {
  return
}
