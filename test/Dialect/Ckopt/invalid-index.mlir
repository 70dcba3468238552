// What ops that index do not accept.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @gather_elements_axis(%a: tensor<3xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{axis -1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather_elements %a, %i {axis = -1 : i64} : (tensor<3xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_rank(%a: tensor<3x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{indices must have the rank of the data, 2, got 'tensor<2xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather_elements %a, %i {axis = 0 : i64} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @gather_elements_extent(%a: tensor<3x4xf32>, %i: tensor<7x5xi64>) {
  // expected-error @+2 {{indices have 5 entries in dimension 1 where the data has 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather_elements %a, %i {axis = 0 : i64} : (tensor<3x4xf32>, tensor<7x5xi64>) -> tensor<7x5xf32>
  return
}

// -----

func.func @gather_elements_of_nothing(%a: tensor<0x4xf32>, %i: tensor<2x4xi64>) {
  // expected-error @+2 {{there is nothing to index along axis 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather_elements %a, %i {axis = 0 : i64} : (tensor<0x4xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @gather_of_nothing(%a: tensor<0x4xf32>, %i: tensor<2xi64>) {
  // expected-error @+2 {{there is nothing to index along axis 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.gather %a, %i {axis = 0 : i64} : (tensor<0x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @scatter_add_to_nothing(%a: tensor<0x4xf32>, %i: tensor<2xi64>, %u: tensor<2x4xf32>) {
  // expected-error @+2 {{there is nothing to index along axis 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.scatter_add %a, %i, %u {axis = 0 : i64} : (tensor<0x4xf32>, tensor<2xi64>, tensor<2x4xf32>) -> tensor<0x4xf32>
  return
}

// -----

func.func @scatter_elements_updates(%a: tensor<3xf32>, %i: tensor<2xi64>, %u: tensor<2xf64>) {
  // expected-error @+2 {{updates must be 'tensor<2xf32>', got 'tensor<2xf64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.scatter_elements add %a, %i, %u {axis = 0 : i64} : (tensor<3xf32>, tensor<2xi64>, tensor<2xf64>) -> tensor<3xf32>
  return
}

// -----

func.func @scatter_elements_truth(%a: tensor<3xi1>, %i: tensor<2xi64>, %u: tensor<2xi1>) {
  // expected-error @+2 {{truth values can only be set}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.scatter_elements max %a, %i, %u {axis = 0 : i64} : (tensor<3xi1>, tensor<2xi64>, tensor<2xi1>) -> tensor<3xi1>
  return
}

// -----

func.func @scatter_elements_kind(%a: tensor<3xf32>, %i: tensor<2xi64>, %u: tensor<2xf32>) {
  // expected-error @+2 {{to be one of: set, add, mul, max, min}}
  // expected-error @+1 {{failed to parse}}
  %0 = ckopt.scatter_elements div %a, %i, %u {axis = 0 : i64} : (tensor<3xf32>, tensor<2xi64>, tensor<2xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @cumulative_sum_axis(%a: tensor<3xf32>) {
  // expected-error @+2 {{axis 1 is outside of rank 1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.cumulative_sum %a {axis = 1 : i64} : (tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @top_k_too_many(%a: tensor<2x3xf32>) {
  // expected-error @+2 {{k is 4, but axis 1 has 3 elements}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.top_k %a {axis = 1 : i64, k = 4 : i64} : (tensor<2x3xf32>) -> tensor<2x4xi64>
  return
}

// -----

func.func @top_k_axis(%a: tensor<f32>) {
  // expected-error @+2 {{axis 0 is outside of rank 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.top_k %a {axis = 0 : i64, k = 1 : i64} : (tensor<f32>) -> tensor<1xi64>
  return
}
