// Every check of contractions, windows, normalizations and reductions reports
// what is wrong.
// RUN: ckopt-opt %s --split-input-file --verify-diagnostics

func.func @matmul_add_rank(%a: tensor<1x2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x4xf32>) {
  // expected-error @+2 {{matmul_add needs matrices}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul_add %a, %b, %c : (tensor<1x2x3xf32>, tensor<3x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_add_sizes(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x5xf32>) {
  // expected-error @+2 {{sizes do not fit: 'tensor<2x5xf32>' + 'tensor<2x3xf32>' x 'tensor<3x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul_add %a, %b, %c : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul_add_types(%a: tensor<2x3xf32>, %b: tensor<3x4xf32>, %c: tensor<2x4xf64>) {
  // expected-error @+2 {{element types do not fit}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul_add %a, %b, %c : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return
}

// -----

func.func @matmul_add_bias_size(%a: tensor<2x3xbf16>, %b: tensor<3x4xbf16>, %c: tensor<2x4xf32>, %d: tensor<2xf32>) {
  // expected-error @+2 {{the bias of 'tensor<2x4xf32>' is 'tensor<4xf32>', not 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul_add %a, %b, %c bias %d : (tensor<2x3xbf16>, tensor<3x4xbf16>, tensor<2x4xf32>, tensor<2xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_add_bias_type(%a: tensor<2x3xbf16>, %b: tensor<3x4xbf16>, %c: tensor<2x4xf32>, %d: tensor<4xbf16>) {
  // expected-error @+2 {{the bias of 'tensor<2x4xf32>' is 'tensor<4xf32>', not 'tensor<4xbf16>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul_add %a, %b, %c bias %d : (tensor<2x3xbf16>, tensor<3x4xbf16>, tensor<2x4xf32>, tensor<4xbf16>) -> tensor<2x4xf32>
  return
}

// -----

func.func @matmul_rank(%a: tensor<3xf32>, %b: tensor<3x4xf32>) {
  // expected-error @+2 {{matmul needs operands of rank 2 or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul %a, %b : (tensor<3xf32>, tensor<3x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @matmul_inner(%a: tensor<2x3xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+2 {{inner dimensions differ: 3 and 4 of 'tensor<2x3xf32>' and 'tensor<4x5xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul %a, %b : (tensor<2x3xf32>, tensor<4x5xf32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @matmul_batch(%a: tensor<2x2x3xf32>, %b: tensor<3x3x5xf32>) {
  // expected-error @+2 {{batch dimensions do not broadcast}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.matmul %a, %b : (tensor<2x2x3xf32>, tensor<3x3x5xf32>) -> tensor<2x2x5xf32>
  return
}

// -----

func.func @matmul_mixed(%a: tensor<2x3xf32>, %b: tensor<3x5xf64>) {
  // expected-error @+1 {{requires the same element type for all operands}}
  %0 = ckopt.matmul %a, %b : (tensor<2x3xf32>, tensor<3x5xf64>) -> tensor<2x5xf32>
  return
}

// -----

func.func @conv_rank(%x: tensor<1x2xf32>, %w: tensor<3x2xf32>) {
  // expected-error @+1 {{'ckopt.conv' op needs tensors of equal rank 3 to 5}}
  %0 = ckopt.conv %x, %w {strides = array<i64>, pads_low = array<i64>, pads_high = array<i64>, dilations = array<i64>, groups = 1 : i64} : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @conv_entries(%x: tensor<1x2x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{'ckopt.conv' op window attributes need 1 entries}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1, 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return
}

// -----

func.func @conv_groups(%x: tensor<1x4x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{'ckopt.conv' op channels do not fit: input 'tensor<1x4x8xf32>', weight 'tensor<3x2x3xf32>', output 'tensor<1x3x6xf32>', groups 2}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 2 : i64} : (tensor<1x4x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return
}

// -----

func.func @conv_stride(%x: tensor<1x2x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{'ckopt.conv' op strides and dilations must be positive, pads not negative}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 0>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x6xf32>
  return
}

// -----

func.func @conv_positions(%x: tensor<1x2x8xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{'ckopt.conv' op spatial dimension 0: the window has 6 positions, the output 5}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x2x8xf32>, tensor<3x2x3xf32>) -> tensor<1x3x5xf32>
  return
}

// -----

func.func @conv_input_grad_type(%g: tensor<1x3x6xf32>, %w: tensor<3x2x3xf32>) {
  // expected-error @+1 {{'ckopt.conv_input_grad' op operands and result must have one element type}}
  %0 = ckopt.conv_input_grad %g, %w {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x3x6xf32>, tensor<3x2x3xf32>) -> tensor<1x2x8xf64>
  return
}

// -----

func.func @conv_weight_grad_positions(%g: tensor<1x3x6xf32>, %x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{'ckopt.conv_weight_grad' op spatial dimension 0: the window has 7 positions, the output 6}}
  %0 = ckopt.conv_weight_grad %g, %x {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x3x6xf32>, tensor<1x2x8xf32>) -> tensor<3x2x2xf32>
  return
}

// -----

func.func @pool_channels(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{'ckopt.avg_pool' op input and output must agree in rank, batch, channels and element type}}
  %0 = ckopt.avg_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>) -> tensor<1x3x4xf32>
  return
}

// -----

func.func @pool_entries(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{'ckopt.avg_pool' op window attributes need 1 entries}}
  %0 = ckopt.avg_pool %x {kernel = array<i64: 2, 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  return
}

// -----

func.func @pool_kernel(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{'ckopt.avg_pool' op kernel, strides and dilations must be positive}}
  %0 = ckopt.avg_pool %x {kernel = array<i64: 0>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>) -> tensor<1x2x4xf32>
  return
}

// -----

func.func @pool_positions(%g: tensor<1x2x4xf32>) {
  // expected-error @+1 {{'ckopt.avg_pool_grad' op spatial dimension 0: the window has 5 positions, the output 4}}
  %0 = ckopt.avg_pool_grad %g {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>) -> tensor<1x2x10xf32>
  return
}

// -----

func.func @pool_index_shape(%x: tensor<1x2x8xf32>) {
  // expected-error @+1 {{'ckopt.max_pool' op index must have the output's shape}}
  %0:2 = ckopt.max_pool %x {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x8xf32>) -> (tensor<1x2x4xf32>, tensor<1x2x5xi8>)
  return
}

// -----

func.func @pool_index_type(%x: tensor<1x2x128xf32>) {
  // expected-error @+1 {{'ckopt.max_pool' op a window of 128 points needs an i32 index}}
  %0:2 = ckopt.max_pool %x {kernel = array<i64: 128>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x128xf32>) -> (tensor<1x2x1xf32>, tensor<1x2x1xi8>)
  return
}

// -----

func.func @pool_grad_index(%g: tensor<1x2x4xf32>, %i: tensor<1x2x3xi8>) {
  // expected-error @+1 {{'ckopt.max_pool_grad' op index must have the output's shape}}
  %0 = ckopt.max_pool_grad %g, %i {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<1x2x3xi8>) -> tensor<1x2x8xf32>
  return
}

// -----

func.func @batch_norm_channels(%x: tensor<2x3x4xf32>, %c: tensor<4xf32>) {
  // expected-error @+2 {{per-channel operands must have shape [3], got 'tensor<4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.batch_norm %x, %c, %c {epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_rank(%x: tensor<3xf32>, %c: tensor<3xf32>) {
  // expected-error @+2 {{batch normalization needs rank 2 or more}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.batch_norm_inference %x, %c, %c, %c, %c {epsilon = 1.0e-5 : f64} : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @batch_norm_grad_shape(%g: tensor<2x3x5xf32>, %x: tensor<2x3x4xf32>, %c: tensor<3xf32>) {
  // expected-error @+2 {{grad and input must have one shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.batch_norm_grad %g, %x, %c, %c, %c {epsilon = 1.0e-5 : f64} : (tensor<2x3x5xf32>, tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @reduce_axes(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{axes must be distinct and lie in 0..1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.reduce sum %x {axes = array<i64: 1, 1>, keepdims = false} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_result(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{inferred type(s) 'tensor<2x1xf32>' are incompatible with return type(s) of operation 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.reduce sum %x {axes = array<i64: 1>, keepdims = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @moments_axes(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{axes must be distinct and lie in 0..1}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = ckopt.moments %x {axes = array<i64: 2>} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_axis(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{axis 2 is outside of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.softmax %x {axis = 2 : i64} : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @softmax_grad_types(%g: tensor<2x4xf32>, %y: tensor<2x3xf32>) {
  // expected-error @+2 {{operands must have one type}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.softmax_grad %g, %y {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<2x4xf32>
  return
}

// -----

func.func @layer_norm_axis(%x: tensor<2x3xf32>) {
  // expected-error @+2 {{axis -1 is outside of rank 2}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.layer_norm %x {axis = -1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_scale(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{'ckopt.layer_norm' op scale and bias must broadcast to the dimensions from axis on, got 'tensor<2xf32>'}}
  %0:3 = ckopt.layer_norm %x scale %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>)
  return
}

// -----

func.func @layer_norm_grad_shape(%g: tensor<2x4xf32>, %x: tensor<2x3xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{grad and input must have one shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.layer_norm_grad %g, %x, %m, %m {axis = 1 : i64} : (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_grad_statistics(%x: tensor<2x3xf32>, %m: tensor<3xf32>) {
  // expected-error @+2 {{statistics must have the dimensions before axis, got 'tensor<3xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.layer_norm_grad %x, %x, %m, %m {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @layer_norm_grad_scale(%x: tensor<2x3xf32>, %m: tensor<2xf32>) {
  // expected-error @+2 {{scale must broadcast to the dimensions from axis on, got 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = ckopt.layer_norm_grad %x, %x, %m, %m scale %m {axis = 1 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @rms_norm_scale(%x: tensor<2x3xf32>, %s: tensor<2xf32>) {
  // expected-error @+2 {{scale must broadcast to the dimensions from axis on, got 'tensor<2xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:2 = ckopt.rms_norm %x scale %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @pool_index_unranked(%g: tensor<1x2x4xf32>, %i: tensor<*xi8>) {
  // expected-error @+1 {{'ckopt.max_pool_grad' op index must have the output's shape}}
  %0 = ckopt.max_pool_grad %g, %i {kernel = array<i64: 2>, strides = array<i64: 2>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 1>} : (tensor<1x2x4xf32>, tensor<*xi8>) -> tensor<1x2x8xf32>
  return
}

// -----

// A window too long for an int64 has no positions: they are not computed at all.
func.func @window_overflows(%x: tensor<1x1x8xf32>, %w: tensor<1x1x3xf32>) {
  // expected-error @+1 {{spatial dimension 0: the window's size overflows}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 0>, dilations = array<i64: 9223372036854775807>, groups = 1 : i64} : (tensor<1x1x8xf32>, tensor<1x1x3xf32>) -> tensor<1x1x10xf32>
  return
}

// -----

func.func @padding_overflows(%x: tensor<1x1x8xf32>, %w: tensor<1x1x3xf32>) {
  // expected-error @+1 {{spatial dimension 0: the window's size overflows}}
  %0 = ckopt.conv %x, %w {strides = array<i64: 1>, pads_low = array<i64: 9223372036854775807>, pads_high = array<i64: 9223372036854775807>, dilations = array<i64: 1>, groups = 1 : i64} : (tensor<1x1x8xf32>, tensor<1x1x3xf32>) -> tensor<1x1x0xf32>
  return
}

// -----

func.func @pooling_overflows(%x: tensor<1x1x8xf32>) {
  // expected-error @+1 {{spatial dimension 0: the window's size overflows}}
  %0 = ckopt.avg_pool %x {kernel = array<i64: 4611686018427387904>, strides = array<i64: 1>, pads_low = array<i64: 0>, pads_high = array<i64: 9223372036854775807>, dilations = array<i64: 3>} : (tensor<1x1x8xf32>) -> tensor<1x1x1xf32>
  return
}

// -----

func.func @index_of_window_overflows(%x: tensor<1x1x8x8xf32>) {
  // expected-error @+1 {{the window's size overflows}}
  %0:2 = ckopt.max_pool %x {kernel = array<i64: 4611686018427387904, 8>, strides = array<i64: 1, 1>, pads_low = array<i64: 0, 0>, pads_high = array<i64: 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x1x8x8xf32>) -> (tensor<1x1x0x1xf32>, tensor<1x1x0x1xi32>)
  return
}

// -----

func.func @attention_rank(%q: tensor<5x3xf32>) {
  // expected-error @+2 {{attention needs query, key and value of rank 4, or all of rank 3}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q {scale = 1.0 : f64} : (tensor<5x3xf32>, tensor<5x3xf32>, tensor<5x3xf32>) -> (tensor<5x3xf32>, tensor<5x2xf32>)
  return
}

// -----

func.func @attention_groups(%q: tensor<1x3x5x3xf32>, %k: tensor<1x2x5x3xf32>) {
  // expected-error @+2 {{shapes do not fit}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %k, %k {scale = 1.0 : f64} : (tensor<1x3x5x3xf32>, tensor<1x2x5x3xf32>, tensor<1x2x5x3xf32>) -> (tensor<1x3x5x3xf32>, tensor<1x3x5x2xf32>)
  return
}

// -----

func.func @attention_mask(%q: tensor<2x5x3xf32>, %m: tensor<4x5xi1>) {
  // expected-error @+2 {{'tensor<4x5xi1>' does not broadcast to the scores' shape}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q mask %m {scale = 1.0 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<4x5xi1>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_fill(%q: tensor<2x5x3xf32>) {
  // expected-error @+2 {{causality, windows and segments fill with -inf; they take no fill}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q {scale = 1.0 : f64, fill = 0.0 : f64, causal = 0 : i64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_softcap(%q: tensor<2x5x3xf32>) {
  // expected-error @+2 {{softcap must be a positive number, got 0}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q {scale = 1.0 : f64, softcap = 0.0 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_segments(%q: tensor<2x4x5x3xf32>, %s: tensor<4x5xi64>) {
  // expected-error @+2 {{segments need one number for each of as many keys as queries, got 'tensor<4x5xi64>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q segments %s {scale = 1.0 : f64} : (tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<2x4x5x3xf32>, tensor<4x5xi64>) -> (tensor<2x4x5x3xf32>, tensor<2x4x5x2xf32>)
  return
}

// -----

func.func @attention_dropout(%q: tensor<2x5x3xf32>, %i: tensor<i64>) {
  // expected-error @+2 {{a dropout needs seed and step, a ratio and a site}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q dropout %i, %i {scale = 1.0 : f64, ratio = 0.5 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_ratio(%q: tensor<2x5x3xf32>, %i: tensor<i64>) {
  // expected-error @+2 {{ratio must lie in [0, 1), got}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %q, %q dropout %i, %i {scale = 1.0 : f64, ratio = 1.0 : f64, site = 0 : i64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<i64>, tensor<i64>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_types(%q: tensor<2x5x3xf32>, %k: tensor<2x5x3xf64>) {
  // expected-error @+2 {{operands must have one element type}}
  // expected-error @+1 {{failed to infer returned types}}
  %o, %l = ckopt.attention %q, %k, %q {scale = 1.0 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf64>, tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x2xf32>)
  return
}

// -----

func.func @attention_grad_shapes(%q: tensor<2x5x3xf32>, %l: tensor<2x4xf32>, %g: tensor<2x5x4xf32>) {
  // expected-error @+2 {{output and its gradient must have the shape of attention's result, got 'tensor<2x5x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.attention_grad %q, %q, %q of %q, %l by %g {scale = 1.0 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x4xf32>, tensor<2x5x4xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>)
  return
}

// -----

func.func @attention_grad_rows(%q: tensor<2x5x3xf32>, %l: tensor<2x4xf32>) {
  // expected-error @+2 {{lse must have two numbers for each row, got 'tensor<2x4xf32>'}}
  // expected-error @+1 {{failed to infer returned types}}
  %0:3 = ckopt.attention_grad %q, %q, %q of %q, %l by %q {scale = 1.0 : f64} : (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x4xf32>, tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>, tensor<2x5x3xf32>, tensor<2x5x3xf32>)
  return
}
